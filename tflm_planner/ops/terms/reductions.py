"""Terms of reductions over axes, and of operators on whole rows, such as SOFTMAX."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflm_planner.ops.terms import field, mixing
from tflm_planner.ops.terms.calls import OpCall
from tflm_planner.ops.terms.field import LANES, Residues
from tflm_planner.ops.terms.maxima import maximum, parts_of
from tflm_planner.ops.terms.parameters import all_of, is_float, quantisation
from tflm_planner.ops.terms.values import Values

_OF_ROWS = ("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION")


def reduction(call: OpCall) -> list[Values] | None:
    """MEAN and SUM of integers are sums of elements, and REDUCE_MAX is a MAX_POOL_2D of one window.
    Other reductions of integers are sums of mixed elements, that is, sets. For floats each
    element is mixed with its place, since their order matters."""
    axes = call.values(1)
    data = call.values(0)
    if not axes.known or not data.shape:
        return None
    product = _compute(call)
    if product is not None:
        return [product]
    over = tuple(sorted({int(a) % len(data.shape) for a in axes.data.reshape(-1)}))
    elements = call.elements(0)
    ends = quantisation(call.tensor(0)), quantisation(call.result)
    if call.op.kind == "REDUCE_MAX" and ends[0] == ends[1] and not is_float(call.tensor(0)):
        call.check_declared(_left(call, data.shape, over))
        if all(data.shape[a] == 1 for a in over):
            return [data.reshape(call.shape)]
        sums = field.total(parts_of(call), tuple(a + 1 for a in over))
        return [maximum(call, sums).reshape(call.shape)]
    if is_float(call.tensor(0)):
        elements = _by_place(call, elements, over)
    elif call.op.kind not in ("MEAN", "SUM"):
        elements = call.mix(elements, "of a reduction").data
    sums = field.total(elements, tuple(a + 1 for a in over))
    call.check_declared(_left(call, data.shape, over))
    count = int(np.prod([data.shape[a] for a in over]))
    # Some releases of TFLM have special kernels for some axes, which round differently.
    form = len(data.shape), over, call.op.options.keeps_dims
    return [call.mix(sums, call.op.kind, count, form, *ends).reshape(call.shape)]


def _left(call: OpCall, shape: tuple[int, ...], over: tuple[int, ...]) -> list[int]:
    """The shape after a reduction over some of its axes."""
    if call.op.options.keeps_dims:
        return [1 if a in over else n for a, n in enumerate(shape)]
    return [n for a, n in enumerate(shape) if a not in over]


def _compute(call: OpCall) -> Values | None:
    """REDUCE_PROD of known integers, such as sizes of shapes; None for any other reduction."""
    data = call.values(0)
    if call.op.kind != "REDUCE_PROD" or not data.known or data.data.dtype.kind != "i":
        return None
    axes = tuple(int(a) for a in call.values(1).data.reshape(-1))
    product = np.prod(data.data, axes, dtype=data.data.dtype)
    return Values(np.asarray(product), True).reshape(call.shape)


def _by_place(call: OpCall, elements: Residues, over: tuple[int, ...]) -> Residues:
    """Elements, each mixed by its place within the sum to which it belongs."""
    shape = [n if a in over else 1 for a, n in enumerate(elements.shape[1:])]
    places: npt.NDArray[Any] = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    words = mixing.keys(mixing.key("place in a reduction", call.op.kind), places)
    return call.mix_by(elements, words).data


def of_rows(call: OpCall) -> list[Values] | None:
    """Each result is made from its own element and from all elements of its row (the last axis) in
    order."""
    if not call.shape or call.values(0).shape != call.shape:
        return None
    elements = call.elements(0)
    by_place = _by_place(call, elements, (len(call.shape) - 1,))
    rows = call.mix(field.total(by_place, (len(call.shape),)), "row").data
    own = call.mix(elements, "in a row").data
    both = field.add(own, np.broadcast_to(rows[..., None], own.shape))
    name = all_of(call.op, (call.tensor(0), call.result))
    return [call.mix(both.reshape(LANES, *call.shape), *name)]


RULES = {
    **dict.fromkeys(
        ("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY", "REDUCE_ALL"),
        reduction,
    ),
    **dict.fromkeys(_OF_ROWS, of_rows),
}
