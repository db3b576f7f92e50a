"""Terms of resized images. `ops.resize` says from which rows and columns of the operand a pixel is
made, and with which weights. If rounding in floating point makes that uncertain, the pixel is a
hash of its whole column or row."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tflm_planner.ops.resize import Resize, Taps, resize_of
from tflm_planner.ops.terms import field, mixing
from tflm_planner.ops.terms.calls import OpCall
from tflm_planner.ops.terms.field import LANES, Residues
from tflm_planner.ops.terms.parameters import is_float, quantisation
from tflm_planner.ops.terms.values import Values

_ONE = 1 << 10


def resize_image(call: OpCall) -> list[Values] | None:
    """RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR."""
    rows, columns = (resize_of(call.op, axis) for axis in (1, 2))
    if rows is None or columns is None:
        return None
    if call.values(1).known:
        batch, _, _, channels = call.values(0).shape
        call.check_declared([batch, *(int(n) for n in call.values(1).data), channels])
    if call.op.kind == "RESIZE_NEAREST_NEIGHBOR":
        down, across = ([lower for lower, _, _ in _taps_of(r)] for r in (rows, columns))
        return [call.values(0).move(lambda a: a[:, down][:, :, across])]
    elements = _along(call, _along(call, call.elements(0), rows, 2), columns, 3)
    ends = quantisation(call.tensor(0)), quantisation(call.result)
    return [call.mix(elements, "bilinear", *ends)]


def _taps_of(resize: Resize) -> list[Taps]:
    """The taps of each row of the result; (0, 0, 0) where they are unknown."""
    return [resize.taps(i) or (0, 0, Fraction(0)) for i in range(resize.out)]


def _along(call: OpCall, elements: Residues, resize: Resize, axis: int) -> Residues:
    """Resize along one axis: rows of the result from rows of the operand, or columns from
    columns."""
    result = _between(call, elements, _taps_of(resize), axis)
    for i in range(resize.out):
        if resize.taps(i) is None:
            at = (*[slice(None)] * axis, i)
            result[at] = _of_all(call, elements, resize, axis, i)
    return result


def _of_all(call: OpCall, elements: Residues, resize: Resize, axis: int, row: int) -> Residues:
    """A row of the result whose taps are unknown because of rounding: a hash of all rows with their
    places."""
    places = np.arange(resize.size).reshape(-1, *[1] * (elements.ndim - 1 - axis))
    words = mixing.keys(mixing.key("rounded", resize, row), places)
    return field.total(call.mixer.mix(elements, words), (axis,))


def _between(call: OpCall, elements: Residues, taps: list[Taps], axis: int) -> Residues:
    """Weighted sums of two neighbouring rows or columns."""
    low = np.take(elements, [t[0] for t in taps], axis)
    high = np.take(elements, [t[1] for t in taps], axis)
    shape = [LANES, 1, 1, 1, 1]
    shape[axis] = len(taps)
    upper = _weights(call, [t[2] for t in taps]).reshape(shape)
    lower = _weights(call, [1 - t[2] for t in taps]).reshape(shape)
    return field.add(field.multiply(low, lower), field.multiply(high, upper))


def _weights(call: OpCall, weights: list[Fraction]) -> Residues:
    """Weights as field elements. For integer images they are fixed-point integers in units of
    1/1024. For float images each weight has an element of its own, and 0 is 0."""
    if not is_float(call.tensor(0)):
        numbers = np.array([int(w * _ONE) for w in weights], np.int64)
        return np.broadcast_to(field.residues_of(numbers), (LANES, len(weights)))
    named = call.symbols.of_numbers(np.array([float(w) for w in weights]))
    return np.where(np.array(weights) == 0, 0, named).astype(np.uint32)


RULES = dict.fromkeys(("RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR"), resize_image)
