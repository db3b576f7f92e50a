"""A model in memory: graphs of operators and tensors that refer to each other directly.

There are no indices here; `serde` alone knows them. Every field of the flatbuffer is either
*managed* (an attribute below, blanked in `raw`) or *foreign* (in `raw`, never looked at), never
both. Only `rewriter` changes a model after it is read.

    Model -- graphs --> Graph -- ops --> Op -- inputs/outputs --> Tensor -- buffer --> Buffer
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tflm_planner.errors import ModelError
from tflm_planner.schema import Bytes, element_bits, operator_names, type_name

_LONGEST_SHOWN = 100


def shown(name: str) -> str:
    """`name` as messages quote it: printable, on one line, shortened in the middle."""
    if len(name) > _LONGEST_SHOWN:
        half = _LONGEST_SHOWN // 2
        name = f"{name[:half]}...{name[-half:]}"
    return repr(name)


def _is_readable(name: str) -> bool:
    return name.isprintable() and len(name) <= _LONGEST_SHOWN


@dataclass(eq=False, slots=True, repr=False)
class Buffer:
    """Bytes of constant tensors and metadata. `external`: stored behind the flatbuffer's end
    (the layout of large models)."""

    data: Bytes | None
    external: bool
    raw: Any


@dataclass(eq=False, slots=True, repr=False)
class Tensor:
    """A tensor. `shape` is None where the file has none; TFLM takes that for a scalar.

    `external_data`: from 1 on, its bytes lie in another file (an entry of the model's table of
    external buffers). `is_view`: nothing writes it, because its bytes are those of other tensors
    that the plan puts into the same memory (the TFLM dialect, `passes.dialect`).
    """

    name: str
    type: int
    shape: tuple[int, ...] | None
    buffer: Buffer
    quantization: Any
    is_variable: bool
    external_data: int
    raw: Any
    producer: Op | None = None
    consumers: list[Op] = field(default_factory=list["Op"])
    is_view: bool = False

    def __repr__(self) -> str:
        return f"<{self.type_name}{list(self.shape or ())} {self.name!r}>"

    @property
    def is_constant(self) -> bool:
        """Whether its bytes come with the model."""
        return self.external_data > 0 or (
            self.buffer.data is not None and self.buffer.data.size > 0
        )

    @property
    def elements(self) -> int:
        """Number of elements; 1 for a scalar."""
        return math.prod(self.shape or ())

    @property
    def nbytes(self) -> int:
        """Bytes of its data as TFLM counts them; 0 for types without a fixed size."""
        return -(-math.prod(self.shape or ()) * (element_bits(self.type) or 0) // 8)

    @property
    def type_name(self) -> str:
        """Lower-case type name, e.g. "int8"."""
        return type_name(self.type)


@dataclass(eq=False, slots=True, repr=False)
class OpCode:
    """What kind of operator: a builtin code, or CUSTOM with a name."""

    builtin: int
    custom: str | None
    raw: Any

    @property
    def name(self) -> str:
        """The builtin's name ("CONV_2D"), or the custom operator's own, fit to be printed."""
        return operator_name(self.builtin, self.custom)


@lru_cache(maxsize=1 << 12)
def operator_name(builtin: int, custom: str | None) -> str:
    """The name of a builtin code, or a custom operator's own, fit to be printed."""
    known = operator_names().get(builtin, f"BUILTIN_{builtin}")
    custom = custom or ""
    readable = custom if _is_readable(custom) else shown(custom)
    return readable if known == "CUSTOM" else known


@dataclass(eq=False, slots=True, repr=False)
class Op:
    """An operator. `inputs` may hold None (an omitted optional input).

    `graphs` holds the sub-graphs that its options name, by the option's field.
    """

    code: OpCode
    inputs: list[Tensor | None]
    outputs: list[Tensor]
    intermediates: list[Tensor]
    options: Any
    graphs: dict[str, list[Graph]]
    custom_options: Bytes | None
    custom_options_external: bool
    raw: Any

    def __repr__(self) -> str:
        return f"<{self.label}>"

    @property
    def kind(self) -> str:
        """The operator's name, e.g. "CONV_2D"."""
        return self.code.name

    @property
    def label(self) -> str:
        """How messages name it: kind and first output."""
        return f"{self.kind} {shown(self.outputs[0].name)}" if self.outputs else self.kind

    def operands(self) -> list[Tensor]:
        """The inputs that are there."""
        return [t for t in self.inputs if t is not None]

    def called(self) -> list[Graph]:
        """Sub-graphs that it names, in the order of their option fields."""
        return [g for graphs in self.graphs.values() for g in graphs]


@dataclass(eq=False, slots=True, repr=False)
class Graph:
    """A sub-graph; `ops` run in this order."""

    name: str
    tensors: list[Tensor]
    inputs: list[Tensor]
    outputs: list[Tensor]
    ops: list[Op]
    raw: Any


@dataclass(eq=False, slots=True, repr=False)
class Signature:
    """A named entry point: names for tensors of one graph."""

    key: str
    graph: Graph
    inputs: list[tuple[str, Tensor]]
    outputs: list[tuple[str, Tensor]]
    raw: Any


@dataclass(eq=False, slots=True, repr=False)
class Metadata:
    """A named blob."""

    name: str
    buffer: Buffer
    raw: Any


@dataclass(eq=False, slots=True, repr=False)
class Model:
    """A whole model; `graphs[0]` is the one that runs.

    file_size: bytes of the file that it was read from; 0 for a model that was made.
    """

    graphs: list[Graph]
    codes: list[OpCode]
    buffers: list[Buffer]
    metadata: list[Metadata]
    metadata_buffers: list[Buffer]
    signatures: list[Signature]
    raw: Any
    file_size: int = 0

    @property
    def main(self) -> Graph:
        """The graph that runs."""
        return self.graphs[0]

    def ops(self) -> Iterator[Op]:
        """All operators of all graphs, in file order."""
        return (op for graph in self.graphs for op in graph.ops)

    def tensors(self) -> Iterator[Tensor]:
        """All tensors of all graphs, in file order."""
        return (t for graph in self.graphs for t in graph.tensors)

    @property
    def has_views(self) -> bool:
        """Whether something needs a tensor that nothing writes: the TFLM dialect."""
        given = {id(t) for graph in self.graphs for t in graph.outputs}
        return any(t.is_view and (t.consumers or id(t) in given) for t in self.tensors())

    def check(self) -> None:
        """Raise ModelError unless the model could run: see the functions below."""
        if not self.graphs:
            raise ModelError("empty model: it has no sub-graph; export it again")
        _check_calls(self)
        total = 0
        for graph in self.graphs:
            total += _check_tensors(graph)
            _check_operators(graph)
            _check_order(graph)
        if total >= LARGEST_TENSOR:  # an offset in a plan has 31 bits
            raise ModelError(
                f"the model's tensors declare {total:,} bytes in all; the file is damaged, or not "
                "meant for a microcontroller"
            )


ETHOS_U = "ethos-u"
"""The custom operator that Vela compiles a graph into."""
LARGEST_TENSOR = 1 << 31
"""Bytes. A declared size from here on cannot be meant for a microcontroller."""
MOST_AXES = 32
"""No kernel takes more than 8; far beyond, the shape is damage."""
MOST_SCOPES = 100_000
"""Operators run, with bodies counted at every call. TFLM walks all of them to plan."""
DEEPEST_CALLS = 64
"""Levels of control flow in control flow. TFLM recurses once for each."""


def _check_calls(model: Model) -> None:
    """Control flow refers to graphs of this model, and none calls itself."""
    owned = {id(g) for g in model.graphs}
    state: dict[int, bool] = {}  # graph -> True while its calls are being walked
    stack: list[tuple[Graph, Iterator[Graph]]] = []
    scopes: dict[int, int] = {}

    def enter(graph: Graph) -> None:
        if id(graph) not in owned:
            raise ModelError(f"sub-graph {shown(graph.name)} is called but not part of the model")
        if state.get(id(graph)):
            raise ModelError(
                f"sub-graph {shown(graph.name)} calls itself; TFLM cannot run recursion"
            )
        if id(graph) not in state:
            state[id(graph)] = True
            stack.append((graph, iter([c for op in graph.ops for c in op.called()])))

    for root in model.graphs:
        enter(root) if id(root) not in state else None
        while stack:
            graph, calls = stack[-1]
            called = next(calls, None)
            if called is None:
                state[id(graph)] = False
                scopes[id(graph)] = _scopes(graph, scopes)
                stack.pop()
            else:
                enter(called)
            if len(stack) > DEEPEST_CALLS:
                raise ModelError(f"control flow is nested more than {DEEPEST_CALLS} levels deep")


def _scopes(graph: Graph, of: dict[int, int]) -> int:
    """Operators that run in the graph, with those of the graphs it calls."""
    scopes = len(graph.ops) + sum(1 + of[id(c)] for op in graph.ops for c in op.called())
    if scopes > MOST_SCOPES:
        raise ModelError(
            f"sub-graph {shown(graph.name)} runs {scopes:,} operators when its calls are followed; "
            f"more than {MOST_SCOPES:,} cannot be planned"
        )
    return scopes


def _check_tensors(graph: Graph) -> int:
    """Shapes and data; bytes in all of what is not constant, a byte an element at least."""
    total = 0
    for t in graph.tensors:
        shape = t.shape or ()
        if len(shape) > MOST_AXES:
            raise ModelError(f"damaged model: tensor {shown(t.name)} has {len(shape)} axes")
        if shape and min(shape) < 0:
            raise ModelError(
                f"tensor {shown(t.name)} has the dynamic or negative shape {list(t.shape or ())}; "
                "TFLM needs fixed shapes: export the model with a fixed input shape"
            )
        elements, bits = math.prod(shape), element_bits(t.type) or 0
        nbytes = -(-elements * bits // 8)
        if nbytes >= LARGEST_TENSOR:
            raise ModelError(
                f"tensor {shown(t.name)} of shape {list(t.shape or ())} declares {nbytes:,} "
                "bytes; the file is damaged, or not meant for a microcontroller"
            )
        data = t.buffer.data
        if data is not None and 0 < data.size < nbytes and t.raw.sparsity is None:
            raise ModelError(
                f"damaged model: constant tensor {shown(t.name)} needs {nbytes:,} bytes, "
                f"its buffer holds {data.size:,}"
            )
        if not t.is_constant:
            total += elements * max(bits, 8) // 8
    return total


_SHAPES_OF_OPERATORS = {
    "CONV_2D": ("Conv2DOptions", True, 2),
    "DEPTHWISE_CONV_2D": ("DepthwiseConv2DOptions", True, 2),
    "TRANSPOSE_CONV": ("TransposeConvOptions", True, 3),
    "AVERAGE_POOL_2D": ("Pool2DOptions", True, 1),
    "MAX_POOL_2D": ("Pool2DOptions", True, 1),
    "FULLY_CONNECTED": ("FullyConnectedOptions", False, 2),
    "CONCATENATION": ("ConcatenationOptions", False, 1),
    "PACK": ("PackOptions", False, 1),
    "UNPACK": ("UnpackOptions", False, 1),
    "SVDF": ("SVDFOptions", False, 2),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": ("UnidirectionalSequenceLSTMOptions", False, 1),
    "BATCH_MATMUL": ("BatchMatMulOptions", False, 2),
    "STRIDED_SLICE": ("StridedSliceOptions", False, 4),
    "SOFTMAX": ("SoftmaxOptions", False, 1),
    **dict.fromkeys(
        ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ALL"), ("ReducerOptions", False, 2)
    ),
}
"""Kind -> (its options, whether it cannot do without, how many first operands it needs)."""


def _check_operators(graph: Graph) -> None:
    """Operators whose meaning is looked at carry their own options, and operands enough."""
    for i, op in enumerate(graph.ops):
        form = _SHAPES_OF_OPERATORS.get(op.kind)
        if form is None:
            continue
        wanted, needed, least = form
        found = "no options" if op.options is None else type(op.options).__name__.removesuffix("T")
        if found != wanted and (needed or op.options is not None):
            raise ModelError(f"damaged model: operator {i} ({op.label}) has {found}, not {wanted}")
        present = sum(t is not None for t in op.inputs[:least])
        if present < least or not op.outputs:
            raise ModelError(
                f"damaged model: operator {i} ({op.label}) has {present} of the {least} operands "
                f"that it needs and {len(op.outputs)} results"
            )


def _check_order(graph: Graph) -> None:
    """One producer a tensor; nothing is read before it is written; links are consistent."""
    position = {id(op): i for i, op in enumerate(graph.ops)}
    written: dict[int, int] = {}
    inputs = {id(t) for t in graph.inputs}
    for i, op in enumerate(graph.ops):
        for t in op.outputs:
            if id(t) in written:
                raise ModelError(
                    f"tensor {shown(t.name)} is written by operators {written[id(t)]} and {i} "
                    f"({op.label}); a tensor has one producer: export the model again"
                )
            if t.is_constant or id(t) in inputs:
                what = "a constant" if t.is_constant else "a graph input"
                raise ModelError(f"operator {i} ({op.label}) writes {shown(t.name)}, {what}")
            written[id(t)] = i
    for i, op in enumerate(graph.ops):
        for t in op.outputs:
            assert t.producer is op, f"producers of {op.label} out of step"
        for t in op.inputs:
            if t is None:
                continue
            at = written.get(id(t))
            assert at is None or op in t.consumers, f"consumers of {shown(t.name)} are out of step"
            if at is not None and at >= i:
                raise ModelError(
                    f"operator {i} ({op.label}) reads {shown(t.name)}, which operator {at} writes "
                    "only later: the graph is cyclic or its operators are out of order"
                )
            if at is None and not _has_value(t, inputs):
                raise ModelError(_unwritten(i, op, t))
    for t in graph.outputs:
        if id(t) not in written and not _has_value(t, inputs):
            raise ModelError(f"graph output {shown(t.name)} is written by no operator")
    assert len(position) == len(graph.ops), "an operator is listed twice"


def _has_value(tensor: Tensor, inputs: set[int]) -> bool:
    return (
        tensor.is_constant
        or id(tensor) in inputs
        or tensor.is_variable
        or tensor.is_view
        or tensor.nbytes == 0
        or {op.kind for op in tensor.consumers} == {ETHOS_U}  # the NPU's own memory
    )


def _unwritten(index: int, op: Op, tensor: Tensor) -> str:
    return (
        f"operator {index} ({op.label}) reads {shown(tensor.name)}, which nothing writes; the file "
        "is damaged, or it was rewritten for TFLM with views that lie over other tensors "
        "(then give the original model)"
    )


def link(graphs: Iterable[Graph]) -> None:
    """Set `producer` and `consumers` of every tensor from the operators."""
    for graph in graphs:
        for t in graph.tensors:
            t.producer, t.consumers = None, []
        for op in graph.ops:
            for t in op.outputs:
                t.producer = op
            for t in op.inputs:
                if t is not None and (not t.consumers or t.consumers[-1] is not op):
                    t.consumers.append(op)
