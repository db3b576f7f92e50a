"""Writes ONE_HOT, for which TFLM has no kernel, as a comparison.

    words: (1, 8) int32 --CAST--> int64 --ONE_HOT 20--> (1, 8, 20)
    words --RESHAPE--> (1, 8, 1) --EQUAL 0 1 .. 19--> (1, 8, 20) bool --SELECT_V2 on, off-->

A number that none of them equals leaves all of them off, as ONE_HOT does. The CAST, which TFLM
lacks, too, changes no number. This module must not know memory.
"""

from __future__ import annotations

from tflm_planner.model.constants import integers
from tflm_planner.model.draft import Draft
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.support.words import count
from tflm_planner.transforms.fold_transpose import is_private
from tflm_planner.transforms.substitutes.each import replace_each

_MOST = 1 << 16
"""Numbers that are told apart; more are a damaged file."""
_TYPES = ("float32", "int8", "int16")
"""Between which TFLM's SELECT_V2 chooses."""


def compare_for_one_hot(model: Model) -> list[str]:
    """Replace them; returns a note if there were any."""
    replaced = replace_each(model, _replace)
    if not replaced:
        return []
    operators = count(replaced, "ONE_HOT", "ONE_HOT")
    return [f"{operators} written as EQUAL and SELECT_V2, as TFLM has no kernel for it"]


def _replace(model: Model, graph: Graph, op: Op) -> bool:
    """Write one as a comparison; False if it is another operator, or that is impossible."""
    if op.kind != "ONE_HOT" or len(op.inputs) != 4 or len(op.outputs) != 1:
        return False
    given, depth, on, off = op.inputs
    numbers, (result,) = _as_int32(given), op.outputs
    many = integers(depth)
    if numbers is None or on is None or off is None or many is None or len(many) != 1:
        return False
    shape = numbers.shape or ()
    if not 1 <= many[0] <= _MOST or (*shape, many[0]) != result.shape:
        return False
    if op.options.axis not in (-1, len(shape)) or result.type_name not in _TYPES:
        return False
    if any(t.type != result.type or (t.shape or ()) not in ((), (1,)) for t in (on, off)):
        return False
    draft = Draft(model, graph)
    each = draft.tensor(numbers, f"{result.name}/each", (*shape, 1))
    test = draft.value(f"{result.name}/test", "bool", result.shape or ())
    draft.reshape(numbers, each)
    draft.op("EQUAL", [each, draft.integers("all", range(many[0]))], [test])
    draft.op("SELECT_V2", [test, on, off], [result])
    cast = given.producer if given is not None and given is not numbers else None
    is_needless = given is not None and given.consumers == [op] and is_private(model, graph, given)
    draft.commit([op, cast] if cast is not None and is_needless else [op])
    return True


def _as_int32(tensor: Tensor | None) -> Tensor | None:
    """The tensor of int32 that holds the same numbers; None if there is none."""
    if tensor is None or tensor.is_variable or tensor.is_constant or tensor.quantization.scales:
        return None
    if tensor.type_name == "int32":
        return tensor
    maker = tensor.producer
    if tensor.type_name != "int64" or maker is None or maker.kind != "CAST":
        return None
    (data,) = maker.operands() if len(maker.operands()) == 1 else (None,)
    if data is None or data.type_name != "int32" or data.quantization.scales:
        return None
    return data if data.shape == tensor.shape else None
