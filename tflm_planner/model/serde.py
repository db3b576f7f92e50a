"""Bytes <-> IR, lossless.

Reading turns indices into references and refuses what lies out of range; writing turns them
back. What the IR does not manage rides along in `raw`. Reading and writing a model changes no
field and never grows the file; a second trip gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from copy import copy
from functools import cache
from typing import Any, TypeVar

import numpy as np

from tflm_planner.model import schema
from tflm_planner.model.check import check
from tflm_planner.model.check_operators import check_operators
from tflm_planner.model.flatbuffer.read import read_flatbuffer
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
    shown,
)  # fmt: skip
from tflm_planner.support.errors import ModelError
from tflm_planner.support.units import ALIGNMENT, align_up

T = TypeVar("T")
_Item = TypeVar("_Item", bound=Hashable)


def read_model(data: bytes, *, dialect: bool = False) -> Model:
    """The model in `data`. Raises ModelError when it is damaged or could not run.

    `dialect`: tensors that nothing writes are views over others (see `transforms.dialect`).
    """
    model = _Reader(data).model()
    if dialect:
        for graph in model.graphs:
            inputs = set(graph.inputs)
            for t in graph.tensors:
                empty = t.is_constant or t.is_variable or t.nbytes == 0
                t.is_view = t.producer is None and t not in inputs and not empty
    check(model)
    check_operators(model)
    return model


def write_model(model: Model) -> bytes:
    """The flatbuffer of `model`, every data buffer at a multiple of 16 bytes."""
    return _Writer(model).bytes()


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode("utf-8", "surrogateescape")


def _raw_text(text: str, before: bytes | None) -> bytes | None:
    return None if before is None and not text else text.encode("utf-8", "surrogateescape")


def _at(items: Sequence[T], index: int, what: str) -> T:
    if not 0 <= index < len(items):
        raise ModelError(
            f"damaged model: {what} refers to entry {index} of {len(items)}; export it again"
        )
    return items[int(index)]


def _read_vector(vector: Any) -> list[Any]:
    return [] if vector is None else list(vector)


def _graph_fields(options: Any) -> list[str]:
    """Fields of an options object that hold sub-graph indices."""
    return [] if options is None else _graph_fields_of(options.__class__)


@cache
def _graph_fields_of(kind: Any) -> list[str]:
    names = schema.members(kind())
    return [n for n in names if n == "subgraph" or n.endswith(("SubgraphIndex", "SubgraphIndices"))]


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._raw = read_flatbuffer(data)

    def model(self) -> Model:
        raw = self._raw
        self._buffers = [self._buffer(b) for b in _read_vector(raw.buffers)]
        self._codes = [self._code(c) for c in _read_vector(raw.operatorCodes)]
        self._graphs = [
            Graph(_text(g.name), [], [], [], [], g) for g in _read_vector(raw.subgraphs)
        ]
        for graph in self._graphs:
            self._fill(graph)
        metadata = [self._metadata(m) for m in _read_vector(raw.metadata)]
        legacy = [
            _at(self._buffers, i, "metadata_buffer") for i in _read_vector(raw.metadataBuffer)
        ]
        signatures = [self._signature(s) for s in _read_vector(raw.signatureDefs)]
        model = Model(
            self._graphs, self._codes, self._buffers, metadata, legacy, signatures, raw,
            file_size=len(self._data),
        )  # fmt: skip
        _blank(raw, "buffers", "operatorCodes", "subgraphs", "metadata", "metadataBuffer",
               "signatureDefs")  # fmt: skip
        link(model.graphs)
        return model

    def _external(self, offset: int, size: int, what: str) -> schema.Bytes:
        if offset + size > len(self._data):
            raise ModelError(
                f"damaged model: {what} lies at bytes {offset} to {offset + size} of a file of "
                f"{len(self._data)} bytes; is it truncated?"
            )
        return np.frombuffer(self._data, np.uint8, size, offset)

    def _buffer(self, raw: Any) -> DataBuffer:
        external = raw.offset > 1
        data = self._external(raw.offset, raw.size, "a buffer") if external else raw.data
        raw.data, raw.offset, raw.size = None, 0, 0
        return DataBuffer(data, external, raw)

    def _code(self, raw: Any) -> OpCode:
        custom = None if raw.customCode is None else _text(raw.customCode)
        code = OpCode(max(raw.builtinCode, raw.deprecatedBuiltinCode), custom, raw)
        raw.customCode = None
        return code

    def _fill(self, graph: Graph) -> None:
        raw = graph.raw
        graph.tensors = [self._tensor(t) for t in _read_vector(raw.tensors)]
        where = f"sub-graph {shown(graph.name)}"
        graph.inputs = [
            _at(graph.tensors, i, f"inputs of {where}") for i in _read_vector(raw.inputs)
        ]
        graph.outputs = [
            _at(graph.tensors, i, f"outputs of {where}") for i in _read_vector(raw.outputs)
        ]
        graph.ops = [self._op(o, graph) for o in _read_vector(raw.operators)]
        _blank(raw, "tensors", "inputs", "outputs", "operators")

    def _tensor(self, raw: Any) -> Tensor:
        name = _text(raw.name)
        tensor = Tensor(
            name=name,
            type=raw.type,
            shape=None if raw.shape is None else tuple(int(d) for d in raw.shape),
            buffer=_at(self._buffers, raw.buffer, f"tensor {shown(name)}"),
            quantization=raw.quantization,
            is_variable=bool(raw.isVariable),
            external_data=int(raw.externalBuffer),
            raw=raw,
        )
        raw.name = None if raw.name is None else b""
        raw.quantization = None
        _blank(raw, "shape")
        return tensor

    def _op(self, raw: Any, graph: Graph) -> Op:
        where = f"an operator of sub-graph {shown(graph.name)}"
        tensors = graph.tensors
        external = raw.largeCustomOptionsOffset > 1
        custom = raw.customOptions
        if external:
            offset, size = raw.largeCustomOptionsOffset, raw.largeCustomOptionsSize
            custom = self._external(offset, size, "a custom operator's options")
        op = Op(
            code=_at(self._codes, raw.opcodeIndex, where),
            inputs=[None if i == -1 else _at(tensors, i, where) for i in _read_vector(raw.inputs)],
            outputs=[_at(tensors, i, where) for i in _read_vector(raw.outputs)],
            intermediates=[_at(tensors, i, where) for i in _read_vector(raw.intermediates)],
            options=raw.builtinOptions,
            graphs=self._read_graph_references(raw, where),
            custom_options=custom,
            custom_options_external=external,
            raw=raw,
        )
        raw.builtinOptions = None
        raw.customOptions = None
        raw.largeCustomOptionsOffset = raw.largeCustomOptionsSize = 0
        _blank(raw, "inputs", "outputs", "intermediates")
        return op

    def _read_graph_references(self, raw: Any, where: str) -> dict[str, list[Graph]]:
        """The graphs that the two options tables of an operator refer to. -1 (no graph) stays in
        the options."""
        called: dict[str, list[Graph]] = {}
        for options in (raw.builtinOptions, raw.builtinOptions2):
            for name in _graph_fields(options):
                value = getattr(options, name)
                indices = [value] if np.ndim(value) == 0 else list(value)
                if value is not None and all(i >= 0 for i in indices):
                    called[name] = [_at(self._graphs, i, where) for i in indices]
        return called

    def _metadata(self, raw: Any) -> Metadata:
        name = _text(raw.name)
        entry = Metadata(name, _at(self._buffers, raw.buffer, f"metadata {shown(name)}"), raw)
        raw.name = None if raw.name is None else b""
        return entry

    def _signature(self, raw: Any) -> Signature:
        key = _text(raw.signatureKey)
        graph = _at(self._graphs, raw.subgraphIndex, f"signature {shown(key)}")

        def maps(entries: Any) -> list[tuple[str, Tensor]]:
            return [
                (_text(e.name), _at(graph.tensors, e.tensorIndex, f"signature {shown(key)}"))
                for e in _read_vector(entries)
            ]

        signature = Signature(key, graph, maps(raw.inputs), maps(raw.outputs), raw)
        raw.signatureKey = None if raw.signatureKey is None else b""
        _blank(raw, "inputs", "outputs")
        return signature


def _blank(raw: Any, *fields: str) -> None:
    """Empty managed vectors of `raw`. None stays None, so that a vector that is absent is not
    written as an empty one."""
    for name in fields:
        if getattr(raw, name) is not None:
            setattr(raw, name, ())


class _Writer:
    def __init__(self, model: Model) -> None:
        self._model = model
        self._buffers = _indices(model.buffers)
        self._codes = _indices(model.codes)
        self._graphs = _indices(model.graphs)
        self._external: list[tuple[Any, tuple[str, str], schema.Bytes]] = []

    def bytes(self) -> bytes:
        """The file: the flatbuffer, then the external buffers, each at a multiple of 16."""
        raw = self._raw_model()
        packed = schema.pack(raw, self._model.file_size)
        if not self._external:
            return packed
        end = align_up(len(packed))
        for owner, (offset_field, _), data in self._external:
            setattr(owner, offset_field, end)
            end = align_up(end + int(data.size))
        file = bytearray(schema.pack(raw))
        for owner, (offset_field, _), data in self._external:
            file += bytes(getattr(owner, offset_field) - len(file)) + data.tobytes()
        return bytes(file)

    def _raw_model(self) -> Any:
        model, raw = self._model, copy(self._model.raw)
        raw.buffers = _list([self._buffer(b) for b in model.buffers], raw.buffers)
        raw.operatorCodes = _list([_code(c) for c in model.codes], raw.operatorCodes)
        raw.subgraphs = _list([self._graph(g) for g in model.graphs], raw.subgraphs)
        raw.metadata = _list([self._metadata(m) for m in model.metadata], raw.metadata)
        raw.metadataBuffer = _vector(
            (self._buffers[b] for b in model.metadata_buffers), raw.metadataBuffer
        )
        raw.signatureDefs = _list([self._signature(s) for s in model.signatures], raw.signatureDefs)
        return raw

    def _place_behind(self, owner: Any, fields: tuple[str, str], data: schema.Bytes) -> None:
        """Register data that goes behind the flatbuffer. Its offset is known only when the
        flatbuffer is packed; until then a unique number stands in its place."""
        self._external.append((owner, fields, data))
        setattr(owner, fields[0], ALIGNMENT * len(self._external))
        setattr(owner, fields[1], int(data.size))

    def _buffer(self, buffer: DataBuffer) -> Any:
        raw = copy(buffer.raw)
        if buffer.external and buffer.data is not None:
            self._place_behind(raw, ("offset", "size"), buffer.data)
        elif buffer.data is not None:
            raw = schema.AlignedBuffer.like(raw)
            raw.data = buffer.data
        return raw

    def _graph(self, graph: Graph) -> Any:
        raw = copy(graph.raw)
        index = _indices(graph.tensors)
        raw.name = _raw_text(graph.name, raw.name)
        raw.tensors = _list([self._tensor(t) for t in graph.tensors], raw.tensors)
        raw.inputs = _vector((index[t] for t in graph.inputs), raw.inputs)
        raw.outputs = _vector((index[t] for t in graph.outputs), raw.outputs)
        raw.operators = _list([self._op(o, index) for o in graph.ops], raw.operators)
        return raw

    def _tensor(self, tensor: Tensor) -> Any:
        raw = copy(tensor.raw)
        raw.name = _raw_text(tensor.name, raw.name)
        raw.type = tensor.type
        raw.shape = None if tensor.shape is None else np.array(tensor.shape, np.int32)
        raw.buffer = self._buffers[tensor.buffer]
        raw.quantization = tensor.quantization
        raw.isVariable = tensor.is_variable
        raw.externalBuffer = tensor.external_data
        return raw

    def _op(self, op: Op, index: dict[Tensor, int]) -> Any:
        raw = copy(op.raw)
        raw.opcodeIndex = self._codes[op.code]
        refs = (-1 if t is None else index[t] for t in op.inputs)
        raw.inputs = _vector(refs, raw.inputs)
        raw.outputs = _vector((index[t] for t in op.outputs), raw.outputs)
        raw.intermediates = _vector((index[t] for t in op.intermediates), raw.intermediates)
        raw.builtinOptions = self._write_graph_references(op.options, op)
        raw.builtinOptions2 = self._write_graph_references(raw.builtinOptions2, op)
        if op.custom_options_external and op.custom_options is not None:
            fields = ("largeCustomOptionsOffset", "largeCustomOptionsSize")
            self._place_behind(raw, fields, op.custom_options)
        else:
            raw.customOptions = op.custom_options
        return raw

    def _write_graph_references(self, options: Any, op: Op) -> Any:
        fields = [f for f in _graph_fields(options) if f in op.graphs]
        if not fields:
            return options
        options = copy(options)
        for name in fields:
            indices = [self._graphs[g] for g in op.graphs[name]]
            plural = name.endswith("Indices")
            setattr(options, name, np.array(indices, np.int32) if plural else indices[0])
        return options

    def _metadata(self, entry: Metadata) -> Any:
        raw = copy(entry.raw)
        raw.name = _raw_text(entry.name, raw.name)
        raw.buffer = self._buffers[entry.buffer]
        return raw

    def _signature(self, signature: Signature) -> Any:
        raw = copy(signature.raw)
        index = _indices(signature.graph.tensors)

        def maps(entries: Iterable[tuple[str, Tensor]], before: Any) -> Any:
            made = [schema.generated.TensorMapT(_raw_text(n, b""), index[t]) for n, t in entries]
            return _list(made, before)

        raw.signatureKey = _raw_text(signature.key, raw.signatureKey)
        raw.subgraphIndex = self._graphs[signature.graph]
        raw.inputs = maps(signature.inputs, raw.inputs)
        raw.outputs = maps(signature.outputs, raw.outputs)
        return raw


def _code(code: OpCode) -> Any:
    raw = copy(code.raw)
    raw.customCode = None if code.custom is None else _raw_text(code.custom, b"")
    return raw


def _indices(items: Sequence[_Item]) -> dict[_Item, int]:
    return {item: i for i, item in enumerate(items)}


def _list(items: list[Any], before: Any) -> list[Any] | None:
    return None if before is None and not items else items


def _vector(indices: Iterable[int], before: Any) -> Any:
    vector = np.fromiter(indices, np.int32)
    return None if before is None and vector.size == 0 else vector
