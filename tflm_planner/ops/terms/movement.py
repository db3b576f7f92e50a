"""Terms of operators that only move elements, and of operators that read shapes.

A result has the same elements whatever its quantization is, because kernels copy bytes. If
positions depend on an input, the rule gives None, and the operator is hashed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tflm_planner.model.ir import Op
from tflm_planner.ops.layout import shape_with_other_axes
from tflm_planner.ops.roles import SPLITS
from tflm_planner.ops.terms.calls import OpCall
from tflm_planner.ops.terms.field import LANES
from tflm_planner.ops.terms.parameters import quantisation
from tflm_planner.ops.terms.values import DTYPES, OutsideError, Values

Array = npt.NDArray[Any]


def _numbers(call: OpCall, operand: int) -> list[int] | None:
    """The integers of an operand if they are known; else None."""
    values = call.values(operand)
    return [int(v) for v in values.data.reshape(-1)] if values.known else None


def _reshape(call: OpCall) -> list[Values]:
    return [call.values(0).reshape(call.shape)]


def _reshape_as_asked(call: OpCall) -> list[Values]:
    """RESHAPE. LiteRT uses the shape in the second operand, TFLM the declared shape, so they must
    agree."""
    known = call.values(1) if call.has(1) else None
    if known is not None and known.known and len(known.shape) == 1 and known.size:
        asked = [int(n) for n in known.data]
        others = math.prod(n for n in asked if n != -1)
        rest = call.values(0).size // max(others, 1)
        if asked != [0]:  # old converters write a scalar's shape as [0]
            call.check_declared([rest if n == -1 else n for n in asked])
    return _reshape(call)


def _reshape_axes(call: OpCall) -> list[Values] | None:
    """EXPAND_DIMS and SQUEEZE. LiteRT makes the shape, TFLM takes the declared one."""
    axis = None
    if call.op.kind == "EXPAND_DIMS":
        known = call.values(1)
        if not known.known:
            return None
        axis = [int(a) for a in known.data.reshape(-1)]
    shape = shape_with_other_axes(call.op, axis)
    if shape is None:
        return None
    call.check_declared(shape)
    return _reshape(call)


def _transpose(call: OpCall) -> list[Values] | None:
    order = _numbers(call, 1)
    if order is None:
        return None
    turned = call.values(0).move(lambda a: np.transpose(a, order))
    call.check_declared(turned.shape)
    return [turned]


def _slice(call: OpCall) -> list[Values] | None:
    begin = _numbers(call, 1)
    data, shape = call.values(0), call.shape
    if begin is None or len(begin) != len(shape) or len(begin) != len(data.shape):
        return None
    sizes = _numbers(call, 2)
    if sizes is not None:
        ends = zip(sizes, begin, data.shape, strict=True)
        call.check_declared([m - b if n == -1 else n for n, b, m in ends])
    _check_inside(call, begin, shape, data.shape)
    return [data.at(tuple(slice(b, b + n) for b, n in zip(begin, shape, strict=True)))]


def _check_inside(
    call: OpCall, begin: list[int], sizes: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    inside = all(b >= 0 and b + n <= m for b, n, m in zip(begin, sizes, shape, strict=True))
    if not inside:
        raise OutsideError(f"{call.op.label} reads outside of its operand")


def _strided_slice(call: OpCall) -> list[Values] | None:
    limits = [_numbers(call, i) for i in (1, 2, 3)]
    options = call.op.options
    data = call.values(0)
    if options.adds_axes or options.counts_from_begin:
        return None
    begin, end, steps = limits
    if begin is None or end is None or steps is None or len(begin) > len(data.shape):
        return None
    index: list[slice] = []
    shrunk: list[int] = []
    for axis, (b, e, step) in enumerate(zip(begin, end, steps, strict=True)):
        if options.shrink_axis_mask >> axis & 1:
            # If begin is masked, TFLM takes index 0.
            masked = options.begin_mask >> axis & 1
            if (masked and step < 0) or not -data.shape[axis] <= b < data.shape[axis]:
                return None
            at = 0 if masked else b % data.shape[axis]
            index.append(slice(at, at + 1))
            shrunk.append(axis)
            continue
        start = None if options.begin_mask >> axis & 1 else b
        stop = None if options.end_mask >> axis & 1 else e
        index.append(slice(start, stop, step))
    part = data.at(tuple(index))
    call.check_declared([n for axis, n in enumerate(part.shape) if axis not in shrunk])
    return [part.reshape(call.shape)]


def _join(call: OpCall) -> list[Values] | None:
    """CONCATENATION. Operands whose quantization differs from the result's are requantized by
    LiteRT for uint8, refused by both runtimes for int8, and copied for other types."""
    kinds = {quantisation(t) for t in (*call.op.operands(), call.result)}
    only_moves = len(kinds) == 1 or call.result.type_name not in ("int8", "uint8")
    if call.op.options.activation or not only_moves:
        return None
    axis = call.op.options.axis % max(len(call.shape), 1)
    return [_concatenate(call, [v for v in call.operands if v is not None], axis)]


def _concatenate(call: OpCall, parts: list[Values], axis: int) -> Values:
    if all(v.known for v in parts):
        joined = Values(np.concatenate([v.data for v in parts], axis), True)
    else:
        lanes = [call.symbols.elements(v) for v in parts]
        joined = Values(np.concatenate(lanes, axis + 1), False)
    call.check_declared(joined.shape)
    return joined


def _pack(call: OpCall) -> list[Values]:
    axis = call.op.options.axis % max(len(call.shape), 1)
    parts = [v for v in call.operands if v is not None]
    wide = [v.reshape((*v.shape[:axis], 1, *v.shape[axis:])) for v in parts]
    return [_concatenate(call, wide, axis)]


def _unpack(call: OpCall) -> list[Values]:
    data = call.values(0)
    axis = call.op.options.axis % max(len(data.shape), 1)
    before = (slice(None),) * axis
    return [data.at((*before, i)) for i in range(len(call.op.outputs))]


def _split(call: OpCall) -> list[Values] | None:
    roles = SPLITS[call.op.kind]
    numbers, data = _numbers(call, roles.axis), call.values(roles.data)
    if numbers is None:
        return None
    axis, at, parts = numbers[0] % len(data.shape), 0, list[Values]()
    for result in call.op.outputs:
        count = (result.shape or (1,))[axis]
        parts.append(data.at((*(slice(None),) * axis, slice(at, at + count))))
        at += count
    return parts


def _pad(call: OpCall) -> list[Values] | None:
    pads = _numbers(call, 1)
    data = call.values(0)
    if pads is None or len(pads) != 2 * len(data.shape) or min(pads, default=0) < 0:
        return None
    fill = call.values(2) if call.has(2) else None
    if fill is not None and fill.size != 1:
        return None
    pairs = [(pads[i], pads[i + 1]) for i in range(0, len(pads), 2)]
    call.check_declared([low + n + high for (low, high), n in zip(pairs, data.shape, strict=True)])
    return [_surround(call, data, pairs, fill)]


def _surround(
    call: OpCall, data: Values, pairs: list[tuple[int, int]], fill: Values | None = None
) -> Values:
    """Values with others before and behind along each axis. fill: of which one; None: the zero
    point of the result."""
    if fill is None:
        fill = Values(np.array([call.result.zero], DTYPES[call.result.type_name]), True)
    shape = tuple(low + n + high for (low, high), n in zip(pairs, data.shape, strict=True))
    inside = tuple(slice(low, low + n) for (low, _), n in zip(pairs, data.shape, strict=True))
    if data.known and fill.known:
        padded = np.full(shape, fill.data.reshape(()), data.data.dtype)
        padded[inside] = data.data
        return Values(padded, True)
    elements = np.empty((LANES, *shape), np.uint32)
    elements[...] = call.symbols.elements(fill).reshape(LANES, *(1 for _ in pairs))
    elements[(slice(None), *inside)] = call.symbols.elements(data)
    return Values(elements, False)


def _space_to_batch(call: OpCall) -> list[Values] | None:
    """SPACE_TO_BATCH_ND: every `block`-th row and column, padded by the zero point, is an image of
    its own; shifts in rows come before those in columns, and images are innermost."""
    block, edges, data = _numbers(call, 1), _numbers(call, 2), call.values(0)
    if block is None or edges is None or len(edges) != 2 * len(block):
        return None
    spatial, rest = len(block), len(data.shape) - 1 - len(block)
    pairs = [(0, 0), *zip(edges[::2], edges[1::2], strict=True), *[(0, 0)] * rest]
    if rest < 0 or min(map(min, pairs)) < 0 or min(block) < 1:
        return None
    images, *sizes = (low + n + high for (low, high), n in zip(pairs, data.shape, strict=True))
    sizes, inner = sizes[:spatial], sizes[spatial:]
    if any(n % b for n, b in zip(sizes, block, strict=True)):
        return None
    smaller = [size // b for size, b in zip(sizes, block, strict=True)]
    call.check_declared([images * math.prod(block), *smaller, *inner])
    padded = _surround(call, data, pairs)
    apart = [n for size, b in zip(sizes, block, strict=True) for n in (size // b, b)]
    order = [
        *range(2, 2 + 2 * spatial, 2), 0, *range(1, 1 + 2 * spatial, 2),
        *range(1 + 2 * spatial, 1 + 2 * spatial + rest),
    ]  # fmt: skip
    parts = padded.reshape((images, *apart, *inner)).move(lambda a: np.transpose(a, order))
    return [parts.reshape(call.shape)]


def _batch_to_space(call: OpCall) -> list[Values] | None:
    """BATCH_TO_SPACE_ND: the inverse, cropped."""
    block, edges, data = _numbers(call, 1), _numbers(call, 2), call.values(0)
    if block is None or edges is None or len(edges) != 2 * len(block):
        return None
    spatial, rest = len(block), len(data.shape) - 1 - len(block)
    if rest < 0 or min(edges) < 0 or min(block) < 1 or data.shape[0] % math.prod(block):
        return None
    images, sizes = data.shape[0] // math.prod(block), data.shape[1 : 1 + spatial]
    inner = data.shape[1 + spatial :]
    order = [
        spatial, *(n for axis in range(spatial) for n in (spatial + 1 + axis, axis)),
        *range(1 + 2 * spatial, 1 + 2 * spatial + rest),
    ]  # fmt: skip
    whole = data.reshape((*block, images, *sizes, *inner)).move(lambda a: np.transpose(a, order))
    joined = whole.reshape((images, *(n * b for n, b in zip(sizes, block, strict=True)), *inner))
    ends = zip(joined.shape[1 : 1 + spatial], edges[::2], edges[1::2], strict=True)
    part = joined.at((slice(None), *(slice(low, size - high) for size, low, high in ends)))
    call.check_declared(part.shape)
    return [part]


def _gather(call: OpCall) -> list[Values] | None:
    places, data = call.values(1), call.values(0)
    axis = call.op.options.axis % max(len(data.shape), 1)
    if not places.known or call.op.options.batch_dims:
        return None
    at = places.data.astype(np.int64)
    if at.size and not (at.min() >= 0 and at.max() < data.shape[axis]):
        raise OutsideError(f"{call.op.label} takes what its operand does not have")
    taken = data.move(lambda a: np.take(a, at, axis))
    call.check_declared(taken.shape)
    return [taken]


def _update_slice(call: OpCall) -> list[Values] | None:
    """DYNAMIC_UPDATE_SLICE: (data, update, begin)."""
    begin, data, update = _numbers(call, 2), call.values(0), call.values(1)
    if begin is None or len(begin) != len(data.shape):
        return None
    index = tuple(
        slice(at := min(max(b, 0), n - m), at + m)
        for b, n, m in zip(begin, data.shape, update.shape, strict=True)
    )
    known = data.known and update.known
    updated = (data.data if known else call.symbols.elements(data)).copy()
    place = index if known else (slice(None), *index)
    updated[place] = update.data if known else call.symbols.elements(update)
    return [Values(updated, known)]


def _broadcast(call: OpCall) -> list[Values]:
    shape = _numbers(call, 1)
    if shape is not None:
        call.check_declared(shape)
    return [call.values(0).move(lambda a: np.broadcast_to(a, call.shape))]


def _tile(call: OpCall) -> list[Values] | None:
    factors, data = _numbers(call, 1), call.values(0)
    if factors is None or len(factors) != len(data.shape) or min(factors, default=1) < 0:
        return None
    call.check_declared([n * often for n, often in zip(data.shape, factors, strict=True)])
    return [data.move(lambda a: np.tile(a, factors))]


def _of_shape(call: OpCall) -> list[Values]:
    """SHAPE and RANK: known, because they depend on the operand's shape only."""
    shape = call.tensor(0).shape or ()
    numbers = shape if call.op.kind == "SHAPE" else len(shape)
    return [Values(np.array(numbers, DTYPES[call.result.type_name]), True).reshape(call.shape)]


def _fill(call: OpCall) -> list[Values]:
    shape = _numbers(call, 0)
    if shape is not None:
        call.check_declared(shape)
    return [call.values(1).move(lambda a: np.broadcast_to(a, call.shape))]


def _reverse(call: OpCall) -> list[Values] | None:
    axes = _numbers(call, 1)
    return None if axes is None else [call.values(0).move(lambda a: np.flip(a, tuple(axes)))]


def _mirror(call: OpCall) -> list[Values] | None:
    pads = _numbers(call, 1)
    if pads is None or any(pads):
        return None
    return _reshape(call)


def reads_shape_alone(op: Op) -> bool:
    """Whether an operator reads only the shape of its operand."""
    return op.kind in ("SHAPE", "RANK")


RULES = {
    "RESHAPE": _reshape_as_asked, "SQUEEZE": _reshape_axes, "EXPAND_DIMS": _reshape_axes,
    "TRANSPOSE": _transpose, "SLICE": _slice, "STRIDED_SLICE": _strided_slice,
    "CONCATENATION": _join, "PACK": _pack, "UNPACK": _unpack,
    **dict.fromkeys(SPLITS, _split), "PAD": _pad, "PADV2": _pad,
    "GATHER": _gather, "DYNAMIC_UPDATE_SLICE": _update_slice, "BROADCAST_TO": _broadcast,
    "TILE": _tile, "SPACE_TO_BATCH_ND": _space_to_batch, "BATCH_TO_SPACE_ND": _batch_to_space,
    "SHAPE": _of_shape, "RANK": _of_shape, "FILL": _fill, "REVERSE_V2": _reverse,
    "MIRROR_PAD": _mirror,
}  # fmt: skip
