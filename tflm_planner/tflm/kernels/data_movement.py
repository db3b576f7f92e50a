"""Kernels that go through their operands once, in their own order: PAD, GATHER, CONCATENATION, and
operators that compute element by element, from one type to another or not.

`KernelBuild.movements_of` says which of these forms the kernel of a library has; those of kernels
that read a row several times are in `row_movements`.

    PAD       | pad | row | pad | row | pad |    result, written from the left
              :     ^     :
              |.....| row | row |                operand: it may lie at the end of the result,
                                                 before the padding that follows the last row

    GATHER    |     |     | r2  | r3  |        operand, rows 2 and 3 are taken: one copy each, so
              | r2  | r3  |                    rows may move down, or above all that are read

    QUANTIZE  |     operand, wider      |        element after element, read and then written: a
              |result|                           narrower result may start where its operand does,

    DE-       | 0       | 1       | 2       |    and the operand of a wider result may lie at the
    QUANTIZE                    |0 |1 |2 |       end of it; here the last element but one ends where
                                                 the last one of the operand begins

    ADD       |b0|b1|b2|  : element after element of all operands: the result may start where
        |a0|a1|a2|        : one begins, or anywhere below
    |y0|y1|y2|            :

    CONCA-    |a0|b0 b0 b0|a1|b1 b1 b1|    one memcpy after the other: a part of b is copied before
    TENATION     :  |b0 b0 b0|b1 b1 b1|    the parts behind it reach the place from which it comes
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tflm_planner.model.constants import integers
from tflm_planner.model.ir import Op, Tensor
from tflm_planner.ops.layout import consecutive_rows
from tflm_planner.ops.roles import PADS
from tflm_planner.support.deferred import defer
from tflm_planner.tflm.kernels.movement import Movement

if TYPE_CHECKING:
    import numpy as np

    from tflm_planner.tflm.kernels.movement import Times
else:
    np = defer("numpy")


BETWEEN_TYPES = frozenset(("QUANTIZE", "DEQUANTIZE", "CAST"))
"""The kinds whose result may be of another type than their operand, element by element."""
ELEMENT_BY_ELEMENT = frozenset(
    (
        "ADD", "SUB", "MUL", "RELU", "RELU6", "LOGISTIC", "TANH", "HARD_SWISH", "LEAKY_RELU",
        "QUANTIZE",
    )
)  # fmt: skip
"""Those kinds of `ops.axes.ELEMENT_WISE` whose kernels are known to go forward, element after
element or in groups, each of which is read before it is written."""
READ_ONCE = BETWEEN_TYPES | ELEMENT_BY_ELEMENT | {*PADS, "GATHER", "CONCATENATION"}
"""All kinds of which this module knows movements."""
_AXES_OF_REFERENCE, _AXES_OF_CMSIS_NN = 5, 4
"""Largest number of axes that the PAD kernels support."""
_BYTES = {"int8": 1, "uint8": 1, "bool": 1, "int16": 2, "int32": 4, "uint32": 4, "float32": 4}
"""Types that TFLM's QUANTIZE, DEQUANTIZE, CAST and element-wise operators support -> bytes of an
element."""
_JOINED = ("int8", "int16", "int32", "int64", "float32", "bool")
"""Types that TFLM's CONCATENATION supports."""
_CHARACTERS = ("int8", "uint8")
"""Types that GCC and Clang treat as characters, which may alias anything."""


def movements_of(op: Op, *, pads_by_rows: bool) -> tuple[Movement, ...]:
    """How TFLM's own kernel of an operator moves the data of each operand; empty if it is none of
    the forms above. pads_by_rows: whether PAD copies whole rows, as CMSIS-NN's does."""
    if len(op.outputs) != 1:
        return ()
    if op.kind == "CONCATENATION":
        return tuple(_concatenation_movements(op))
    alike = tuple(_elementwise_movements(op)) if op.kind in ELEMENT_BY_ELEMENT else ()
    single = None if alike else _single_movement(op, pads_by_rows)
    return alike if single is None else (single,)


def _single_movement(op: Op, pads_by_rows: bool) -> Movement | None:
    """The movement of an operator of which one operand moves."""
    if op.kind in PADS:
        return _padding_movement(op, by_rows=pads_by_rows)
    if op.kind == "GATHER":
        return _gather_movement(op)
    return _retyping_movement(op) if op.kind in BETWEEN_TYPES else None


def _elementwise_movements(op: Op) -> Iterator[Movement]:
    """Element by element, within one type, for each operand of the result's shape: others are
    broadcast.

    A group of elements that is read before any of it is written only reads earlier.
    """
    (result,) = op.outputs
    if result.type_name not in _BYTES:
        return

    def times() -> tuple[Times, Times]:
        clock = 2 * np.arange(result.elements, dtype=np.int64)
        element = _BYTES[result.type_name]
        return np.repeat(clock, element), np.repeat(clock + 1, element)

    for operand in dict.fromkeys(op.operands()):
        same = operand.type == result.type and (operand.shape or ()) == (result.shape or ())
        if same and operand.nbytes and not operand.is_constant:
            yield Movement(operand, result, 0, times)


def _concatenation_movements(op: Op) -> Iterator[Movement]:
    """CONCATENATION: of each run along the axis, a memcpy for each operand, in their order.

    A part must be copied before anything is written where it lies, and its copy must not overlap
    itself. Results gain on operands from run to run, so the last run decides the distance: there
    the copy ends `before + part` bytes behind the start of the run. None for operands that are
    given twice.
    """
    (result,), operands = op.outputs, op.operands()
    runs = _concatenated_runs(op)
    if not runs:
        return
    run, before = result.nbytes // runs, 0
    for place, operand in enumerate(operands):
        part = operand.nbytes // runs
        if part and not operand.is_constant and operands.count(operand) == 1:
            least = (runs - 1) * (run - part) + before + part
            times = partial(_concatenation_times, op, runs, place)
            yield Movement(operand, result, least, times)
        before += part


def _concatenated_runs(op: Op) -> int:
    """The number of runs along the axis of a CONCATENATION; 0 if its parts do not fill the
    result."""
    (result,), operands = op.outputs, op.operands()
    shape = result.shape or ()
    if op.options.is_absent or op.options.activation or result.type_name not in _JOINED:
        return 0
    axis = op.options.axis + (len(shape) if op.options.axis < 0 else 0)
    if not 0 <= axis < len(shape):
        return 0
    joined = 0
    for t in operands:
        part = t.shape or ()
        if t.type != result.type or len(part) != len(shape):
            return 0
        if (*part[:axis], shape[axis], *part[axis + 1 :]) != shape:
            return 0
        joined += part[axis]
    return math.prod(shape[:axis]) if joined == shape[axis] else 0


def _concatenation_times(op: Op, runs: int, place: int) -> tuple[Times, Times]:
    """The times at which the operand at `place` is read for the last time, and at which the result
    is written, in the order of the copies. A copy must not overlap itself, so its operand counts as
    read only after it is written."""
    parts = [t.nbytes // runs for t in op.operands()]
    copies = np.arange(runs, dtype=np.int64)[:, None] * len(parts) + np.arange(len(parts))
    writes = 2 * np.repeat(copies.ravel(), np.tile(parts, runs)) + 1
    return 2 * np.repeat(copies[:, place], parts[place]) + 2, writes


def _retyping_movement(op: Op) -> Movement | None:
    """From one type to another: TFLM's own loop, the same in every library that was read.

    Compilers must keep its order of reads and writes only if one of the two types is a character.
    For other pairs, for example int16 and float, they may assume that the two never overlap, and
    may read elements of one after writing later elements of the other.
    """
    if len(op.inputs) != 1 or op.inputs[0] is None:
        return None
    data, result = op.inputs[0], op.outputs[0]
    types = data.type_name, result.type_name
    if data.is_constant or data.type == result.type or not set(types) <= _BYTES.keys():
        return None
    if not set(types) & set(_CHARACTERS) or (data.shape or ()) != (result.shape or ()):
        return None
    read_bytes, written_bytes = (_BYTES[t] for t in types)
    count = data.elements

    def times() -> tuple[Times, Times]:
        clock = 2 * np.arange(count, dtype=np.int64)
        return np.repeat(clock, read_bytes), np.repeat(clock + 1, written_bytes)

    # When the last element is written, nothing is left to read.
    return Movement(data, result, (count - 1) * max(written_bytes - read_bytes, 0), times)


def _gather_movement(op: Op) -> Movement | None:
    """GATHER of consecutive rows along the outermost axis: one memcpy per row."""
    rows = consecutive_rows(op)
    if rows is None:
        return None
    data, result = op.operands()[0], op.outputs[0]
    first_row, count = rows
    row = result.nbytes // count

    def times() -> tuple[Times, Times]:
        clock = 2 * np.repeat(np.arange(count, dtype=np.int64), row)
        reads = np.full(data.nbytes, -1, np.int64)
        # A copy must not overlap itself.
        reads[first_row * row : (first_row + count) * row] = clock + 2
        return reads, clock + 1

    return Movement(data, result, (1 - first_row) * row, times, (first_row + count) * row)


def _padding_movement(op: Op, *, by_rows: bool) -> Movement | None:
    """PAD and PADV2, element by element or (CMSIS-NN's arm_pad_s8) by whole rows."""
    if len(op.inputs) < 2 or op.inputs[0] is None or op.inputs[1] is None:
        return None
    data, result = op.inputs[0], op.outputs[0]
    pads = _pairs(op.inputs[1])
    shape, larger = data.shape or (), result.shape or ()
    if data.is_constant or data.type != result.type or pads is None or not data.nbytes:
        return None
    if not shape or len(shape) != len(pads) or min(min(p) for p in pads) < 0:
        return None
    if larger != tuple(n + a + b for n, (a, b) in zip(shape, pads, strict=True)):
        return None
    if len(shape) > (_AXES_OF_CMSIS_NN if by_rows else _AXES_OF_REFERENCE):
        return None
    element = data.nbytes // data.elements
    run = math.prod(shape[-2:] if pads[-1] == (0, 0) else shape[-1:]) if by_rows else 0
    # The last byte, which has the most padding before it, determines the distance; see the drawing.
    last_index = [a + n - 1 for n, (a, _) in zip(shape, pads, strict=True)]
    least = (_place_in(last_index, larger) + 1) * element - data.nbytes + run

    def times() -> tuple[Times, Times]:
        inside = np.zeros(larger, bool)
        inside[tuple(slice(a, a + n) for n, (a, _) in zip(shape, pads, strict=True))] = True
        places = np.flatnonzero(np.repeat(inside.ravel(), element))
        return _copy_times(places, result.nbytes, element, run)

    return Movement(data, result, least, times)


def _copy_times(places: Times, size: int, element: int, run: int) -> tuple[Times, Times]:
    """`places`: the position of each byte of the operand in a result of `size` bytes. `run`: number
    of bytes that CMSIS-NN's arm_pad_s8 copies by one memcpy, which must not overlap itself; 0 if it
    is element by element."""
    clock = 2 * np.arange(size, dtype=np.int64)
    reads, writes = clock[places], clock + 1
    if run:  # the whole run counts as read only after it is written
        reads = 2 * np.repeat(places[run - 1 :: run], run) + 2
    elif element > 1:
        reads, writes = reads - reads % (2 * element), writes - (writes - 1) % (2 * element)
    return reads, writes


def _place_in(index: Sequence[int], shape: Sequence[int]) -> int:
    """The index of an element in memory order."""
    place = 0
    for position, size in zip(index, shape, strict=True):
        place = place * size + position
    return place


def _pairs(tensor: Tensor) -> list[tuple[int, int]] | None:
    """The values of a constant (n, 2) tensor of integers."""
    values = integers(tensor)
    if values is None or len(values) % 2:
        return None
    return list(zip(values[::2], values[1::2], strict=True))
