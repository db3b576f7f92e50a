"""Terms of choices between integers, and of the sums of products that compute the same
(`ops/choices`).

A test is the number 0 or 1, a product of one with a number is the product of their elements, and a
sum of such products is mixed at once, as is a choice: then no coefficient is above 2, so that terms
are equal only where the integers are, whatever overflows. The numbers 0 and 1 are themselves here;
any other constant is a symbol.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflm_planner.ops.choices import (
    IntegerChoice,
    adds_counted,
    choice_of,
    counts,
    numbers_a_test,
)
from tflm_planner.ops.terms.calls import OpCall, Rule
from tflm_planner.ops.terms.field import LANES, Residues, add, multiply
from tflm_planner.ops.terms.parameters import quantisation
from tflm_planner.ops.terms.values import InexpressibleError, Values

_MIXED = "a sum of numbers that tests choose"


def of_choice(call: OpCall, rule: Rule) -> Values | None:
    """The result of a choice, or of a part of the sum that computes one; None for any other
    operator. rule: that of all operators that compute each element alike."""
    if numbers_a_test(call.op):
        return call.values(0).reshape(call.shape)
    if counts(call.op):
        return Values(_fitting(call, multiply(_of(call, 0), _of(call, 1))), False)
    if adds_counted(call.op):
        return _mixed(call, add(_of(call, 0), _of(call, 1)))
    choice = choice_of(call.op)
    return None if choice is None else _mixed(call, _chosen(call, choice, rule))


def _chosen(call: OpCall, choice: IntegerChoice, rule: Rule) -> Residues:
    """The sum that computes a choice, not mixed."""
    test, chosen, otherwise = (_of(call, place) for place in range(3))
    more = _added(call, choice, rule)
    if more is not None:
        return add(otherwise, multiply(test, more))
    return add(multiply(test, chosen), multiply(_reverse(call, choice, test), otherwise))


def _added(call: OpCall, choice: IntegerChoice, rule: Rule) -> Residues | None:
    """What is added to `otherwise` to make `chosen`; None if `chosen` is no such sum, or if its
    place holds something else."""
    maker = choice.chosen.producer
    if choice.added is None or maker is None:
        return None
    constant = call.symbols.of_constant(choice.added)
    operands = tuple(constant if t is choice.added else call.values(2) for t in maker.operands())
    made = rule(replace(call, op=maker, operands=operands))
    if made is None or not made[0].is_same_as(call.values(1)):
        return None
    return _aligned(call, constant)


def _reverse(call: OpCall, choice: IntegerChoice, test: Residues) -> Residues:
    """The test the other way round, as LOGICAL_NOT makes it."""
    if call.values(0).known:
        return np.where(test == 0, 1, 0).astype(np.uint32)
    own = quantisation(choice.test)
    return call.mix(test, ("LOGICAL_NOT", ""), (), b"", (own, own)).data


def _of(call: OpCall, operand: int) -> Residues:
    return _aligned(call, call.values(operand))


def _aligned(call: OpCall, values: Values) -> Residues:
    """Elements with as many axes as the result has. The numbers 0 and 1 are themselves."""
    elements = call.symbols.elements(values)
    if values.known:
        elements = np.where(np.isin(values.data, (0, 1)), values.data.astype(np.uint32), elements)
    missing = len(call.shape) - (elements.ndim - 1)
    if missing < 0:
        raise InexpressibleError(f"{call.op.label} has an operand of more axes than its result")
    return elements.reshape(LANES, *(1,) * missing, *elements.shape[1:])


def _mixed(call: OpCall, total: Residues) -> Values:
    return call.mix(_fitting(call, total), _MIXED)


def _fitting(call: OpCall, total: Residues) -> Residues:
    """Elements in the shape of the result. Raises MisdeclaredError if they are of another."""
    call.check_declared(total.shape[1:])
    return total
