"""Hand-built models with several sub-graphs, and models with state."""

import numpy as np

from tests.models.build import Graph, Net, fill, schema
from tests.models.registry import IMAGE, SCALE, add, conv, handmade, noise, relu, start

# --- IF and WHILE ---------------------------------------------------------------------------


def _branch(net: Net, name: str) -> Graph:
    """Append a sub-graph IMAGE -> IMAGE of one operator; both branches share scales."""
    graph = net.graph(name)
    x = graph.input(f"{name}/x", IMAGE, scale=SCALE, zero=2)
    if name.startswith("then"):
        graph.outputs(conv(graph, x, IMAGE, f"{name}/conv"))
    else:
        y = relu(graph, x, IMAGE, f"{name}/relu")
        graph.outputs(conv(graph, y, IMAGE, f"{name}/other"))
    return graph


def _if(net: Net, graph: Graph, flag: int, x: int, then: Graph, other: Graph) -> int:
    out = graph.tensor(f"{graph.table.name}/if", IMAGE, scale=SCALE, zero=3)
    indices = {"thenSubgraphIndex": then.index, "elseSubgraphIndex": other.index}
    graph.op("IF", [flag, x], [out], "IfOptions", **indices)
    return out


@handmade()
def if_else() -> bytes:
    """IF between two operators; both branches read the same scale and give the same scale."""
    net, graph, x = start()
    flag = graph.input("flag", (1,), "bool")
    then, other = _branch(net, "then"), _branch(net, "else")
    y = conv(graph, x, IMAGE)
    chosen = _if(net, graph, flag, y, then, other)
    graph.outputs(relu(graph, chosen, IMAGE))
    return net.finish()


@handmade()
def one_subgraph_called_twice() -> bytes:
    """Two IFs that share their branches: a branch's tensors live from first to last call."""
    net, graph, x = start()
    flag = graph.input("flag", (1,), "bool")
    then, other = _branch(net, "then"), _branch(net, "else")
    first = _if(net, graph, flag, x, then, other)
    middle = conv(graph, first, IMAGE, "middle")
    graph.outputs(_if(net, graph, flag, middle, other, then))
    return net.finish()


def repeated_conv(net: Net, graph: Graph, counter: int, x: int, rounds: int, tag: str = "") -> int:
    """Append WHILE(i < rounds): x = conv(x), i += 1; return the final x."""
    condition, body = net.graph(f"{tag}condition"), net.graph(f"{tag}body")
    i = condition.input("i", (1,), "int32")
    condition.input("x", IMAGE, scale=SCALE, zero=3)
    limit = condition.constant("limit", [rounds])
    less = condition.tensor("less", (1,), "bool")
    condition.op("LESS", [i, limit], [less], "LessOptions")
    condition.outputs(less)

    i, y = body.input("i", (1,), "int32"), body.input("x", IMAGE, scale=SCALE, zero=3)
    one, following = body.constant("one", [1]), body.tensor("i_next", (1,), "int32")
    body.op("ADD", [i, one], [following], "AddOptions")
    body.outputs(following, conv(body, y, IMAGE))

    fields = {"condSubgraphIndex": condition.index, "bodySubgraphIndex": body.index}
    last = graph.tensor(f"{tag}i_last", (1,), "int32")
    out = graph.tensor(f"{tag}x_last", IMAGE, scale=SCALE, zero=3)
    graph.op("WHILE", [counter, x], [last, out], "WhileOptions", **fields)
    return out


@handmade()
def while_loop() -> bytes:
    """A convolution applied three times by WHILE."""
    net, graph, x = start()
    y = conv(graph, x, IMAGE, "before")
    counter = graph.constant("zero", [0])
    graph.outputs(relu(graph, repeated_conv(net, graph, counter, y, 3), IMAGE))
    return net.finish()


@handmade()
def while_in_if() -> bytes:
    """IF whose first branch is a WHILE."""
    net, graph, x = start()
    flag = graph.input("flag", (1,), "bool")
    then = net.graph("then")
    inner = then.input("then/x", IMAGE, scale=SCALE, zero=2)
    start_value = conv(then, inner, IMAGE, "then/before")
    then.outputs(repeated_conv(net, then, then.constant("zero", [0]), start_value, 2, "then/"))
    other = _branch(net, "else")
    y = _if(net, graph, flag, relu(graph, x, IMAGE), then, other)
    graph.outputs(add(graph, y, x, IMAGE))
    return net.finish()


@handmade()
def unreachable_subgraph() -> bytes:
    """A sub-graph no operator calls, and no signature names."""
    net, graph, x = start()
    graph.outputs(relu(graph, x, IMAGE))
    lost = net.graph("lost")
    y = lost.input("lost/x", (2, 7), scale=SCALE)
    lost.outputs(relu(lost, y, (2, 7), "lost/relu"))
    return net.finish()


@handmade()
def signature_per_subgraph() -> bytes:
    """Two entry points: a signature for each of two sub-graphs that do not call each other."""
    net, graph, x = start()
    graph.outputs(conv(graph, x, IMAGE))
    second = net.graph("second")
    y = second.input("y", (2, 7), scale=SCALE)
    second.outputs(relu(second, y, (2, 7), "second/relu"))
    net.signature("encode", graph, ["image"], ["features"])
    net.signature("clip", second, ["y"], ["z"])
    return net.finish()


# --- state ----------------------------------------------------------------------------------


def _handle(graph: Graph, name: str) -> int:
    handle = graph.tensor(f"{graph.table.name}/{name}", (1,), "resource")
    graph.op("VAR_HANDLE", [], [handle], "VarHandleOptions", container="", sharedName=name)
    return handle


@handmade()
def call_once() -> bytes:
    """A resource variable: CALL_ONCE sets it, each run adds the input to it."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 4), scale=SCALE)
    once = net.graph("initialise")
    first = once.constant("first", [[1, -2, 3, -4]], "int8", scale=SCALE)
    once.op("ASSIGN_VARIABLE", [_handle(once, "total"), first], [], "AssignVariableOptions")
    graph.op("CALL_ONCE", [], [], "CallOnceOptions", initSubgraphIndex=once.index)
    handle = _handle(graph, "total")
    old = graph.tensor("old", (1, 4), scale=SCALE)
    graph.op("READ_VARIABLE", [handle], [old], "ReadVariableOptions")
    new = graph.tensor("new", (1, 4), scale=SCALE)
    graph.op("ADD", [old, x], [new], "AddOptions", version=2)
    graph.op("ASSIGN_VARIABLE", [handle, new], [], "AssignVariableOptions")
    graph.outputs(new)
    return net.finish()


@handmade()
def svdf() -> bytes:
    """SVDF with an int8 variable tensor that carries the past from run to run."""
    net = Net()
    graph = net.graph()
    graph.outputs(_svdf(graph, graph.input("x", (1, 8), scale=SCALE), features=8))
    return net.finish()


def _svdf(graph: Graph, x: int, features: int) -> int:
    """SVDF of so many features with five results."""
    batch, units, memory = 1, 5, 4
    feature = graph.constant("feature", noise((units, features)), "int8", scale=0.01)
    time = graph.constant("time", noise((units, memory), -30000, 30000), "int16", scale=1e-4)
    bias = graph.constant("bias", noise((units,), -500, 500), "int32", scale=2e-6)
    state = graph.tensor("state", (batch, units * memory), "int16", scale=0.02, isVariable=True)
    y = graph.tensor("y", (batch, units), scale=SCALE)
    fields = {"rank": 1, "fusedActivationFunction": 1}
    graph.op("SVDF", [x, feature, time, bias, state], [y], "SVDFOptions", version=3, **fields)
    return y


@handmade()
def svdf_in_loop() -> bytes:
    """SVDF in the body of a WHILE of three turns, whose variable TFLM looks up in a list that
    begins with the tensors of the first sub-graph; there its number is that of an activation."""
    shape = (1, 5)
    net = Net()
    graph, test, body = net.graph(), net.graph("test"), net.graph("body")
    turn = test.input("turn", (1,), "int32")
    test.input("value", shape, scale=SCALE)
    goes_on = test.tensor("goes_on", (1,), "bool")
    test.op("LESS", [turn, test.constant("three", [3])], [goes_on], "LessOptions")
    test.outputs(goes_on)
    turn = body.input("turn", (1,), "int32")
    value = body.input("value", shape, scale=SCALE)
    next_turn = body.tensor("next_turn", (1,), "int32")
    body.op("ADD", [turn, body.constant("one", [1])], [next_turn], "AddOptions")
    body.outputs(next_turn, _svdf(body, value, features=5))
    x = graph.input("x", shape, scale=SCALE)
    for number in range(6):
        x = relu(graph, x, shape, f"before{number}")
    turns, y = graph.tensor("turns", (1,), "int32"), graph.tensor("y", shape, scale=SCALE)
    calls = {"condSubgraphIndex": test.index, "bodySubgraphIndex": body.index}
    graph.op("WHILE", [graph.constant("zero", [0]), x], [turns, y], "WhileOptions", **calls)
    graph.outputs(y)
    return net.finish()


@handmade()
def lstm() -> bytes:
    """Float UNIDIRECTIONAL_SEQUENCE_LSTM: 24 inputs, half of them absent, two of them state."""
    batch, time, features, cells = 1, 3, 4, 5
    net = Net()
    graph = net.graph()
    x = graph.input("x", (batch, time, features), "float32")
    operands = [x, *[-1] * 23]
    for slot in range(1, 9):
        shape = (cells, features if slot < 5 else cells)
        weights = noise(shape, seed=slot) / 150
        operands[slot] = graph.constant(f"weights{slot}", weights, "float32")
    for slot in range(12, 16):
        bias = noise((cells,), seed=slot) / 200
        operands[slot] = graph.constant(f"bias{slot}", bias, "float32")
    for slot, name in ((18, "output_state"), (19, "cell_state")):
        operands[slot] = graph.tensor(name, (batch, cells), "float32", isVariable=True)
    y = graph.tensor("y", (batch, time, cells), "float32")
    options = "UnidirectionalSequenceLSTMOptions"
    fields = {"fusedActivationFunction": 4, "cellClip": 10.0, "version": 1}
    graph.op("UNIDIRECTIONAL_SEQUENCE_LSTM", operands, [y], options, **fields)
    graph.outputs(y)
    return net.finish()


@handmade()
def lstm_int8() -> bytes:
    """int8 LSTM with its five `intermediates`, which carry only quantisation."""
    batch, time, features, cells = 1, 3, 4, 6
    net = Net()
    graph = net.graph()
    x = graph.input("x", (batch, time, features), scale=1 / 64)
    operands = [x, *[-1] * 23]
    for slot in range(1, 9):
        shape = (cells, features if slot < 5 else cells)
        operands[slot] = graph.constant(
            f"weights{slot}", noise(shape, seed=slot), "int8", scale=1 / 150
        )
    for slot in range(12, 16):
        bias = noise((cells,), -3000, 3000, seed=slot)
        operands[slot] = graph.constant(f"bias{slot}", bias, "int32", scale=1 / 64 / 150)
    operands[18] = graph.tensor("hidden", (batch, cells), scale=1 / 128, isVariable=True)
    operands[19] = graph.tensor("cell", (batch, cells), "int16", scale=2**-11, isVariable=True)
    y = graph.tensor("y", (batch, time, cells), scale=1 / 128)
    middle = [graph.tensor(f"gate{i}", (0,), "int16", scale=2**-12) for i in range(4)]
    middle.append(graph.tensor("hidden_scale", (0,), "int8", scale=1 / 128))
    options = "UnidirectionalSequenceLSTMOptions"
    graph.op(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        operands,
        [y],
        options,
        extra={"intermediates": middle},
        fusedActivationFunction=4,
        cellClip=10.0,
    )
    graph.outputs(y)
    return net.finish()


@handmade(litert=False, tflm=False)
def debug_metadata() -> bytes:
    """Indices into debug metadata on graph and operator, and a variable without a reader."""
    net, graph, x = start()
    graph.tensor("state", (1, 9), isVariable=True, scale=SCALE)
    graph.outputs(relu(graph, x, IMAGE))
    fill(graph.table, {"debugMetadataIndex": 3})
    fill(graph.table.operators[0], {"debugMetadataIndex": 5})
    graph.custom("Log", [x], [], np.arange(4, dtype=np.uint8).tobytes())
    graph.table.operators[-1].customOptionsFormat = schema.CustomOptionsFormat.FLEXBUFFERS
    return net.finish()
