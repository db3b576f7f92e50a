"""How the axes of an operator's result depend on the axes of its operands.

    CONV_2D   out (n, h, w, c)   n <- data n: Same    h <- data h: Slide    c <- filter 0: Same
                                 data c: summed up (a reduce axis)

An axis that is not linked depends on the whole operand. An operator without an entry has no links:
it cannot be split. Source of the idea: MOTES, section 4.3. This module must not know memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from tflm_planner.model.constants import integers
from tflm_planner.model.ir import Op, Tensor
from tflm_planner.model.options import SAME_PADDING
from tflm_planner.ops.axis_rules import SAME, Range, Repeat, Rule, Same, Scatter, Slide, Stretch
from tflm_planner.ops.hybrid import is_hybrid
from tflm_planner.ops.resize import resize_of
from tflm_planner.ops.roles import PADS, RESHAPES, SPLITS
from tflm_planner.ops.window import CONVOLUTIONS, POOLS, Window, window_of


@dataclass(frozen=True, slots=True)
class AxisLink:
    """Axis `out_axis` of result `result` follows axis `axis` of operand `operand` by `rule`."""

    operand: int
    axis: int
    out_axis: int
    rule: Rule = SAME
    result: int = 0


@dataclass(frozen=True, slots=True)
class Pick:
    """Result `result` reads only the indices `indices` of axis `axis` of operand `operand`,
    whichever part of the result is computed."""

    operand: int
    axis: int
    indices: Range
    result: int = 0


@dataclass(frozen=True, slots=True)
class AxisMap:
    """links: axes that correspond. reduces: pairs (operand, axis) of the axes over which a result
    is summed up; all pairs of one operator are the same reduce axis. picks: axes of which a fixed
    part is read."""

    links: tuple[AxisLink, ...] = ()
    reduces: tuple[tuple[int, int], ...] = ()
    picks: tuple[Pick, ...] = ()

    def links_of(self, out_axis: int, result: int = 0) -> list[AxisLink]:
        """The operand axes that an axis of a result follows."""
        return [k for k in self.links if k.out_axis == out_axis and k.result == result]


def axis_map(op: Op) -> AxisMap:
    """The axis map of an operator; an empty map if the operator cannot be split."""
    rule = _RULES.get(op.kind)
    if rule is None or not op.outputs or not op.operands() or op.graphs or is_hybrid(op):
        return AxisMap()
    if len(op.inputs) < _OPERANDS.get(op.kind, 1):
        return AxisMap()
    rule_map = rule(op)
    return rule_map if _refers_to_axes(rule_map, op) else AxisMap()


def _refers_to_axes(axis_links: AxisMap, op: Op) -> bool:
    """Whether the tensors have all axes that the map names. They do not if the constants and shapes
    of an operator contradict each other; no runtime runs such an operator."""
    operands = [len(shape_of(t)) for t in op.inputs]
    results = [len(shape_of(t)) for t in op.outputs]
    read_axes = [(k.operand, k.axis) for k in (*axis_links.links, *axis_links.picks)]
    return all(0 <= a < operands[i] for i, a in (*read_axes, *axis_links.reduces)) and all(
        0 <= k.out_axis < results[k.result] for k in axis_links.links
    )


def shape_of(tensor: Tensor | None) -> tuple[int, ...]:
    """The shape of a tensor; that of a scalar if there is no tensor or no shape."""
    return () if tensor is None else tensor.shape or ()


def _from_window(op: Op) -> AxisMap:
    window = window_of(op)
    return AxisMap() if window is None else _of_window(op.kind, window, tuple(_bias(op, 2, 3)))


@lru_cache(maxsize=1 << 12)
def _of_window(kind: str, window: Window, bias: tuple[AxisLink, ...]) -> AxisMap:
    slides = [
        AxisLink(0, 1 + i, 1 + i, Slide(window.kernel[i], window.stride[i], window.dilation[i], p))
        for i, p in enumerate(window.pad)
    ]
    links = [AxisLink(0, 0, 0), *slides]
    if kind == "CONV_2D":
        if window.groups > 1:
            return AxisMap(tuple(links))
        return AxisMap((*links, AxisLink(1, 0, 3), *bias), ((0, 3), (1, 3)))
    times = window.channels[1] // window.channels[0]
    links.append(AxisLink(0, 3, 3, Repeat(times) if times > 1 else Same()))
    if kind == "DEPTHWISE_CONV_2D":
        links += [AxisLink(1, 3, 3), *bias]
    return AxisMap(tuple(links))


def _bias(op: Op, operand: int, out_axis: int) -> list[AxisLink]:
    has_bias = len(op.inputs) > operand and op.inputs[operand] is not None
    return [AxisLink(operand, 0, out_axis)] if has_bias else []


def _element_wise(op: Op) -> AxisMap:
    """Every operand broadcasts to the result; axes are matched from the last one."""
    out = shape_of(op.outputs[0])
    links: list[AxisLink] = []
    for i, operand in enumerate(op.inputs):
        shape = shape_of(operand)
        lead = len(out) - len(shape)
        if lead < 0:
            return AxisMap()
        links += [AxisLink(i, a, a + lead) for a, n in enumerate(shape) if n == out[a + lead]]
    return AxisMap(tuple(links))


def _each_row(op: Op) -> AxisMap:
    """Each row along the last axis is computed separately."""
    last = len(shape_of(op.outputs[0])) - 1
    return AxisMap(tuple(k for k in _element_wise(op).links if k.out_axis != last))


def _map_of_pad(op: Op) -> AxisMap:
    pads = integers(op.inputs[1])
    shape = shape_of(op.inputs[0])
    if pads is None or len(pads) != 2 * len(shape):
        return AxisMap()
    return AxisMap(tuple(AxisLink(0, a, a, Same(-pads[2 * a])) for a in range(len(shape))))


def _map_of_concatenation(op: Op) -> AxisMap:
    out = shape_of(op.outputs[0])
    axis = op.options.axis % max(len(out), 1)
    links: list[AxisLink] = []
    start = 0
    for i, operand in enumerate(op.inputs):
        shape = shape_of(operand)
        if len(shape) != len(out):
            return AxisMap()
        links += [AxisLink(i, a, a, Same(-start if a == axis else 0)) for a in range(len(shape))]
        start += shape[axis] if shape else 0
    return AxisMap(tuple(links))


def _split(op: Op) -> AxisMap:
    axis_index, data_index = SPLITS[op.kind]
    axis = integers(op.inputs[axis_index])
    shape = shape_of(op.inputs[data_index])
    if axis is None or len(axis) != 1 or {len(shape_of(t)) for t in op.outputs} != {len(shape)}:
        return AxisMap()
    if not -len(shape) <= axis[0] < len(shape):
        return AxisMap()
    start, links = 0, list[AxisLink]()
    for r, result in enumerate(op.outputs):
        for a in range(len(shape)):
            shift = start if a == axis[0] % len(shape) else 0
            links.append(AxisLink(data_index, a, a, Same(shift), r))
        start += shape_of(result)[axis[0]]
    return AxisMap(tuple(links))


def _map_of_pack(op: Op) -> AxisMap:
    """The operands are stacked along a new axis, which no operand has."""
    axis = op.options.axis % max(len(shape_of(op.outputs[0])), 1)
    ranks = [len(shape_of(t)) for t in op.inputs]
    links = [AxisLink(i, a, a + (a >= axis)) for i, rank in enumerate(ranks) for a in range(rank)]
    return AxisMap(tuple(links))


def _map_of_unpack(op: Op) -> AxisMap:
    rank = len(shape_of(op.inputs[0]))
    axis = op.options.axis % max(rank, 1)
    links: list[AxisLink] = []
    for r in range(len(op.outputs)):
        links += [AxisLink(0, a, a - (a > axis), result=r) for a in range(rank) if a != axis]
    picks = [Pick(0, axis, (r, r + 1), r) for r in range(len(op.outputs))]
    return AxisMap(tuple(links), picks=tuple(picks))


def _map_of_slice(op: Op) -> AxisMap:
    begin, rank = integers(op.inputs[1]), len(shape_of(op.outputs[0]))
    if begin is None or len(begin) != rank:
        return AxisMap()
    return AxisMap(tuple(AxisLink(0, a, a, Same(begin[a])) for a in range(rank)))


def _map_of_strided_slice(op: Op) -> AxisMap:
    """One index per stride; an axis of which a single index is taken may be removed."""
    strides = strides_of(op)
    if strides is None:
        return AxisMap()
    links: list[AxisLink] = []
    picks: list[Pick] = []
    for axis, (begin, stride, vanishes) in enumerate(strides):
        if vanishes:
            picks.append(Pick(0, axis, (begin, begin + 1)))
        else:
            links.append(AxisLink(0, axis, axis - len(picks), Slide(1, stride, 1, -begin)))
    return AxisMap(tuple(links), picks=tuple(picks))


def strides_of(op: Op) -> list[tuple[int, int, bool]] | None:
    """For each axis of the operand of STRIDED_SLICE: the first index, the stride, and whether the
    axis is removed. None if that is unknown, new axes are added, or an axis is read backwards."""
    begin, strides = integers(op.inputs[1]), integers(op.inputs[3]) if len(op.inputs) > 3 else None
    shape = shape_of(op.inputs[0])
    if begin is None or strides is None or not len(shape) == len(begin) == len(strides):
        return None
    options = op.options
    if options.adds_axes or options.counts_from_begin or min(strides, default=1) < 1:
        return None
    per_axis: list[tuple[int, int, bool]] = []
    for axis, size in enumerate(shape):
        start = 0 if options.begin_mask >> axis & 1 else begin[axis]
        start = min(max(start + size if start < 0 else start, 0), size)
        per_axis.append((start, strides[axis], bool(options.shrink_axis_mask >> axis & 1)))
    staying = [t for t in per_axis if not t[2]]
    out = shape_of(op.outputs[0])
    if len(staying) != len(out) or any(t[0] >= n for t, n in zip(per_axis, shape, strict=True)):
        return None
    return per_axis


def _map_of_reshape(op: Op) -> AxisMap:
    """Links axes that the reshape leaves intact: same size, same number of elements before them."""
    source, out = shape_of(op.inputs[0]), shape_of(op.outputs[0])
    links = [
        AxisLink(0, i, j)
        for i, n in enumerate(source)
        for j, m in enumerate(out)
        if n == m > 1 and math.prod(source[:i]) == math.prod(out[:j])
    ]
    return AxisMap(tuple(links))


def _map_of_transpose(op: Op) -> AxisMap:
    order = integers(op.inputs[1])
    if order is None or len(order) != len(shape_of(op.outputs[0])):
        return AxisMap()
    return AxisMap(tuple(AxisLink(0, a, j) for j, a in enumerate(order)))


def _map_of_fully_connected(op: Op) -> AxisMap:
    """Data (.., Ci), weights (Co, Ci), result (.., Co)."""
    data, out = shape_of(op.inputs[0]), shape_of(op.outputs[0])
    rows = range(len(out) - 1) if data[:-1] == out[:-1] else ()
    links = [AxisLink(0, a, a) for a in rows]
    last = len(out) - 1
    # Operands that the operator flattens first have no single axis to sum up over.
    apart = data[-1:] == shape_of(op.inputs[1])[1:]
    reduces = ((0, len(data) - 1), (1, 1)) if apart else ()
    return AxisMap((*links, AxisLink(1, 0, last), *_bias(op, 2, last)), reduces)


def _batch_matmul(op: Op) -> AxisMap:
    out = shape_of(op.outputs[0])
    rank = len(out)
    if any(not 2 <= len(shape_of(t)) <= rank for t in op.inputs[:2]):
        return AxisMap()
    links: list[AxisLink] = []
    reduces: list[tuple[int, int]] = []
    transposed = op.options.transposes
    for i, result_axis in enumerate((rank - 2, rank - 1)):
        shape = shape_of(op.inputs[i])
        lead = rank - len(shape)
        links += [
            AxisLink(i, a, a + lead) for a in range(len(shape) - 2) if shape[a] == out[a + lead]
        ]
        outer_axis = len(shape) - (1 + i if transposed[i] else 2 - i)
        links.append(AxisLink(i, outer_axis, result_axis))
        reduces.append((i, 2 * len(shape) - 3 - outer_axis))
    return AxisMap(tuple(links), tuple(reduces))


def _map_of_reduction(op: Op) -> AxisMap:
    axes, shape = integers(op.inputs[1]), shape_of(op.inputs[0])
    if axes is None or any(not -len(shape) <= a < len(shape) for a in axes):
        return AxisMap()
    reduced_axes = {a % len(shape) for a in axes}
    keep = op.options.keeps_dims
    staying = [a for a in range(len(shape)) if a not in reduced_axes]
    links = [AxisLink(0, a, a if keep else j) for j, a in enumerate(staying)]
    return AxisMap(tuple(links), tuple((0, a) for a in sorted(reduced_axes)))


def _transposed_convolution(op: Op) -> AxisMap:
    """Operands: shape of the result, filter (Co, Kh, Kw, Ci), data, bias."""
    if any(len(shape_of(t)) != 4 for t in (*op.inputs[1:3], op.outputs[0])):
        return AxisMap()
    kernel, out = (shape_of(t) for t in (op.inputs[1], op.outputs[0]))
    links = [AxisLink(2, 0, 0), AxisLink(1, 0, 3), *_bias(op, 3, 3)]
    for axis, step in zip((1, 2), op.options.stride, strict=True):
        stride = max(step, 1)
        covered = out[axis] if op.options.padding == SAME_PADDING else out[axis] - kernel[axis] + 1
        total = max((-(-covered // stride) - 1) * stride + kernel[axis] - out[axis], 0)
        links.append(AxisLink(2, axis, axis, Scatter(kernel[axis], stride, total // 2)))
    return AxisMap(tuple(links), ((2, 3), (1, 3)))


def _map_of_resize(op: Op) -> AxisMap:
    """Batch and channels; rows and columns if tiles can be resized by the ratio of the whole."""
    if any(len(shape_of(t)) != 4 for t in (op.inputs[0], op.outputs[0])):
        return AxisMap()
    links = [AxisLink(0, 0, 0), AxisLink(0, 3, 3)]
    for axis in (1, 2):
        resize = resize_of(op, axis)
        if resize is not None and resize.has_exact_cuts:
            links.append(AxisLink(0, axis, axis, Stretch(resize)))
    return AxisMap(tuple(links))


ELEMENT_WISE = frozenset({
    "ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "RELU", "RELU6",
    "RELU_N1_TO_1", "RELU_0_TO_1", "LOGISTIC", "TANH", "HARD_SWISH", "LEAKY_RELU", "PRELU", "ELU",
    "QUANTIZE", "DEQUANTIZE", "ABS", "NEG", "SQRT", "RSQRT", "SQUARE", "EXP", "LOG", "ADD_N",
})  # fmt: skip
"""Kinds that compute each element from the operands' elements at the same index."""
ROW_WISE = frozenset({"SOFTMAX"})
"""Kinds that compute each row along the last axis from that row alone."""

_RULES: dict[str, Callable[[Op], AxisMap]] = {
    **dict.fromkeys(ELEMENT_WISE, _element_wise),
    **dict.fromkeys((*CONVOLUTIONS, *POOLS), _from_window),
    **dict.fromkeys(PADS, _map_of_pad),
    **dict.fromkeys(SPLITS, _split),
    **dict.fromkeys(RESHAPES, _map_of_reshape),
    **dict.fromkeys(("MEAN", "SUM"), _map_of_reduction),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), _map_of_resize),
    **dict.fromkeys(ROW_WISE, _each_row),
    "CONCATENATION": _map_of_concatenation,
    "PACK": _map_of_pack,
    "UNPACK": _map_of_unpack,
    "SLICE": _map_of_slice,
    "STRIDED_SLICE": _map_of_strided_slice,
    "TRANSPOSE": _map_of_transpose,
    "FULLY_CONNECTED": _map_of_fully_connected,
    "BATCH_MATMUL": _batch_matmul,
    "TRANSPOSE_CONV": _transposed_convolution,
}

_OPERANDS = {
    **dict.fromkeys((*PADS, "SPLIT", "SLICE", "STRIDED_SLICE", "TRANSPOSE"), 2),
    **dict.fromkeys(("MEAN", "SUM", "FULLY_CONNECTED", "BATCH_MATMUL"), 2),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), 2),
    **dict.fromkeys(("SPLIT_V", "TRANSPOSE_CONV"), 3),
}
"""Number of operands that a rule reads, for rules that read more than one."""
