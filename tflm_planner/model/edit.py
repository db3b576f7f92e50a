"""Changes a model that has been read. Only this module and `draft` (new operators) do so.

Every function keeps `producer` and `consumers` of all tensors consistent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from tflm_planner.model import schema
from tflm_planner.model.draft import drop_unused
from tflm_planner.model.ir import DataBuffer, Graph, Metadata, Model, Op, Tensor, link
from tflm_planner.model.options import BODY, CONDITION
from tflm_planner.model.quantization import Quantization
from tflm_planner.support.deferred import defer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    np = defer("numpy")


def reorder(graph: Graph, ops: Sequence[Op]) -> None:
    """Run the operators of `graph` in another order (a permutation of them)."""
    assert Counter(ops) == Counter(graph.ops), "not a permutation"
    graph.ops = list(ops)


def drop_tensors(graph: Graph, unwanted: Collection[Tensor]) -> None:
    """Remove tensors that no operator refers to and that are no inputs or outputs."""
    dropped = set(unwanted)
    assert all(t.producer is None and not t.consumers for t in unwanted), "tensor in use"
    graph.tensors = [t for t in graph.tensors if t not in dropped]


def drop_graphs(model: Model, unwanted: Collection[Graph]) -> None:
    """Remove graphs that no operator and no signature refers to."""
    dropped = set(unwanted)
    model.graphs = [g for g in model.graphs if g not in dropped]


def drop_buffers(model: Model, unwanted: Collection[DataBuffer]) -> None:
    """Remove buffers that nothing refers to."""
    dropped = set(unwanted)
    model.buffers = [b for b in model.buffers if b not in dropped]


def drop_codes(model: Model) -> None:
    """Remove codes of operators of which the model has none: LiteRT refuses a file that lists what
    it has no kernel for, used or not."""
    used = {op.code for op in model.ops()}
    model.codes = [c for c in model.codes if c in used]


def keep_inside(model: Model) -> int:
    """Move data stored after the end of the flatbuffer into it; returns how many pieces moved."""
    moved = 0
    for buffer in model.buffers:
        moved += buffer.external
        buffer.external = False
    for op in model.ops():
        moved += op.custom_options_external
        op.custom_options_external = False
    return moved


def keep_only(model: Model, main: Graph) -> None:
    """Make `main`, a graph that calls no other, the whole model. The description of the model
    before (signatures, metadata) is removed."""
    model.graphs = [main]
    _drop_description(model)


def remove_first_operators(model: Model, front: Collection[Op], boundary: Tensor) -> None:
    """Remove the first operators (`front`) of the main graph. Their last one produces `boundary`,
    which becomes the only input. The description of the model before (signatures, metadata) is
    removed."""
    graph, removed = model.main, set(front)
    graph.ops = [op for op in graph.ops if op not in removed]
    graph.inputs = [boundary]
    link(model.graphs)
    _drop_description(model)


def end_after(model: Model, last: Op) -> None:
    """End the main graph after the operator `last`, whose results become the only outputs.

    All tensors stay, because an offline plan has one entry per tensor. Signatures are removed,
    because their outputs may no longer be computed.
    """
    graph = model.main
    graph.ops = graph.ops[: graph.ops.index(last) + 1]
    graph.outputs = list(last.outputs)
    model.signatures = []
    link(model.graphs)


def _drop_description(model: Model) -> None:
    model.signatures, model.metadata, model.metadata_buffers = [], [], []
    drop_codes(model)
    for graph in model.graphs:
        drop_unused(model, graph)


def set_option(op: Op, name: str, value: object) -> None:
    """Change one field of an operator's options."""
    op.options = op.options.changed(**{name: value})


def limit_versions(model: Model, most: Mapping[str, int]) -> None:
    """Let operators of these kinds ask for kernels of these versions at most. A version tells a
    runtime whether its kernel is new enough."""
    for op in model.ops():
        code, limit = op.code, most.get(op.kind)
        if limit is not None and code.raw.version > limit:
            code.raw = copy(code.raw)  # clones of the model share it
            code.raw.version = limit


def set_loop_graphs(loop: Op, *, condition: Graph, body: Graph) -> None:
    """Set the condition graph and the body graph of a WHILE."""
    loop.graphs = {CONDITION: [condition], BODY: [body]}


def remove_metadata(model: Model, name: str) -> list[Metadata]:
    """Remove every metadata entry of that name, and its buffer if nothing else uses it."""
    removed = [m for m in model.metadata if m.name == name]
    model.metadata = [m for m in model.metadata if m.name != name]
    still_used = set(used_buffers(model))
    drop_buffers(model, [m.buffer for m in removed if m.buffer not in still_used])
    return removed


def add_metadata(model: Model, name: str, data: schema.Bytes) -> None:
    """Append a metadata entry with a buffer of its own."""
    generated = schema.generated
    buffer = DataBuffer(np.ascontiguousarray(data), False, generated.BufferT())
    model.buffers.append(buffer)
    model.metadata.append(Metadata(name, buffer, generated.MetadataT(name=b"")))


def used_buffers(model: Model) -> list[DataBuffer]:
    """Buffers that a tensor or metadata refers to."""
    of_tensors = [t.buffer for t in model.tensors()]
    return of_tensors + [m.buffer for m in model.metadata] + model.metadata_buffers


def resize(tensor: Tensor, shape: tuple[int, ...]) -> None:
    """Give a tensor another shape."""
    tensor.shape = shape
    tensor.raw = copy(tensor.raw)  # clones of the model share it
    tensor.raw.shapeSignature = None


def rename(owner: Tensor | Graph, name: str) -> None:
    """Give a tensor or a graph another name; an empty name takes no byte of the file."""
    owner.name = name
    owner.raw = copy(owner.raw)  # clones of the model share it
    owner.raw.name = b"" if name else None


def set_names_for_reports(model: Model, names: Sequence[str]) -> None:
    """Give tensors, for reports, the names that the file no longer has. The model must not be
    written afterwards."""
    for tensor, name in zip(model.tensors(), names, strict=True):
        tensor.name = name


def number_origins(model: Model) -> None:
    """Make this model the original of all models made from it: each operator of the main graph
    becomes its own origin."""
    for place, op in enumerate(model.main.ops):
        op.origins = frozenset({place})


def set_origins(model: Model, origins: Sequence[frozenset[int]]) -> None:
    """Give the operators of the main graph their origins, which a file does not hold."""
    for op, places in zip(model.main.ops, origins, strict=True):
        op.origins = places


def set_quantization(tensor: Tensor, quantization: Quantization) -> None:
    """Give a tensor another quantisation."""
    tensor.quantization = quantization


def clear_fields(owner: Tensor | Op | Graph | Model, *fields: str) -> None:
    """Reset fields of `raw` to their defaults; no code above the flatbuffer reads them."""
    fresh = type(owner.raw)()
    owner.raw = copy(owner.raw)  # clones of the model share it
    for field in map(schema.field_name, fields):
        setattr(owner.raw, field, getattr(fresh, field))


def share_buffer(tensor: Tensor, buffer: DataBuffer) -> None:
    """Make a tensor refer to another buffer, which must hold the same bytes."""
    assert not tensor.is_constant, "a constant's bytes are its own"
    tensor.buffer = buffer


def replace_input_or_output(model: Model, graph: Graph, end: Tensor, other: Tensor) -> None:
    """Replace the graph input or output `end` by `other`, in signatures too."""
    for ends in (graph.inputs, graph.outputs):
        ends[:] = [other if t is end else t for t in ends]
    for signature in (s for s in model.signatures if s.graph is graph):
        for entries in (signature.inputs, signature.outputs):
            entries[:] = [(name, other if t is end else t) for name, t in entries]


def make_constants(model: Model, graph: Graph, values: Mapping[Op, npt.NDArray[Any]]) -> None:
    """Replace operators that have a single result by constants. values: operator -> the elements of
    its result, in the type of the result."""
    for op, constant in values.items():
        (result,) = op.outputs
        data = np.ascontiguousarray(constant).reshape(-1).view(np.uint8)
        result.buffer = DataBuffer(data, False, schema.generated.BufferT())
        model.buffers.append(result.buffer)
    drop_operators(model, graph, values)


def drop_operators(
    model: Model,
    graph: Graph,
    unwanted: Collection[Op],
    replaced: Mapping[Tensor, Tensor] | None = None,
) -> None:
    """Remove operators, and everything that nothing refers to any more. `replaced`: tensor -> the
    tensor that the other operators read in its place; chains of replacements are followed."""
    gone = set(unwanted)
    graph.ops = [op for op in graph.ops if op not in gone]
    if replaced:
        for op in graph.ops:
            op.inputs = [None if t is None else _last(replaced, t) for t in op.inputs]
    link([graph])
    drop_unused(model, graph)


def _last(replaced: Mapping[Tensor, Tensor], tensor: Tensor) -> Tensor:
    while tensor in replaced:
        tensor = replaced[tensor]
    return tensor


def drop_views(
    model: Model, graph: Graph, unwanted: Collection[Op], *, merge: bool = False
) -> None:
    """Remove operators that copy bytes onto themselves; their results become views.

    `merge`: readers of the results read the first operand instead, which must hold the same bytes.
    `unwanted`: the operators in running order.
    """
    if not unwanted:
        return
    dropped = set(unwanted)
    for op in unwanted:
        for t in op.outputs:
            t.is_view = not merge
            for consumer in t.consumers if merge else ():
                consumer.inputs = [
                    op.inputs[0] if operand is t else operand for operand in consumer.inputs
                ]
    graph.ops = [op for op in graph.ops if op not in dropped]
    link([graph])
    drop_unused(model, graph)
