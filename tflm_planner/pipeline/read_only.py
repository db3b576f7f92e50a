"""The commands that only read models, `arena` and `inspect`, as functions of files and targets.

They answer at once, also in a browser: nothing here imports numpy, compiled code or a runtime
(`tests/pipeline/test_read_only.py` checks that). `serde.read_model` reads models for inspection
only. A few models need numpy, which is then imported: those with shapes that must be computed
ahead, or with a plan whose overlaps no formula covers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from tflm_planner.memory.allocators import AllocatorOptions, best_of
from tflm_planner.memory.order import best_order
from tflm_planner.model.ir import ETHOS_U, Model
from tflm_planner.model.reachability import entry_graphs
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline.comparison import compare_boards
from tflm_planner.pipeline.comparison.cell_search import CellSearch
from tflm_planner.pipeline.inspection.arenas import (
    Source,
    arena,
    common_arena,
    load,
    name_of,
    read_any,
    split_arena,
)
from tflm_planner.pipeline.inspection.inspect_model import (
    Inspection,
    inspect_model,
    shares_by_calls,
)
from tflm_planner.report.comparison import Comparison
from tflm_planner.report.document import MemoryMap
from tflm_planner.report.memory_map import memory_map
from tflm_planner.support import defaults
from tflm_planner.support.progress import silent
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.arena.predict import Arena, arena_of
from tflm_planner.tflm.liveness import planning_problem, timeline_of
from tflm_planner.tflm.placement import placement_of, tensor_offsets
from tflm_planner.tflm.target_kernels import TargetKernels, kernels_of
from tflm_planner.tflm.targets import Target
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.reorder import Reorder

__all__ = [
    "Source",
    "arena",
    "common_arena",
    "compare_as_is",
    "inspect",
    "load",
    "plan_greedily",
    "split_arena",
]


def compare_as_is(source: Source, targets: Sequence[Target]) -> Comparison:
    """What the unchanged model needs on each target."""
    search = CellSearch(compare_boards.AS_IS, Stop(), silent)
    return compare_boards.compare(load(source), name_of(source), targets, search)


def inspect(source: Source, kernels: TargetKernels | None = None) -> Inspection:
    """Inspect the memory of a model as stock TFLM runs it, with the plan that it carries, or else
    TFLM's own. The best operator order is also searched, but only its lower bound is reported."""
    kernels = kernels or kernels_of()
    data = load(source)
    model, dialect = read_any(data)
    inspection = inspect_model(model, kernels, dialect=dialect)
    if dialect:
        notes = (*inspection.notes, "the model is in the TFLM dialect")
        return replace(inspection, notes=notes)
    if shares_by_calls(model) or any(op.kind == ETHOS_U for op in model.ops()):
        return inspection  # no order can be searched
    lowest = _order(read_model(data, to_look_at=True), kernels)
    return replace(inspection, limits=replace(inspection.limits, best_order_bytes=lowest))


@dataclass(frozen=True)
class QuickPlan:
    """A quickly made plan: the arena that it needs, and its memory map."""

    arena: Arena
    map: MemoryMap


def plan_greedily(source: Source, target: Target | None = None) -> QuickPlan:
    """Plan a model with the best operator order and greedy allocators. There are no tiles or
    spellings, and nothing is written. `plan` finds an arena of the same size or a smaller one.
    Raises ModelError for models in the TFLM dialect, which are planned already."""
    kernels = kernels_of(target)
    model = read_model(load(source), to_look_at=True)
    _order(model, kernels)
    timeline = timeline_of(model, kernels.scratch_of, entries=entry_graphs(model))
    problem = planning_problem(timeline, kernels.input_overlaps_of)
    plan = best_of(problem, AllocatorOptions(("greedy",))).plan
    offsets = tensor_offsets(timeline, plan)
    arena = arena_of(model, kernels.target, offsets)
    placed = placement_of(timeline, offsets).offsets
    return QuickPlan(arena, memory_map(model, timeline, placed, arena.head, arena.head_bound))


def _order(model: Model, kernels: TargetKernels) -> int:
    """Normalize the model and put its operators into the best order. Returns the lower bound of the
    head over all orders, in bytes."""
    run(model, Normalize(merges=False))
    find = partial(best_order, method="best", seed=defaults.SEED)
    reorder = Reorder(find, kernels.scratch_of, kernels.input_overlaps_of)
    return reorder.results(model)[model.main].lower_bound
