"""Some operators of a model by themselves.

    whole     x -[A]- a -[B]- b -[C]- y        cut out [B]     a -[B]- b

Like the copies that `clone` makes, it shares what no pass changes in place: options (passes put
copies), constants, types. The search looks at hundreds of candidates; reading the file for each
would take most of its time.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflm_planner.model import schema
from tflm_planner.model.clone import copy_of_operator, copy_of_tensor
from tflm_planner.model.ir import Graph, Model, Op, OpCode, Tensor, link


def extract_interval(model: Model, ops: Sequence[Op], through: Sequence[Tensor]) -> Model:
    """A model of `ops` of the main graph alone, in this order. What they read and do not make are
    its inputs; what is needed afterwards is read by an operator at its end, as it would be in the
    whole model (TFLM treats graph outputs otherwise). `through`: tensors that live from before
    them until after them."""
    inner = {id(op) for op in ops}
    made = {id(t) for op in ops for t in op.outputs}
    kept = {id(t) for t in model.main.outputs}
    entering = {
        id(t): t
        for op in ops
        for t in op.operands()
        if id(t) not in made and not t.is_constant and not t.is_variable
    }
    entering |= {id(t): t for t in through}
    leaving = {
        id(t): t
        for op in ops
        for t in op.outputs
        if id(t) in kept or any(id(c) not in inner for c in t.consumers)
    }
    leaving |= {id(t): t for t in through}
    outputs = [t for t in leaving.values() if id(t) in kept]
    copies: dict[Tensor, Tensor] = {}
    graph = _graph(model.main, ops, list(entering.values()), outputs, copies)
    reader = _reader([copies[t] for t in leaving.values()])
    graph.ops.append(reader)
    graph.tensors += reader.outputs
    graph.outputs += reader.outputs
    link([graph])
    used = {id(t.buffer) for t in graph.tensors} | {id(b) for b in model.buffers[:1]}
    buffers = [b for b in model.buffers if id(b) in used]
    return Model([graph], [*model.codes, reader.code], buffers, [], [], [], model.raw)


def is_stand_in(op: Op) -> bool:
    """Whether an operator stands for the readers that an interval was cut off from."""
    return op.outputs[0].name == _STAND_IN if op.outputs else False


_STAND_IN = "read by what was cut off"


def _reader(tensors: Sequence[Tensor]) -> Op:
    """An operator whose result is like none of its operands, so that nothing is made of it, and
    that needs next to no scratch, as one that nobody knows would."""
    generated = schema.generated
    like = tensors[0]
    result = Tensor(
        _STAND_IN, like.type, (1,), like.buffer, None, False, 0, generated.TensorT(name=b"")
    )
    code = OpCode(schema.operator_code("ADD_N"), None, generated.OperatorCodeT())
    raw = generated.OperatorT()
    return Op(code, list[Tensor | None](tensors), [result], [], None, {}, None, False, raw)


def _graph(
    graph: Graph,
    ops: Sequence[Op],
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    tensors: dict[Tensor, Tensor],
) -> Graph:
    """`graph` with copies of these operators and of the tensors that they mention, which are
    noted in `tensors`; links are left to the caller."""
    mentioned = {id(t) for op in ops for t in (*op.operands(), *op.outputs, *op.intermediates)}
    mentioned |= {id(t) for t in (*inputs, *outputs)}
    for t in graph.tensors:
        if id(t) in mentioned:
            tensors[t] = copy_of_tensor(t, t.buffer)
    return Graph(
        graph.name,
        [tensors[t] for t in graph.tensors if t in tensors],
        [tensors[t] for t in inputs],
        [tensors[t] for t in outputs],
        [copy_of_operator(op, tensors, op.code, op.graphs) for op in ops],
        graph.raw,
    )
