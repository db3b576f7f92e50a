"""Models again, without reading a file: a whole one, or some operators of it by themselves.

    whole     x -[A]- a -[B]- b -[C]- y        cut out [B]     a -[B]- b

Copies share what no pass changes in place: options (passes put copies), constants, types. The
search looks at hundreds of candidates; reading the file for each would take most of its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from tflm_planner import schema
from tflm_planner.ir import Graph, Model, Op, OpCode, Signature, Tensor, link


def copied(model: Model) -> Model:
    """The whole model again, with all its graphs."""
    tensors: dict[int, Tensor] = {}
    graphs = {id(g): _graph(g, g.ops, g.inputs, g.outputs, tensors) for g in model.graphs}
    made = list(graphs.values())
    for graph in made:
        for op in graph.ops:
            op.graphs = {name: [graphs[id(g)] for g in of] for name, of in op.graphs.items()}
    signatures = [
        Signature(
            s.key,
            graphs[id(s.graph)],
            [(name, tensors[id(t)]) for name, t in s.inputs],
            [(name, tensors[id(t)]) for name, t in s.outputs],
            s.raw,
        )
        for s in model.signatures
    ]
    link(made)
    return Model(
        made,
        list(model.codes),
        list(model.buffers),
        list(model.metadata),
        list(model.metadata_buffers),
        signatures,
        model.raw,
    )


def cut_out(model: Model, ops: Sequence[Op], through: Sequence[Tensor]) -> Model:
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
    copies: dict[int, Tensor] = {}
    graph = _graph(model.main, ops, list(entering.values()), outputs, copies)
    reader = _reader([copies[key] for key in leaving])
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
    tensors: dict[int, Tensor],
) -> Graph:
    """`graph` with copies of these operators and of the tensors that they mention, which are
    noted in `tensors`; links and called graphs are left to the caller."""
    whole = len(ops) == len(graph.ops)
    mentioned = {id(t) for op in ops for t in (*op.operands(), *op.outputs, *op.intermediates)}
    mentioned |= {id(t) for t in (*inputs, *outputs)}
    for t in graph.tensors:
        if whole or id(t) in mentioned:
            tensors[id(t)] = _tensor(t)
    listed = [tensors[id(t)] for t in graph.tensors if id(t) in tensors]
    return Graph(
        graph.name,
        listed,
        [tensors[id(t)] for t in inputs],
        [tensors[id(t)] for t in outputs],
        [_operator(op, tensors) for op in ops],
        graph.raw,
    )


def _tensor(t: Tensor) -> Tensor:
    return Tensor(
        t.name,
        t.type,
        t.shape,
        t.buffer,
        t.quantization,
        t.is_variable,
        t.external_data,
        copy(t.raw),
        is_view=t.is_view,
    )


def _operator(op: Op, tensors: dict[int, Tensor]) -> Op:
    return Op(
        op.code,
        [None if t is None else tensors[id(t)] for t in op.inputs],
        [tensors[id(t)] for t in op.outputs],
        [tensors[id(t)] for t in op.intermediates],
        op.options,
        op.graphs,
        op.custom_options,
        op.custom_options_external,
        op.raw,
    )
