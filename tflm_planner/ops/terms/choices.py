"""Terms of choices between integers, and of the sums of products that compute the same
(`ops/choices`).

A test is the number 0 or 1, a product of one with a number is the product of their elements, and a
sum of such products is mixed at once, as is a choice: then no coefficient is above 2, so that terms
are equal only where the integers are, whatever overflows. A constant is a symbol like any other
number.
"""

from __future__ import annotations

from tflm_planner.ops.choices import (
    Choice,
    adds_counted,
    choice_of,
    counts,
    numbers_a_test,
)
from tflm_planner.ops.terms.calls import OpCall
from tflm_planner.ops.terms.field import LANES, Residues, add, multiply
from tflm_planner.ops.terms.parameters import quantisation
from tflm_planner.ops.terms.values import InexpressibleError, Values

_MIXED = "a sum of numbers that tests choose"


def of_choice(call: OpCall) -> Values | None:
    """The result of a choice, or of a part of the sum that computes one; None for any other
    operator."""
    if numbers_a_test(call.op):
        return call.values(0).reshape(call.shape)
    if counts(call.op):
        return Values(_fitting(call, multiply(_of(call, 0), _of(call, 1))), False)
    if adds_counted(call.op):
        return _mixed(call, add(_of(call, 0), _of(call, 1)))
    choice = choice_of(call.op)
    return None if choice is None else _mixed(call, _chosen(call, choice))


def _chosen(call: OpCall, choice: Choice) -> Residues:
    """The sum that computes a choice, not mixed."""
    test, chosen, otherwise = (_of(call, place) for place in range(3))
    if choice.added is not None:
        return add(
            otherwise, multiply(test, _aligned(call, call.symbols.of_constant(choice.added)))
        )
    reverse = call.mix(test, *_reversing(choice)).data
    return add(multiply(test, chosen), multiply(reverse, otherwise))


def _reversing(choice: Choice) -> tuple[object, ...]:
    """The key of a LOGICAL_NOT of the test, as `parameters.all_of` makes it."""
    test = quantisation(choice.test)
    return ("LOGICAL_NOT", ""), (), b"", (test, test)


def _of(call: OpCall, operand: int) -> Residues:
    return _aligned(call, call.values(operand))


def _aligned(call: OpCall, values: Values) -> Residues:
    """Elements with as many axes as the result has."""
    elements = call.symbols.elements(values)
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
