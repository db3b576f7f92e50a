"""Conversion between bytes and the in-memory model (IR), without loss.

Reading turns indices into references and refuses those out of range; writing turns references
back into indices. What the IR does not manage stays in `raw`. Reading and writing a model changes
no field and never makes the file longer; reading and writing it again gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from tflm_planner.model import schema
from tflm_planner.model.check import check
from tflm_planner.model.check_operators import check_operators
from tflm_planner.model.flatbuffer.known import Known
from tflm_planner.model.flatbuffer.layout import Layouts
from tflm_planner.model.flatbuffer.read import learnt, read_flatbuffer
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
    quote,
)  # fmt: skip
from tflm_planner.model.options import NO_OPTIONS, OperatorOptions
from tflm_planner.model.quantization import NOT_QUANTIZED, Quantization
from tflm_planner.support.errors import ModelError

T = TypeVar("T")
COMPRESSION_METADATA = "COMPRESSION_METADATA"
"""The name of the tables by which TFLM decompresses weights, if it is built for that. Source:
tensorflow/lite/micro/compression.h:30 of tflite-micro 90b983c."""


def read_model(data: bytes, *, dialect: bool = False, to_look_at: bool = False) -> Model:
    """The model in `data`. Raises ModelError if it is damaged or could not run.

    `dialect`: tensors that no operator writes are views over others (see `transforms.dialect`).
    `to_look_at`: the model is read-only: it will not be changed or written; it is read without
    numpy, and has `Vector`s in place of arrays.
    """
    model = _Reader(data, Known() if to_look_at else learnt()).model()
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
    from tflm_planner.model.writing import serialize  # imports numpy, which reading does not need

    return serialize(model)


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode("utf-8", "surrogateescape")


def _at(items: Sequence[T], index: int, what: str) -> T:
    if not 0 <= index < len(items):
        raise ModelError(
            f"damaged model: {what} refers to entry {index} of {len(items)}; export it again"
        )
    return items[int(index)]


def _read_vector(vector: Any) -> list[Any]:
    return [] if vector is None else list(vector)


def _read_numbers(vector: Any) -> tuple[Any, ...]:
    return () if vector is None else tuple(vector.tolist())


def _read_quantization(raw: Any) -> Quantization:
    if raw is None:
        return NOT_QUANTIZED
    scales, zero_points = _read_numbers(raw.scale), _read_numbers(raw.zeroPoint)
    quantization = Quantization(scales, zero_points, raw.quantizedDimension, raw)
    raw.quantizedDimension = 0
    _blank(raw, "scale", "zeroPoint")
    return quantization


def _refuse_compressed(metadata: Sequence[Metadata]) -> None:
    """Raises ModelError for a model whose weights TFLM decompresses: its tables name tensors by
    their numbers, which change, and the arena needs room to decompress into."""
    if any(entry.name == COMPRESSION_METADATA for entry in metadata):
        raise ModelError(
            f"the model's weights are compressed for TFLM ({COMPRESSION_METADATA}), which this "
            "tool does not read; plan the model as it was before that"
        )


class _Reader:
    def __init__(self, data: bytes, layouts: Layouts) -> None:
        self._data, self._layouts = data, layouts
        self._raw = read_flatbuffer(data, layouts)

    def model(self) -> Model:
        raw = self._raw
        self._buffers = [self._buffer(b) for b in _read_vector(raw.buffers)]
        self._codes = [self._code(c) for c in _read_vector(raw.operatorCodes)]
        self._graphs = [
            Graph(_text(g.name), [], [], [], [], g) for g in _read_vector(raw.subgraphs)
        ]
        metadata = [self._metadata(m) for m in _read_vector(raw.metadata)]
        _refuse_compressed(metadata)
        for graph in self._graphs:
            self._fill(graph)
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
        return self._layouts.numbers(self._data, "B", size, offset)

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
        where = f"sub-graph {quote(graph.name)}"
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
            buffer=_at(self._buffers, raw.buffer, f"tensor {quote(name)}"),
            quantization=_read_quantization(raw.quantization),
            is_variable=bool(raw.isVariable),
            external_data=int(raw.externalBuffer),
            raw=raw,
        )
        raw.name = None if raw.name is None else b""
        raw.quantization = None
        _blank(raw, "shape")
        return tensor

    def _op(self, raw: Any, graph: Graph) -> Op:
        where = f"an operator of sub-graph {quote(graph.name)}"
        tensors = graph.tensors
        options, external = raw.builtinOptions, raw.largeCustomOptionsOffset > 1
        custom = raw.customOptions
        if external:
            offset, size = raw.largeCustomOptionsOffset, raw.largeCustomOptionsSize
            custom = self._external(offset, size, "a custom operator's options")
        op = Op(
            code=_at(self._codes, raw.opcodeIndex, where),
            inputs=[None if i == -1 else _at(tensors, i, where) for i in _read_vector(raw.inputs)],
            outputs=[_at(tensors, i, where) for i in _read_vector(raw.outputs)],
            intermediates=[_at(tensors, i, where) for i in _read_vector(raw.intermediates)],
            options=NO_OPTIONS if options is None else OperatorOptions(options),
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
        """The graphs to which the two options tables of an operator refer. An index of -1 (no
        graph) stays in the options."""
        called: dict[str, list[Graph]] = {}
        for options in (raw.builtinOptions, raw.builtinOptions2):
            for name in schema.graph_fields(options):
                value = getattr(options, name)
                if value is None:
                    continue
                indices: list[int] = [value] if isinstance(value, int) else list(value)
                if all(i >= 0 for i in indices):
                    called[name] = [_at(self._graphs, i, where) for i in indices]
        return called

    def _metadata(self, raw: Any) -> Metadata:
        name = _text(raw.name)
        entry = Metadata(name, _at(self._buffers, raw.buffer, f"metadata {quote(name)}"), raw)
        raw.name = None if raw.name is None else b""
        return entry

    def _signature(self, raw: Any) -> Signature:
        key = _text(raw.signatureKey)
        graph = _at(self._graphs, raw.subgraphIndex, f"signature {quote(key)}")

        def maps(entries: Any) -> list[tuple[str, Tensor]]:
            return [
                (_text(e.name), _at(graph.tensors, e.tensorIndex, f"signature {quote(key)}"))
                for e in _read_vector(entries)
            ]

        signature = Signature(key, graph, maps(raw.inputs), maps(raw.outputs), raw)
        raw.signatureKey = None if raw.signatureKey is None else b""
        _blank(raw, "inputs", "outputs")
        return signature


def _blank(raw: Any, *fields: str) -> None:
    """Empty managed vectors of `raw`. A vector that is None stays None, so that an absent vector is
    not written as an empty one."""
    for name in fields:
        if getattr(raw, name) is not None:
            setattr(raw, name, ())
