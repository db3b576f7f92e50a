"""Models of a single operator, to be measured alone.

    ... CONV ADD CONV ...   --single-->   input -> ADD -> output

Constants come along; what other operators compute becomes an input. Small integers that say where
(begins of a SLICE in a loop, indices of a GATHER) become zeros: any other value might point
outside. It must not know boards.
"""

from __future__ import annotations

from copy import copy
from itertools import pairwise
from typing import Any

import numpy as np

from tflm_planner.model import schema
from tflm_planner.model.ir import DataBuffer, Graph, Model, Op, OpCode, Tensor, link
from tflm_planner.model.serde import write_model

_POSITIONS = 64
"""Integer operands of up to so many elements are taken for positions and counts."""
_NEVER = frozenset(
    ("WHILE", "IF", "CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CUSTOM")
)
_DTYPES = {"int32": "<i4", "int64": "<i8"}


def can_stand_alone(op: Op) -> bool:
    """Whether an operator means anything by itself: no control flow, no resources, no variables
    of its own, data in the file, results that are not empty."""
    return (
        op.kind not in _NEVER
        and op.code.custom is None
        and not op.called()
        and bool(op.outputs)
        and all(t.nbytes > 0 for t in op.outputs)
        and not any(t.is_variable or t.external_data for t in op.operands())
        and not op.intermediates
    )


def single(op: Op) -> bytes:
    """The file of a model that is `op` alone; `op` is left as it is."""
    made = _Made()
    inputs = [None if t is None else made.operand(t) for t in op.inputs]
    outputs = [made.empty(t) for t in op.outputs]
    made.ops.append(_like(op, inputs, outputs))
    return made.file(made.given, outputs)


def chain(count: int) -> bytes:
    """A model of `count` operators that do next to nothing: RELU of one float."""
    made, generated = _Made(), schema.generated
    raw = generated.TensorT(name=b"")
    number = schema.operator_code("RELU")
    code = OpCode(number, None, generated.OperatorCodeT())
    code.raw.builtinCode = code.raw.deprecatedBuiltinCode = number
    code.raw.version = 1
    tensors = [
        Tensor(f"t{i}", 0, (1,), made.nothing, None, False, 0, raw) for i in range(count + 1)
    ]
    made.tensors += tensors
    for before, after in pairwise(tensors):
        made.ops.append(
            Op(code, [before], [after], [], None, {}, None, False, generated.OperatorT())
        )
    return made.file([tensors[0]], [tensors[-1]])


def _like(op: Op, inputs: list[Tensor | None], outputs: list[Tensor]) -> Op:
    raw = copy(op.raw)
    return Op(op.code, inputs, outputs, [], op.options, {}, op.custom_options, False, raw)


class _Made:
    """Tensors and buffers of a model under construction."""

    def __init__(self) -> None:
        self.nothing = DataBuffer(None, False, schema.generated.BufferT())
        self.buffers = [self.nothing]
        self.tensors: list[Tensor] = []
        self.given: list[Tensor] = []
        self.ops: list[Op] = []
        self._copies: dict[Tensor, Tensor] = {}

    def operand(self, tensor: Tensor) -> Tensor:
        """A constant with its data, or an input; the same one for the same tensor."""
        if tensor not in self._copies:
            copied = self._constant(tensor) if _is_fixed(tensor) else self.empty(tensor)
            if not _is_fixed(tensor):
                self.given.append(copied)
            self._copies[tensor] = copied
        return self._copies[tensor]

    def empty(self, tensor: Tensor) -> Tensor:
        """A tensor that is computed."""
        return self._copy(tensor, self.nothing)

    def _constant(self, tensor: Tensor) -> Tensor:
        data: Any = tensor.buffer.data
        if not tensor.is_constant:
            dtype = _DTYPES[tensor.type_name]
            data = np.zeros(max(1, tensor.elements), dtype).view(np.uint8)
        buffer = DataBuffer(data, False, schema.generated.BufferT())
        self.buffers.append(buffer)
        return self._copy(tensor, buffer)

    def _copy(self, tensor: Tensor, buffer: DataBuffer) -> Tensor:
        raw = copy(tensor.raw)
        raw.shapeSignature = None
        made = Tensor(
            f"t{len(self.tensors)}", tensor.type, tensor.shape, buffer, tensor.quantization,
            False, 0, raw,
        )  # fmt: skip
        self.tensors.append(made)
        return made

    def file(self, inputs: list[Tensor], outputs: list[Tensor]) -> bytes:
        generated: Any = schema.generated
        empty: list[int] = []
        raw = generated.SubGraphT(inputs=empty, outputs=empty, tensors=empty, operators=empty)
        graph = Graph("main", self.tensors, inputs, outputs, self.ops, raw)
        link([graph])
        codes = list(dict.fromkeys(op.code for op in self.ops))
        whole = generated.ModelT(version=3, operatorCodes=empty, subgraphs=empty, buffers=empty)
        return write_model(Model([graph], codes, self.buffers, [], [], [], whole))


def _is_fixed(tensor: Tensor) -> bool:
    positions = tensor.type_name in _DTYPES and tensor.elements <= _POSITIONS
    return tensor.is_constant or positions
