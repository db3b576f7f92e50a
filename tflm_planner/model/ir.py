"""A model in memory: graphs of operators and tensors that refer to each other directly.

Only `serde` and `writing` know the indices by which a file refers to tensors. Every field of the
flatbuffer is either *managed* (an attribute below, emptied in `raw`) or *foreign* (carried along in
`raw`), never both. Outside this package nothing reads `raw`: what others must know of foreign
fields (whether a tensor is sparse) is a property here. Only `edit` and `draft` change a model after
it is read.

    Model -- graphs --> Graph -- ops --> Op -- inputs/outputs --> Tensor -- buffer --> Buffer
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tflm_planner.model.options import OperatorOptions
from tflm_planner.model.quantization import Quantization
from tflm_planner.model.schema import Bytes, element_bits, operator_names, type_name

_LONGEST_SHOWN = 100
_FLOATS = ("float32", "float64")


def quote(name: str) -> str:
    """`name` as messages quote it: printable, on one line, a long name shortened in the middle."""
    if len(name) > _LONGEST_SHOWN:
        half = _LONGEST_SHOWN // 2
        name = f"{name[:half]}...{name[-half:]}"
    return repr(name)


def _is_readable(name: str) -> bool:
    return name.isprintable() and len(name) <= _LONGEST_SHOWN


@dataclass(eq=False, slots=True, repr=False)
class DataBuffer:
    """Bytes of constant tensors and metadata. `external`: stored after the end of the flatbuffer
    (the layout of large models)."""

    data: Bytes | None
    external: bool
    raw: Any


@dataclass(eq=False, slots=True, repr=False)
class Tensor:
    """A tensor. `shape` is None if the file has none; TFLM treats that as a scalar.

    `external_data`: if positive, its bytes lie in another file (this is the index in the model's
    table of external buffers). `is_view`: no operator writes it, because its bytes are those of
    other tensors that the plan puts at the same address (the TFLM dialect, `transforms.dialect`).
    """

    name: str
    type: int
    shape: tuple[int, ...] | None
    buffer: DataBuffer
    quantization: Quantization
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
    def zero(self) -> int:
        """The number that stands for the value 0: the zero point; 0 for floats."""
        return 0 if self.type_name in _FLOATS else self.quantization.zero_point

    @property
    def is_sparse(self) -> bool:
        """Whether the file leaves out its zeros (TFLM reads such data as if it were dense)."""
        return self.raw.sparsity is not None

    @property
    def type_name(self) -> str:
        """Lower-case type name, e.g. "int8"."""
        return type_name(self.type)


@dataclass(eq=False, slots=True, repr=False)
class OpCode:
    """The kind of an operator: a builtin code, or CUSTOM with a name."""

    builtin: int
    custom: str | None
    raw: Any

    @property
    def name(self) -> str:
        """The builtin's name ("CONV_2D"), or the name of the custom operator, printable."""
        return operator_name(self.builtin, self.custom)


@lru_cache(maxsize=1 << 12)
def operator_name(builtin: int, custom: str | None) -> str:
    """The name of a builtin code, or of a custom operator, printable. A custom operator with the
    name of a builtin is quoted, because it computes something else."""
    builtin_name = operator_names().get(builtin, f"BUILTIN_{builtin}")
    if builtin_name != "CUSTOM":
        return builtin_name
    custom = custom or ""
    is_builtin = custom in operator_names().values() or custom.startswith("BUILTIN_")
    return quote(custom) if is_builtin or not _is_readable(custom) else custom


@dataclass(eq=False, slots=True, repr=False)
class Op:
    """An operator. `inputs` has None for an omitted optional input.

    `graphs`: option field -> the sub-graphs that this field names. `origins`: positions, in the
    original model, of the operators of which this one computes a part; empty until
    `edit.number_origins` has set them. Copies and rewrites keep them, files do not hold them.
    """

    code: OpCode
    inputs: list[Tensor | None]
    outputs: list[Tensor]
    intermediates: list[Tensor]
    options: OperatorOptions
    graphs: dict[str, list[Graph]]
    custom_options: Bytes | None
    custom_options_external: bool
    raw: Any
    origins: frozenset[int] = frozenset()

    def __repr__(self) -> str:
        return f"<{self.label}>"

    @property
    def kind(self) -> str:
        """The operator's name, e.g. "CONV_2D"."""
        return operator_name(self.code.builtin, self.code.custom)  # a search calls it 1e6 times

    @property
    def label(self) -> str:
        """Kind and name of the first output, as messages name the operator."""
        return f"{self.kind} {quote(self.outputs[0].name)}" if self.outputs else self.kind

    def operands(self) -> list[Tensor]:
        """The inputs without the omitted ones."""
        return [t for t in self.inputs if t is not None]

    def called_graphs(self) -> list[Graph]:
        """The sub-graphs that its options name, in the order of the option fields."""
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
    """A named entry point: names for the inputs and outputs of one graph."""

    key: str
    graph: Graph
    inputs: list[tuple[str, Tensor]]
    outputs: list[tuple[str, Tensor]]
    raw: Any


@dataclass(eq=False, slots=True, repr=False)
class Metadata:
    """Named bytes that describe the model."""

    name: str
    buffer: DataBuffer
    raw: Any


@dataclass(eq=False, slots=True, repr=False)
class Model:
    """A whole model; `graphs[0]` is the one that runs.

    file_size: bytes of the file from which the model was read; 0 if it was not read from a file.
    """

    graphs: list[Graph]
    codes: list[OpCode]
    buffers: list[DataBuffer]
    metadata: list[Metadata]
    metadata_buffers: list[DataBuffer]
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
        """Whether an operator or graph output needs a tensor that no operator writes: the model is
        then in the TFLM dialect."""
        graph_outputs = {t for graph in self.graphs for t in graph.outputs}
        return any(t.is_view and (t.consumers or t in graph_outputs) for t in self.tensors())


ETHOS_U = "ethos-u"
"""The custom operator that Vela compiles a graph into."""


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
