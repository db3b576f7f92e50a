"""Cuts some operators out of a model, as a model of their own.

    the model     x -[A]- a -[B]- b -[C]- y        extract [B]     a -[B]- b

Like the copies that `clone` makes, the new model shares what no pass changes in place: options,
constants, types. A search that evaluates hundreds of such parts would spend most of its time
reading the file if it read one for each.
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
    """A model of `ops` of the main graph alone, in this order.

    Its inputs are the tensors that they read but do not make. Tensors that are needed afterwards
    are read by a stand-in operator at its end, as they would be in the whole model (TFLM treats
    outputs of a graph otherwise). through: tensors that live from before the operators until after
    them.
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
    """Whether an operator stands for readers that were not extracted."""
    return op.raw is _stand_in_raw()


@cache
def _stand_in_raw() -> Any:
    """The `raw` of every stand-in and of no other operator: copies share it."""
    return schema.generated.OperatorT()


def _stand_in(tensors: Sequence[Tensor]) -> Op:
    """An operator that reads these tensors. It is of a kind that nobody knows, so that it needs
    next to no scratch and its result shares no memory with its operands."""
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
    """`graph` with copies of these operators and of the tensors that they mention; the caller
    links it. copies: filled with tensor -> its copy."""
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
