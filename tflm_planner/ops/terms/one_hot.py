"""Terms of ONE_HOT: a comparison with each number, and a choice by what it says."""

from __future__ import annotations

import numpy as np

from tflm_planner.ops.terms.alike import mixed_as
from tflm_planner.ops.terms.calls import OpCall
from tflm_planner.ops.terms.parameters import quantisation
from tflm_planner.ops.terms.values import Values

_NUMBERS, _TESTS = ("int32", (), (), 0), ("bool", (), (), 0)
"""Types without scales, as `parameters.quantisation` gives them."""


def one_hot(call: OpCall) -> list[Values] | None:
    """ONE_HOT along the last axis: SELECT_V2 of EQUAL. Numbers of int64 are those of int32."""
    given, depth = call.values(0), call.values(1)
    if not depth.known or depth.size != 1 or call.op.options.axis not in (-1, len(given.shape)):
        return None
    many = int(depth.data.reshape(-1)[0])
    shape = (*given.shape, many)
    call.check_declared(shape)
    every = np.arange(many, dtype=np.int32)
    each = given.reshape((*given.shape, 1))
    if each.known:
        test = Values(np.equal(each.data, every), True)
    else:
        equal = ("EQUAL", ""), (), b"", (_NUMBERS, _NUMBERS, _TESTS)
        test = mixed_as(call, equal, (each, Values(every, True)), shape)
    chosen = [quantisation(t) for t in (call.tensor(2), call.tensor(3), call.result)]
    choice = ("SELECT_V2", ""), (), b"", (_TESTS, *chosen)
    return [mixed_as(call, choice, (test, call.values(2), call.values(3)), shape)]


RULES = {"ONE_HOT": one_hot}
