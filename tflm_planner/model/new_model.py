"""Creates a model of one graph, with tensors and operators that may be copies of others.

It must not know what the model is for.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from tflm_planner.model import schema
from tflm_planner.model.ir import DataBuffer, Graph, Model, Op, OpCode, Tensor, link
from tflm_planner.model.options import NO_OPTIONS, new_options
from tflm_planner.model.quantization import NOT_QUANTIZED, Quantization
from tflm_planner.model.serde import write_model

_VERSIONS = {
    "CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "FULLY_CONNECTED": 4, "ADD": 2, "MEAN": 2,
    "AVERAGE_POOL_2D": 2, "SOFTMAX": 2, "MAX_POOL_2D": 2, "CONCATENATION": 2, "PAD": 2, "MUL": 2,
    "RESIZE_NEAREST_NEIGHBOR": 2,
}  # fmt: skip
"""Versions of int8 operators, as TensorFlow's converter writes them."""


class NewModel:
    """Tensors, operators and buffers of a model under construction; `write` completes it."""

    def __init__(self) -> None:
        self._no_data = DataBuffer(None, False, schema.generated.BufferT())
        self._buffers = [self._no_data]
        self._tensors: list[Tensor] = []
        self._ops: list[Op] = []
        self._codes: dict[str, OpCode] = {}

    def add_tensor(self, like: Tensor) -> Tensor:
        """A tensor of the type, shape and quantisation of `like`, without a value."""
        return self._copy(like, self._no_data)

    def add_constant(self, like: Tensor, data: Any) -> Tensor:
        """A constant of the type, shape and quantisation of `like` that holds these bytes."""
        buffer = DataBuffer(data, False, schema.generated.BufferT())
        self._buffers.append(buffer)
        return self._copy(like, buffer)

    def add_floats(self, count: int) -> list[Tensor]:
        """`count` tensors, each with one float32."""
        raw = schema.generated.TensorT(name=b"")
        first = len(self._tensors)
        self._tensors += [
            Tensor(f"t{i}", 0, (1,), self._no_data, NOT_QUANTIZED, False, 0, raw)
            for i in range(first, first + count)
        ]
        return self._tensors[first:]

    def add_value(self, shape: Sequence[int], scale: float, zero_point: int) -> Tensor:
        """An int8 tensor with this quantisation, without a value."""
        quantization = Quantization.of([scale], zero_point)
        return self._new("int8", shape, self._no_data, quantization)

    def add_float_value(self, shape: Sequence[int]) -> Tensor:
        """A float32 tensor without a value."""
        return self._new("float32", shape, self._no_data, NOT_QUANTIZED)

    def add_parameters(
        self,
        values: npt.NDArray[Any],
        steps: npt.NDArray[Any] | None = None,
        axis: int = 0,
        zero_point: int = 0,
    ) -> Tensor:
        """A constant with these int8 or int32 values. steps: its scales, either one or one per
        index along `axis`; None for a constant that is not quantised. zero_point: of all scales."""
        data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        buffer = DataBuffer(data, False, schema.generated.BufferT())
        self._buffers.append(buffer)
        quantization = NOT_QUANTIZED if steps is None else Quantization.of(steps, zero_point, axis)
        return self._new(str(values.dtype), values.shape, buffer, quantization)

    def add_copy(self, op: Op, inputs: list[Tensor | None], outputs: list[Tensor]) -> None:
        """Append a copy of `op` with other inputs and outputs."""
        raw = copy(op.raw)
        self._ops.append(
            Op(op.code, inputs, outputs, [], op.options, {}, op.custom_options, False, raw)
        )

    def add_op(self, kind: str, inputs: Sequence[Tensor], outputs: list[Tensor]) -> None:
        """Append an operator of a kind without options."""
        code, raw = self._code(kind), schema.generated.OperatorT()
        self._ops.append(Op(code, [*inputs], outputs, [], NO_OPTIONS, {}, None, False, raw))

    def add_op_with(
        self,
        kind: str,
        inputs: Sequence[Tensor],
        output: Tensor,
        options: str | None = None,
        **fields: Any,
    ) -> None:
        """Append an operator with one result. options: name of its options table in the schema,
        which gets these fields; None for an operator without options."""
        generated: Any = schema.generated
        raw, table = generated.OperatorT(), NO_OPTIONS
        if options is not None:
            table = new_options(options, **fields)
            raw.builtinOptionsType = getattr(generated.BuiltinOptions, options)
        code = self._code(kind)
        code.raw.version = _VERSIONS.get(kind, 1)
        self._ops.append(Op(code, [*inputs], [output], [], table, {}, None, False, raw))

    def write(self, inputs: list[Tensor], outputs: list[Tensor]) -> bytes:
        """The file of the model with these inputs and outputs."""
        generated: Any = schema.generated
        empty: list[int] = []
        raw = generated.SubGraphT(inputs=empty, outputs=empty, tensors=empty, operators=empty)
        graph = Graph("main", self._tensors, inputs, outputs, self._ops, raw)
        link([graph])
        codes = list(dict.fromkeys(op.code for op in self._ops))
        raw = generated.ModelT(version=3, operatorCodes=empty, subgraphs=empty, buffers=empty)
        return write_model(Model([graph], codes, self._buffers, [], [], [], raw))

    def _new(
        self, type_name: str, shape: Sequence[int], buffer: DataBuffer, quantization: Quantization
    ) -> Tensor:
        number = next(k for k, name in schema.type_names().items() if name == type_name)
        raw = schema.generated.TensorT(name=b"")
        name = f"t{len(self._tensors)}"
        tensor = Tensor(name, number, tuple(shape), buffer, quantization, False, 0, raw)
        self._tensors.append(tensor)
        return tensor

    def _copy(self, like: Tensor, buffer: DataBuffer) -> Tensor:
        raw = copy(like.raw)
        raw.shapeSignature = None
        name = f"t{len(self._tensors)}"
        tensor = Tensor(name, like.type, like.shape, buffer, like.quantization, False, 0, raw)
        self._tensors.append(tensor)
        return tensor

    def _code(self, kind: str) -> OpCode:
        if kind not in self._codes:
            number = schema.operator_code(kind)
            raw = schema.generated.OperatorCodeT()
            raw.builtinCode = raw.deprecatedBuiltinCode = number
            raw.version = 1
            self._codes[kind] = OpCode(number, None, raw)
        return self._codes[kind]
