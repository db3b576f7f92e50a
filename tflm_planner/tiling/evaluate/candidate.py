"""One candidate, tried: tiled, ordered, planned, and counted on the exact arena of the target.

    model -clone-> Tile -> Crop -> (order) -> plan -> Dialect -> head, arena, instructions

The same for a whole model and for an interval of it that was cut out. It must not choose.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tflm_planner.cost import latency_of
from tflm_planner.memory.allocators.packing import ROUNDS, pack
from tflm_planner.model.clone import clone
from tflm_planner.model.edit import reorder
from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.element_types import Form, forms_of, refused_beyond
from tflm_planner.tflm.lean.pool import WritePool
from tflm_planner.tflm.liveness import (
    Timeline,
    planning_problem,
    timeline,
    view_aliases,
)
from tflm_planner.tflm.machine import runners
from tflm_planner.tflm.placement import placement_of
from tflm_planner.tflm.sharing import RemainingCopies
from tflm_planner.tflm.versions import can
from tflm_planner.tiling.options import Tiling, TilingOptions
from tflm_planner.transforms.base import run
from tflm_planner.transforms.dialect import Crop, Dialect, scratch_faults
from tflm_planner.transforms.normalize import entry_graphs
from tflm_planner.transforms.regions import Regions
from tflm_planner.transforms.reorder import Reorder
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.schedules import PlanRecipe, Schedule, quick_order
from tflm_planner.transforms.tile.tile import TiledRegion

FIRST_FITS, CLIMB, CAREFUL = 0, 1, 12
"""Efforts: milliseconds, tens of milliseconds, tenths of a second."""
_LINE_STATES = 60_000
"""States of the search for the order of the line, which is made once: fewer find no better one
than the file's in some networks, and every search along that is in vain."""


@dataclass(frozen=True)
class Candidate:
    """What to try. schemes: positions as in the model that is given, after `order` if there is
    one. bound: views lie in their parents. effort: how carefully to plan (see FIRST_FITS).
    schedule: the order of the tiles: as they are made, in reverse post-order, or a search's."""

    schemes: tuple[TiledRegion | LoopedRegion, ...]
    bound: bool
    order: tuple[int, ...] | None = None
    effort: int = 0
    schedule: Schedule = "file"

    @property
    def is_tiled(self) -> bool:
        """Whether anything is in tiles: views may then cost no operator."""
        return has_tiles(self.schemes)

    @property
    def has_loops(self) -> bool:
        """Whether anything runs in a loop."""
        return any(isinstance(s, LoopedRegion) for s in self.schemes)

    @property
    def family(self) -> Candidate:
        """Equal for trials that differ in schedule and binding alone."""
        return replace(self, schedule="file", bound=False)

    @property
    def is_mixed(self) -> bool:
        """Whether there are tiles and loops."""
        return self.is_tiled and self.has_loops


def has_tiles(schemes: Sequence[TiledRegion | LoopedRegion]) -> bool:
    """Whether any of these regions is in tiles, not in a loop."""
    return any(isinstance(s, TiledRegion) for s in schemes)


@dataclass(frozen=True)
class Evaluation:
    """head, tail, arena: bytes. temp: what planning takes beside the tail. instructions: of one
    inference. bottleneck: position of the operator at the peak, as in the model given, after its
    order. kinds: of operators that the model did not have."""

    head: int
    tail: int
    temp: int
    arena: int
    instructions: int
    bottleneck: int | None
    kinds: frozenset[str] = frozenset()


def evaluate(model: Model, trial: Candidate, options: TilingOptions) -> Evaluation | None:
    """What `trial` makes of `model`, which stays as it is; None where it is impossible. Whether
    it may be had is another question (`permitted`): one answer serves all permissions."""
    return evaluate_family(model, (trial,), options)[0]


def evaluate_family(
    model: Model, trials: Sequence[Candidate], options: TilingOptions
) -> list[Evaluation | None]:
    """`tried` for trials of one family: they differ in schedule and binding alone. The tiles are
    made once, and what comes to the same order is planned once."""
    tiled = _TiledModel.of(model, trials[0], options)
    if tiled is None:
        return [None] * len(trials)
    orders: dict[Schedule, _Orders] = {}
    known: dict[tuple[_Orders, bool], Evaluation | None] = {}
    found: list[Evaluation | None] = []
    for trial in trials:
        made = tiled if len(trials) == 1 else tiled.copy()
        how = trial.schedule
        orders[how] = made.ordered(how, orders.get(how), options)
        key = orders[how], trial.bound and trial.is_tiled
        if key not in known:
            known[key] = _plan_and_count(made, trial, options)
        found.append(known[key])
    return found


_Orders = tuple[tuple[int, ...], ...]
"""Of each graph, the places that its operators had in the file."""


@dataclass(frozen=True)
class _TiledModel:
    """model: in tiles. index: its operators that are those of the model given -> their places
    there. used: kinds of operators that the model given had. forms: these with their types."""

    model: Model
    index: dict[int, int]
    used: frozenset[str]
    forms: frozenset[Form]

    @staticmethod
    def of(model: Model, trial: Candidate, options: TilingOptions) -> _TiledModel | None:
        """What the regions of a trial make of a model; None where one of them is impossible."""
        used, forms = frozenset(op.kind for op in model.ops()), forms_of(model.ops())
        made = clone(model)
        if trial.order is not None:
            reorder(made.main, [made.main.ops[i] for i in trial.order])
        index = {id(op): i for i, op in enumerate(made.main.ops)}
        if trial.schemes:
            notes = run(made, Regions(trial.schemes))
            if any(note.startswith(("not tiled", "not streamed")) for note in notes):
                return None
            if options.dialect and trial.is_tiled:
                Crop().apply(made)  # checked where the file is made, as what follows
        return _TiledModel(made, index, used, forms)

    def copy(self) -> _TiledModel:
        """The same of a copy of the model."""
        made = clone(self.model)
        pairs = zip(self.model.main.ops, made.main.ops, strict=True)
        places = {id(new): self.index[id(old)] for old, new in pairs if id(old) in self.index}
        return _TiledModel(made, places, self.used, self.forms)

    def ordered(self, how: Schedule, known: _Orders | None, options: TilingOptions) -> _Orders:
        """Put the operators in the order of a schedule; `known`: if it is."""
        graphs = self.model.graphs
        before = [{id(op): i for i, op in enumerate(g.ops)} for g in graphs]
        if known is not None:
            for g, order in zip(graphs, known, strict=True):
                reorder(g, [g.ops[i] for i in order])
        elif how != "file":
            rules = options.machine.scratch_of, options.trails_of
            Reorder(quick_order(how), *rules).results(self.model)
        pairs = zip(graphs, before, strict=True)
        return tuple(tuple(places[id(op)] for op in g.ops) for g, places in pairs)


def _plan_and_count(
    tiled: _TiledModel, trial: Candidate, options: TilingOptions
) -> Evaluation | None:
    """Plan the model, as it is ordered, and count; None where TFLM could not run it, by the types
    of what is no view. Changes it."""
    made, target, scratch_of = tiled.model, options.machine.target, options.machine.scratch_of
    dialect = options.dialect and trial.is_tiled
    line = timeline(made, scratch_of, entries=entry_graphs(made))
    problem = planning_problem(line, options.trails_of)
    plan = pack(
        problem,
        view_aliases(line, made.main) if dialect and trial.bound else (),
        ROUNDS * trial.effort,
    )
    offsets = dict(zip(line.planned, plan.offsets, strict=False))
    peak = _bottleneck(made, line, offsets, tiled.index, trial.schemes)
    copying = RemainingCopies(offsets, can(target, "skips_copies"))
    if dialect:
        Dialect(offsets).apply(made)
        careful = trial.effort >= CAREFUL
        if careful and scratch_faults(line, made, offsets, scratch_of, options.trails_of)[1]:
            return None
    if refused_beyond(tiled.forms, forms_of(made.ops()), runners(target)) is not None:
        return None
    kinds = frozenset(op.kind for op in made.ops()) - tiled.used
    if target.lean:
        run(made, WritePool())
    found = arena_of(made, target, offsets)
    return Evaluation(
        found.head,
        found.tail,
        found.planning_temp,
        found.arena,
        latency_of(
            made, target, in_place=copying.in_place, turn_bytes=copying.turn_bytes
        ).instructions,
        peak,
        kinds,
    )


def if_permitted(
    outcome: Evaluation | None, options: TilingOptions, used: frozenset[str]
) -> Evaluation | None:
    """The outcome, unless it needs operators that may not be used. `used`: by the whole model."""
    if outcome is None or all(options.allows(kind, used) for kind in outcome.kinds):
        return outcome
    return None


def tiling_of(trial: Candidate, outcome: Evaluation, options: TilingOptions, base: int) -> Tiling:
    """A trial and its outcome as a tiling. `base`: instructions of the original."""
    order = trial.order
    schemes, peak = trial.schemes, outcome.bottleneck
    if order is not None:
        schemes = tuple(replace(s, ops=tuple(sorted(order[i] for i in s.ops))) for s in schemes)
        peak = None if peak is None else order[peak]
    return Tiling(
        schemes,
        outcome.arena,
        outcome.instructions / max(base, 1),
        peak,
        trial.bound,
        outcome.head,
        options.objective,
        order,
        tuple(sorted(outcome.kinds)),
        PlanRecipe(trial.schedule, ROUNDS * trial.effort),
    )


def schedule_order(model: Model, options: TilingOptions) -> tuple[int, ...]:
    """The order of the operators in which intervals are looked for: the one with the smallest
    peak, or the file's where none is smaller."""
    made = clone(model)
    position = {id(op): i for i, op in enumerate(made.main.ops)}
    Reorder(
        quick_order("best", _LINE_STATES), options.machine.scratch_of, options.trails_of
    ).results(made)
    return tuple(position[id(op)] for op in made.main.ops)


def _bottleneck(
    model: Model,
    line: Timeline,
    offsets: dict[Tensor, int],
    index: dict[int, int],
    schemes: Sequence[TiledRegion | LoopedRegion],
) -> int | None:
    """The operator of the original that has most live bytes under the highest buffer."""
    placement = placement_of(line, offsets)
    requests = placement.requests
    tops = [o + r.size for o, r in zip(placement.offsets, requests, strict=True)]
    if not tops:
        return None
    high = requests[tops.index(max(tops))]
    live = dict.fromkeys(range(high.first, high.last + 1), 0)
    for request in requests:
        for scope in range(max(request.first, high.first), min(request.last, high.last) + 1):
            live[scope] += request.size
    scope = max(live, key=lambda s: (live[s], -s))
    return _origin(model, line.scopes, scope, index, schemes)


def _origin(
    model: Model,
    scopes: dict[Op, list[tuple[int, int]]],
    scope: int,
    index: dict[int, int],
    schemes: Sequence[TiledRegion | LoopedRegion],
) -> int | None:
    """The operator of the original that runs at `scope`; of a tile, one of its region: a tiled
    operator is new, and lies between the untouched ones around its region."""
    before = -1
    for op in model.main.ops:
        here = any(start <= scope <= end for start, end in scopes.get(op, ()))
        if id(op) in index:
            before = index[id(op)]
        if here:
            if id(op) in index:
                return index[id(op)]
            regions = [s for s in schemes if max(s.ops) > before]
            return regions[0].ops[len(regions[0].ops) // 2] if regions else None
    return 0 if model.main.ops else None
