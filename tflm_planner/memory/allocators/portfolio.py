"""The allocators in turn, cheapest first, until the lower bound is reached or budgets are spent.

Knows problems and plans. It must not know TFLite, nor how any allocator works.

Aliases are never a duty: the plan without any is made first, and only a lower one replaces it.
Budgets are counted in rounds and nodes, so that the same problem and seed give the same plan;
no clock is read but for a `Stop` with a time limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from tflm_planner.memory.allocators import compiling, greedy, slide
from tflm_planner.memory.allocators.items import (
    Items,
    alias_sets,
    bind,
    choose_all,
    heaviest,
    isolated,
    without_aliases,
)
from tflm_planner.memory.bounds import Needs, live_bound, pairwise_bounds, pruned_bound
from tflm_planner.memory.domains import Pruner
from tflm_planner.memory.problem import Overlap, Plan, Problem, validate
from tflm_planner.support.errors import UsageError
from tflm_planner.support.stopping import Stop

if TYPE_CHECKING:
    from tflm_planner.memory.allocators.exact import Minimiser

Progress = Callable[[str, int, int], None]
"""Called with (allocator, height, lower bound) at each improvement."""

DEFAULT = ("greedy", "local", "exact")
NAMES = (*DEFAULT, "cpsat", "best")
"""What `best_of` understands; "best" stands for `DEFAULT`, and "greedy" always goes first."""

_CLIMB_WORK = 6_000_000
"""Rounds of local search times (items + conflicts): about a second."""
_CLIMB_ROUNDS = 16_000
_CLIMBS = 4
"""Lanes that are climbed, the lowest ones."""
SLICES, _FEW_SLICES, _ALL_SLICES = 140, 28, 420
"""Of the exact search: where nobody asked for it by name, for little gain, and asked for by name.
A slice takes a slow core some 70 ms."""
_LITTLE = 200
"""One part in so many, 0.5 %, is a little gain."""
_LITTLE_CLIMB = 4
"""Local search for little gain does one round in so many."""
_STACK = "stack"
"""Makes the first plan, of which nothing is expected: all buffers on top of each other."""
_ALIAS_SETS = 64
_LANES = 12
"""Alias sets that are searched when there are too many to search all."""


@dataclass(frozen=True)
class Solution:
    """The best plan found, with what is known about it."""

    plan: Plan
    height: int
    lower_bound: int
    optimal: bool
    """No legal plan is lower: the bound is reached, or the search space is exhausted."""
    allocator: str


def best_of(
    problem: Problem,
    *,
    allocators: Sequence[str] = ("best",),
    stop: Stop | None = None,
    effort: float = 1.0,
    seed: int = 0,
    on_progress: Progress | None = None,
    required: Sequence[Overlap] = (),
    quick: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Solution:
    """The lowest plan that these allocators find.

    `stop`: may end the search, which then keeps the best plan so far. `effort`: of the exact
    search, relative to the usual one. `required`: aliases that every plan takes, as far as they
    agree with each other. `quick`: first fits alone, to rank problems against each other.
    `say`: is told of waiting for what is compiled.

    Effort follows what can be won: the exact search of "best" ends sooner where the plan is within
    0.5 % of the bound; "exact" by name goes on for longer. Raises `UsageError` for an unknown
    allocator.
    """
    wanted = _expand(allocators)
    patient = "exact" in allocators
    run = _Portfolio(
        problem, stop or Stop(), seed, on_progress, patient, tuple(required), effort=effort, say=say
    )
    if quick:
        run.first()
        return run.solution()
    run.greedy()
    if "local" in wanted and not run.over:
        run.local()
    if "exact" in wanted and not run.over:
        run.exact()
    if "cpsat" in wanted and not run.over:
        run.cpsat()
    return run.solution()


def _expand(allocators: Sequence[str]) -> set[str]:
    wanted: set[str] = set()
    for name in allocators:
        if name not in NAMES:
            raise UsageError(f"allocator {name!r} is unknown; choose from {', '.join(NAMES)}")
        wanted.update(DEFAULT if name == "best" else (name,))
    if "cpsat" in wanted:
        from tflm_planner.memory.allocators import cpsat

        cpsat.load()  # also when it would not be needed: the user asked for it
    return wanted


@dataclass(eq=False)
class _Lane:
    """One choice of aliases, with the best offsets found for its items."""

    items: Items
    bound: int
    """No plan of these items is lower."""
    offsets: list[int] | None = None
    height: int = 1 << 62


@dataclass
class _Portfolio:
    """One call of `best_of`: the best plan so far, and what is left of the budget."""

    problem: Problem
    stop: Stop
    seed: int
    on_progress: Progress | None
    patient: bool
    """Search for long, however little there is to gain."""
    required: tuple[Overlap, ...] = ()
    bound: int = 0
    proved: bool = False
    effort: float = 1.0
    say: Callable[[str], None] = lambda _: None
    allocator: str = _STACK
    lanes: list[_Lane] = field(default_factory=list[_Lane])
    free: _Lane | None = None
    """The one that leaves every overlap open."""

    def __post_init__(self) -> None:
        self.aliases = any(o.is_alias for o in self.problem.overlaps)
        self.loose = any(not o.is_alias for o in self.problem.overlaps)
        top, offsets = 0, list[int]()
        for b in self.problem.buffers:
            offsets.append(top)
            top += b.size
        self.plan, self.height = Plan(tuple(offsets)), top

    @cached_property
    def needs(self) -> Needs:
        """What sets of buffers need, for all bounds."""
        return Needs(self.problem)

    @property
    def over(self) -> bool:
        """Nothing is left to gain, or the search was stopped and has a plan."""
        placed = self.allocator != _STACK
        return self.height <= self.bound or self.proved or (placed and self.stop.is_over)

    @property
    def little(self) -> bool:
        """Whether hardly anything is left to gain."""
        return (self.height - self.bound) * _LITTLE < self.height

    def offer(self, name: str, lane: _Lane, offsets: list[int]) -> None:
        """Keep a plan if it is lower than all before."""
        height = max((o + h for o, h in zip(offsets, lane.items.heights, strict=True)), default=0)
        if height < lane.height:
            lane.height, lane.offsets = height, offsets
        if height < self.height:
            self.plan, self.height, self.allocator = lane.items.plan(offsets), height, name
            if self.on_progress is not None:
                self.on_progress(name, height, self.bound)

    def solution(self) -> Solution:
        """The result, validated."""
        violations = validate(self.problem, self.plan)
        if violations:
            raise AssertionError(f"allocator {self.allocator!r}: {violations[0]}")
        optimal = self.proved or self.height <= self.bound
        return Solution(self.plan, self.height, self.bound, optimal, self.allocator)

    def first(self) -> None:
        """First fits: without overlaps, with all left open, with all aliases that agree."""
        self.bound = live_bound(self.problem)
        if self.required:
            self.height = 1 << 62
            self._first_fits(_Lane(bind(self.problem, self.required), self.bound))
        else:
            self._first_fits(_Lane(bind(self.problem, ()), self.bound))
        if not self.over:
            self._first_fits(_Lane(choose_all(self.problem, self.required), self.bound))

    def greedy(self) -> None:
        """What takes milliseconds, from the plainest plans to the boldest."""
        if self.required:
            self._rigid()
            return
        for step in (self._apart, self._sliding, self._sharing):
            if not self.over:
                step()

    def _apart(self) -> None:
        """Without any overlap, unless overlaps from a distance on promise more."""
        bare = self.problem.permitting(()) if self.problem.overlaps else self.problem
        peak = live_bound(bare)
        self.bound = live_bound(self.problem, self.needs) if self.problem.overlaps else peak
        if not self.loose or peak <= self.bound:
            self._first_fits(_Lane(bind(bare, ()), peak))

    def _rigid(self) -> None:
        """Only with the required aliases: bound alone, then with all others that agree."""
        self.bound = live_bound(self.problem)
        self.height = 1 << 62  # the stack of all buffers takes none
        self._greedy_lane(_Lane(bind(self.problem, self.required), self.bound))
        self._greedy_lane(_Lane(choose_all(self.problem, self.required), self.bound))
        realised = bind(self.problem, (*self.required, *self._realised()))
        self._greedy_lane(_Lane(realised, self.bound))

    def _sliding(self) -> None:
        """Without aliases; then with everything, at heights that no pair of buffers forbids."""
        if self.loose:
            plain = without_aliases(self.problem) if self.aliases else self.problem
            self._first_fits(_Lane(bind(plain, ()), self.bound))
        if self.over or sum(map(len, self.problem.neighbours)) > 2 * slide.PAIRS:
            return
        pruner = Pruner(self.problem, pairwise_bounds(self.problem, self.needs))
        self.bound = max(self.bound, pruned_bound(pruner, self.bound))
        if not self.over:
            same = [lane for lane in self.lanes if lane.items.problem is self.problem]
            self.free = same[0] if same else _Lane(bind(self.problem, ()), self.bound)
            self._take(self.free, slide.attempts(self.problem, pruner, self.bound, self.height))

    def _sharing(self) -> None:
        """The other ways to place; all aliases that agree; all left open, taken where they fit;
        those taken so far."""
        for lane in self.lanes:
            if lane is not self.free or not self.aliases:
                self._take(lane, greedy.others(lane.items, self.bound))
        if self.aliases and not self.over:
            self._greedy_lane(_Lane(choose_all(self.problem), self.bound))
        if self.aliases and not self.over:
            self._greedy_lane(self.free or _Lane(bind(self.problem, ()), self.bound))
        if self.aliases and not self.over:
            self._greedy_lane(_Lane(bind(self.problem, self._realised()), self.bound))

    def _first_fits(self, lane: _Lane) -> None:
        self._take(lane, greedy.first_fits(lane.items, lambda: lane.height))

    def _greedy_lane(self, lane: _Lane) -> None:
        self._first_fits(lane)
        self._take(lane, greedy.others(lane.items, self.bound))

    def _take(self, lane: _Lane, named: Iterator[tuple[str, list[int]]]) -> None:
        """Offer a lane's candidates until one is good enough."""
        if lane not in self.lanes:
            self.lanes.append(lane)
        while not (lane.height <= max(lane.bound, self.bound) or self.over):
            candidate = next(named, None)
            if candidate is None:
                break
            self.offer(candidate[0], lane, candidate[1])

    def _realised(self) -> list[Overlap]:
        """The aliases that the best plan so far takes."""
        at = self.plan.offsets
        return [
            o for o in self.problem.overlaps if o.is_alias and at[o.second] - at[o.first] == o.low
        ]

    def local(self) -> None:
        """Climb from the best plan of each lane, the lowest first."""
        if not compiling.ready((compiling.CLIMBING,), self.stop, self.say):
            return
        from tflm_planner.memory.allocators.arrays import Arrays
        from tflm_planner.memory.allocators.climbing import climb

        for lane in sorted(self.lanes, key=lambda lane: lane.height)[:_CLIMBS]:
            if self.over:
                return
            if lane.offsets is None or lane.bound >= self.height:
                continue
            offsets = lane.offsets
            order = sorted(range(len(lane.items)), key=lambda k: (offsets[k], k))
            work = len(lane.items) + sum(map(len, lane.items.conflicts))
            rounds = min(_CLIMB_ROUNDS, _CLIMB_WORK // work)
            if self.little:
                rounds = rounds // _LITTLE_CLIMB + 1
            bound = max(lane.bound, self.bound)
            found = climb(Arrays.of(lane.items), order, bound=bound, rounds=rounds, seed=self.seed)
            self.offer("local", lane, found.tolist())

    def exact(self) -> None:
        """Search alias sets in turn, with doubled budgets, the most promising first."""
        from tflm_planner.memory.allocators import exact

        if len(self.problem.buffers) > exact.LIMIT:
            return
        lanes, every = self._exact_lanes()
        if not lanes:
            self.proved = every
            return
        searches: list[tuple[_Lane, Minimiser]] = []
        for lane in lanes:
            if self.over:
                return
            minimiser = exact.Minimiser(
                lane.items, high=self.height, bound=lane.bound, seed=self.seed
            )
            searches.append((lane, minimiser))
        slices = _FEW_SLICES if self.little else SLICES
        self._search(searches, every, _ALL_SLICES if self.patient else slices * self.effort)

    def _search(
        self, searches: list[tuple[_Lane, Minimiser]], every: bool, budget: float
    ) -> None:  # fmt: skip
        """Let all searches take turns until the budget of slices is spent."""
        slices = 1
        while budget > 0 and not self.over:
            for lane, minimiser in searches:
                budget -= self._advance(lane, minimiser, slices, budget)
            if every and all(self.height <= m.low and m.sections.complete for _, m in searches):
                self.proved = True
            if all(m.low >= self.height for _, m in searches):
                return
            slices *= 2

    def _advance(self, lane: _Lane, minimiser: Minimiser, slices: int, budget: float) -> float:
        """Let one search go on, for as many slices as the budget has; the slices that it took."""
        minimiser.high = min(minimiser.high, self.height)
        if self.over or budget <= 0:
            return 0.0
        before, seen = minimiser.slices, minimiser.offsets

        def enough() -> bool:
            return minimiser.slices - before >= budget or self.stop.is_over

        minimiser.advance(slices, enough)
        if minimiser.offsets is not None and minimiser.offsets is not seen:
            self.offer("exact", lane, minimiser.offsets)
        return minimiser.slices - before

    def _exact_lanes(self) -> tuple[list[_Lane], bool]:
        """The alias sets that may still win, and whether the others certainly cannot."""
        if self.required:
            both = choose_all(self.problem, self.required), bind(self.problem, self.required)
            return [_Lane(isolated(items), self.bound) for items in both], False
        if not self.aliases:
            return [_Lane(isolated(bind(self.problem, ())), self.bound)], True
        sets, every = alias_sets(self.problem, _ALIAS_SETS)
        realised = bind(self.problem, self._realised())
        ranked: list[_Lane] = []
        for items in (realised, *sets):
            alone = isolated(items)
            # Loose overlaps make the heaviest section no bound: `Minimiser` has its own.
            weight = self.bound if self.loose else max(self.bound, heaviest(alone))
            if weight < self.height:
                ranked.append(_Lane(alone, weight))
        ranked.sort(key=lambda lane: lane.bound)
        return (ranked, True) if every else (ranked[:_LANES], False)

    def cpsat(self) -> None:
        """A second opinion by OR-Tools on the whole problem, aliases included."""
        from tflm_planner.memory.allocators import cpsat

        result = cpsat.solve(
            self.problem, self.plan, self.bound, time_limit=self.stop.left, seed=self.seed
        )
        lane = _Lane(bind(self.problem, ()), self.bound)
        self.offer("cpsat", lane, list(result.offsets))
        self.proved = self.proved or result.optimal
