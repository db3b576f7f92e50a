"""Terms of resized images: which operand rows and columns a pixel is made of, and with which
weights, as `ops.resize` has them; fixed point sums of integers, places of floats."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tflm_planner.ops.resize import Taps, resize_of
from tflm_planner.verification.terms import field
from tflm_planner.verification.terms.calls import Call
from tflm_planner.verification.terms.field import LANES, Residues
from tflm_planner.verification.terms.parameters import is_float, quantisation
from tflm_planner.verification.terms.values import Values

_ONE = 1 << 10


def resized(call: Call) -> list[Values] | None:
    """RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR."""
    taps: list[list[Taps]] = []
    for axis in (1, 2):
        resize = resize_of(call.op, axis)
        found = [] if resize is None else [resize.taps(i) for i in range(resize.out)]
        known = [t for t in found if t is not None]
        if resize is None or len(known) < len(found):
            return None
        taps.append(known)
    rows, columns = taps
    if call.op.kind == "RESIZE_NEAREST_NEIGHBOR":
        data = call.values(0)
        taken = data.moved(lambda a: a[:, [t[0] for t in rows]][:, :, [t[0] for t in columns]])
        return [taken]
    elements = call.elements(0)
    down = _between(call, elements, rows, 2)
    across = _between(call, down, columns, 3)
    ends = quantisation(call.tensor(0)), quantisation(call.result)
    return [call.mixed(across, "bilinear", *ends)]


def _between(call: Call, elements: Residues, taps: list[Taps], axis: int) -> Residues:
    """Sums of two neighbours along an axis, weighted."""
    low = np.take(elements, [t[0] for t in taps], axis)
    high = np.take(elements, [t[1] for t in taps], axis)
    shape = [LANES, 1, 1, 1, 1]
    shape[axis] = len(taps)
    upper = _weights(call, [t[2] for t in taps]).reshape(shape)
    lower = _weights(call, [1 - t[2] for t in taps]).reshape(shape)
    return field.add(field.multiply(low, lower), field.multiply(high, upper))


def _weights(call: Call, weights: list[Fraction]) -> Residues:
    """Integers as they are (thousands and twenty-fourths); those of floats by name, 0 as 0."""
    if not is_float(call.tensor(0)):
        numbers = np.array([int(w * _ONE) for w in weights], np.int64)
        return np.broadcast_to(field.reduced(numbers), (LANES, len(weights)))
    named = call.symbols.of_numbers(np.array([float(w) for w in weights]))
    return np.where(np.array(weights) == 0, 0, named).astype(np.uint32)


RULES = dict.fromkeys(("RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR"), resized)
