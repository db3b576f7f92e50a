"""The exact allocator: is there a plan within a capacity? It asks this for lower and lower
capacities.

Knows items, capacities and budgets of work. It must not know TFLite. The tree search itself is
compiled (`exact_kernel`) and is imported only with the first search.

Each capacity is searched in several preorders, which alternate after a slice of work each. Every
search can be suspended. The lower bound is tried first; each call with a larger budget continues
that search where it stopped. Then the capacities between the bound and the best plan are bisected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tflm_planner.memory.allocators.items import Items, bind
from tflm_planner.memory.allocators.sections import Sections, sections_of
from tflm_planner.memory.budgets import DEFAULT_ALLOCATOR_BUDGET, AllocatorBudget
from tflm_planner.memory.problem import Buffer, Problem

if TYPE_CHECKING:
    from tflm_planner.memory.allocators import machine_code, search_state

_SPAN, _AREA, _NOISE, _LOAD = 0, 1, 2, 3
PREORDERS = ((_SPAN, _AREA, _LOAD), (_LOAD, _AREA, _SPAN), (_LOAD, _SPAN, _AREA))
"""The order in which items are tried at equal offsets. The first two and similar ones do well on
different problems, as the authors of MiniMalloc found."""


def warm_up() -> None:
    """Load the compiled search; compile it if that was never done on this machine."""
    solve_at(bind(Problem.of((Buffer("a", 1, 0, 1), Buffer("b", 1, 0, 1))), ()), 2, 1)


@dataclass
class Attempt:
    """Searches for a plan within one capacity, one search for each preorder, which alternate."""

    sections: Sections
    capacity: int
    preorders: Sequence[tuple[int, ...]] = PREORDERS
    budget: AllocatorBudget = DEFAULT_ALLOCATOR_BUDGET
    nodes: int = 0
    slices: float = 0.0
    offsets: list[int] | None = None
    impossible: bool = False
    _states: list[tuple[search_state.SearchState, machine_code.Ints]] = field(
        default_factory=list["tuple[search_state.SearchState, machine_code.Ints]"]
    )
    _shape: search_state.SearchShape | None = None

    def advance(self) -> bool:
        """Run one slice of each preorder. True when a plan is found or proved impossible."""
        from tflm_planner.memory.allocators import exact_kernel, search_state

        if self.offsets is not None or self.impossible:
            return True
        if self._shape is None:
            self._shape = search_state.SearchShape(**self.sections.arrays)
        shape, ordered = self._shape, self.sections.ordered
        slice_work = self.budget.slice_work
        for turn, keys in enumerate(self.preorders):
            if turn == len(self._states):
                self._states.append(exact_kernel.start_state(shape, keys))
            state, order = self._states[turn]
            before = state.scalars.copy()
            status = exact_kernel.search(shape, state, self.capacity, order, ordered, slice_work)
            spent = state.scalars - before
            self.nodes += int(spent[exact_kernel.NODES])
            self.slices += int(spent[exact_kernel.WORK]) / slice_work
            if status == exact_kernel.FOUND:
                self.offsets = [int(o) for o in state.offset]
            self.impossible = status == exact_kernel.IMPOSSIBLE
            if status != exact_kernel.SUSPENDED:
                self._states.clear()
                return True
        return False


class Minimiser:
    """Lowers the height of one set of items, a few slices at a time.

    `low` is the lowest capacity that is still possible. `high` is the height of the best plan known
    from any allocator; lower it when another allocator finds a better one. `offsets` is the best
    plan of this search.
    """

    def __init__(
        self,
        items: Items,
        *,
        high: int,
        bound: int = 0,
        seed: int = 0,
        budget: AllocatorBudget = DEFAULT_ALLOCATOR_BUDGET,
    ) -> None:
        self.items = items
        self.budget = budget
        self.sections = sections_of(items, seed)
        step = self.sections.step
        self.low = -(-max(bound, self.sections.bound) // step) * step
        self.high = high
        self.offsets: list[int] | None = None
        self.nodes = 0
        self.slices = 0.0
        self._attempts: dict[int, Attempt] = {}

    @property
    def done(self) -> bool:
        """Whether no capacity below `high` is left to try."""
        return self.low >= self.high

    @property
    def proved(self) -> bool:
        """`done`, and the search has considered every plan of these items."""
        return self.done and self.sections.complete

    def advance(self, slices: int, enough: Callable[[], bool] = lambda: False) -> None:
        """Try the lowest capacity, then bisect; spend at most `slices` slices on each capacity."""
        while not self.done and not enough():
            if not self._run(self._attempt(self.low), slices, enough):
                break
        below, step = self.low, self.sections.step
        while below + step < self.high and not enough():
            middle = below + (self.high - below) // (2 * step) * step
            attempt = self._attempt(middle)
            answered = self._run(attempt, slices, enough)
            below = self.low if answered and attempt.offsets is None else below
            below = below if answered else middle

    def _attempt(self, capacity: int) -> Attempt:
        """The suspended attempt at a capacity, or a new one. For large problems only the attempt at
        the lowest capacity is kept, because its stacks take megabytes."""
        keeps_all = len(self.items) <= self.budget.resumable_items
        self._attempts = {
            c: a
            for c, a in self._attempts.items()
            if c == self.low or (keeps_all and self.low < c < self.high)
        }
        return self._attempts.setdefault(
            capacity, Attempt(self.sections, capacity, budget=self.budget)
        )

    def _run(self, attempt: Attempt, slices: int, enough: Callable[[], bool]) -> bool:
        answered = False
        for _ in range(slices):
            nodes, spent = attempt.nodes, attempt.slices
            answered = attempt.advance()
            self.nodes += attempt.nodes - nodes
            self.slices += attempt.slices - spent
            if answered or enough():
                break
        if attempt.offsets is not None:
            self.offsets = attempt.offsets
            heights = self.items.heights
            self.high = max(o + h for o, h in zip(attempt.offsets, heights, strict=True))
        elif attempt.impossible:
            self.low = max(self.low, attempt.capacity + self.sections.step)
        return answered


def solve_at(items: Items, capacity: int, slices: int) -> Attempt:
    """Try one capacity for at most `slices` slices of each preorder."""
    attempt = Attempt(sections_of(items), capacity)
    for _ in range(slices):
        if attempt.advance():
            break
    return attempt
