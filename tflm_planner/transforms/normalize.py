"""The rewrites that never cost anything. They are made before every plan.

Each lowers memory or leaves it as it is, keeps every bit of the results, and needs no choice:

    dropped      tensors, graphs and buffers without any use: TFLM gives memory to every tensor
                 listed, and reads uninitialised scratch records for graphs that never run
    dropped      an offline plan in the file: it was made for another arrangement of tensors
    computed     operators on shapes, which never change on TFLM (`fold_shapes`)
    dropped      operators that change nothing (`drop_identities`), or whose results nothing reads,
                 and kinds of which no operator is left
    rewritten    what no TFLM runs (`substitutes`)
    moved        buffers outside of the flatbuffer into it: TFLM reads none outside
    rewritten    transpositions, so that products keep no transposed copy (`fold_transpose`) and
                 CMSIS-NN writes every result (`collapse_axes`); and chains of operators that move
                 elements, so that no whole image is copied of which a part is used (`merge_moves`)

A rewrite that may cost memory, time or bytes of the file is a separate transform.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tflm_planner.model.clone import clone
from tflm_planner.model.edit import (
    drop_buffers,
    drop_codes,
    drop_graphs,
    drop_operators,
    drop_tensors,
    keep_inside,
    remove_metadata,
    used_buffers,
)  # fmt: skip
from tflm_planner.model.ir import Model, Op
from tflm_planner.model.reachability import entry_graphs, reachable
from tflm_planner.ops import has_side_effects
from tflm_planner.support.words import count
from tflm_planner.transforms.attach_plan import PLAN_METADATA
from tflm_planner.transforms.base import run
from tflm_planner.transforms.collapse_axes import collapse_transpose_axes
from tflm_planner.transforms.compiled_models import refuse_compiled
from tflm_planner.transforms.drop_identities import drop_identities
from tflm_planner.transforms.fold_shapes import fold_shapes
from tflm_planner.transforms.fold_transpose import fold_transposes
from tflm_planner.transforms.merge_moves import merge_moves
from tflm_planner.transforms.substitutes import substitute
from tflm_planner.transforms.substitutes.inline_composites import inline_composites


@dataclass(frozen=True)
class Normalize:
    """Applies all of them; see the module. merges: also `merge_moves`, which what only looks at a
    model cannot do, and which a model in tiles must not: tiles are made of such chains. Raises
    ModelError for a model that another planner has compiled: no tensor in it may be moved."""

    merges: bool = True

    def apply(self, model: Model) -> list[str]:
        """See the class."""
        refuse_compiled(model)
        notes = [
            *_drop_plan(model),
            *inline_composites(model),
            *_drop_graphs(model),
            *_drop_tensors(model),
            *move_inside(model),
            *fold_shapes(model),
            *_drop_dead(model),
            *fold_transposes(model),
            *collapse_transpose_axes(model),
            *drop_identities(model),
            *substitute(model),
            *(merge_moves(model) if self.merges else ()),
        ]
        drop_codes(model)
        return notes


def as_tflm_runs_it(model: Model) -> Model:
    """A copy of the model with what TFLM lacks rewritten, and nothing else; the model itself where
    TFLM lacks nothing of the kind."""
    runnable = clone(model)
    notes = substitute(runnable)
    return runnable if notes else model


class CleanedUp(NamedTuple):
    """What was done to a model. kinds: the kinds of operators that its firmware has: those of the
    file, of which fewer may be left, and those without which TFLM could not run it."""

    notes: list[str]
    kinds: frozenset[str]


def clean_up(model: Model) -> CleanedUp:
    """Apply `Normalize` to a model."""
    kinds = {op.kind for op in model.ops()}
    notes = run(model, Normalize())
    return CleanedUp(notes, frozenset(kinds | {op.kind for op in model.ops()}))


def _drop_plan(model: Model) -> list[str]:
    had_plan = remove_metadata(model, PLAN_METADATA)
    return ["the model already carried an offline plan; it is replaced"] if had_plan else []


def _drop_graphs(model: Model) -> list[str]:
    run = set(reachable([model.main, *entry_graphs(model)]))
    unwanted = [g for g in model.graphs if g not in run]
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
            tensors = count(len(orphans), "tensor", "tensors")
            notes.append(f"dropped {tensors} of {graph.name!r} that nothing uses")
    if notes:
        needed = set(used_buffers(model)) | set(model.buffers[:1])
        drop_buffers(model, [b for b in model.buffers if b not in needed])
    return notes


def _drop_dead(model: Model) -> list[str]:
    """Drop operators whose results nothing reads, unless they have side effects."""
    offered = {t for s in model.signatures for _, t in s.outputs}
    dropped = 0
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
        dropped += len(dead)
    operators = count(dropped, "operator", "operators")
    return [f"dropped {operators} whose results nothing reads"] if dropped else []


def move_inside(model: Model) -> list[str]:
    """Move data outside of the flatbuffer into it; returns a note if there were any."""
    moved = keep_inside(model)
    if not moved:
        return []
    pieces = count(moved, "piece", "pieces")
    return [f"{pieces} of data outside of the flatbuffer moved into it: TFLM reads none outside"]
