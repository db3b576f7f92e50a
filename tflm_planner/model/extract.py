"""Extracts some operators of a model as a separate model.

    the model     x -[A]- a -[B]- b -[C]- y        extract [B]     a -[B]- b

Like the copies that `clone` makes, the new model shares everything that no transform changes in
place: options, constants, types. A search evaluates hundreds of such parts; if it read a file for
each, it would spend most of its time reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from tflm_planner.model import schema
from tflm_planner.model.clone import copy_of_operator, copy_of_tensor
from tflm_planner.model.ir import Graph, Model, Op, OpCode, Tensor, link
from tflm_planner.model.options import NO_OPTIONS
from tflm_planner.model.quantization import NOT_QUANTIZED


def extract_interval(model: Model, ops: Sequence[Op], through: Sequence[Tensor]) -> Model:
    """A model that consists of `ops` of the main graph, in this order.

    Its inputs are the tensors that `ops` read but do not write. Tensors that are needed after `ops`
    are read by a stand-in operator at the end of the new model, as operators of the whole model
    would read them (TFLM treats outputs of a graph differently). through: tensors that live from
    before `ops` until after them.
    """
    inner, defined = {*ops}, {t for op in ops for t in op.outputs}
    model_outputs = {*model.main.outputs}
    entering = dict.fromkeys(
        t
        for op in ops
        for t in op.operands()
        if t not in defined and not t.is_constant and not t.is_variable
    )
    entering |= dict.fromkeys(through)
    leaving = dict.fromkeys(
        t
        for op in ops
        for t in op.outputs
        if t in model_outputs or any(c not in inner for c in t.consumers)
    )
    leaving |= dict.fromkeys(through)
    outputs = [t for t in leaving if t in model_outputs]
    copies: dict[Tensor, Tensor] = {}
    graph = _extract_graph(model.main, ops, [*entering], outputs, copies)
    reader = _stand_in([copies[t] for t in leaving])
    graph.ops.append(reader)
    graph.tensors += reader.outputs
    graph.outputs += reader.outputs
    link([graph])
    used_buffers = {t.buffer for t in graph.tensors} | {*model.buffers[:1]}
    buffers = [b for b in model.buffers if b in used_buffers]
    return Model([graph], [*model.codes, reader.code], buffers, [], [], [], model.raw)


def is_stand_in(op: Op) -> bool:
    """Whether an operator stands for readers that are not part of an extracted model."""
    return op.raw is _stand_in_raw()


@cache
def _stand_in_raw() -> Any:
    """The `raw` of every stand-in and of no other operator; copies of models share it."""
    return schema.generated.OperatorT()


def _stand_in(tensors: Sequence[Tensor]) -> Op:
    """An operator that reads these tensors. Its kind (ADD_N) has no sharing rule, so its result
    shares no memory with its operands, and it needs next to no scratch memory."""
    generated = schema.generated
    buffer, type_ = tensors[0].buffer, tensors[0].type
    raw_tensor = generated.TensorT(name=b"")
    result = Tensor(
        "read by what was cut off", type_, (1,), buffer, NOT_QUANTIZED, False, 0, raw_tensor
    )
    code = OpCode(schema.operator_code("ADD_N"), None, generated.OperatorCodeT())
    inputs = list[Tensor | None](tensors)
    return Op(code, inputs, [result], [], NO_OPTIONS, {}, None, False, _stand_in_raw())


def _extract_graph(
    graph: Graph,
    ops: Sequence[Op],
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    copies: dict[Tensor, Tensor],
) -> Graph:
    """`graph` with copies of these operators and of the tensors that they refer to; the caller
    links it. copies: this function adds tensor -> its copy."""
    mentioned = {t for op in ops for t in (*op.operands(), *op.outputs, *op.intermediates)}
    mentioned |= {*inputs, *outputs}
    for t in graph.tensors:
        if t in mentioned:
            copies[t] = copy_of_tensor(t, t.buffer)
    return Graph(
        graph.name,
        [copies[t] for t in graph.tensors if t in copies],
        [copies[t] for t in inputs],
        [copies[t] for t in outputs],
        [copy_of_operator(op, copies, op.code, op.graphs) for op in ops],
        graph.raw,
    )
