"""Runs the allocators in turn, cheapest first, until the lower bound is reached or budgets are
spent.

Knows problems and plans. It must not know TFLite, nor how any allocator works.

Aliases are optional: a plan without any is made first, and only a lower one replaces it. Budgets
are counted in rounds and work, so that the same problem and seed give the same plan; a clock is
read only for a `Stop` with a time limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from tflm_planner.memory.allocators import compiling, slide
from tflm_planner.memory.allocators.greedy import GreedyPlacer
from tflm_planner.memory.allocators.items import (
    Items,
    alias_sets,
    bind,
    choose_all,
    heaviest,
    isolate,
    taken_aliases,
    without_aliases,
)
from tflm_planner.memory.allocators.options import (
    ALLOCATORS,
    DEFAULT_ALLOCATORS,
    DEFAULT_OPTIONS,
    NOBODY,
    AllocatorOptions,
    Listener,
)
from tflm_planner.memory.bounds import Needs, live_bound, pairwise_bounds, pruned_bound
from tflm_planner.memory.domains import Pruner
from tflm_planner.memory.problem import Overlap, Plan, Problem, validate
from tflm_planner.support.errors import UsageError
from tflm_planner.support.stopping import Stop

if TYPE_CHECKING:
    from tflm_planner.memory.allocators.exact import Minimiser

_STACKED = "stack"
"""Name of the initial plan, in which all buffers lie on top of each other."""


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
    options: AllocatorOptions = DEFAULT_OPTIONS,
    *,
    required: Sequence[Overlap] = (),
    stop: Stop | None = None,
    listener: Listener = NOBODY,
) -> Solution:
    """The lowest plan that the allocators find.

    `required`: aliases that every plan takes; an alias that contradicts an earlier one is dropped.
    `stop`: may end the search, which then keeps the best plan so far.

    Effort depends on the possible gain: the exact search of "best" ends sooner where the plan is
    within 0.5 % of the bound; if "exact" is named, it searches longer. Raises `UsageError` for an
    unknown allocator.
    """
    wanted = _expand(options.allocators)
    run = _Portfolio(problem, options, tuple(required), stop or Stop(), listener)
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
        if name not in ALLOCATORS:
            raise UsageError(f"allocator {name!r} is unknown; choose from {', '.join(ALLOCATORS)}")
        wanted.update(DEFAULT_ALLOCATORS if name == "best" else (name,))
    if "cpsat" in wanted:
        from tflm_planner.memory.allocators import cpsat

        cpsat.load()  # even if it will not be needed: the user asked for it
    return wanted


class _AliasChoice:
    """A choice of aliases to take, with the best offsets found for its items. bound: a lower bound
    on the height of any plan of these items."""

    def __init__(self, items: Items, bound: int) -> None:
        self.items, self.bound = items, bound
        self.placer = GreedyPlacer(items)
        self.offsets: list[int] | None = None
        self.height = 1 << 62


@dataclass
class _Portfolio:
    """One call of `best_of`: the best plan so far, and the remaining budget."""

    problem: Problem
    options: AllocatorOptions
    required: tuple[Overlap, ...]
    stop: Stop
    listener: Listener
    bound: int = 0
    proved: bool = False
    allocator: str = _STACKED
    choices: list[_AliasChoice] = field(default_factory=list[_AliasChoice])
    free: _AliasChoice | None = None
    """The choice that binds no alias and permits all overlaps."""

    def __post_init__(self) -> None:
        self.budget = self.options.budget
        self.aliases = any(o.is_alias for o in self.problem.overlaps)
        self.loose = any(not o.is_alias for o in self.problem.overlaps)
        top, offsets = 0, list[int]()
        for b in self.problem.buffers:
            offsets.append(top)
            top += b.size
        self.plan, self.height = Plan(tuple(offsets)), top

    @cached_property
    def needs(self) -> Needs:
        """The bytes that sets of live buffers need, computed once for all bounds."""
        return Needs(self.problem)

    @property
    def over(self) -> bool:
        """Whether the search may end: the plan is known to be the lowest, or the search was stopped
        after an allocator found a plan."""
        placed = self.allocator != _STACKED
        return self.height <= self.bound or self.proved or (placed and self.stop.is_over)

    @property
    def gain_is_small(self) -> bool:
        """Whether the plan is nearly at the bound, so that little can be gained."""
        return (self.height - self.bound) * self.budget.small_gain_divisor < self.height

    def offer(self, name: str, choice: _AliasChoice, offsets: list[int]) -> None:
        """Keep a plan if it is lower than all earlier ones."""
        height = max((o + h for o, h in zip(offsets, choice.items.heights, strict=True)), default=0)
        if height < choice.height:
            choice.height, choice.offsets = height, offsets
        if height < self.height:
            self.plan, self.height, self.allocator = choice.items.plan(offsets), height, name
            self.listener.on_plan(name, height, self.bound)

    def solution(self) -> Solution:
        """The result, validated."""
        violations = validate(self.problem, self.plan)
        if violations:
            raise AssertionError(f"allocator {self.allocator!r}: {violations[0]}")
        optimal = self.proved or self.height <= self.bound
        return Solution(self.plan, self.height, self.bound, optimal, self.allocator)

    def greedy(self) -> None:
        """Run the allocators that take milliseconds, from the simplest to those that use most
        overlaps."""
        if self.required:
            self._place_with_required()
            return
        for step in (
            self._place_without_overlaps,
            self._place_by_sliding,
            self._place_with_aliases,
        ):
            if not self.over:
                step()

    def _place_without_overlaps(self) -> None:
        """Place without any overlap, unless overlaps with unbounded distance allow a lower plan."""
        bare = self.problem.permitting(()) if self.problem.overlaps else self.problem
        peak = live_bound(bare)
        self.bound = live_bound(self.problem, self.needs) if self.problem.overlaps else peak
        if not self.loose or peak <= self.bound:
            self._first_fits(_AliasChoice(bind(bare, ()), peak))

    def _place_with_required(self) -> None:
        """Place with the required aliases: first with only these, then with all others that are
        consistent with them, then with those that the best plan uses."""
        self.bound = live_bound(self.problem)
        self.height = 1 << 62  # the initial plan uses none of the required aliases
        self._place_greedily(_AliasChoice(bind(self.problem, self.required), self.bound))
        self._place_greedily(_AliasChoice(choose_all(self.problem, self.required), self.bound))
        items = bind(self.problem, (*self.required, *taken_aliases(self.problem, self.plan)))
        self._place_greedily(_AliasChoice(items, self.bound))

    def _place_by_sliding(self) -> None:
        """Place by first fit without aliases; then by `slide` with all overlaps, at heights that
        pruning does not disprove."""
        if self.loose:
            plain = without_aliases(self.problem) if self.aliases else self.problem
            self._first_fits(_AliasChoice(bind(plain, ()), self.bound))
        if self.over or sum(map(len, self.problem.neighbours)) > 2 * self.budget.slide_live_pairs:
            return
        pruner = Pruner(self.problem, pairwise_bounds(self.problem, self.needs))
        self.bound = max(self.bound, pruned_bound(pruner, self.bound))
        if not self.over:
            same = [choice for choice in self.choices if choice.items.problem is self.problem]
            self.free = same[0] if same else _AliasChoice(bind(self.problem, ()), self.bound)
            plans = slide.attempts(self.problem, pruner, self.bound, self.height, self.budget)
            self._offer_all(self.free, plans)

    def _place_with_aliases(self) -> None:
        """Place by the other greedy allocators: with all consistent aliases bound, with none bound
        (but permitted), and with those bound that the best plan so far uses."""
        for choice in self.choices:
            if choice is not self.free or not self.aliases:
                self._offer_all(choice, choice.placer.others(self.bound))
        if self.aliases and not self.over:
            self._place_greedily(_AliasChoice(choose_all(self.problem), self.bound))
        if self.aliases and not self.over:
            self._place_greedily(self.free or _AliasChoice(bind(self.problem, ()), self.bound))
        if self.aliases and not self.over:
            self._place_greedily(
                _AliasChoice(bind(self.problem, taken_aliases(self.problem, self.plan)), self.bound)
            )

    def _first_fits(self, choice: _AliasChoice) -> None:
        self._offer_all(choice, choice.placer.first_fits(lambda: choice.height))

    def _place_greedily(self, choice: _AliasChoice) -> None:
        self._first_fits(choice)
        self._offer_all(choice, choice.placer.others(self.bound))

    def _offer_all(self, choice: _AliasChoice, named: Iterator[tuple[str, list[int]]]) -> None:
        """Offer the plans of a choice, one after the other, until one is good enough."""
        if choice not in self.choices:
            self.choices.append(choice)
        while not (choice.height <= max(choice.bound, self.bound) or self.over):
            candidate = next(named, None)
            if candidate is None:
                break
            self.offer(candidate[0], choice, candidate[1])

    def local(self) -> None:
        """Climb from the best plan of each choice, starting with the choice whose plan is
        lowest."""
        if not compiling.ready((compiling.CLIMBING,), self.stop, self.listener.on_progress):
            return
        from tflm_planner.memory.allocators.arrays import Arrays
        from tflm_planner.memory.allocators.climbing import climb

        for choice in sorted(self.choices, key=lambda choice: choice.height)[
            : self.budget.climbed_choices
        ]:
            if self.over:
                return
            if choice.offsets is None or choice.bound >= self.height:
                continue
            offsets = choice.offsets
            order = sorted(range(len(choice.items)), key=lambda k: (offsets[k], k))
            arrays = Arrays.of(choice.items)
            work = len(choice.items) + int(arrays.degrees.sum())
            rounds = min(self.budget.climb_rounds, self.budget.climb_work // work)
            if self.gain_is_small:
                rounds = rounds // self.budget.small_gain_climb_divisor + 1
            rounds = int(rounds * self.options.climb_effort)
            bound = max(choice.bound, self.bound)
            climbed = climb(arrays, order, bound=bound, rounds=rounds, seed=self.options.seed)
            self.offer("local", choice, climbed.tolist())

    def exact(self) -> None:
        """Search alias sets in turn, the most promising first; the slices double in each round."""
        from tflm_planner.memory.allocators import exact

        if len(self.problem.buffers) > self.budget.exact_items:
            return
        choices, complete = self._exact_choices()
        if not choices:
            self.proved = complete
            return
        searches: list[tuple[_AliasChoice, Minimiser]] = []
        for choice in choices:
            if self.over:
                return
            minimiser = exact.Minimiser(
                choice.items,
                high=self.height,
                bound=choice.bound,
                seed=self.options.seed,
                budget=self.budget,
            )
            searches.append((choice, minimiser))
        budget = self.budget
        slices = budget.slices_for_small_gain if self.gain_is_small else budget.slices
        left = budget.slices_by_name if self.options.patient else slices * self.options.exact_effort
        self._search(searches, complete, left)

    def _search(
        self, searches: list[tuple[_AliasChoice, Minimiser]], complete: bool, left: float
    ) -> None:  # fmt: skip
        """Let all searches take turns until no slices are left."""
        slices = 1
        while left > 0 and not self.over:
            for choice, minimiser in searches:
                left -= self._advance(choice, minimiser, slices, left)
            if complete and all(self.height <= m.low and m.sections.complete for _, m in searches):
                self.proved = True
            if all(m.low >= self.height for _, m in searches):
                return
            slices *= 2

    def _advance(
        self, choice: _AliasChoice, minimiser: Minimiser, slices: int, left: float
    ) -> float:
        """Let one search run for at most `slices` slices for each capacity, and `left` in all.
        Returns the number of slices that it took."""
        minimiser.high = min(minimiser.high, self.height)
        if self.over or left <= 0:
            return 0.0
        before, seen = minimiser.slices, minimiser.offsets

        def enough() -> bool:
            return minimiser.slices - before >= left or self.stop.is_over

        minimiser.advance(slices, enough)
        if minimiser.offsets is not None and minimiser.offsets is not seen:
            self.offer("exact", choice, minimiser.offsets)
        return minimiser.slices - before

    def _exact_choices(self) -> tuple[list[_AliasChoice], bool]:
        """The alias sets that may still give a lower plan, and whether all other sets cannot."""
        if self.required:
            item_sets = choose_all(self.problem, self.required), bind(self.problem, self.required)
            return [_AliasChoice(isolate(items), self.bound) for items in item_sets], False
        if not self.aliases:
            return [_AliasChoice(isolate(bind(self.problem, ())), self.bound)], True
        sets, complete = alias_sets(self.problem, self.budget.alias_choices)
        best_items = bind(self.problem, taken_aliases(self.problem, self.plan))
        ranked: list[_AliasChoice] = []
        for items in (best_items, *sets):
            isolated_items = isolate(items)
            # With unbounded overlaps `heaviest` is no lower bound: `Minimiser` computes its own.
            weight = self.bound if self.loose else max(self.bound, heaviest(isolated_items))
            if weight < self.height:
                ranked.append(_AliasChoice(isolated_items, weight))
        ranked.sort(key=lambda choice: choice.bound)
        return (ranked, True) if complete else (ranked[: self.budget.exact_choices], False)

    def cpsat(self) -> None:
        """Let OR-Tools search the whole problem, with all aliases permitted."""
        from tflm_planner.memory.allocators import cpsat

        result = cpsat.solve(
            self.problem,
            self.plan,
            self.bound,
            time_limit=self.stop.left,
            seed=self.options.seed,
            budget=self.budget,
        )
        choice = _AliasChoice(bind(self.problem, ()), self.bound)
        self.offer("cpsat", choice, list(result.offsets))
        self.proved = self.proved or result.optimal
