"""New operators and tensors, prepared in a draft and put into a graph in one step.

A transform that finds out halfway that it cannot continue drops its draft; the model is then
unchanged. Only this module and `edit` change a model.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from tflm_planner.model import schema
from tflm_planner.model.constants import pack_int4
from tflm_planner.model.ir import DataBuffer, Graph, Model, Op, OpCode, Tensor, link
from tflm_planner.model.options import new_options
from tflm_planner.model.quantization import NOT_QUANTIZED, Quantization
from tflm_planner.support.deferred import defer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    np = defer("numpy")

_OPTIONS = {
    "SLICE": "SliceOptions", "CONCATENATION": "ConcatenationOptions", "PAD": "PadOptions",
    "PADV2": "PadV2Options", "RESHAPE": "ReshapeOptions", "GATHER": "GatherOptions",
    "STRIDED_SLICE": "StridedSliceOptions", "ADD": "AddOptions", "MUL": "MulOptions",
    "QUANTIZE": "QuantizeOptions",
    "LESS": "LessOptions", "WHILE": "WhileOptions",
    "DYNAMIC_UPDATE_SLICE": "DynamicUpdateSliceOptions",
    "MAX_POOL_2D": "Pool2DOptions", "AVERAGE_POOL_2D": "Pool2DOptions",
    "RESIZE_NEAREST_NEIGHBOR": "ResizeNearestNeighborOptions",
    "CAST": "CastOptions", "LOGICAL_NOT": "LogicalNotOptions",
    "DEQUANTIZE": "DequantizeOptions", "CONV_2D": "Conv2DOptions", "EQUAL": "EqualOptions",
    "SELECT_V2": "SelectV2Options",
}  # fmt: skip
_FIRST_VERSION = (
    "RESHAPE", "ADD", "LESS", "WHILE", "DYNAMIC_UPDATE_SLICE", "CAST", "LOGICAL_NOT",
    "EQUAL", "SELECT_V2",
)  # fmt: skip
"""Kinds written as version 1: LiteRT has no other version, or only int32 is used."""
_LARGEST_OLD_CODE = 127


class Draft:
    """New operators that will replace others of one graph, with new tensors, constants and codes.

    `beside`: another draft for the same model. The new draft shares its new operator codes, and
    finds its tensors when it looks for the origins of an operator.
    """

    def __init__(self, model: Model, graph: Graph, beside: Draft | None = None) -> None:
        self._model, self._graph = model, graph
        self.ops: list[Op] = []
        self._codes: list[OpCode] = [] if beside is None else beside._codes
        self._buffers: list[DataBuffer] = []
        self._tensors: list[Tensor] = []
        self._constants: dict[tuple[object, ...], Tensor] = {}
        self._likes: dict[Tensor, Tensor] = {} if beside is None else beside._likes

    def tensor(self, like: Tensor, name: str, shape: Sequence[int]) -> Tensor:
        """A tensor of the type and quantisation of `like`, without a value."""
        raw = copy(like.raw)
        raw.shapeSignature = None
        buffer, own = self._no_data(), like.quantization
        result = Tensor(name, like.type, tuple(shape), buffer, own, False, 0, raw)
        self._tensors.append(result)
        self._likes[result] = like
        return result

    def rescaled_tensor(self, like: Tensor, name: str, type_name: str, scale: float) -> Tensor:
        """A tensor of the shape of `like`, of another type, with this scale and zero point 0."""
        result = self.tensor(like, name, like.shape or ())
        result.type = _number_of(type_name)
        result.quantization = Quantization.of([scale])
        return result

    def value(self, name: str, type_name: str, shape: Sequence[int]) -> Tensor:
        """A tensor without quantisation and without a value."""
        raw = schema.generated.TensorT(name=b"")
        result = Tensor(
            name, _number_of(type_name), tuple(shape), self._no_data(), NOT_QUANTIZED,
            False, 0, raw,
        )  # fmt: skip
        self._tensors.append(result)
        return result

    def _no_data(self) -> DataBuffer:
        """The buffer of tensors without a value: the first, unless a damaged file has bytes in
        it."""
        drafted = [buffer for buffer in self._buffers if buffer.data is None]
        for buffer in (*self._model.buffers[:1], *drafted):
            if buffer.data is None or not buffer.data.size:
                return buffer
        self._buffers.append(DataBuffer(None, False, schema.generated.BufferT()))
        return self._buffers[-1]

    def constant(
        self,
        name: str,
        values: npt.NDArray[Any],
        type_name: str,
        like: Tensor | None = None,
        quantization: Quantization = NOT_QUANTIZED,
    ) -> Tensor:
        """A constant. Equal constants without quantisation are created once. values: one byte for
        each int4 element. `like`: a tensor whose `raw` is copied, without its shape
        signature."""
        data = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        if type_name == "int4":
            data = pack_int4(data.view(np.int8))
        key = (type_name, values.shape, data.tobytes())
        if quantization.is_absent and key in self._constants:
            return self._constants[key]
        buffer = DataBuffer(data, False, schema.generated.BufferT())
        self._buffers.append(buffer)
        raw = copy(like.raw) if like is not None else schema.generated.TensorT(name=b"")
        raw.shapeSignature = None
        number = _number_of(type_name)
        tensor = Tensor(name, number, values.shape, buffer, quantization, False, 0, raw)
        self._tensors.append(tensor)
        if quantization.is_absent:
            self._constants[key] = tensor
        return tensor

    def same(self, constant: Tensor) -> Tensor:
        """A copy, for this graph, of a constant of another graph; both have the same buffer."""
        key = ("same", constant)
        if key not in self._constants:
            raw = copy(constant.raw)
            twin = copy(constant)
            twin.raw, twin.producer, twin.consumers = raw, None, []
            self._tensors.append(twin)
            self._constants[key] = twin
        return self._constants[key]

    def integers(self, name: str, values: Sequence[Any]) -> Tensor:
        """A constant of type int32."""
        return self.constant(name, np.array(values, "<i4"), "int32")

    def clone(
        self, op: Op, inputs: list[Tensor | None], outputs: list[Tensor], **changed: Any
    ) -> Op:
        """Append a copy of `op` with these inputs and outputs and the options in `changed`."""
        twin = Op(
            code=op.code,
            inputs=inputs,
            outputs=outputs,
            intermediates=[],
            options=op.options.changed(**changed),
            graphs={},
            custom_options=op.custom_options,
            custom_options_external=op.custom_options_external,
            raw=copy(op.raw),
            origins=op.origins,
        )
        self.ops.append(twin)
        return twin

    def op(
        self, kind: str, inputs: Sequence[Tensor | None], outputs: list[Tensor], **fields: Any
    ) -> Op:
        """Append a new operator of a kind in `_OPTIONS`."""
        generated: Any = schema.generated
        name = _OPTIONS[kind]
        options = new_options(name, **fields)
        raw = generated.OperatorT()
        raw.builtinOptionsType = getattr(generated.BuiltinOptions, name)
        new_op = Op(self._code(kind), list(inputs), outputs, [], options, {}, None, False, raw)
        self.ops.append(new_op)
        return new_op

    def reshape(self, data: Tensor, result: Tensor) -> Op:
        """Append a RESHAPE that makes `result` of `data`."""
        shape = result.shape or ()
        operands = [data, self.integers("shape", shape)]
        return self.op("RESHAPE", operands, [result], new_shape=tuple(shape))

    def _code(self, kind: str) -> OpCode:
        number = schema.operator_code(kind)
        for code in (*self._model.codes, *self._codes):
            if code.builtin == number:
                return code
        raw = schema.generated.OperatorCodeT()
        raw.builtinCode, raw.deprecatedBuiltinCode = number, min(number, _LARGEST_OLD_CODE)
        raw.version = 1 if kind in _FIRST_VERSION else 2
        self._codes.append(OpCode(number, None, raw))
        return self._codes[-1]

    def drop_unread(self, results: Collection[Tensor]) -> None:
        """Drop drafted operators whose results are neither in `results` nor read by an operator
        that stays. The operators must have been drafted in running order."""
        needed, kept_ops = set(results), list[Op]()
        for op in reversed(self.ops):
            if any(t in needed for t in op.outputs):
                needed.update(op.operands())
                kept_ops.append(op)
        self.ops = kept_ops[::-1]

    def commit(self, replaced: Collection[Op]) -> None:
        """Put the drafted operators in place of `replaced`, and drop tensors and buffers that
        nothing refers to any more. `replaced` must be convex: no path leaves and re-enters it."""
        model, graph = self._model, self._graph
        if any(op.origins for op in replaced):
            for op in self.ops:
                op.origins = op.origins or self._origins_of(op, {*replaced})
        graph.ops = _insert_ops(graph.ops, replaced, self.ops)
        self._enter()
        link([graph])
        drop_unused(model, graph)

    def _origins_of(self, op: Op, replaced: set[Op]) -> frozenset[int]:
        """The origins of a drafted operator of a new kind. Its result is a part of some tensor T.
        The origins are those of the replaced operator that computes T; if there is none, those of
        the replaced operators that read T; if there are none, those of all replaced operators."""
        whole = op.outputs[0]
        while whole in self._likes:
            whole = self._likes[whole]
        makers = {op for op in replaced if op is whole.producer}
        stems_from = makers or ({*whole.consumers} & replaced) or replaced
        return frozenset[int]().union(*(op.origins for op in stems_from))

    def commit_graph(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Graph:
        """Add the graph of this draft, which is new, to the model as a sub-graph with these inputs
        and outputs. Call this before committing the draft of the operator that calls the graph."""
        graph = self._graph
        assert all(g is not graph for g in self._model.graphs), "the graph is there already"
        graph.ops, graph.inputs, graph.outputs = self.ops, list(inputs), list(outputs)
        self._enter()
        self._model.graphs.append(graph)
        link([graph])
        drop_unused(self._model, graph)
        return graph

    def _enter(self) -> None:
        """Add used operator codes and buffers to the model, and tensors to the graph."""
        model, graph = self._model, self._graph
        known_codes = set(model.codes)
        used_codes = {op.code for op in self.ops}
        model.codes += [c for c in self._codes if c in used_codes - known_codes]
        model.buffers += self._buffers
        known_tensors = set(graph.tensors)
        graph.tensors += [t for t in self._tensors if t not in known_tensors]


def _number_of(type_name: str) -> int:
    return {v: k for k, v in schema.type_names().items()}[type_name]


def reshape_output(model: Model, graph: Graph, output: Tensor) -> None:
    """Insert a RESHAPE, as the last operator, between a graph output and its present producer."""
    maker = output.producer
    assert maker is not None, "an output that nothing makes"
    draft = Draft(model, graph)
    before = draft.tensor(output, f"{output.name}/joined", output.shape or ())
    shape = draft.integers("shape", output.shape or ())
    draft.op("RESHAPE", [before, shape], [output], new_shape=tuple(output.shape or ()))
    maker.outputs = [before if t is output else t for t in maker.outputs]
    for op in graph.ops:
        op.inputs = [before if t is output else t for t in op.inputs]
    draft.commit(())


def add_input(model: Model, name: str, type_name: str, shape: Sequence[int]) -> Tensor:
    """Give the main graph one more input, which nothing reads."""
    draft = Draft(model, model.main)
    tensor = draft.value(name, type_name, shape)
    model.main.inputs.append(tensor)
    draft.commit(())
    return tensor


def drop_unused(model: Model, graph: Graph) -> None:
    """Drop tensors of a graph that nothing refers to, and buffers that nothing uses."""
    used_tensors = {*graph.inputs, *graph.outputs}
    used_tensors |= {
        t for op in graph.ops for t in (*op.operands(), *op.outputs, *op.intermediates)
    }
    used_tensors |= {t for s in model.signatures for _, t in (*s.inputs, *s.outputs)}
    graph.tensors = [t for t in graph.tensors if t in used_tensors]
    used_buffers = set(model.buffers[:1]) | {t.buffer for t in model.tensors()}
    used_buffers |= {m.buffer for m in model.metadata} | set(model.metadata_buffers)
    model.buffers = [b for b in model.buffers if b in used_buffers]


def _insert_ops(ops: Sequence[Op], replaced: Collection[Op], new: list[Op]) -> list[Op]:
    """`ops` without `replaced` and with `new`. `new` is placed after everything that it may read
    and before everything that reads its results; at the end if `replaced` is empty."""
    removed = set(replaced)
    late = {t for op in replaced for t in op.outputs}
    before: list[Op] = []
    after: list[Op] = []
    for op in ops:
        if op in removed:
            continue
        if any(t in late for t in op.operands()):
            late |= set(op.outputs)
            after.append(op)
        else:
            before.append(op)
    last = max((i for i, op in enumerate(ops) if op in removed), default=len(ops) - 1)
    after_region = set(ops[last + 1 :])
    cut = next((i for i, op in enumerate(before) if op in after_region), len(before))
    later = {*after, *before[cut:]}
    return [*before[:cut], *new, *(op for op in ops if op in later)]


def new_graph(model: Model, name: str) -> Graph:
    """An empty sub-graph for a draft. Its name is `name`; if the model has a graph of that name, a
    number is appended, because viewers of models tell graphs apart by their names."""
    taken = {graph.name for graph in model.graphs}
    names = chain([name], (f"{name}_{number}" for number in count(2)))
    free = next(each for each in names if each not in taken)
    return Graph(free, [], [], [], [], schema.generated.SubGraphT())


def is_convex(ops: Sequence[Op], chosen: Collection[Op]) -> bool:
    """Whether no path leaves the chosen operators and comes back to them."""
    inner = set(chosen)
    outside: set[Tensor] = set()  # computed outside the chosen operators, from their results
    results: set[Tensor] = set()
    for op in ops:
        reads = set(op.operands())
        if op in inner:
            if reads & outside:
                return False
            results |= set(op.outputs)
        elif reads & (outside | results):
            outside |= set(op.outputs)
    return True


def region_results(graph: Graph, ops: Sequence[Op]) -> list[Tensor]:
    """Results of `ops` that other operators need or that are outputs of the graph."""
    inner = set(ops)
    graph_outputs = set(graph.outputs)
    return [
        t
        for op in ops
        for t in op.outputs
        if t in graph_outputs or any(c not in inner for c in t.consumers)
    ]
