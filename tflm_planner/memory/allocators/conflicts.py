"""Which items must not collide, and at which distances: greedy allocators and the exact search look
each pair up here.

    conflicts[a] = {b: ((-4, 8),)}      offset b - offset a must lie outside ]-4, 8[
    conflicts[b] = {a: ((-8, 4),)}      the same, seen from b

Knows items and intervals. It must not know how offsets are searched. `arrays` computes the same
tables for searches that plan hundreds of candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tflm_planner.memory.allocators.items import Items
from tflm_planner.memory.domains import LowHigh, forbidden

ItemConflicts = dict[int, tuple[LowHigh, ...]]
"""Another item -> forbidden open intervals of `offset[other] - offset[item]`, sorted."""


def conflicts_of(items: Items) -> tuple[ItemConflicts, ...]:
    """The conflicts of each item."""
    if len(items.members) == len(items.owner):
        return _conflicts_of_single_buffers(items)
    raw: dict[tuple[int, int], list[LowHigh]] = {}
    owner, shift, problem = items.owner, items.shift, items.problem
    buffers, permits = problem.buffers, problem.permits
    for i, near in enumerate(problem.neighbours):
        k, size, up = owner[i], buffers[i].size, shift[i]
        for j in near:
            if k < owner[j]:
                move = up - shift[j]
                stretches = raw.setdefault((k, owner[j]), [])
                if (i, j) not in permits:
                    stretches.append((move - buffers[j].size, move + size))
                    continue
                for low, high in forbidden(problem, i, j):
                    stretches.append((low + move, high + move))
    table: list[ItemConflicts] = [{} for _ in items.members]
    for (k, other), stretches in raw.items():
        united = tuple(_unite(stretches)) if len(stretches) > 1 else tuple(stretches)
        if united:
            table[k][other] = united
            table[other][k] = tuple((-high, -low) for low, high in reversed(united))
    return tuple(table)


def _conflicts_of_single_buffers(items: Items) -> tuple[ItemConflicts, ...]:
    """`conflicts_of` where every item is one buffer."""
    problem = items.problem
    buffers, permits = problem.buffers, problem.permits
    table: list[ItemConflicts] = [{} for _ in buffers]
    for i, near in enumerate(problem.neighbours):
        size, conflicts = buffers[i].size, table[i]
        for j in near:
            if i >= j:
                continue
            if (i, j) not in permits:
                other = buffers[j].size
                conflicts[j], table[j][i] = ((-other, size),), ((-size, other),)
            elif stretches := forbidden(problem, i, j):
                united = tuple(_unite(stretches))
                conflicts[j] = united
                table[j][i] = tuple((-high, -low) for low, high in reversed(united))
    return tuple(table)


def _unite(intervals: Iterable[LowHigh]) -> Iterator[LowHigh]:
    """The union of open intervals. Two that only touch leave their common point free."""
    stretch: LowHigh | None = None
    for low, high in sorted(intervals):
        if stretch is None:
            stretch = (low, high)
        elif low < stretch[1]:
            stretch = (stretch[0], max(stretch[1], high))
        else:
            yield stretch
            stretch = (low, high)
    if stretch is not None:
        yield stretch
