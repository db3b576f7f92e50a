"""Writes a model: turns references back into indices. `serde` reads models."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from copy import copy
from typing import Any, TypeVar

import numpy as np

from tflm_planner.model import schema
from tflm_planner.model.flatbuffer import build
from tflm_planner.model.ir import DataBuffer, Graph, Metadata, Model, Op, OpCode, Signature, Tensor
from tflm_planner.model.quantization import Quantization
from tflm_planner.support.units import ALIGNMENT, align_up

_Item = TypeVar("_Item", bound=Hashable)


def serialize(model: Model) -> bytes:
    """The flatbuffer of `model`, every data buffer at a multiple of 16 bytes."""
    return _ModelWriter(model).bytes()


def _raw_text(text: str, before: bytes | None) -> bytes | None:
    return None if before is None and not text else text.encode("utf-8", "surrogateescape")


class _ModelWriter:
    def __init__(self, model: Model) -> None:
        self._model = model
        self._buffers = _indices(model.buffers)
        self._codes = _indices(model.codes)
        self._graphs = _indices(model.graphs)
        self._external: list[tuple[Any, tuple[str, str], schema.Bytes]] = []

    def bytes(self) -> bytes:
        """The file: the flatbuffer, then the external data, each at a multiple of 16 bytes."""
        raw = self._raw_model()
        packed = build.pack(raw, self._model.file_size)
        if not self._external:
            return packed
        end = align_up(len(packed))
        for owner, (offset_field, _), data in self._external:
            setattr(owner, offset_field, end)
            end = align_up(end + int(data.size))
        file = bytearray(build.pack(raw))
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
        """Register data that is stored after the flatbuffer. Its offset is known only when the
        flatbuffer is packed; until then a unique number takes its place."""
        self._external.append((owner, fields, data))
        setattr(owner, fields[0], ALIGNMENT * len(self._external))
        setattr(owner, fields[1], int(data.size))

    def _buffer(self, buffer: DataBuffer) -> Any:
        raw = copy(buffer.raw)
        if buffer.external and buffer.data is not None:
            self._place_behind(raw, ("offset", "size"), buffer.data)
        elif buffer.data is not None:
            raw = build.AlignedBuffer.like(raw)
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
        raw.quantization = _quantization(tensor.quantization)
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
        raw.builtinOptions = self._write_graph_references(op.options.table, op)
        raw.builtinOptions2 = self._write_graph_references(raw.builtinOptions2, op)
        if op.custom_options_external and op.custom_options is not None:
            fields = ("largeCustomOptionsOffset", "largeCustomOptionsSize")
            self._place_behind(raw, fields, op.custom_options)
        else:
            raw.customOptions = op.custom_options
        return raw

    def _write_graph_references(self, options: Any, op: Op) -> Any:
        fields = [f for f in schema.graph_fields(options) if f in op.graphs]
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
            raw_maps = [
                schema.generated.TensorMapT(_raw_text(n, b""), index[t]) for n, t in entries
            ]
            return _list(raw_maps, before)

        raw.signatureKey = _raw_text(signature.key, raw.signatureKey)
        raw.subgraphIndex = self._graphs[signature.graph]
        raw.inputs = maps(signature.inputs, raw.inputs)
        raw.outputs = maps(signature.outputs, raw.outputs)
        return raw


def _code(code: OpCode) -> Any:
    raw = copy(code.raw)
    raw.customCode = None if code.custom is None else _raw_text(code.custom, b"")
    return raw


def _quantization(quantization: Quantization) -> Any:
    if quantization.is_absent:
        return None
    raw = quantization.raw
    raw = schema.generated.QuantizationParametersT() if raw is None else copy(raw)
    raw.scale = _numbers(quantization.scales, np.float32, raw.scale)
    raw.zeroPoint = _numbers(quantization.zero_points, np.int64, raw.zeroPoint)
    raw.quantizedDimension = quantization.axis
    return raw


def _indices(items: Sequence[_Item]) -> dict[_Item, int]:
    return {item: i for i, item in enumerate(items)}


def _list(items: list[Any], before: Any) -> list[Any] | None:
    return None if before is None and not items else items


def _vector(indices: Iterable[int], before: Any) -> Any:
    return _numbers(list(indices), np.int32, before)


def _numbers(values: Sequence[float], kind: type[np.generic], before: Any) -> Any:
    return None if before is None and not values else np.array(values, kind)
