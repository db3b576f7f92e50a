"""Writes SELECT_V2 of int32, which TFLM's kernel does not take, as sums and products.

    a negative word, as Keras' Embedding counts it from the end of its table of 20 rows:
    word < 0 --SELECT_V2 word + 20, word-->     word + CAST(word < 0) * 20

    any other: SELECT_V2 test, a, b             CAST(test) * a + CAST(not test) * b

A test is 0 or 1 as a number, so that a product is 0 or its other factor, and nothing overflows that
did not before. `ops/terms/choices` holds the same sums against each other. This module must not
know memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflm_planner.model.draft import Draft
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.ops.choices import choice_of
from tflm_planner.support.deferred import defer
from tflm_planner.support.words import count
from tflm_planner.transforms.fold_transpose import is_private
from tflm_planner.transforms.substitutes.each import replace_each

if TYPE_CHECKING:
    import numpy as np
else:
    np = defer("numpy")


def select_integers(model: Model) -> list[str]:
    """Replace every SELECT_V2 of int32; returns a note if there were any."""
    replaced = replace_each(model, _replace)
    if not replaced:
        return []
    operators = count(replaced, "SELECT_V2", "SELECT_V2")
    return [f"{operators} of int32 written as sums and products: TFLM's kernel takes no int32"]


def _replace(model: Model, graph: Graph, op: Op) -> bool:
    """Write an operator as a sum of products if it chooses integers; False if it does not."""
    choice = choice_of(op)
    if choice is None or not _is_as_declared(op) or op.outputs[0].is_variable:
        return False
    (result,), test, otherwise = op.outputs, choice.test, choice.otherwise
    draft = Draft(model, graph)
    if choice.added is not None:
        parts = otherwise, _counted(draft, result, test, choice.added)
    else:
        reverse = draft.tensor(test, f"{result.name}/not", test.shape or ())
        draft.op("LOGICAL_NOT", [test], [reverse])
        parts = (
            _counted(draft, result, test, choice.chosen),
            _counted(draft, result, reverse, otherwise),
        )
    draft.op("ADD", parts, [result])
    maker, readers = choice.chosen.producer, choice.chosen.consumers
    is_needless = choice.added is not None and readers == [op]
    is_needless = is_needless and is_private(model, graph, choice.chosen)
    draft.commit([op, maker] if maker is not None and is_needless else [op])
    return True


def _is_as_declared(op: Op) -> bool:
    """Whether the result has the shape that the operands give; not so in a damaged file."""
    try:
        shape = np.broadcast_shapes(*(t.shape or () for t in op.operands()))
    except ValueError:
        return False
    return shape == (op.outputs[0].shape or ())


def _counted(draft: Draft, result: Tensor, test: Tensor, number: Tensor) -> Tensor:
    """Draft a product: `number` where `test` holds, else 0."""
    shapes = test.shape or (), number.shape or ()
    one_or_zero = draft.tensor(result, f"{test.name}/number", shapes[0])
    product = draft.tensor(result, f"{test.name}/product", np.broadcast_shapes(*shapes))
    draft.op("CAST", [test], [one_or_zero], in_data_type=test.type, out_data_type=result.type)
    draft.op("MUL", [one_or_zero, number], [product])
    return product
