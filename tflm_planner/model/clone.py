"""Copies a model, so that transforms can change the copy.

It is ten times as fast as reading the file again. It must not know flatbuffers.
"""

from __future__ import annotations

from collections.abc import Mapping

from tflm_planner.model.ir import (
    DataBuffer,
    Graph,
    Metadata,
    Model,
    Op,
    OpCode,
    Signature,
    Tensor,
    link,
)

Graphs = dict[str, list[Graph]]


def clone(model: Model) -> Model:
    """A copy made of new objects, so that transforms can change it and leave `model` unchanged.

    What is never changed in place is shared: the bytes of buffers, options, quantisation, `raw`.
    """
    return _Copier().model(model)


class _Copier:
    def __init__(self) -> None:
        self._buffers: dict[DataBuffer, DataBuffer] = {}
        self._codes: dict[OpCode, OpCode] = {}
        self._tensors: dict[Tensor, Tensor] = {}
        self._graphs: dict[Graph, Graph] = {}

    def model(self, model: Model) -> Model:
        buffers = [self._buffer(b) for b in model.buffers]
        codes = [self._code(c) for c in model.codes]
        for graph in model.graphs:
            self._graphs[graph] = Graph(graph.name, [], [], [], [], graph.raw)
        for graph in model.graphs:
            self._fill(graph)
        graphs = [self._graphs[g] for g in model.graphs]
        link(graphs)
        return Model(
            graphs,
            codes,
            buffers,
            [Metadata(m.name, self._buffer(m.buffer), m.raw) for m in model.metadata],
            [self._buffer(b) for b in model.metadata_buffers],
            [self._signature(s) for s in model.signatures],
            model.raw,
            model.file_size,
        )

    def _buffer(self, b: DataBuffer) -> DataBuffer:
        if b not in self._buffers:
            self._buffers[b] = DataBuffer(b.data, b.external, b.raw)
        return self._buffers[b]

    def _code(self, c: OpCode) -> OpCode:
        if c not in self._codes:
            self._codes[c] = OpCode(c.builtin, c.custom, c.raw)
        return self._codes[c]

    def _fill(self, graph: Graph) -> None:
        copies, twin = self._tensors, self._graphs[graph]
        for t in graph.tensors:
            copies[t] = copy_of_tensor(t, self._buffer(t.buffer))
        twin.tensors = [copies[t] for t in graph.tensors]
        twin.inputs = [copies[t] for t in graph.inputs]
        twin.outputs = [copies[t] for t in graph.outputs]
        twin.ops = [self._op(op) for op in graph.ops]

    def _op(self, op: Op) -> Op:
        graphs = {name: [self._graphs[g] for g in called] for name, called in op.graphs.items()}
        return copy_of_operator(op, self._tensors, self._code(op.code), graphs)

    def _signature(self, s: Signature) -> Signature:
        copies = self._tensors
        return Signature(
            s.key,
            self._graphs[s.graph],
            [(name, copies[t]) for name, t in s.inputs],
            [(name, copies[t]) for name, t in s.outputs],
            s.raw,
        )


def copy_of_tensor(t: Tensor, buffer: DataBuffer) -> Tensor:
    """A copy of a tensor, without producer and consumers."""
    return Tensor(
        t.name, t.type, t.shape, buffer, t.quantization, t.is_variable, t.external_data, t.raw,
        is_view=t.is_view,
    )  # fmt: skip


def copy_of_operator(op: Op, tensors: Mapping[Tensor, Tensor], code: OpCode, graphs: Graphs) -> Op:
    """A copy of an operator. tensors: each old tensor -> the new one."""
    return Op(
        code,
        [None if t is None else tensors[t] for t in op.inputs],
        [tensors[t] for t in op.outputs],
        [tensors[t] for t in op.intermediates],
        op.options,
        graphs,
        op.custom_options,
        op.custom_options_external,
        op.raw,
        op.origins,
    )
