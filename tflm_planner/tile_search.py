"""Chooses what to tile: memory-bottleneck-aware beam search.

    candidate: schemes, disjoint regions of the model as it was read, each in some number of parts
    step:      find the operator at the peak of a candidate's plan; make every scheme that has it
               in its region (or cuts its region finer, or longer); keep the best few candidates

What is compared is the smallest arena of the target, tail and scratch and planning temp
included: every tile of a convolution pays 140 + 8 * Cout bytes of tail again, so the best number
of tiles is an interior optimum. Candidates slower than the overhead allows are dropped. Source:
MOTES, Algorithm 1 (section 4.5); its GenSchemes, LessThen, beta and delta.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from tflm_planner.cost import latency_of
from tflm_planner.ir import Model
from tflm_planner.passes.base import run
from tflm_planner.passes.cleanup import Cleanup, entry_graphs
from tflm_planner.passes.dialect import Crop, Dialect
from tflm_planner.passes.recipes import Border
from tflm_planner.passes.reorder import Reorder
from tflm_planner.passes.tile import Scheme, Tile, band
from tflm_planner.planning.allocators import best_of
from tflm_planner.planning.lifetimes import (
    Timeline,
    TrailRule,
    placement_requests,
    planning_problem,
    timeline,
    view_aliases,
)
from tflm_planner.planning.order import Dag, OrderResult, best_order
from tflm_planner.serde import read_model
from tflm_planner.tflm import greedy
from tflm_planner.tflm.arena import arena_of
from tflm_planner.tflm.machine import Machine

PARTS = (2, 3, 4, 6, 8, 12)
"""Numbers of bands that are tried."""
LONGEST = 9
"""Operators of a region at most: longer ones recompute more than they save."""
_STATES = 5_000
MOST_TILINGS = 1500
"""Candidates of one search: a budget that does not depend on the machine. The clock is the outer
limit."""

PATIENCE = 3
"""Steps without a gain before the search ends: a step that only moves the peak elsewhere may be
what the next one needs."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class TileOptions:
    """machine, trails_of: the target. overhead: instructions allowed, relative to the model as it
    was read (delta). width: candidates kept a step (beta). time_limit: seconds. budget: bytes of
    arena that are enough: of the candidates that keep it the fastest wins. dialect: whether views
    may cost no operator (`passes.dialect`). new_kinds: operators that may be used although the
    model does not use them, so that the firmware must register them; None for all."""

    machine: Machine
    trails_of: TrailRule
    overhead: float = 1.10
    width: int = 4
    time_limit: float = 30.0
    budget: int | None = None
    dialect: bool = True
    new_kinds: frozenset[str] | None = frozenset()

    @property
    def border(self) -> Border:
        """How tiles get the padding of an image's edge: by PAD if that may be used."""
        return "pad" if self.new_kinds is None or "PAD" in self.new_kinds else "waste"


@dataclass(frozen=True)
class Tiling:
    """Schemes with what they lead to: bytes of arena by a quick plan, instructions relative to
    the original, the operator (of the original) at the peak, and whether all views are bound to
    their parents (none is a copy then)."""

    schemes: tuple[Scheme, ...]
    arena: int
    overhead: float
    bottleneck: int | None
    bound: bool

    def beats(self, other: Tiling, budget: int | None) -> bool:
        """LessThen: within the budget the faster one wins, otherwise the smaller one."""
        if budget is not None and max(self.arena, other.arena) <= budget:
            return (self.overhead, self.arena) < (other.overhead, other.arena)
        return (self.arena, self.overhead) < (other.arena, other.overhead)


def search_tiles(data: bytes, options: TileOptions, on_progress: Progress | None = None) -> Tiling:
    """The best tiling found of the model in `data`; the empty one when nothing helps.

    Deterministic but for the clock. Ctrl-C keeps the best so far.
    """
    search = _Search(data, options)
    say = on_progress or _silent
    try:
        search.run(say)
    except KeyboardInterrupt:
        say("interrupted: keeping the best tiling so far")
    return search.winner()


FINALISTS = 8
"""Candidates that are planned with care at the end; before, first fits rank them."""


def _silent(_: str) -> None:
    """A listener to progress that does nothing."""


def _ordered(dag: Dag) -> OrderResult:
    """An order in milliseconds: the search looks at hundreds of candidates."""
    return best_order(dag, budget=_STATES, time_limit=1.0)


def _rank(tiling: Tiling) -> tuple[int, float]:
    return tiling.arena, tiling.overhead


class _Search:
    def __init__(self, data: bytes, options: TileOptions) -> None:
        self._data = data
        self._options = options
        self._deadline = time.monotonic() + options.time_limit
        model = self._fresh()
        self._count = len(model.main.ops)
        self._base = max(latency_of(model, options.machine.target).instructions, 1)
        used = frozenset(op.kind for op in model.ops())
        self._kinds = None if options.new_kinds is None else used | options.new_kinds
        self._seen: set[tuple[Scheme, ...]] = set()
        start = self._tried(())
        assert start is not None
        self.best = start
        self._ranked = [start]

    def run(self, say: Progress) -> None:
        beam, idle = [self.best], 0
        while beam and idle < PATIENCE and not self._over():
            found: list[Tiling] = []
            for schemes in self._next(beam):
                if self._over():
                    break
                made = self._tried(schemes)
                if made is not None:
                    found.append(made)
            found.sort(key=_rank)
            idle += 1
            self._ranked = sorted({*self._ranked, *found}, key=_rank)[:FINALISTS]
            for made in found:
                if made.beats(self.best, self._options.budget):
                    self.best, idle = made, 0
            say(f"tiling: {self.best.arena:,} B of arena, {len(self._seen):,} tilings tried")
            beam = found[: self._options.width]

    def _over(self) -> bool:
        enough = self._options.budget is not None and self.best.arena <= self._options.budget
        spent = time.monotonic() > self._deadline or len(self._seen) >= MOST_TILINGS
        return spent or (enough and not self.best.schemes)

    def _fresh(self) -> Model:
        model = read_model(self._data)
        run(model, Cleanup())
        return model

    def _next(self, beam: list[Tiling]) -> Iterator[tuple[Scheme, ...]]:
        """The moves of all candidates by turns, so that running out of time is fair to them."""
        turns = [self._moves(tiling) for tiling in beam]
        for made in zip_longest(*turns):
            yield from (schemes for schemes in made if schemes is not None)

    def _moves(self, tiling: Tiling) -> Iterator[tuple[Scheme, ...]]:
        """GenSchemes: schemes with the bottleneck in their region, beside those that are there;
        one that overlaps theirs takes their place."""
        peak = tiling.bottleneck
        if peak is None:
            return
        for length in range(1, LONGEST + 1):  # short regions recompute least
            for first in range(max(peak - length + 1, 0), min(peak, self._count - length) + 1):
                region = range(first, first + length)
                rest = tuple(s for s in tiling.schemes if not {*region} & {*s.ops})
                for parts in PARTS:
                    made = band(first, first + length - 1, parts, border=self._options.border)
                    yield tuple(sorted((*rest, made), key=lambda s: s.ops))

    def _tried(self, schemes: tuple[Scheme, ...]) -> Tiling | None:
        """What the schemes lead to; None when seen before, impossible or too slow."""
        if schemes in self._seen:
            return None
        self._seen.add(schemes)
        ways = (True, False) if schemes and self._options.dialect else (False,)
        tried = [self._planned(schemes, bound) for bound in ways]
        possible = [t for t in tried if t is not None]
        return min(possible, key=_rank, default=None)

    def winner(self) -> Tiling:
        """The best of the finalists, the empty tiling among them, planned with care."""
        finalists = {self.best, *self._ranked}
        careful = [
            self._planned(t.schemes, t.bound, quick=False, reordered=reordered)
            for t in finalists
            for reordered in (False, True)
        ]
        careful.append(self._planned((), False, quick=False))
        best, *others = sorted((t for t in careful if t is not None), key=_rank)
        for other in others:
            best = other if other.beats(best, self._options.budget) else best
        return best

    def _planned(
        self,
        schemes: tuple[Scheme, ...],
        bound: bool,
        *,
        quick: bool = True,
        reordered: bool = False,
    ) -> Tiling | None:
        options, target = self._options, self._options.machine.target
        model = self._fresh()
        index = {id(op): i for i, op in enumerate(model.main.ops)}
        if schemes:
            notes = run(model, Tile(schemes))
            if any(note.startswith("not tiled") for note in notes):
                return None
            if options.dialect:
                run(model, Crop())
        if reordered:
            Reorder(_ordered, options.machine.scratch_of, options.trails_of).results(model)
        line = timeline(model, options.machine.scratch_of, entries=entry_graphs(model))
        problem = planning_problem(line, options.trails_of)
        required = view_aliases(line) if bound else ()
        solution = best_of(problem, allocators=("greedy",), required=required, quick=quick)
        offsets = dict(zip(map(id, line.planned), solution.plan.offsets, strict=False))
        peak = _bottleneck(model, line, offsets, index, schemes)
        if options.dialect and schemes:
            run(model, Dialect(offsets))
        if self._kinds is not None and {op.kind for op in model.ops()} - self._kinds:
            return None
        overhead = latency_of(model, target).instructions / self._base
        if overhead > options.overhead:
            return None
        arena = arena_of(model, target, offsets).arena
        return Tiling(schemes, arena, overhead, peak, bound)


def _bottleneck(
    model: Model,
    line: Timeline,
    offsets: dict[int, int],
    index: dict[int, int],
    schemes: Sequence[Scheme],
) -> int | None:
    """The operator of the original that has most live bytes under the highest buffer."""
    requests = placement_requests(line, offsets)
    placed = greedy.place(requests)
    tops = [o + r.size for o, r in zip(placed, requests, strict=True)]
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
    scopes: dict[int, list[tuple[int, int]]],
    scope: int,
    index: dict[int, int],
    schemes: Sequence[Scheme],
) -> int | None:
    """The operator of the original that runs at `scope`; of a tile, one of its region: a tiled
    operator is new, and lies between the untouched ones around its region."""
    before = -1
    for op in model.main.ops:
        here = any(start <= scope <= end for start, end in scopes.get(id(op), ()))
        if id(op) in index:
            before = index[id(op)]
        if here:
            if id(op) in index:
                return index[id(op)]
            regions = [s for s in schemes if max(s.ops) > before]
            return regions[0].ops[len(regions[0].ops) // 2] if regions else None
    return 0 if model.main.ops else None
