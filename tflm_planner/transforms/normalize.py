"""Removes what costs memory on TFLM and means nothing.

TFLM gives memory to every tensor listed, even to one that nothing mentions (it inflates the
head), and reads uninitialised scratch records for graphs that are never run. Two small rewritings
of transpositions keep the bits and every operator.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tflm_planner.model.edit import (
    drop_buffers,
    drop_graphs,
    drop_operators,
    drop_tensors,
    keep_inside,
    remove_metadata,
    used_buffers,
)  # fmt: skip
from tflm_planner.model.ir import ETHOS_U, Graph, Model, Op
from tflm_planner.ops import has_side_effects
from tflm_planner.support.errors import ModelError
from tflm_planner.transforms.attach_plan import PLAN_METADATA
from tflm_planner.transforms.collapse_axes import collapse_transpose_axes
from tflm_planner.transforms.drop_identities import drop_identities
from tflm_planner.transforms.fold_shapes import fold_shapes
from tflm_planner.transforms.fold_transpose import fold_transposes


@dataclass(frozen=True)
class Normalize:
    """Drops orphan tensors, unreachable graphs, unused buffers, an old plan and copies that
    products keep; merges axes of transpositions that CMSIS-NN leaves unwritten; refuses models
    that another planner has compiled."""

    def apply(self, model: Model) -> list[str]:
        """See the class."""
        refuse_compiled(model)
        return [
            *_drop_plan(model),
            *_drop_graphs(model),
            *_drop_tensors(model),
            *_keep_inside(model),
            *fold_shapes(model),
            *_drop_dead(model),
            *fold_transposes(model),
            *collapse_transpose_axes(model),
            *drop_identities(model),
        ]


def refuse_compiled(model: Model) -> None:
    """Raise ModelError for a model whose memory offsets are part of a compiled command stream."""
    for op in model.ops():
        if op.kind == ETHOS_U:
            raise ModelError(
                f"operator {op.label} was compiled for an Ethos-U by Vela: its command stream "
                "holds the arena offsets that Vela chose, and moving a tensor would corrupt it; "
                "plan the model before Vela, or keep Vela's plan"
            )


def reachable(roots: Iterable[Graph]) -> list[Graph]:
    """The graphs that running `roots` may enter, each once."""
    found: dict[Graph, None] = {}
    stack = list(roots)
    while stack:
        graph = stack.pop()
        if graph not in found:
            found[graph] = None
            stack += [called for op in graph.ops for called in op.called()]
    return list(found)


def entry_graphs(model: Model) -> list[Graph]:
    """Graphs besides the main one that a signature offers and the main graph does not reach."""
    run_by_main = set(reachable([model.main]))
    offered = dict.fromkeys(s.graph for s in model.signatures)
    return [g for g in offered if g not in run_by_main]


def _drop_plan(model: Model) -> list[str]:
    found = remove_metadata(model, PLAN_METADATA)
    return ["the model already carried an offline plan; it is replaced"] if found else []


def _drop_graphs(model: Model) -> list[str]:
    kept = set(reachable([model.main, *entry_graphs(model)]))
    unwanted = [g for g in model.graphs if g not in kept]
    drop_graphs(model, unwanted)
    return [f"dropped sub-graph {g.name!r}: nothing calls it" for g in unwanted]


def _drop_tensors(model: Model) -> list[str]:
    used = {t for g in model.graphs for t in (*g.inputs, *g.outputs)}
    used |= {t for s in model.signatures for _, t in (*s.inputs, *s.outputs)}
    used |= {t for op in model.ops() for t in op.intermediates}
    notes: list[str] = []
    for graph in model.graphs:
        orphans = [
            t for t in graph.tensors if t.producer is None and not t.consumers and t not in used
        ]
        drop_tensors(graph, orphans)
        if orphans:
            notes.append(f"dropped {len(orphans)} tensors of {graph.name!r} that nothing uses")
    if notes:
        kept = set(used_buffers(model)) | set(model.buffers[:1])
        drop_buffers(model, [b for b in model.buffers if b not in kept])
    return notes


def _drop_dead(model: Model) -> list[str]:
    """Drop operators whose results nothing reads, unless running them means something."""
    offered = {t for s in model.signatures for _, t in s.outputs}
    count = 0
    for graph in model.graphs:
        needed = offered | set(graph.outputs)
        dead: list[Op] = []
        for op in reversed(graph.ops):
            if any(t in needed for t in op.outputs) or has_side_effects(op):
                needed.update(op.operands())
            else:
                dead.append(op)
        if dead:
            drop_operators(model, graph, dead)
        count += len(dead)
    return [f"dropped {count} operators whose results nothing reads"] if count else []


def _keep_inside(model: Model) -> list[str]:
    moved = keep_inside(model)
    if not moved:
        return []
    return [f"moved {moved} external buffers into the flatbuffer: TFLM reads none outside"]
