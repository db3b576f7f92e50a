"""Evaluates one candidate: tiled, ordered, planned, and counted on the exact arena of the target.

    model -clone-> Regions -> Crop -> (tile order) -> plan -> (spellings) -> Dialect -> figures

It treats a whole model and an interval that was extracted from one alike. It must not choose
between candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tflm_planner.cost import latency_of
from tflm_planner.memory.allocators.packing import ROUNDS, pack
from tflm_planner.memory.problem import Plan, Problem
from tflm_planner.model.check import check
from tflm_planner.model.clone import clone
from tflm_planner.model.edit import reorder
from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.model.reachability import entry_graphs
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.element_types import Form, forms_of, refused_beyond
from tflm_planner.tflm.kernels.known_faults import faults_of
from tflm_planner.tflm.lean.pool import WritePool
from tflm_planner.tflm.liveness import (
    Timeline,
    planning_problem,
    timeline_of,
    view_aliases,
)
from tflm_planner.tflm.placement import placement_of
from tflm_planner.tflm.sharing import RemainingCopies
from tflm_planner.tflm.target_kernels import runners
from tflm_planner.tflm.versions import can
from tflm_planner.tiling.options import Region, Tiling, TilingOptions
from tflm_planner.tiling.spellings import (
    Respelled,
    SpellingChoice,
    SpellingPermission,
    best_spellings,
)
from tflm_planner.transforms.base import run
from tflm_planner.transforms.dialect import Crop, Dialect, scratch_faults
from tflm_planner.transforms.regions import Regions
from tflm_planner.transforms.reorder import Reorder
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.schedules import PlanRecipe, Schedule, quick_order
from tflm_planner.transforms.spelling import Respell, Spelling
from tflm_planner.transforms.tile.tile import TiledRegion

FIRST_FITS, CLIMB, CAREFUL = 0, 1, 12
"""How long to look for a plan: milliseconds, tens of milliseconds, tenths of a second."""


@dataclass(frozen=True)
class Candidate:
    """A way to run a model, or an interval of one."""

    regions: tuple[Region, ...]
    """Operators by their positions in the given model, after `order` if there is one."""
    bind_views: bool
    """Whether every view must lie inside its parent, so that it costs no copy."""
    order: tuple[int, ...] | None = None
    """The running order of the given operators before tiling; None for the order as given."""
    effort: int = FIRST_FITS
    """How long to look for a plan: FIRST_FITS, CLIMB or CAREFUL."""
    tile_order: Schedule = "file"
    """The order of the operators after tiling: as tiles are made, in reverse post-order, or the
    result of a short search."""
    respell: int | None = None
    """The most instructions of one inference with operators in other spellings
    (`tiling.spellings`); None: spellings stay as they are."""

    @property
    def has_tiles(self) -> bool:
        """Whether a region runs in tiles."""
        return has_tiles(self.regions)

    @property
    def has_views(self) -> bool:
        """Whether there are tiles or other spellings: only then views may cost no operator."""
        return self.has_tiles or self.respell is not None

    @property
    def has_loops(self) -> bool:
        """Whether a region runs in a loop."""
        return any(isinstance(r, LoopedRegion) for r in self.regions)

    @property
    def family(self) -> Candidate:
        """Equal for candidates that differ only in their tile order and in `bind_views`."""
        return replace(self, tile_order="file", bind_views=False)

    @property
    def is_mixed(self) -> bool:
        """Whether there are tiles and loops."""
        return self.has_tiles and self.has_loops


def has_tiles(regions: Sequence[Region]) -> bool:
    """Whether a region runs in tiles, not in a loop."""
    return any(isinstance(r, TiledRegion) for r in regions)


@dataclass(frozen=True)
class Evaluation:
    """The figures of a candidate."""

    head: int
    """Bytes of the head."""
    tail: int
    """Bytes of the tail."""
    arena: int
    """Bytes of the arena."""
    instructions: int
    """Instructions of one inference."""
    bottleneck: int | None
    """Position of the operator at the peak, in the given model after `order`; None if there is
    none."""
    new_kinds: frozenset[str] = frozenset()
    """Kinds of operators that the given model does not use."""


def evaluate(model: Model, candidate: Candidate, options: TilingOptions) -> Evaluation | None:
    """The figures of `candidate` for `model`, which is not changed; None where it is impossible.

    Operators that are not allowed do not matter here (see `if_permitted`), so that one evaluation
    serves searches with different permissions.
    """
    return evaluate_family(model, (candidate,), options)[0]


def evaluate_family(
    model: Model, candidates: Sequence[Candidate], options: TilingOptions
) -> list[Evaluation | None]:
    """`evaluate` for candidates of one family: they differ only in their tile order and in
    `bind_views`. The tiles are made once, and equal orders are planned once."""
    tiled = _TiledModel.of(model, candidates[0], options)
    if tiled is None:
        return [None] * len(candidates)
    orders: dict[Schedule, _Orders] = {}
    known: dict[tuple[_Orders, bool], Evaluation | None] = {}
    evaluations: list[Evaluation | None] = []
    for candidate in candidates:
        own = tiled if len(candidates) == 1 else tiled.copy()
        tile_order = candidate.tile_order
        orders[tile_order] = own.reorder(tile_order, orders.get(tile_order), options)
        key = orders[tile_order], candidate.bind_views and candidate.has_views
        if key not in known:
            known[key] = _plan_and_count(own, candidate, options)
        evaluations.append(known[key])
    return evaluations


_Orders = tuple[tuple[int, ...], ...]
"""For each graph: the positions that its operators had before they were ordered."""


@dataclass(frozen=True)
class _TiledModel:
    """A model in tiles and loops, with what is known of the model that it was made of."""

    model: Model
    position: dict[Op, int]
    """Operators that are in both models -> their positions in the given one, after `order`."""
    used_kinds: frozenset[str]
    """Kinds of operators of the given model."""
    forms: frozenset[Form]
    """Those kinds with their element types."""
    faults: frozenset[str]
    """Why kernels of the target compute operators of the given model wrong."""

    @staticmethod
    def of(model: Model, candidate: Candidate, options: TilingOptions) -> _TiledModel | None:
        """The model with the regions of a candidate; None where one of them is refused."""
        used_kinds, forms = frozenset(op.kind for op in model.ops()), forms_of(model.ops())
        tiled = clone(model)
        if candidate.order is not None:
            reorder(tiled.main, [tiled.main.ops[i] for i in candidate.order])
        position = {op: i for i, op in enumerate(tiled.main.ops)}
        if candidate.regions:
            check(tiled)
            if any(result.refusal for result in Regions(candidate.regions).rewrite(tiled)):
                return None
            check(tiled)
            if options.dialect and candidate.has_tiles:
                Crop().apply(tiled)  # checked where the file is made, as what follows
        faults = faults_of(model.ops(), options.kernels.target)
        return _TiledModel(tiled, position, used_kinds, forms, faults)

    def copy(self) -> _TiledModel:
        """The same for a copy of the model."""
        copied = clone(self.model)
        pairs = zip(self.model.main.ops, copied.main.ops, strict=True)
        position = {new: self.position[old] for old, new in pairs if old in self.position}
        return replace(self, model=copied, position=position)

    def respelled(self, spellings: Sequence[Spelling]) -> _TiledModel:
        """A copy with operators spelled otherwise, which keep their positions."""
        copied = self.copy()
        by_result = {op.outputs[0]: i for op, i in copied.position.items() if op.outputs}
        graph = copied.model.main
        spelled = [graph.ops[s.op] for s in spellings]
        results = {op.outputs[0] for op in spelled}
        run(copied.model, Respell(spellings))
        for i, op in enumerate(graph.ops):
            if op.kind == "CONV_2D" and op not in copied.position:
                behind = graph.ops[i + 1].outputs[0] if i + 1 < len(graph.ops) else None
                result = next((t for t in (op.outputs[0], behind) if t in results), None)
                if result in by_result:
                    copied.position[op] = by_result[result]
        return copied

    def reorder(
        self, tile_order: Schedule, known: _Orders | None, options: TilingOptions
    ) -> _Orders:
        """Order the operators of all graphs; returns the orders. known: the orders, where an equal
        model was ordered before."""
        graphs = self.model.graphs
        before = [{op: i for i, op in enumerate(g.ops)} for g in graphs]
        if known is not None:
            for g, order in zip(graphs, known, strict=True):
                reorder(g, [g.ops[i] for i in order])
        elif tile_order != "file":
            rules = options.kernels.scratch_of, options.input_overlaps_of
            Reorder(quick_order(tile_order), *rules).results(self.model)
        pairs = zip(graphs, before, strict=True)
        return tuple(tuple(positions[op] for op in g.ops) for g, positions in pairs)


def _plan_and_count(
    tiled: _TiledModel, candidate: Candidate, options: TilingOptions
) -> Evaluation | None:
    """Plan the ordered model and count; None where the plan is unsound, or where TFLM cannot run an
    operator that is no view, because of its element types, or computes one wrong that was right.
    Changes the model."""
    target, scratch_of = options.kernels.target, options.kernels.scratch_of
    dialect = options.dialect and candidate.has_views
    if candidate.respell is None:
        planned = _plan(tiled, candidate, options)
    else:
        planned = _plan_respelled(tiled, candidate, candidate.respell, options)
    tiled, timeline, offsets = planned.tiled, planned.timeline, planned.offsets
    model = tiled.model
    bottleneck = _bottleneck(tiled, timeline, offsets, candidate.regions)
    copies = RemainingCopies(offsets, can(target, "skips_copies"))
    if dialect:
        Dialect(offsets).apply(model)
        careful = candidate.effort >= CAREFUL
        overlaps_of = options.input_overlaps_of
        if careful and scratch_faults(timeline, model, offsets, scratch_of, overlaps_of)[1]:
            return None
    if refused_beyond(tiled.forms, forms_of(model.ops()), runners(target)) is not None:
        return None
    if faults_of(model.ops(), target) - tiled.faults:  # of a tile, not of the operator
        return None
    new_kinds = frozenset(op.kind for op in model.ops()) - tiled.used_kinds
    if target.lean:
        run(model, WritePool())
    arena = arena_of(model, target, offsets)
    latency = latency_of(model, target, in_place=copies.in_place, turn_bytes=copies.turn_bytes)
    return Evaluation(
        arena.head,
        arena.tail,
        arena.arena,
        latency.instructions,
        bottleneck,
        new_kinds,
    )


@dataclass(frozen=True)
class _PlannedModel:
    """A tiled model with a plan."""

    tiled: _TiledModel
    timeline: Timeline
    problem: Problem
    plan: Plan

    @property
    def offsets(self) -> dict[Tensor, int]:
        """Tensor -> bytes from the head's start."""
        return dict(zip(self.timeline.planned, self.plan.offsets, strict=False))


def _plan(tiled: _TiledModel, candidate: Candidate, options: TilingOptions) -> _PlannedModel:
    """A quick plan of the model; in the dialect with views inside their parents if asked for."""
    model = tiled.model
    timeline = timeline_of(model, options.kernels.scratch_of, entries=entry_graphs(model))
    problem = planning_problem(timeline, options.input_overlaps_of)
    binds = options.dialect and candidate.has_views and candidate.bind_views
    aliases = view_aliases(timeline, model.main) if binds else ()
    return _PlannedModel(
        tiled, timeline, problem, pack(problem, aliases, ROUNDS * candidate.effort)
    )


def _plan_respelled(
    tiled: _TiledModel, candidate: Candidate, most: int, options: TilingOptions
) -> _PlannedModel:
    """The plan with operators in other spellings, within `most` instructions. Care is taken with
    the plan of the best spellings alone: they are chosen by quicker plans, of which there are a
    dozen."""
    quick = replace(candidate, effort=min(candidate.effort, CLIMB))
    planned = _respell(_plan(tiled, quick, options), quick, most, options)
    return planned if quick == candidate else _plan(planned.tiled, candidate, options)


def _respell(
    as_it_is: _PlannedModel, candidate: Candidate, most: int, options: TilingOptions
) -> _PlannedModel:
    """The best plan with operators in other spellings, or as it is."""
    target = options.kernels.target

    def counted(planned: _PlannedModel) -> Respelled[_PlannedModel]:
        copies = RemainingCopies(planned.offsets, can(target, "skips_copies"))
        latency = latency_of(
            planned.tiled.model, target, in_place=copies.in_place, turn_bytes=copies.turn_bytes
        )
        head = placement_of(planned.timeline, planned.offsets).head
        return Respelled(planned, head, head, latency.instructions)

    rows = options.dialect or options.allows("RESHAPE", as_it_is.tiled.used_kinds)
    choice = SpellingChoice(
        as_it_is.tiled.model, as_it_is.timeline, as_it_is.problem, options.kernels, rows=rows
    )
    permission = SpellingPermission(instructions=most)
    return best_spellings(
        choice,
        counted(as_it_is),
        permission,
        lambda spellings: counted(_plan(as_it_is.tiled.respelled(spellings), candidate, options)),
    ).plan


def if_permitted(
    evaluation: Evaluation | None, options: TilingOptions, used_kinds: frozenset[str]
) -> Evaluation | None:
    """The evaluation; None where it needs operators that are not allowed. used_kinds: operators of
    the whole model."""
    if evaluation is None:
        return None
    allowed = all(options.allows(kind, used_kinds) for kind in evaluation.new_kinds)
    return evaluation if allowed else None


def tiling_of(
    candidate: Candidate, evaluation: Evaluation, options: TilingOptions, original: int
) -> Tiling:
    """A candidate and its evaluation as a tiling. original: instructions of the original."""
    order = candidate.order
    regions, bottleneck = candidate.regions, evaluation.bottleneck
    if order is not None:
        regions = tuple(replace(r, ops=tuple(sorted(order[i] for i in r.ops))) for r in regions)
        bottleneck = None if bottleneck is None else order[bottleneck]
    return Tiling(
        regions,
        evaluation.arena,
        evaluation.instructions / max(original, 1),
        bottleneck,
        candidate.bind_views,
        evaluation.head,
        options.objective,
        order,
        tuple(sorted(evaluation.new_kinds)),
        PlanRecipe(candidate.tile_order, ROUNDS * candidate.effort),
        candidate.respell,
    )


def schedule_order(model: Model, options: TilingOptions) -> tuple[int, ...]:
    """The order of the operators in which intervals are looked for: the one with the smallest
    peak, or the file's where none is smaller."""
    copied = clone(model)
    position = {op: i for i, op in enumerate(copied.main.ops)}
    states = options.search_budget.schedule_states
    rules = options.kernels.scratch_of, options.input_overlaps_of
    Reorder(quick_order("best", states), *rules).results(copied)
    return tuple(position[op] for op in copied.main.ops)


def _bottleneck(
    tiled: _TiledModel, timeline: Timeline, offsets: Mapping[Tensor, int], regions: Sequence[Region]
) -> int | None:
    """The operator of the given model that has most live bytes beneath the highest buffer."""
    placement = placement_of(timeline, offsets)
    requests = placement.requests
    tops = [offset + r.size for offset, r in zip(placement.offsets, requests, strict=True)]
    if not tops:
        return None
    highest = requests[tops.index(max(tops))]
    live = dict.fromkeys(range(highest.first, highest.last + 1), 0)
    for request in requests:
        first, last = max(request.first, highest.first), min(request.last, highest.last)
        for scope in range(first, last + 1):
            live[scope] += request.size
    scope = max(live, key=lambda s: (live[s], -s))
    return _operator_at(tiled, timeline.scopes, scope, regions)


def _operator_at(
    tiled: _TiledModel,
    scopes: Mapping[Op, list[tuple[int, int]]],
    scope: int,
    regions: Sequence[Region],
) -> int | None:
    """The operator of the given model that runs at `scope`; for an operator of a tile the middle
    one of its region, which is the first region behind the last untouched operator."""
    before = -1
    for op in tiled.model.main.ops:
        if op in tiled.position:
            before = tiled.position[op]
        if any(start <= scope <= end for start, end in scopes.get(op, ())):
            if op in tiled.position:
                return before
            behind = [r for r in regions if max(r.ops) > before]
            return behind[0].ops[len(behind[0].ops) // 2] if behind else None
    return 0 if tiled.model.main.ops else None
