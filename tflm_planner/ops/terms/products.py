"""Terms of matrix products: FULLY_CONNECTED and BATCH_MATMUL."""

from __future__ import annotations

import numpy as np

from tflm_planner.model.ir import Tensor
from tflm_planner.ops.terms import field, mixing
from tflm_planner.ops.terms.calls import OpCall
from tflm_planner.ops.terms.field import LANES, Residues
from tflm_planner.ops.terms.parameters import is_float, quantisation
from tflm_planner.ops.terms.sums import channel_keys, factors
from tflm_planner.ops.terms.values import Values

_TYPES = ("int8", "int16", "uint8", "float32")
_WEIGHTS = ("int4", *_TYPES)


def fully_connected(call: OpCall) -> list[Values] | None:
    """FULLY_CONNECTED: products of rows of the operand with rows of the weights."""
    if not call.has(1) or not _are_summed(call) or len(call.tensor(1).shape or ()) != 2:
        return None
    if call.op.options.has_shuffled_weights or _ignores_zero_points(call.tensor(1)):
        return None
    outputs, inner = call.tensor(1).shape or (0, 0)
    rows = call.values(0).size // max(inner, 1)
    if rows * inner != call.values(0).size or rows * outputs != call.result.elements:
        return None
    words = channel_keys(call, 0, 1, 2) if call.values(1).known else None
    data = call.centred_elements(0).reshape(LANES, rows, inner)
    if words is None:
        return _by_computed_weights(call, data)
    weights = factors(call, 1, 3).swapaxes(-1, -2)
    sums = field.times(data, weights) if weights.ndim == 3 else field.times_integers(data, weights)
    return [call.mix_by(sums, words).reshape(call.shape)]


def _ignores_zero_points(weights: Tensor) -> bool:
    """Whether kernels leave out zero points that the weights have: beside several scales they take
    all for 0."""
    own = weights.quantization
    return len(own.scales) > 1 and any(own.zero_points)


def _are_summed(call: OpCall) -> bool:
    kinds = call.tensor(0).type_name, call.tensor(1).type_name
    if kinds[0] not in _TYPES or kinds[1] not in _WEIGHTS or len(call.shape) < 1:
        return False
    return (kinds[0] == "float32") == (kinds[1] == "float32")


def _by_computed_weights(call: OpCall, data: Residues) -> list[Values] | None:
    """FULLY_CONNECTED whose weights are not constant: sums of products of two terms."""
    if call.has(2) and not call.values(2).known:
        return None
    bias = call.tensor(2).type_name if call.has(2) else None
    words = _product_keys(call, "rows by rows", bias)
    if call.has(2):
        shift = call.values(2).data.reshape(-1)
        if shift.size != (call.tensor(1).shape or (0,))[0]:
            return None
        words = mixing.keys(words, shift)
    weights = call.centred_elements(1).swapaxes(-1, -2)
    sums = field.times(_in_order(call, data), weights)
    return [call.mix_by(sums, words).reshape(call.shape)]


def _product_keys(call: OpCall, *name: object) -> mixing.Words:
    return mixing.key(
        *name, quantisation(call.tensor(0)), quantisation(call.tensor(1)),
        quantisation(call.result), call.op.options.activation,
    )  # fmt: skip


def _in_order(call: OpCall, data: Residues) -> Residues:
    """For floats, multiply every position of the last axis by its own factor, since the order of
    their sums matters. Integers stay as they are."""
    if not is_float(call.tensor(0)):
        return data
    places = call.symbols.of_name((data.shape[-1],), "place in a sum").data
    return field.multiply(data, places.reshape(LANES, *(1 for _ in data.shape[1:-1]), -1))


def batch_matmul(call: OpCall) -> list[Values] | None:
    """BATCH_MATMUL: sums of products of two terms, each of which may be transposed."""
    ranks = [len(call.values(i).shape) for i in (0, 1)]
    if min(ranks) < 2 or not _are_summed(call) or len(call.shape) < max(ranks):
        return None
    sides = [call.centred_elements(0), call.centred_elements(1)]
    for i, is_transposed in enumerate(call.op.options.transposes):
        if is_transposed:
            sides[i] = sides[i].swapaxes(-1, -2)
        lead = len(call.shape) - ranks[i]
        sides[i] = sides[i].reshape(LANES, *(1 for _ in range(lead)), *sides[i].shape[1:])
    if sides[0].shape[-1] != sides[1].shape[-2]:
        return None
    sums = field.times(_in_order(call, sides[0]), sides[1])
    if sums.shape[1:] != call.shape:
        return None
    return [call.mix_by(np.ascontiguousarray(sums), _product_keys(call, "product"))]


RULES = {"FULLY_CONNECTED": fully_connected, "BATCH_MATMUL": batch_matmul}
