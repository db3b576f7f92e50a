"""A few lines of sugar over the generated TFLite schema, to write models by hand.

Made for tests, so it uses the schema's own object API and nothing of `tflm_planner`: a fault in
the package must not hide in the models that test it.
"""

from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

TYPES = {
    "int8": schema.TensorType.INT8,
    "int16": schema.TensorType.INT16,
    "int32": schema.TensorType.INT32,
    "int64": schema.TensorType.INT64,
    "uint8": schema.TensorType.UINT8,
    "uint16": schema.TensorType.UINT16,
    "uint32": schema.TensorType.UINT32,
    "uint64": schema.TensorType.UINT64,
    "bool": schema.TensorType.BOOL,
    "float16": schema.TensorType.FLOAT16,
    "float32": schema.TensorType.FLOAT32,
    "int4": schema.TensorType.INT4,
    "string": schema.TensorType.STRING,
    "resource": schema.TensorType.RESOURCE,
    "variant": schema.TensorType.VARIANT,
}


def fill(schema_object: Any, fields: dict[str, Any]) -> Any:
    """Set fields of a schema object; a name the schema does not have is an error."""
    for name, value in fields.items():
        if not hasattr(schema_object, name):
            raise AttributeError(f"{type(schema_object).__name__} has no field {name!r}")
        setattr(schema_object, name, value)
    return schema_object


def unpack(data: bytes) -> Any:
    """A `ModelT` over a file, by the generated code, which trusts it; arrays are views of it."""
    return schema.ModelT.InitFromPackedBuf(data, 0)


class Net:
    """A model under construction; `net.model` is the plain schema object, open to anything."""

    def __init__(self, description: str = "hand-made test model") -> None:
        self.model = schema.ModelT()
        self.model.version = 3
        self.model.description = description
        self.model.operatorCodes = []
        self.model.subgraphs = []
        self.model.buffers = []
        self.buffer()  # Buffer 0 is the empty one, by convention.

    def buffer(self, data: np.ndarray | bytes | None = None) -> int:
        """Append a buffer and return its index."""
        entry = schema.BufferT()
        if data is not None:
            raw = data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
            entry.data = np.frombuffer(raw, np.uint8)
        self.model.buffers.append(entry)
        return len(self.model.buffers) - 1

    def opcode(self, name: str, version: int = 1, custom: str | None = None) -> int:
        """Return the index of an operator code, adding it if it is new."""
        code = getattr(schema.BuiltinOperator, name)
        for index, entry in enumerate(self.model.operatorCodes):
            if (entry.builtinCode, entry.version, entry.customCode) == (code, version, custom):
                return index
        # Codes above 127 do not fit the old one-byte field, which then holds 127.
        fields = {"builtinCode": code, "deprecatedBuiltinCode": min(code, 127)}
        entry = fill(schema.OperatorCodeT(), {**fields, "version": version, "customCode": custom})
        self.model.operatorCodes.append(entry)
        return len(self.model.operatorCodes) - 1

    def graph(self, name: str = "main") -> "Graph":
        """Append a sub-graph."""
        return Graph(self, name)

    def metadata(self, name: str, data: bytes) -> None:
        """Append a metadata entry with its buffer."""
        entry = fill(schema.MetadataT(), {"name": name, "buffer": self.buffer(data)})
        self.model.metadata = [*(self.model.metadata or []), entry]

    def signature(self, key: str, graph: "Graph", inputs: list[str], outputs: list[str]) -> None:
        """Append a signature that names the graph's inputs and outputs, in order."""

        def tensor_map(names: list[str], tensors: list[int]) -> list[schema.TensorMapT]:
            pairs = zip(names, tensors, strict=True)
            return [fill(schema.TensorMapT(), {"name": n, "tensorIndex": t}) for n, t in pairs]

        entry = schema.SignatureDefT()
        entry.signatureKey = key
        entry.subgraphIndex = graph.index
        entry.inputs = tensor_map(inputs, graph.table.inputs)
        entry.outputs = tensor_map(outputs, graph.table.outputs)
        self.model.signatureDefs = [*(self.model.signatureDefs or []), entry]

    def finish(self) -> bytes:
        """Serialise. Buffers are only 4-aligned, as in many published files."""
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


class Graph:
    """A sub-graph under construction; tensors are their indices."""

    def __init__(self, net: Net, name: str) -> None:
        self.net = net
        self.table = schema.SubGraphT()
        self.table.name = name
        self.table.tensors, self.table.operators = [], []
        self.table.inputs, self.table.outputs = [], []
        self.index = len(net.model.subgraphs)
        net.model.subgraphs.append(self.table)

    def tensor(
        self,
        name: str,
        shape: tuple[int, ...] | list[int],
        dtype: str = "int8",
        *,
        data: np.ndarray | bytes | None = None,
        scale: float | np.ndarray | None = None,
        zero: int = 0,
        axis: int = 0,
        **fields: Any,
    ) -> int:
        """Append a tensor; with `data` a constant, with a vector `scale` per-channel on `axis`."""
        tensor = schema.TensorT()
        tensor.name, tensor.shape, tensor.type = name, list(shape), TYPES[dtype]
        tensor.buffer = 0 if data is None else self.net.buffer(data)
        if scale is not None:
            scales = np.atleast_1d(np.asarray(scale, np.float32))
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale = scales
            tensor.quantization.zeroPoint = np.full(scales.shape, zero, np.int64)
            tensor.quantization.quantizedDimension = axis
        self.table.tensors.append(fill(tensor, fields))
        return len(self.table.tensors) - 1

    def constant(self, name: str, values: Any, dtype: str = "int32", **fields: Any) -> int:
        """Append a constant whose shape is that of `values`."""
        data = np.asarray(values, dtype)
        return self.tensor(name, data.shape, dtype, data=data, **fields)

    def input(self, name: str, shape: tuple[int, ...], dtype: str = "int8", **fields: Any) -> int:
        """Append a tensor that is an input of the graph."""
        index = self.tensor(name, shape, dtype, **fields)
        self.table.inputs.append(index)
        return index

    def op(
        self,
        name: str,
        /,
        inputs: list[int],
        outputs: list[int],
        options: str | None = None,
        *,
        version: int = 1,
        second: bool = False,
        extra: dict[str, Any] | None = None,
        **fields: Any,
    ) -> schema.OperatorT:
        """Append an operator. `options` is a schema table's name, `fields` are its fields.

        `second` puts the options into the second union, where newer operators have theirs;
        `extra` are fields of the operator itself.
        """
        op = schema.OperatorT()
        op.opcodeIndex = self.net.opcode(name, version)
        op.inputs, op.outputs = list(inputs), list(outputs)
        if options is not None:
            value = fill(getattr(schema, f"{options}T")(), fields)
            if second:
                op.builtinOptions2Type = getattr(schema.BuiltinOptions2, options)
                op.builtinOptions2 = value
            else:
                op.builtinOptionsType = getattr(schema.BuiltinOptions, options)
                op.builtinOptions = value
        self.table.operators.append(fill(op, extra or {}))
        return op

    def custom(self, code: str, inputs: list[int], outputs: list[int], options: bytes) -> None:
        """Append a custom operator with its options."""
        op = schema.OperatorT()
        op.opcodeIndex = self.net.opcode("CUSTOM", custom=code)
        op.inputs, op.outputs = list(inputs), list(outputs)
        op.customOptions = np.frombuffer(options, np.uint8)
        self.table.operators.append(op)

    def outputs(self, *tensors: int) -> None:
        """Say which tensors are the graph's outputs."""
        self.table.outputs = list(tensors)
