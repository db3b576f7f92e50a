"""Rules for the shapes, options and small constants of each operator kind, which
`model.check_operators` combines. A rule returns in words what is wrong, or None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tflm_planner.model.constants import integers
from tflm_planner.model.ir import Op, Tensor
from tflm_planner.model.options import SAME_PADDING, VALID_PADDING


class Misfit(str):
    """Shapes that do not fit each other: the file is damaged, or the model has a free batch, which
    is declared as 1 in every shape (`tflm.declared_shapes`)."""


Fault = str | None
"""What is wrong with an operator, in words; None if nothing is."""
Rule = Callable[[Op], Fault]

MOST_SIZE = 1 << 16
"""Largest stride, dilation and window: no kernel has larger ones, and sums must stay small."""


def _shape(tensor: Tensor | None) -> tuple[int, ...]:
    return () if tensor is None else tensor.shape or ()


def _text(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape)) or "a scalar"


# --- rules that many operators share -----------------------------------------------------------


def at_least(operands: int) -> Rule:
    """The first `operands` operands are present, and there is a result."""

    def rule(op: Op) -> Fault:
        present = sum(t is not None for t in op.inputs[:operands])
        if present < operands or not op.outputs:
            return f"has {present} of its {operands} operands, and {len(op.outputs)} results"
        return None

    return rule


def ranks(rank: int, *operands: int) -> Rule:
    """These operands and the first result have `rank` axes."""

    def rule(op: Op) -> Fault:
        for tensor in (*(op.inputs[i] for i in operands), op.outputs[0]):
            if len(_shape(tensor)) != rank:
                return f"has a tensor of {_text(_shape(tensor))}, where {rank} axes belong"
        return None

    return rule


def sizes(*fields: str) -> Rule:
    """Options that count rows or columns are at least 1."""

    def rule(op: Op) -> Fault:
        for name in fields:
            value = op.options.number(name, 1)
            if not 1 <= value <= MOST_SIZE:
                return f"has {value} as {name}, which must be 1 or more"
        return None

    return rule


def same_elements(op: Op) -> Fault:
    """The result has as many elements as the first operand."""
    return _result_size_fault(op, _shape(op.inputs[0]))


def _result_size_fault(op: Op, shape: Sequence[int]) -> Fault:
    """The first result has as many elements as a tensor of `shape`, which the operator computes."""
    result = op.outputs[0]
    if math.prod(shape) == result.elements:
        return None
    return Misfit(f"makes {_text(shape)}, but its result is declared as {_text(_shape(result))}")


def broadcast(op: Op) -> Fault:
    """The shapes of the operands broadcast to a shape with as many elements as the result."""
    shapes = [_shape(t) for t in op.operands()]
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    joined = tuple(max(sizes) if 0 not in sizes else 0 for sizes in zip(*padded, strict=True))
    if any(n not in (1, m) for s in padded for n, m in zip(s, joined, strict=True)):
        return Misfit(f"joins operands of shapes that do not fit: {', '.join(map(_text, shapes))}")
    return _result_size_fault(op, joined)


def _bad_axis(axes: Sequence[int], rank: int) -> Fault:
    wrong = [a for a in axes if not -rank <= a < rank]
    return f"has the axis {wrong[0]} of a tensor of {rank} axes" if wrong else None


def axis_operand(operand: int, data: int = 0, more: int = 0) -> Rule:
    """An operand names axes of operand `data`, or of a tensor with `more` additional axes."""

    def rule(op: Op) -> Fault:
        axes = integers(op.inputs[operand])
        return None if axes is None else _bad_axis(axes, len(_shape(op.inputs[data])) + more)

    return rule


# --- operators ------------------------------------------------------------------------------------


def _window_sizes(op: Op, kernel: Sequence[int]) -> Fault:
    """The result has at most as many rows and columns as the window computes."""
    data, out, options = _shape(op.inputs[0]), _shape(op.outputs[0]), op.options
    stride, dilation = options.stride, options.dilation
    if data[0] != out[0]:
        return Misfit(f"makes {data[0]} images, but its result is declared as {_text(out)}")
    for axis in (0, 1):
        reach = (kernel[axis] - 1) * dilation[axis] + 1
        covered = data[1 + axis] - (reach - 1 if options.padding == VALID_PADDING else 0)
        size = -(-covered // stride[axis])
        is_known = options.padding in (SAME_PADDING, VALID_PADDING)
        if not is_known or not 0 <= out[1 + axis] <= max(size, 0):
            what = ("rows", "columns")[axis]
            return Misfit(
                f"makes {max(size, 0)} {what}, but its result is declared as {_text(out)}"
            )
    return None


def _bias(op: Op, channels: int) -> Fault:
    """A bias, if there is one, has one element per channel."""
    bias = op.inputs[2] if len(op.inputs) > 2 else None
    if bias is None or bias.elements == channels:
        return None
    return f"has a bias of {_text(_shape(bias))} for {channels} channels"


def convolution(op: Op) -> Fault:
    """CONV_2D: filter (Co, Kh, Kw, Ci / groups)."""
    data, kernel, out = (_shape(t) for t in (*op.inputs[:2], op.outputs[0]))
    if min(kernel) < 1 or data[3] % kernel[3] or kernel[0] % (data[3] // kernel[3] or 1):
        return f"has a filter of shape {_text(kernel)}, which does not fit data of {_text(data)}"
    if kernel[0] != out[3]:
        return f"makes {kernel[0]} channels, but its result is declared as {_text(out)}"
    return _bias(op, kernel[0]) or _window_sizes(op, kernel[1:3])


def depthwise(op: Op) -> Fault:
    """DEPTHWISE_CONV_2D: filter (1, Kh, Kw, Co)."""
    data, kernel, out = (_shape(t) for t in (*op.inputs[:2], op.outputs[0]))
    if min(kernel) < 1 or kernel[0] != 1 or data[3] < 1 or kernel[3] % data[3]:
        return f"has a filter of shape {_text(kernel)}, which does not fit data of {_text(data)}"
    if kernel[3] != out[3]:
        return f"makes {kernel[3]} channels, but its result is declared as {_text(out)}"
    return _bias(op, kernel[3]) or _window_sizes(op, kernel[1:3])


def pool(op: Op) -> Fault:
    """A pool does not change the number of channels."""
    data, out = _shape(op.inputs[0]), _shape(op.outputs[0])
    if data[3] != out[3]:
        return f"makes {data[3]} channels, but its result is declared as {_text(out)}"
    return _window_sizes(op, op.options.pool_size)


def fully_connected(op: Op) -> Fault:
    """Weights are (Co, Ci); the data are flattened to rows of Ci elements."""
    data, weights = op.operands()[0], _shape(op.inputs[1])
    if len(weights) != 2 or min(weights) < 1:
        return f"has weights of shape {_text(weights)}"
    if data.elements % weights[1]:
        return Misfit(f"has weights of {_text(weights)} for data of {_text(_shape(data))}")
    return _result_size_fault(op, (data.elements // weights[1], weights[0]))


def batch_matmul(op: Op) -> Fault:
    """The axes that are summed up have the same size in both operands."""
    shapes = [_shape(t) for t in op.inputs[:2]]
    flags = op.options.transposes
    if any(len(s) < 2 for s in shapes):
        return f"multiplies {' by '.join(map(_text, shapes))}, which are no matrices"
    left, right = (s[::-1][:2] if flag else s[-2:] for s, flag in zip(shapes, flags, strict=True))
    if left[1] != right[0]:
        return Misfit(f"multiplies {' by '.join(map(_text, shapes))}, which do not fit")
    return None


def reduction(op: Op) -> Fault:
    """The reduced axes exist; the result has the elements of the other axes."""
    axes, shape = integers(op.inputs[1]), _shape(op.inputs[0])
    if axes is None or not shape:
        return None if shape else _result_size_fault(op, ())
    fault = _bad_axis(axes, len(shape))
    if fault is not None:
        return fault
    reduced = {a % len(shape) for a in axes}
    return _result_size_fault(op, [n for a, n in enumerate(shape) if a not in reduced])


def transpose(op: Op) -> Fault:
    """The order is a permutation."""
    order, rank = integers(op.inputs[1]), len(_shape(op.inputs[0]))
    if order is not None and sorted(order) != list(range(rank)):
        return f"has the order {order}, which is no permutation of {rank} axes"
    return same_elements(op)


def concatenation(op: Op) -> Fault:
    """Shapes are equal except along one axis."""
    shapes, out = [_shape(t) for t in op.operands()], _shape(op.outputs[0])
    if {len(s) for s in shapes} != {len(out)} or not out:
        return f"joins {', '.join(map(_text, shapes))} to {_text(out)}"
    axis = op.options.axis
    fault = _bad_axis([axis], len(out))
    if fault is not None:
        return fault
    joined = list(shapes[0])
    joined[axis] = sum(s[axis] for s in shapes)
    alike = all(s[a] == n for s in shapes for a, n in enumerate(joined) if a != axis % len(out))
    if not alike:
        return Misfit(f"joins shapes that do not fit: {', '.join(map(_text, shapes))}")
    return _result_size_fault(op, joined)


def pack(op: Op) -> Fault:
    """Shapes are equal, and there are as many operands as the options say."""
    shapes = [_shape(t) for t in op.operands()]
    count = op.options.number("valuesCount")
    if count != len(op.inputs):
        return f"says that it packs {count} tensors, and has {len(op.inputs)}"
    if len({*shapes}) > 1:
        return Misfit(f"packs different shapes: {', '.join(map(_text, shapes))}")
    rank = len(shapes[0]) + 1
    return _bad_axis([op.options.axis], rank) or _result_size_fault(op, (count, *shapes[0]))


def unpack(op: Op) -> Fault:
    """There are as many results as the axis has indices."""
    shape = _shape(op.inputs[0])
    axis = op.options.axis
    fault = _bad_axis([axis], len(shape))
    if fault is not None:
        return fault
    if len(op.outputs) != shape[axis] or op.options.number("num") != len(op.outputs):
        return Misfit(f"unpacks {shape[axis]} parts of {_text(shape)} to {len(op.outputs)} results")
    part = [n for a, n in enumerate(shape) if a != axis % len(shape)]
    return _parts(op, [part] * len(op.outputs))


def split(op: Op) -> Fault:
    """SPLIT reads (axis, data)."""
    data, axes = op.operands()[1], integers(op.inputs[0])
    return _split_parts(op, data, axes, None)


def split_v(op: Op) -> Fault:
    """SPLIT_V reads (data, sizes, axis)."""
    return _split_parts(op, op.operands()[0], integers(op.inputs[2]), integers(op.inputs[1]))


def _split_parts(op: Op, data: Tensor, axes: list[int] | None, sizes: list[int] | None) -> Fault:
    shape = _shape(data)
    if any(len(_shape(t)) != len(shape) for t in op.outputs):
        return f"splits {_text(shape)} to {', '.join(_text(_shape(t)) for t in op.outputs)}"
    if axes is None:
        return None
    fault = (
        _bad_axis(axes, len(shape)) if len(axes) == 1 else f"has {len(axes)} axes to split along"
    )
    if fault is not None:
        return fault
    count, size = len(op.outputs), shape[axes[0]]
    if sizes is None and size % count:
        return Misfit(f"splits {size} of {_text(shape)} into {count} parts")
    sizes = sizes or [size // count] * count
    remainder = size - sum(n for n in sizes if n >= 0)
    sizes = [remainder if n == -1 else n for n in sizes]
    if len(sizes) != count or sum(sizes) != size or min(sizes) < 0:
        return Misfit(f"splits {size} of {_text(shape)} into parts of {', '.join(map(str, sizes))}")
    axis = axes[0] % len(shape)
    return _parts(op, [(*shape[:axis], n, *shape[axis + 1 :]) for n in sizes])


def _parts(op: Op, shapes: Sequence[Sequence[int]]) -> Fault:
    for shape, result in zip(shapes, op.outputs, strict=True):
        if math.prod(shape) != result.elements:
            return Misfit(
                f"makes {_text(shape)}, but a result is declared as {_text(_shape(result))}"
            )
    return None


def cut(op: Op) -> Fault:
    """The part that is taken lies inside the operand."""
    shape, out = _shape(op.inputs[0]), _shape(op.outputs[0])
    begin, size = integers(op.inputs[1]), integers(op.inputs[2])
    if len(shape) != len(out):
        return f"takes {_text(out)} from {_text(shape)}"
    for per_axis in (begin, size):
        if per_axis is not None and len(per_axis) != len(shape):
            return f"says for {len(per_axis)} axes what to take of {_text(shape)}"
    starts = begin or [0] * len(shape)
    if any(b < 0 or b + n > m for b, n, m in zip(starts, out, shape, strict=True)):
        return Misfit(f"takes {_text(out)} from {_text(starts)} on of {_text(shape)}")
    return None


def strided_slice(op: Op) -> Fault:
    """No stride is 0, and the result has at most as many elements as the operand."""
    shape = _shape(op.inputs[0])
    values = [integers(t) for t in op.inputs[1:4]]
    lengths = {len(v) for v in values if v is not None}
    new_axes = op.options.adds_axes
    if len(lengths) > 1 or (max(lengths, default=0) > len(shape) and not new_axes):
        return f"says for {max(lengths)} axes what to take of {_text(shape)}"
    if values[2] is not None and 0 in values[2]:
        return "has a stride of 0"
    if op.outputs[0].elements > op.operands()[0].elements:
        return Misfit(f"takes {_text(_shape(op.outputs[0]))} of {_text(shape)}")
    return None


def padding(op: Op) -> Fault:
    """PAD: two numbers for each axis, and a result of the padded size. MIRROR_PAD: no more than
    there is to mirror (REFLECT leaves out the border); TFLM would read outside of its operand."""
    pads, shape = integers(op.inputs[1]), _shape(op.inputs[0])
    if pads is None:
        return None
    if len(pads) != 2 * len(shape) or min(pads, default=0) < 0:
        return f"pads {_text(shape)} by {pads}"
    there = [n - (op.options.number("mode") == 0) for n in shape]
    if op.kind == "MIRROR_PAD" and any(by > there[place // 2] for place, by in enumerate(pads)):
        return f"mirrors {pads} of the {there} elements that its axes have for it"
    return _result_size_fault(op, [n + pads[2 * a] + pads[2 * a + 1] for a, n in enumerate(shape)])


def gather(op: Op) -> Fault:
    """GATHER: the indices are those of existing rows."""
    shape, indices = _shape(op.inputs[0]), _shape(op.inputs[1])
    axis, batches = op.options.axis, op.options.batch_dims
    fault = _bad_axis([axis], len(shape))
    if fault is not None:
        return fault
    if not 0 <= batches <= min(axis % len(shape), len(indices)):
        return f"has {batches} as batchDims, of shapes {_text(shape)} and {_text(indices)}"
    rows = integers(op.inputs[1])
    if rows is not None and any(not 0 <= r < shape[axis] for r in rows):
        return f"takes rows {min(rows)} to {max(rows)} of {shape[axis]}"
    axis %= len(shape)
    return _result_size_fault(op, (*shape[:axis], *indices[batches:], *shape[axis + 1 :]))


def resize(op: Op) -> Fault:
    """RESIZE: two sizes, which are the numbers of rows and columns of the result."""
    shape, out, sizes = _shape(op.inputs[0]), _shape(op.outputs[0]), integers(op.inputs[1])
    if sizes is not None and (len(sizes) != 2 or min(sizes) < 1):
        return f"resizes to {sizes}"
    rows = sizes or list(out[1:3])
    return _result_size_fault(op, (shape[0], *rows, shape[3]))


def blocks(op: Op) -> Fault:
    """DEPTH_TO_SPACE and SPACE_TO_DEPTH."""
    size, shape = op.options.number("blockSize"), _shape(op.inputs[0])
    divided = [shape[3]] if op.kind == "DEPTH_TO_SPACE" else list(shape[1:3])
    unit = size * size if op.kind == "DEPTH_TO_SPACE" else size
    if not 1 <= size <= MOST_SIZE or any(n % unit for n in divided):
        return f"has blocks of {size} in {_text(shape)}"
    return same_elements(op)


def batch_blocks(op: Op) -> Fault:
    """SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND. Shapes of results are checked in
    `tflm.declared_shapes`."""
    block, edges = integers(op.inputs[1]), integers(op.inputs[2])
    rank = len(_shape(op.inputs[0]))
    if block is None or edges is None:
        return None
    if not block or min(block) < 1 or len(block) >= rank or len(edges) != 2 * len(block):
        return f"has blocks of {block} and edges of {edges} for {rank} axes"
    return f"has edges of {edges}" if min(edges) < 0 else None


def svdf(op: Op) -> Fault:
    """The result has one unit for each `rank` rows of the feature filters."""
    rank = op.options.number("rank")
    shapes = [_shape(t) for t in op.inputs[:3]]
    if any(len(s) != 2 for s in shapes) or rank < 1 or shapes[1][0] % rank:
        return f"has rank {rank} and operands of {', '.join(map(_text, shapes))}"
    return _result_size_fault(op, (shapes[0][0], shapes[1][0] // rank))
