"""Operators that only move data: a result holds the same bytes as (part of) an operand.

If all axes before an axis have length 1, a part along that axis is one contiguous run of bytes, so
it can be a view: the kernel then copies each byte onto itself.

    CONCATENATION on the outermost axis:   | a | b | c |   a, b, c at their final places in out
    SPLIT, UNPACK, SLICE:                  | x | y | z |   x, y, z inside the operand
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tflm_planner.model.constants import integers
from tflm_planner.model.ir import Op, Tensor
from tflm_planner.ops.roles import RESHAPES, ROWS_BY_MATRIX, SPLITS
from tflm_planner.ops.spec import OpSpec, Sharing, register


def _same_bytes(op: Op) -> Iterator[Sharing]:
    """LiteRT also keeps the result of RESHAPE in the memory of its operand, even if the operand is
    still needed. `transforms.reorder` keeps the operator order with which that is safe."""
    operand, result = op.operands()[0], op.outputs[0]
    if operand.nbytes == result.nbytes and operand.type == result.type:
        yield Sharing(operand, result, distance=0, exclusive=True, same_bytes=True)


def _is_outermost(shape: tuple[int, ...], axis: int) -> bool:
    """Whether all axes before `axis` have length 1, so that a part along it is contiguous."""
    return 0 <= axis < len(shape) and math.prod(shape[:axis]) == 1


def _views_of_concatenation(op: Op) -> Iterator[Sharing]:
    """CONCATENATION joins along an existing axis, PACK along a new one. The `axis` option of both
    is an axis of the result."""
    (out,) = op.outputs
    shape = out.shape or ()
    if op.options.activation:
        return
    axis = op.options.axis + (len(shape) if op.options.axis < 0 else 0)
    if _is_outermost(shape, axis):
        yield from _parts_of(out, op.operands(), parts_are_operands=True)


def _views_of_unpack(op: Op) -> Iterator[Sharing]:
    container = op.operands()[0]
    axis = op.options.axis + (len(container.shape or ()) if op.options.axis < 0 else 0)
    if _is_outermost(container.shape or (), axis):
        yield from _parts_of(container, op.outputs, parts_are_operands=False)


def _split(op: Op) -> Iterator[Sharing]:
    operands, roles = op.operands(), SPLITS[op.kind]
    axis_tensor, container = operands[roles.axis], operands[roles.data]
    axes = integers(axis_tensor)
    if axes is None or len(axes) != 1:
        return
    axis = axes[0] + (len(container.shape or ()) if axes[0] < 0 else 0)
    if _is_outermost(container.shape or (), axis):
        yield from _parts_of(container, op.outputs, parts_are_operands=False)


def _views_of_strided_slice(op: Op) -> Iterator[Sharing]:
    """STRIDED_SLICE with strides of one and explicit begin and end."""
    begin, end, steps = (integers(t) for t in op.operands()[1:4])
    shape = op.operands()[0].shape or ()
    options = op.options
    if options.begin_mask or options.end_mask or options.shrink_axis_mask:
        return
    if options.adds_axes or options.counts_from_begin:
        return
    if begin is None or end is None or steps is None or set(steps) - {1}:
        return
    if len({len(begin), len(end), len(shape)}) != 1 or min(begin, default=0) < 0:
        return
    lengths = tuple(e - b for b, e in zip(begin, end, strict=True))
    if lengths == op.outputs[0].shape and all(e <= n for e, n in zip(end, shape, strict=True)):
        yield from _part(op.operands()[0], op.outputs[0], begin)


def _views_of_slice(op: Op) -> Iterator[Sharing]:
    container, begin_tensor = op.operands()[:2]
    (part,) = op.outputs
    begin = integers(begin_tensor)
    if begin is not None:
        yield from _part(container, part, begin)


def _part(container: Tensor, part: Tensor, begin: list[int]) -> Iterator[Sharing]:
    """The sharing of a `part` that is the box of `container` starting at `begin`, if contiguous."""
    shape, part_shape = container.shape or (), part.shape or ()
    if len(begin) != len(shape) or len(part_shape) != len(shape):
        return
    cut = [i for i in range(len(shape)) if part_shape[i] != shape[i]]
    if len(cut) > 1 or not _is_outermost(shape, cut[0] if cut else 0):
        return
    if any(
        b < 0 or b + n > whole_n for b, n, whole_n in zip(begin, part_shape, shape, strict=True)
    ):
        return
    skipped = begin[cut[0]] * math.prod(shape[cut[0] + 1 :]) if cut else 0
    element, odd_bytes = divmod(container.nbytes, max(container.elements, 1))
    if not odd_bytes:  # not for types smaller than a byte
        yield Sharing(container, part, distance=skipped * element, exclusive=True, same_bytes=True)


def _parts_of(
    container: Tensor, parts: list[Tensor], *, parts_are_operands: bool
) -> Iterator[Sharing]:
    """The sharings of parts that lie one after the other in `container`."""
    if sum(p.nbytes for p in parts) != container.nbytes or any(
        p.type != container.type for p in parts
    ):
        return
    offset = 0
    for part in parts:
        if parts_are_operands and not part.is_constant:
            yield Sharing(part, container, distance=-offset, exclusive=False, same_bytes=True)
        elif not parts_are_operands:
            yield Sharing(container, part, distance=offset, exclusive=False, same_bytes=True)
        offset += part.nbytes


def consecutive_rows(op: Op) -> tuple[int, int] | None:
    """(first, count) of the rows that a GATHER takes. None unless they are constant, consecutive,
    and taken along the outermost axis."""
    operands = op.operands()
    if len(operands) != 2 or len(op.outputs) != 1 or op.options.is_absent:
        return None
    container, rows = operands
    indices, shape = integers(rows), container.shape or ()
    axis = op.options.axis + (len(shape) if op.options.axis < 0 else 0)
    if indices is None or op.options.batch_dims or not _is_outermost(shape, axis):
        return None
    if (
        not indices
        or indices != list(range(indices[0], indices[0] + len(indices)))
        or len(rows.shape or ()) != 1
    ):
        return None
    taken_shape = (*shape[:axis], len(indices), *shape[axis + 1 :])
    fits = (
        axis < len(shape)
        and op.outputs[0].shape == taken_shape
        and indices[0] >= 0
        and indices[-1] < _size(shape, axis)
    )
    holds_bytes = (
        container.type == op.outputs[0].type and not container.is_constant and container.nbytes > 0
    )
    return (indices[0], len(indices)) if fits and holds_bytes else None


def _size(shape: tuple[int, ...], axis: int) -> int:
    return shape[axis]


def _views_of_gather(op: Op) -> Iterator[Sharing]:
    """The kernel copies each row once, onto itself if the result is a view."""
    rows = consecutive_rows(op)
    if rows is not None:
        container, part = op.operands()[0], op.outputs[0]
        skipped = rows[0] * (part.nbytes // rows[1])
        yield Sharing(container, part, distance=skipped, exclusive=True, same_bytes=True)


def _views_of_update(op: Op) -> Iterator[Sharing]:
    """DYNAMIC_UPDATE_SLICE: the kernel copies the operand only if the result lies elsewhere."""
    operand, result = op.operands()[0], op.outputs[0]
    if operand.shape == result.shape and operand.type == result.type:
        yield Sharing(operand, result, distance=0, exclusive=True)


register(OpSpec(_views_of_gather, operands=2, needs_options=True), "GATHER")
register(OpSpec(_views_of_update, operands=3), "DYNAMIC_UPDATE_SLICE")
register(OpSpec(_same_bytes), *RESHAPES)
register(OpSpec(_views_of_concatenation, needs_options=True), "CONCATENATION", "PACK")
register(OpSpec(_views_of_unpack, many_results=True, needs_options=True), "UNPACK")
register(OpSpec(_split, operands=2, many_results=True), "SPLIT")
register(OpSpec(_split, operands=3, many_results=True), "SPLIT_V")
register(OpSpec(_views_of_slice, operands=3), "SLICE")
register(OpSpec(_views_of_strided_slice, operands=4, needs_options=True), "STRIDED_SLICE")


class RowProduct(NamedTuple):
    """`rows` rows of `depth` elements, each multiplied by one constant matrix; each gives `made`
    elements."""

    rows: int
    depth: int
    made: int


def row_product_of(op: Op) -> RowProduct | None:
    """What a FULLY_CONNECTED multiplies; None for other operators, without a matrix of two axes,
    and where data and result do not hold as many rows."""
    data, weights = (op.inputs[0], op.inputs[1]) if len(op.inputs) > 1 else (None, None)
    if op.kind != ROWS_BY_MATRIX or data is None or weights is None or not weights.elements:
        return None
    match weights.shape:
        case (made, depth) if data.elements and data.elements % depth == 0:
            rows = data.elements // depth
            same = op.outputs[0].elements == rows * made
            return RowProduct(rows, depth, made) if same else None
        case _:
            return None


def multiplies_matrix(op: Op) -> bool:
    """Whether `op` multiplies several rows that are written as a matrix: its data and its result
    have two axes. `transforms.spelling` writes such operators."""
    product, data = row_product_of(op), op.inputs[0] if op.inputs else None
    if product is None or data is None or product.rows < 2:
        return False
    return len(data.shape or ()) == len(op.outputs[0].shape or ()) == 2


def shape_with_other_axes(op: Op, axis: Sequence[int] | None = None) -> tuple[int, ...] | None:
    """The shape that EXPAND_DIMS or SQUEEZE makes; None if that is unknown or impossible. axis: the
    second operand of EXPAND_DIMS where it is known; else it is read from a constant."""
    shape = None if not op.inputs or op.inputs[0] is None else op.inputs[0].shape
    if shape is None:
        return None
    if op.kind == "SQUEEZE":
        gone = {a % max(len(shape), 1) for a in op.options.squeezed_axes}
        gone = gone or {a for a, n in enumerate(shape) if n == 1}
        left = tuple(n for a, n in enumerate(shape) if a not in gone)
        return left if all(shape[a] == 1 for a in gone if a < len(shape)) else None
    axes = axis if axis is not None or len(op.inputs) < 2 else integers(op.inputs[1])
    if axes is None or len(axes) != 1 or not -len(shape) - 1 <= axes[0] <= len(shape):
        return None
    at = axes[0] % (len(shape) + 1)
    return (*shape[:at], 1, *shape[at:])
