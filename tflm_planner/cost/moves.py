"""Which loops element-wise operators, copies and reductions run, as counts of loop bodies.

The costs of copies differ a hundredfold: CONCATENATION, GATHER and one-dimensional updates copy
contiguous runs of bytes, SLICE and the reference PAD copy element by element. A `run` is a number
of bytes that one copy moves; its length determines the cost. Read from TFLM 90b983c. This module
must not know constants.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tflm_planner.cost.case import Case, Operand
from tflm_planner.cost.kinds import Counts, Work, ceil_div
from tflm_planner.ops.roles import PADS, RESHAPES


def _copies(runs: int, length: int) -> Counts:
    """`runs` copies of `length` bytes each."""
    return {"run": runs, "byte_64": runs * (length // 64), "byte_4": runs * (length % 64 // 4),
            "byte": runs * (length % 4)}  # fmt: skip


def _merge(*parts: Counts) -> Counts:
    total: Counts = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0) + value
    return total


def pointwise(case: Case, by_lanes: bool = False) -> Work:
    """One or more operands, element by element; the smaller ones broadcast.

    by_lanes: by vectors of four elements and more.
    """
    n = case.result.elements
    name = "less" if case.kind in _COMPARISONS else case.kind.lower()
    operands = [t for t in case.inputs[:2] if t is not None]
    if len(operands) > 1 and any(t.elements != n for t in operands):
        last = case.result.shape[-1] if case.result.shape else 1
        rows = n // max(1, last)
        name = {"sub": "add", "minimum": "maximum"}.get(name, name)
        name += "_scalar" if min(t.elements for t in operands) <= 1 else "_broadcast"
        counts = {
            "element": n,
            "row": rows,
            **({"row_lane": rows * ceil_div(last, 4)} if by_lanes else {}),
        }
    else:
        counts = {"element": n, "four": n // 4}
        if by_lanes:
            counts = {"lane": ceil_div(n, 4), "element": n, "lane_16": ceil_div(n, 16)}
    result_type = case.result.type
    return Work(f"{name}_{result_type}" if result_type != case.data.type else name, counts, 0)


def softmax(case: Case) -> Work:
    """SOFTMAX: rows of depth elements."""
    n, depth = case.data.elements, (case.data.shape or (1,))[-1]
    rows = n // max(1, depth)
    return Work("softmax", {"element": n, "row": rows, "lane": rows * ceil_div(depth, 4)}, 0)


def reduction(case: Case) -> Work:
    """MEAN, SUM, REDUCE_*: over height and width, over the last axis, or over another axis."""
    rank = max(1, len(case.data.shape))
    axes = {a % rank for a in case.numbers(1)}
    image = axes == {1, 2} and rank == 4
    name = "_image" if image else "_last" if rank - 1 in axes else "_other"
    n, out = case.data.elements, case.result.elements
    last = (case.data.shape or (1,))[-1]
    return Work(
        case.kind.lower() + name,
        {"element": n, "output": out, "row": n // max(1, last), "last": last},
        0,
    )


def element_slice(case: Case) -> Work:
    """SLICE: loops over five axes, one element at a time."""
    shape = case.result.last_axes(5)
    counts = {"element": case.result.elements, "row": math.prod(shape[:4]),
              "plane": math.prod(shape[:3])}  # fmt: skip
    return Work("slice", counts, 0)


def strided_slice(case: Case) -> Work:
    """STRIDED_SLICE: copies runs along the last axis if its stride is 1."""
    shape = case.result.last_axes(5)
    steps = case.numbers(3)
    runs = not steps or steps[-1] == 1
    rows = math.prod(shape[:4])
    counts = {"element": case.result.elements, "row": rows, "plane": math.prod(shape[:3])}
    if runs:
        counts = _merge(counts, _copies(rows, shape[4] * case.result.width))
    return Work("strided_slice_runs" if runs else "strided_slice", counts, 0, typed=runs)


def gather(case: Case) -> Work:
    """GATHER: one copy for every position and every outer index."""
    axis, shape, width = case.option("axis"), case.data.shape, case.data.width
    axis = axis % max(1, len(shape))
    where = case.operand(1)
    positions = where.elements if where is not None else 1
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :]) * width
    return Work(
        "gather", {"position": positions, **_copies(outer * positions, inner)}, 0, typed=False
    )


def concatenation(case: Case) -> Work:
    """CONCATENATION, PACK: one copy for every part and every outer index."""
    axis = case.option("axis")
    parts = [t for t in case.inputs if t is not None]
    rank = max(1, len(case.result.shape))
    outer = math.prod(case.result.shape[: axis % rank])
    moved = _merge(*(_copies(outer, t.nbytes // max(1, outer)) for t in parts))
    in_place = {"part": len(parts)}
    counts = {**in_place, "outer": outer, "element": case.result.elements, **moved}
    typed = case.kind != "CONCATENATION"
    return Work(case.kind.lower(), counts, 0, typed=typed, in_place=in_place)


def split(case: Case) -> Work:
    """SPLIT, SPLIT_V, UNPACK: one copy for every part and every outer index."""
    axis_operand = 0 if case.kind == "SPLIT" else 2
    axes = case.numbers(axis_operand)
    axis = case.option("axis") if case.kind == "UNPACK" else (axes[0] if axes else 0)
    outer = math.prod(case.data.shape[: axis % max(1, len(case.data.shape))])
    moved = _merge(*(_copies(outer, t.nbytes // max(1, outer)) for t in case.outputs))
    elements = sum(t.elements for t in case.outputs)
    in_place = {"part": len(case.outputs)}
    counts = {**in_place, "element": elements, **moved}
    return Work(case.kind.lower(), counts, 0, in_place=in_place)


def pad(case: Case) -> Work:
    """PAD, PADV2: element by element."""
    shape = case.result.last_axes(4)
    counts = {"element": case.result.elements, "place": math.prod(shape[:3]),
              "line": math.prod(shape[:2]), "kept": case.data.elements}  # fmt: skip
    return Work("pad", counts, 0)


def pad_by_runs(case: Case) -> Work | None:
    """PAD of int8 by runs of bytes; None for other types."""
    if case.data.type != "int8":
        return None
    shape, inner = case.result.last_axes(4), case.data.last_axes(4)
    deep = shape[3] != inner[3]
    rows = math.prod(inner[:3]) if deep else math.prod(inner[:2])
    length = inner[3] if deep else inner[3] * inner[2]
    added = case.result.elements - case.data.elements
    lines = {
        "line": math.prod(inner[:2]),
        "added_4": ceil_div(added, 4),
        "added_16": ceil_div(added, 16),
    }
    return Work("pad_runs", {**lines, **_copies(rows, length)}, 0)


def reshape(case: Case) -> Work:
    """RESHAPE, SQUEEZE: one copy. EXPAND_DIMS copies element by element."""
    if case.kind == "EXPAND_DIMS":
        return Work("expand_dims", {"element": case.result.elements}, 0)
    moved = _copies(1, case.result.nbytes)
    moved.pop("run")  # always one: in place, only the call remains
    return Work("reshape", moved, 0, typed=False)


def update(case: Case) -> Work:
    """DYNAMIC_UPDATE_SLICE: the operand is copied, then the update in runs along its last axis;
    only the update is copied if it covers the whole operand."""
    part, width = case.operand(1) or Operand(case.data.type, (0,)), case.data.width
    last = (part.shape or (1,))[-1]
    rows = part.elements // max(1, last)
    if part.shape == case.data.shape:
        runs = {f"part_{k}": v for k, v in _copies(1, part.nbytes).items()}
        return Work("update_all", runs, 0, typed=False, in_place=runs)
    runs = {f"part_{k}": v for k, v in _copies(rows, last * width).items()}
    counts = {"whole_64": case.data.nbytes // 64, "whole_4": case.data.nbytes % 64 // 4, **runs}
    path = "update_1d" if len(case.data.shape) == 1 else "update"
    return Work(path, counts, 0, typed=False, in_place=runs)


def transpose(case: Case) -> Work:
    """TRANSPOSE: the cost depends on which axis becomes the last."""
    order = case.numbers(1)
    n, last = case.result.elements, (case.result.shape or (1,))[-1]
    keeps_last_axis = bool(order) and order[-1] == len(order) - 1
    rows = n // max(1, last)
    plane = rows // max(1, (case.result.shape or (1,))[-2:][0])
    counts = {"element": n, "row": rows, "plane": plane}
    if keeps_last_axis:
        counts["run_16"] = rows * ceil_div(last, 16)
    name = "transpose_kept" if keeps_last_axis else "transpose_" + "".join(map(str, order))
    return Work(name, counts, 0)


def resize(case: Case) -> Work:
    """RESIZE_*: counts output pixels."""
    n, depth = case.result.elements, (case.result.shape or (1,))[-1]
    lines = math.prod((case.result.shape or (1,))[:2])
    counts = {"element": n, "pixel": n // max(1, depth), "line": lines}
    if "NEAREST" in case.kind:
        counts = _merge(counts, _copies(n // max(1, depth), depth * case.result.width))
    return Work(case.kind.lower(), counts, 0)


def other(case: Case) -> Work:
    """All other operators: the cost depends on their sizes."""
    counts = {
        "output": sum(t.elements for t in case.outputs),
        "input": sum(t.elements for t in case.inputs if t is not None and not t.constant),
    }
    return Work("other", counts, 0)


def fill(case: Case) -> Work:
    """FILL, ZEROS_LIKE."""
    return Work(f"fill_{case.result.type}", {"element": case.result.elements}, 0, typed=False)


_COMPARISONS = ("LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", "EQUAL", "NOT_EQUAL")
"""These kinds share one loop."""
_ELEMENTWISE = (
    "ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "RELU", "RELU6", "LOGISTIC", "TANH", "HARD_SWISH",
    "LEAKY_RELU", "ABS", "EXP", "SQRT", "QUANTIZE", "DEQUANTIZE",
)  # fmt: skip

POINTWISE = (*_ELEMENTWISE, *_COMPARISONS)
"""Kinds whose loops are those of `pointwise`."""
MOVES: dict[str, Callable[[Case], Work]] = {
    **dict.fromkeys(POINTWISE, pointwise),
    **dict.fromkeys(PADS, pad),
    **dict.fromkeys(("FILL", "ZEROS_LIKE"), fill),
    **dict.fromkeys(("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"), reduction),
    **dict.fromkeys(RESHAPES, reshape),
    **dict.fromkeys(("CONCATENATION", "PACK"), concatenation),
    **dict.fromkeys(("SPLIT", "SPLIT_V", "UNPACK"), split),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), resize),
    "SOFTMAX": softmax,
    "SLICE": element_slice,
    "STRIDED_SLICE": strided_slice,
    "GATHER": gather,
    "DYNAMIC_UPDATE_SLICE": update,
    "TRANSPOSE": transpose,
}
"""By kind of operator, as the reference kernels do it."""
