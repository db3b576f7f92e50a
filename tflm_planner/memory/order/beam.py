"""Heuristics for segments too wide for the exact search: beam search, then windows solved exactly.

This module knows a `BitGraph`, a DAG and bytes. It proves nothing.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest

from tflm_planner.memory.order.clock import Clock
from tflm_planner.memory.order.dag import Dag, steps
from tflm_planner.memory.order.exact import ExactSearch
from tflm_planner.memory.order.fusing import BitGraph
from tflm_planner.memory.order.segments import extract_range, live_at_boundaries


@dataclass(frozen=True, slots=True)
class _OrderState:
    worst: int
    live: int
    tie: int
    done: int
    ready: int
    block: int
    before: _OrderState | None

    @property
    def rank(self) -> tuple[int, int, int]:
        return self.live, self.worst, self.tie


def beam_search(
    graph: BitGraph, *, width: int, floor: int, ceiling: int, seed: int, clock: Clock
) -> tuple[int, ...] | None:
    """An order of the blocks with a peak below `ceiling` bytes, or None.

    Among all states with equally many blocks run, the `width` states with the fewest live bytes
    are kept; ties go to the lowest peak so far, then are broken by the seed. Peaks up to `floor`
    bytes count as equal. A block that is safe to run at once (`exact.py`) is its state's only
    child. After the last block only one state is left: the one with the lowest peak.
    """
    rng = random.Random(seed)
    keys = [rng.getrandbits(32) for _ in graph.blocks]
    front = [_OrderState(floor, graph.start, 0, 0, graph.ready, -1, None)]
    for _ in graph.blocks:
        best_states: dict[int, _OrderState] = {}
        for state in front:
            if clock.spent():
                return None
            for child in _expand(graph, state, keys, ceiling):
                rival = best_states.get(child.done)
                if rival is None or child.rank < rival.rank:
                    best_states[child.done] = child
        front = nsmallest(width, best_states.values(), key=lambda s: s.rank)
    return _trace_blocks(front[0]) if front else None


def _expand(
    graph: BitGraph, state: _OrderState, keys: list[int], ceiling: int
) -> list[_OrderState]:
    children: list[_OrderState] = []
    left = state.ready
    while left:
        low = left & -left
        left ^= low
        b = low.bit_length() - 1
        rise, change = graph.cost(state.done, b)
        high = state.live + rise
        if high >= ceiling:
            continue
        free = change <= 0 and high <= state.worst
        done, ready = graph.after(state.done, state.ready, b)
        worst = max(state.worst, high)
        child = _OrderState(worst, state.live + change, state.tie + keys[b], done, ready, b, state)
        if free:
            return [child]
        children.append(child)
    return children


def _trace_blocks(state: _OrderState) -> tuple[int, ...]:
    blocks: list[int] = []
    while state.before is not None:
        blocks.append(state.block)
        state = state.before
    return tuple(reversed(blocks))


def renumber(dag: Dag, order: Sequence[int]) -> Dag:
    """The same graph with its nodes renumbered, so that `order` is its file order."""
    place = {node: i for i, node in enumerate(order)}
    return dag.with_nodes(
        tuple(
            replace(dag.nodes[i], after=tuple(place[j] for j in dag.nodes[i].after)) for i in order
        )
    )


def improve(
    dag: Dag,
    order: tuple[int, ...],
    *,
    floor: int,
    windows: Sequence[int],
    budget: int,
    clock: Clock,
) -> tuple[int, ...]:
    """Solve windows of nodes around the highest step exactly, again and again.

    Each success leaves fewer steps of that height. When no window of one length succeeds, the next
    length is tried; after the longest comes the shortest again. Ends at `floor` bytes, or when no
    window of any length succeeds. `budget` is the limit of states for one window. The peak of the
    result is never above that of `order`.
    """
    usable = [n for n, shorter in zip(windows, (0, *windows), strict=False) if shorter < len(order)]
    at, misses = 0, 0
    while misses < len(usable) and not clock.spent():
        high = [during for during, _ in steps(dag, order)]
        if max(high) <= floor:
            return order
        better = _lower_peak(dag, order, high, usable[at], budget, clock)
        if better is None:
            misses += 1
            at = (at + 1) % len(usable)
        else:
            order, misses = better, 0
    return order


def _lower_peak(
    dag: Dag, order: tuple[int, ...], high: list[int], window: int, budget: int, clock: Clock
) -> tuple[int, ...] | None:
    """A new order with a lower peak, or None. Windows of `window` steps that contain the first step
    with the most live bytes are tried one after the other: the steps in one are put into another
    order, all others stay."""
    top = max(high)
    at = high.index(top)
    renumbered = renumber(dag, order)
    live = live_at_boundaries(renumbered)
    seen: set[tuple[int, int]] = set()
    for start in range(at + 1 - window, at + 1, max(window // 8, 1)):
        first, last = max(start, 0), min(start + window, len(order))
        if (first, last) in seen:
            continue
        seen.add((first, last))
        graph = BitGraph(extract_range(renumbered, first, last, live[first]))
        # At this level the search ends at any order with a lower peak; it need not be the best one.
        result = ExactSearch(graph, level=top - 1, ceiling=top).run(budget, clock)
        if result.blocks is not None:
            inner = tuple(order[first + i] for i in graph.order(result.blocks))
            return (*order[:first], *inner, *order[last:])
    return None
