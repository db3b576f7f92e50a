"""Random problems, and slow but obviously right answers to them."""

from __future__ import annotations

import random
from collections.abc import Iterator

from hypothesis import strategies as st

from tflm_planner.memory.problem import (
    UNBOUNDED,
    Buffer,
    Overlap,
    Plan,
    Problem,
    concurrent_pairs,
)


@st.composite
def problems(
    draw: st.DrawFn, most: int = 9, biggest: int = 6, aliases: bool = True, trailing: bool = True
) -> Problem:
    """Up to `most` buffers, with aliases, chains of them, and overlaps from a distance on."""
    count = draw(st.integers(1, most))
    buffers: list[Buffer] = []
    for i in range(count):
        start = draw(st.integers(0, 6))
        end = start + draw(st.integers(1, 4))
        buffers.append(Buffer(f"b{i}", draw(st.integers(1, biggest)), start, end))
    pairs = sorted(concurrent_pairs(buffers))
    overlaps: list[Overlap] = []
    kinds = [kind for kind, on in (("alias", aliases), ("trailing", trailing)) if on]
    if pairs and kinds:
        for i, j in draw(st.lists(st.sampled_from(pairs), max_size=5, unique=True)):
            low = draw(st.integers(-2, 3))
            if draw(st.sampled_from(kinds)) == "alias":
                overlaps.append(Overlap(i, j, max(low, 0), max(low, 0)))
            else:
                overlaps.append(draw(st.sampled_from([
                    Overlap(i, j, low, UNBOUNDED), Overlap(i, j, -UNBOUNDED, -low)
                ])))  # fmt: skip
    return Problem.of(tuple(buffers), tuple(overlaps))


def hard(count: int, seed: int) -> Problem:
    """A dense random problem that greedy orders do not solve."""
    chance = random.Random(seed)
    buffers: list[Buffer] = []
    for i in range(count):
        start = chance.randrange(40)
        life = chance.choice([1, 2, 3, 5, 9, 20])
        buffers.append(Buffer(f"b{i}", 16 * chance.randint(1, 40), start, start + life))
    return Problem.of(tuple(buffers))


def trailing(count: int, seed: int) -> Problem:
    """A dense problem in which every fifth pair may share memory, from a distance on, or at two."""
    problem, chance = hard(count, seed), random.Random(seed)
    overlaps: list[Overlap] = []
    for i, j in [*concurrent_pairs(problem.buffers)][::5]:
        low = chance.randrange(-40, 40)
        ends = (
            ((low, UNBOUNDED),) if chance.random() < 0.5 else ((low, low + 3), (low + 50, low + 60))
        )
        overlaps += [Overlap(i, j, *both) for both in ends]
    return problem.permitting(overlaps)


def paint(problem: Problem, plan: Plan) -> bool:
    """Whether a plan is legal, by painting every byte of every step.

    byte 2   b b            Each cell holds the buffers that use it; a cell with two of them
    byte 1   ab b           is legal only when a permit allows that pair's distance.
    byte 0   a  .
    step     0  1
    """
    cells: dict[tuple[int, int], list[int]] = {}
    for i, (b, offset) in enumerate(zip(problem.buffers, plan.offsets, strict=True)):
        if offset < 0:
            return False
        for step in range(b.start, b.end):
            for byte in range(offset, offset + b.size):
                cells.setdefault((step, byte), []).append(i)
    shared = {(i, j) for users in cells.values() for i in users for j in users if i < j}
    return all(
        any(
            o.low <= plan.offsets[o.second] - plan.offsets[o.first] <= o.high
            for o in problem.overlaps
            if {o.first, o.second} == {i, j}
        )
        for i, j in shared
    )


def brute_force(problem: Problem, at_most: int) -> int:
    """The least height of any legal plan, by trying every offset; `at_most` is known to do."""
    buffers, offsets = problem.buffers, list[int]()
    pairs = {*concurrent_pairs(buffers)}
    best = at_most

    def free(i: int, offset: int) -> bool:
        for j, other in enumerate(offsets):
            apart = other + buffers[j].size <= offset or offset + buffers[i].size <= other
            together = (i, j) in pairs or (j, i) in pairs
            if together and not apart and not problem.may_share(j, i, offset - other):
                return False
        return True

    def place(i: int, height: int) -> None:
        nonlocal best
        if height >= best:
            return
        if i == len(buffers):
            best = height
            return
        for offset in range(best - buffers[i].size):
            if free(i, offset):
                offsets.append(offset)
                place(i + 1, max(height, offset + buffers[i].size))
                offsets.pop()

    place(0, 0)
    return best


def chain(sizes: list[int]) -> Problem:
    """Buffers of which each is live together with the next only."""
    return Problem.of(tuple(Buffer(f"t{i}", size, i, i + 2) for i, size in enumerate(sizes)))


@st.composite
def sliding_chains(draw: st.DrawFn, most: int = 6, biggest: int = 5) -> Problem:
    """A model without branches: each buffer is live together with the next, and may slide."""
    sizes = draw(st.lists(st.integers(1, biggest), min_size=2, max_size=most))
    overlaps: list[Overlap] = []
    for i in range(len(sizes) - 1):
        low = draw(st.integers(-2, 4))
        kind = draw(st.sampled_from(["none", "alias", "below", "below", "above"]))
        if kind == "alias":
            overlaps.append(Overlap(i, i + 1, low, low))
        elif kind == "below":
            overlaps.append(Overlap(i + 1, i, low, UNBOUNDED))
        elif kind == "above":
            overlaps.append(Overlap(i, i + 1, low, UNBOUNDED))
    return Problem.of(chain(sizes).buffers, tuple(overlaps))


def mutations(plan: Plan) -> Iterator[Plan]:
    """The plan with one offset moved, a little or to the bottom."""
    for i, offset in enumerate(plan.offsets):
        for moved in (offset - 1, offset + 1, 0):
            yield Plan((*plan.offsets[:i], moved, *plan.offsets[i + 1 :]))
