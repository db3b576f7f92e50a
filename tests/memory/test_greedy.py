"""Greedy allocators put each item where they say, byte by byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from random_problems import problems

from tflm_planner.memory.allocators.conflicts import conflicts_of
from tflm_planner.memory.allocators.greedy import GreedyPlacer
from tflm_planner.memory.allocators.items import Items, bind
from tflm_planner.memory.problem import Buffer, Problem, validate

TOP = 80
"""Above all buffers of a small problem, one on the other."""


def free_bytes(items: Items, k: int, offsets: Sequence[int]) -> list[bool]:
    """Which bytes no placed item that lives together with `k` takes."""
    free = [True] * TOP
    for other in conflicts_of(items)[k]:
        if offsets[other] >= 0:
            at = offsets[other]
            free[at : at + items.heights[other]] = [False] * items.heights[other]
    return free


def lowest(items: Items, k: int, offsets: Sequence[int]) -> int:
    """The first offset at which it fits."""
    free, height = free_bytes(items, k, offsets), items.heights[k]
    return next(at for at in range(TOP) if all(free[at : at + height]))


def tightest(items: Items, k: int, offsets: Sequence[int]) -> int:
    """The offset of the smallest gap that holds it, the lowest of equal ones."""
    free, height = free_bytes(items, k, offsets), items.heights[k]
    starts = [at for at in range(TOP) if free[at] and (at == 0 or not free[at - 1])]
    gaps = [(free.index(False, at) if False in free[at:] else 10 * TOP, at) for at in starts]
    return min((end - at, at) for end, at in gaps if end - at >= height)[1]


@pytest.mark.parametrize(
    ("place", "wanted"), [(GreedyPlacer.first_fit, lowest), (GreedyPlacer.best_fit, tightest)]
)
@settings(deadline=None, max_examples=60)
@given(problem=problems(aliases=False, trailing=False))
def test_each_item_lies_where_its_allocator_says(
    place: Callable[[GreedyPlacer, Sequence[int]], list[int]],
    wanted: Callable[[Items, int, Sequence[int]], int],
    problem: Problem,
) -> None:
    items = bind(problem, ())
    placer = GreedyPlacer(items)
    for _, order in placer.orders():
        offsets = [-1] * len(items)
        for k in order:
            offsets[k] = wanted(items, k, offsets)
        assert place(placer, order) == offsets


@settings(deadline=None, max_examples=60)
@given(problem=problems(aliases=False, trailing=False))
def test_first_fit_ends_where_it_may_not_become_higher(problem: Problem) -> None:
    items = bind(problem, ())
    placer = GreedyPlacer(items)
    for _, order in placer.orders():
        offsets = placer.first_fit(order)
        assert offsets is not None
        height = items.plan(offsets).height(problem)
        assert placer.first_fit(order, height) is None
        assert placer.first_fit(order, height + 1) == offsets


@settings(deadline=None, max_examples=60)
@given(problem=problems(aliases=False, trailing=False))
def test_a_pendulum_hangs_items_as_high_as_they_fit(problem: Problem) -> None:
    items = bind(problem, ())
    placer = GreedyPlacer(items)
    order = dict(placer.orders())["start"]
    height = first_fit_height(placer, problem)
    offsets = [-1] * len(items)
    for k in order:
        low, free = lowest(items, k, offsets), free_bytes(items, k, offsets)
        hanging = range(height - items.heights[k], low, -1) if low else ()
        offsets[k] = next((at for at in hanging if all(free[at : at + items.heights[k]])), low)
    assert placer.pendulum(order, height) == offsets
    assert not validate(problem, items.plan(offsets))


def first_fit_height(placer: GreedyPlacer, problem: Problem) -> int:
    """Of the first order."""
    offsets = placer.first_fit(dict(placer.orders())["size"])
    assert offsets is not None
    return placer.items.plan(offsets).height(problem)


def test_orders_are_what_their_names_say() -> None:
    """Ties go to the larger, then to the earlier one."""
    spans = [(0, 4), (1, 3), (2, 9), (5, 6), (5, 8), (7, 9)]
    sizes = [3, 5, 2, 9, 4, 5]
    buffers = [Buffer(f"b{i}", s, *at) for i, (s, at) in enumerate(zip(sizes, spans, strict=True))]
    assert dict(GreedyPlacer(bind(Problem.of(tuple(buffers)), ())).orders()) == {
        "size": [3, 1, 5, 4, 0, 2],  # 9 5 5 4 3 2
        "conflict": [2, 4, 3, 5, 1, 0],  # with all that live at the time: 28 20 15 11 10 10
        "area": [2, 0, 4, 1, 5, 3],  # 14 12 12 10 10 9
        "span": [2, 0, 4, 1, 5, 3],  # 7 4 3 2 2 1
        "start": [0, 1, 2, 3, 4, 5],
        "end": [5, 2, 4, 3, 0, 1],
        "degree": [2, 4, 3, 1, 5, 0],  # live with 5, 3, 2 2 2 2 others
    }


def test_the_tightest_gap_is_taken_wherever_it_is() -> None:
    """Gaps of 3 and 4 bytes for the last item, which needs 2; above all lies free room."""
    sizes, ends = [2, 3, 2, 4, 1], [4, 2, 4, 2, 4]
    stacked = [Buffer(f"b{i}", n, 0, e) for i, (n, e) in enumerate(zip(sizes, ends, strict=True))]
    items = bind(Problem.of((*stacked, Buffer("last", 2, 2, 4))), ())
    assert GreedyPlacer(items).best_fit(range(6)) == [0, 2, 5, 7, 11, 2]
    swapped = [2, 4, 2, 3, 1]
    stacked = [Buffer(f"b{i}", n, 0, e) for i, (n, e) in enumerate(zip(swapped, ends, strict=True))]
    items = bind(Problem.of((*stacked, Buffer("last", 2, 2, 4))), ())
    assert GreedyPlacer(items).best_fit(range(6)) == [0, 2, 6, 8, 11, 8]
