"""Writes operators of int8 for which TFLM has no kernel as tables of what LiteRT computes.

    a head of YOLO: x int8 --EXP--> y int8
    x --CAST int32--> x --ADD 128--> 0 to 255 --GATHER in 256 numbers of int8--> y

Such an operator makes each element of the element at the same position, and there are 256 of
these: LiteRT is asked for all. Where it refuses a number (SQRT of a negative one), the original
computes nothing either, and the table holds the result of the number nearest to it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tflm_planner.model.draft import Draft
from tflm_planner.model.edit import resize
from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.model.new_model import NewModel
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.ops.terms.parameters import all_of
from tflm_planner.support.progress import Progress, silent
from tflm_planner.support.words import count
from tflm_planner.tflm.element_types import lacks_types
from tflm_planner.tflm.resolver_methods import resolver_method
from tflm_planner.verification.compare import VerifyOptions, write_temporary
from tflm_planner.verification.on_litert import computed_on_litert
from tflm_planner.verification.runnable import is_installed
from tflm_planner.verification.session import RuntimeFailureError, Session

_FROM_ZERO = {"EXP": False, "GELU": False, "LOG": False, "RELU_0_TO_1": False, "SQRT": True}
"""Kinds that make each element of the element at the same position -> whether LiteRT refuses
numbers below zero."""
_NUMBERS = np.arange(-128, 128).astype(np.int8)

ByteTable = npt.NDArray[np.int8]


def tabulated(data: bytes, on_progress: Progress = silent) -> tuple[bytes, list[str]]:
    """The model in `data` with tables, and a note; the same bytes if it needs none, or if LiteRT
    cannot be asked."""
    model = read_model(data)
    wanted = [op for op in model.main.ops if needs_table(op)]
    if not wanted or not is_installed("LiteRT"):
        return data, []
    on_progress("asking LiteRT for tables of what TFLM lacks")
    tables: dict[tuple[object, ...], ByteTable | None] = {}
    kinds: list[str] = []
    for op in wanted:
        key = all_of(op, (*op.operands(), *op.outputs))
        if key not in tables:
            tables[key] = _table_of(op)
        if (table := tables[key]) is not None:
            _look_up(model, op, table)
            kinds.append(op.kind)
    if not kinds:
        return data, []
    changed = write_model(model)
    if not _computes_the_same(data, changed, may_refuse=any(map(_FROM_ZERO.get, kinds))):
        return data, []
    operators = count(len(kinds), "operator", "operators")
    note = f"{operators} of int8 written as tables of 256 numbers, as TFLM lacks the kernels"
    return changed, [f"{note}: {', '.join(sorted({*kinds}))}"]


def needs_table(op: Op) -> bool:
    """Whether an operator can be written as a table, and TFLM has no kernel for it."""
    if op.kind not in _FROM_ZERO or len(op.inputs) != 1 or len(op.outputs) != 1:
        return False
    data, result = op.inputs[0], op.outputs[0]
    if data is None or data.is_constant or data.shape != result.shape:
        return False
    if not all(map(_is_of_bytes, (data, result))):
        return False
    return resolver_method(op.kind) is None or lacks_types(op)


def _is_of_bytes(tensor: Tensor) -> bool:
    """Whether it holds int8 with one scale, and a zero point that is an int8."""
    single = tensor.quantization.single
    if tensor.type_name != "int8" or single is None or tensor.is_variable:
        return False
    return -128 <= single[1] <= 127


def _computes_the_same(data: bytes, changed: bytes, *, may_refuse: bool) -> bool:
    """Whether LiteRT runs both models, and gives the same outputs for an input. may_refuse: whether
    it refuses some inputs of the first."""
    before, after = (computed_on_litert(each, read_model(each), 1) for each in (data, changed))
    if before is None or after is None:
        return may_refuse and after is not None
    return before.outputs == after.outputs


def _table_of(op: Op) -> ByteTable | None:
    """What LiteRT makes of each of the 256 numbers; None if it refuses them, or gives none in
    time."""
    new = NewModel()
    x, y = new.add_tensor(op.operands()[0]), new.add_tensor(op.outputs[0])
    for tensor in (x, y):
        resize(tensor, _NUMBERS.shape)
    new.add_copy(op, [x], [y])
    scale = op.operands()[0].quantization.single
    lowest = scale[1] if scale is not None and _FROM_ZERO[op.kind] else -128
    given = np.maximum(_NUMBERS, lowest).astype(np.int8)
    limit = VerifyOptions().time_limit
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "operator.tflite"
        write_temporary([path], [new.write([x], [y])])
        with Session("LiteRT", path, arena=0, outputs=1, time_limit=limit) as session:
            try:
                session.describe()
                session.send([given])
                answer: list[Any] = session.receive()
            except RuntimeFailureError:
                return None
    return np.asarray(answer[0], np.int8)


def _look_up(model: Model, op: Op, table: ByteTable) -> None:
    """Put CAST, ADD and GATHER in place of an operator."""
    (data,), (result,) = op.operands(), op.outputs
    draft = Draft(model, model.main)
    shape = data.shape or ()
    number, place = (
        draft.value(f"{result.name}/{name}", "int32", shape) for name in ("number", "place")
    )
    numbers = draft.constant(
        f"{result.name}/table", table, "int8", quantization=result.quantization
    )
    draft.op("CAST", [data], [number], in_data_type=data.type, out_data_type=number.type)
    draft.op("ADD", [number, draft.constant("first", np.array(128, "<i4"), "int32")], [place])
    draft.op("GATHER", [numbers, place], [result], axis=0)
    draft.commit([op])
