"""Choices between integers, and the same as sums of products with tests that are 0 or 1.

    SELECT_V2 test, word + 20, word     word + CAST(test) * 20
    SELECT_V2 test, a, b                CAST(test) * a + CAST(LOGICAL_NOT test) * b

Integers without scales alone: nothing is rounded, and what overflows does so alike. A test is the
byte 0 or 1, as a bool of C++ is.
"""

from __future__ import annotations

from typing import NamedTuple

from tflm_planner.model.ir import Op, Tensor

_TYPE = "int32"


class IntegerChoice(NamedTuple):
    """A SELECT_V2: `chosen` where `test` holds, else `otherwise`. added: the constant that `chosen`
    is more than `otherwise`; None if it is no such sum."""

    test: Tensor
    chosen: Tensor
    otherwise: Tensor
    added: Tensor | None


def chooses_elements(op: Op) -> bool:
    """Whether it is a SELECT_V2, or a SELECT of operands of one shape, which computes the same; not
    so a SELECT that chooses rows."""
    if op.kind not in ("SELECT", "SELECT_V2") or not len(op.inputs) == len(op.operands()) == 3:
        return False
    shapes = {t.shape or () for t in (*op.operands(), *op.outputs)}
    return op.kind == "SELECT_V2" or len(shapes) == 1


def choice_of(op: Op) -> IntegerChoice | None:
    """The choice that a SELECT_V2 of int32 makes; None for any other operator."""
    if not chooses_elements(op) or not is_plain(op):
        return None
    test, chosen, otherwise = op.inputs
    if test is None or chosen is None or otherwise is None or test.type_name != "bool":
        return None
    if not all(map(_is_integer, (chosen, otherwise, *op.outputs))):
        return None
    return IntegerChoice(test, chosen, otherwise, _added(chosen, otherwise))


def _added(chosen: Tensor, otherwise: Tensor) -> Tensor | None:
    """The constant that is added to `otherwise` to make `chosen`; None if there is none."""
    maker = chosen.producer
    if maker is None or maker.kind != "ADD" or not is_plain(maker) or len(maker.inputs) != 2:
        return None
    for whole, added in (maker.inputs, maker.inputs[::-1]):
        if whole is otherwise and added is not None and added.is_constant:
            return added
    return None


def counts(op: Op) -> bool:
    """Whether it is a MUL of a number by a test: CAST of what is true or false."""
    return op.kind == "MUL" and is_plain(op) and any(map(_is_test_as_number, op.operands()))


def adds_counted(op: Op) -> bool:
    """Whether it is an ADD of a product with a test."""
    made_by = [t.producer for t in op.operands()]
    return op.kind == "ADD" and is_plain(op) and any(p is not None and counts(p) for p in made_by)


def numbers_a_test(op: Op) -> bool:
    """Whether it is a CAST of what is true or false to a number."""
    return op.kind == "CAST" and len(op.inputs) == 1 and _is_test_as_number(op.outputs[0])


def _is_test_as_number(tensor: Tensor) -> bool:
    maker = tensor.producer
    if maker is None or maker.kind != "CAST" or len(maker.operands()) != 1:
        return False
    return maker.operands()[0].type_name == "bool" and _is_integer(tensor)


def is_plain(op: Op) -> bool:
    """Whether all numbers of an operator are integers without scales, and none is limited."""
    numbers = [t for t in (*op.operands(), *op.outputs) if t.type_name != "bool"]
    return len(op.outputs) == 1 and all(map(_is_integer, numbers)) and not op.options.activation


def _is_integer(tensor: Tensor) -> bool:
    return tensor.type_name == _TYPE and not tensor.quantization.scales
