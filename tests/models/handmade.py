"""Hand-built tiny models, one for each corner of the schema and of graph shape.

`MODELS` maps a name to a `Handmade`: call `.make()` for the bytes. The models test that nothing
is lost in reading and writing, and that lifetimes and plans are right in graphs converters
rarely make. Here are the graphs; in `handmade_data` the tensors, buffers and file layouts, in
`handmade_flow` control flow and state.
"""

import numpy as np

from tests.models import handmade_data, handmade_flow
from tests.models.build import Net
from tests.models.registry import IMAGE, MODELS, SCALE, Handmade, add, conv, handmade, relu, start

__all__ = ["MODELS", "Handmade", "handmade_data", "handmade_flow"]


@handmade()
def chain() -> bytes:
    """Two convolutions and a RELU: the plainest model."""
    net, graph, x = start()
    y = conv(graph, conv(graph, x, IMAGE, "first"), IMAGE, "second")
    graph.outputs(relu(graph, y, IMAGE))
    return net.finish()


@handmade()
def same_operand_twice() -> bytes:
    """ADD(x, x), then a CONCATENATION of one tensor with itself."""
    net, graph, x = start()
    doubled = add(graph, x, x, IMAGE)
    out = graph.tensor("pair", (1, 6, 6, 8), scale=2 * SCALE, zero=-5)
    graph.op("CONCATENATION", [doubled, doubled], [out], "ConcatenationOptions", axis=3)
    graph.outputs(out)
    return net.finish()


@handmade()
def several_outputs() -> bytes:
    """SPLIT whose three parts are outputs, listed in another order; one is also consumed."""
    net, graph, x = start((1, 6, 6, 6))
    axis = graph.constant("axis", 3)
    parts = [graph.tensor(f"part{i}", (1, 6, 6, 2), scale=SCALE, zero=2) for i in range(3)]
    graph.op("SPLIT", [axis, x], parts, "SplitOptions", numSplits=3)
    used = relu(graph, parts[1], (1, 6, 6, 2))
    graph.outputs(parts[2], parts[0], used, parts[1])
    return net.finish()


@handmade()
def output_listed_twice() -> bytes:
    """One tensor, twice among the graph's outputs."""
    net, graph, x = start()
    y = conv(graph, x, IMAGE)
    graph.outputs(y, y)
    return net.finish()


@handmade()
def input_is_output() -> bytes:
    """A graph input that is also a graph output, beside a computed one."""
    net, graph, x = start()
    graph.outputs(conv(graph, x, IMAGE), x)
    return net.finish()


@handmade()
def unused_input() -> bytes:
    """Two inputs, of which nobody reads the first."""
    net = Net()
    graph = net.graph()
    graph.input("ignored", (1, 50), scale=SCALE)
    x = graph.input("x", IMAGE, scale=SCALE, zero=2)
    graph.outputs(relu(graph, x, IMAGE))
    return net.finish()


@handmade()
def unused_output_of_operator() -> bytes:
    """SPLIT of which one part is neither read nor an output."""
    net, graph, x = start((1, 6, 6, 6))
    axis = graph.constant("axis", -1)
    parts = [graph.tensor(f"part{i}", (1, 6, 6, 3), scale=SCALE, zero=2) for i in range(2)]
    graph.op("SPLIT", [axis, x], parts, "SplitOptions", numSplits=2)
    graph.outputs(relu(graph, parts[1], (1, 6, 6, 3)))
    return net.finish()


@handmade()
def unconnected_tensors() -> bytes:
    """A big activation and a constant that no operator touches; the first inflates TFLM's head."""
    net, graph, x = start()
    graph.tensor("orphan", (1, 20, 20, 10), scale=SCALE)
    graph.constant("orphan_constant", np.arange(12))
    graph.outputs(relu(graph, x, IMAGE))
    return net.finish()


@handmade()
def dead_branch() -> bytes:
    """An operator whose result nobody needs."""
    net, graph, x = start()
    conv(graph, x, IMAGE, "dead")
    graph.outputs(relu(graph, x, IMAGE))
    return net.finish()


@handmade()
def optional_input() -> bytes:
    """FULLY_CONNECTED without bias, written as tensor -1."""
    net, graph, x = start((2, 8))
    values = np.arange(40).reshape(5, 8) - 20
    weights = graph.constant("weights", values, "int8", scale=0.01)
    out = graph.tensor("y", (2, 5), scale=SCALE, zero=-1)
    graph.op("FULLY_CONNECTED", [x, weights, -1], [out], "FullyConnectedOptions", version=4)
    graph.outputs(out)
    return net.finish()


@handmade()
def branches_of_different_depth() -> bytes:
    """Three branches of one input, joined by ADD and CONCATENATION: order and fusion matter."""
    net, graph, x = start()
    short = relu(graph, x, IMAGE, "short")
    middle = conv(graph, conv(graph, x, IMAGE, "m1"), IMAGE, "middle")
    deep = conv(graph, conv(graph, conv(graph, x, IMAGE, "d"), IMAGE, "d_"), IMAGE, "deep_")
    left, right = add(graph, short, deep, IMAGE, "left"), add(graph, middle, deep, IMAGE, "right")
    out = graph.tensor("joined", (1, 12, 6, 4), scale=2 * SCALE, zero=-5)
    graph.op("CONCATENATION", [left, right], [out], "ConcatenationOptions", axis=1)
    graph.outputs(out)
    return net.finish()


@handmade()
def bad_order() -> bytes:
    """Eight operators in the worst order: all wide tensors first, then all reductions."""
    net, graph, x = start()
    wide = [conv(graph, x, IMAGE, f"wide{i}") for i in range(4)]
    axes = graph.constant("axes", [1, 2])
    narrow = []
    for i, tensor in enumerate(wide):
        narrow.append(graph.tensor(f"narrow{i}", (1, 4), scale=SCALE, zero=3))
        graph.op("MEAN", [tensor, axes], [narrow[-1]], "ReducerOptions", version=2)
    out = graph.tensor("all", (1, 16), scale=SCALE, zero=3)
    graph.op("CONCATENATION", narrow, [out], "ConcatenationOptions", axis=1)
    graph.outputs(out)
    return net.finish()


@handmade()
def batch_of_three() -> bytes:
    """Batch size 3 through a convolution."""
    net, graph, x = start((3, 6, 6, 4))
    graph.outputs(conv(graph, x, (3, 6, 6, 4)))
    return net.finish()


@handmade()
def scalars() -> bytes:
    """Rank-0 tensors: a scalar input, a scalar constant and a scalar output."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (), "float32")
    half = graph.constant("half", 0.5, "float32")
    out = graph.tensor("y", (), "float32")
    graph.op("ADD", [x, half], [out], "AddOptions")
    graph.outputs(out)
    return net.finish()


@handmade()
def zero_size_constant() -> bytes:
    """RESHAPE to a scalar: the shape operand is a tensor of no elements."""
    net, graph, x = start((1, 1))
    shape = graph.tensor("shape", (0,), "int32")
    out = graph.tensor("y", (), scale=SCALE, zero=2)
    graph.op("RESHAPE", [x, shape], [out], "ReshapeOptions", newShape=[])
    graph.outputs(out)
    return net.finish()


@handmade()
def zero_size_activation() -> bytes:
    """CONCATENATION with an input of zero rows."""
    net, graph, x = start((4, 3))
    nothing = graph.input("nothing", (0, 3), scale=SCALE, zero=2)
    out = graph.tensor("y", (4, 3), scale=SCALE, zero=2)
    graph.op("CONCATENATION", [x, nothing], [out], "ConcatenationOptions", axis=0)
    graph.outputs(out)
    return net.finish()


@handmade()
def no_operators() -> bytes:
    """Input goes straight to output; there is nothing to run."""
    net, graph, x = start()
    graph.outputs(x)
    return net.finish()


@handmade()
def views_on_the_outer_axis() -> bytes:
    """SLICE in, CONCATENATION out along rows: both can be views of one buffer."""
    net, graph, x = start()
    halves = []
    for row in (0, 3):
        begin = graph.constant(f"begin{row}", [0, row, 0, 0])
        size = graph.constant(f"size{row}", [1, 3, 6, 4])
        part = graph.tensor(f"rows{row}", (1, 3, 6, 4), scale=SCALE, zero=2)
        graph.op("SLICE", [x, begin, size], [part], "SliceOptions", version=2)
        halves.append(conv(graph, part, (1, 3, 6, 4), f"conv{row}"))
    out = graph.tensor("y", IMAGE, scale=SCALE, zero=3)
    graph.op("CONCATENATION", halves, [out], "ConcatenationOptions", axis=1)
    graph.outputs(out)
    return net.finish()


@handmade()
def reshape_chain() -> bytes:
    """RESHAPE, SQUEEZE and EXPAND_DIMS in a row: one buffer under five names."""
    net, graph, x = start()
    quantised = {"scale": SCALE, "zero": 3}
    y = conv(graph, x, IMAGE)
    flat = graph.tensor("flat", (1, 144), **quantised)
    shape = graph.constant("shape", [1, 144])
    graph.op("RESHAPE", [y, shape], [flat], "ReshapeOptions", newShape=[1, 144])
    row = graph.tensor("row", (144,), **quantised)
    graph.op("SQUEEZE", [flat], [row], "SqueezeOptions", squeezeDims=[0])
    column = graph.tensor("column", (144, 1), **quantised)
    graph.op("EXPAND_DIMS", [row, graph.constant("axis", 1)], [column], "ExpandDimsOptions")
    graph.outputs(column)
    return net.finish()
