"""Exact search: the smallest bottleneck on a path through the states of a segment.

This module knows a `BitGraph` and bytes. The states are the down-sets of the blocks (Serenity,
Ahn et al. 2020, section 3.1, solves the same lattice by dynamic programming under a budget that
it guesses). Here no budget is guessed: states are explored in the order of the peak that is needed
to reach them (Dijkstra's algorithm with max in place of +). All states reachable within one *level*
are explored depth first; then the level rises to the cheapest step refused so far. Hence

- no state is explored twice at one level;
- the level is at any time a lower bound, which is returned even when the budget is spent;
- where the first level is high enough (a segment with slack, a tight bound) the first depth-first
  path is the answer.

*Commitment.* In state S at level L let X be a set of blocks that can be run with no step above L,
such that live(S + X) <= live(S + Y) for every subset Y of X that can run before the rest of X. Then
X may be run at once and all other choices in S dropped. Proof: live is submodular, live(A) +
live(B) >= live(A + B) + live(A & B), as it is a sum of size * ([written in A] - [written and all
read in A]). Take any completion P0 = S, P1, ... and run X, then P's other blocks in P's order.
With B = S + X: live(P_i + B) <= live(P_i) + live(B) - live(P_i & B) <= live(P_i). A block in state
P_i + B writes and needs as much as in P_i, and absorbs no less, since an operand that dies at it
in P_i dies at it in P_i + B. So no later step is higher than it was. Levels only rise, and the
optimum is at least the level, so a commitment is final.

The sets X that are tried: single blocks; runs in which each block waits for the one before it, so
that every Y is a prefix; and the last readers of one tensor if all are ready, so that every Y is a
subset.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from tflm_planner.memory.order.clock import Clock
from tflm_planner.memory.order.fusing import BitGraph

LONGEST_RUN, WIDEST_SET = 6, 4
"""Largest numbers of blocks in a run and in a set of readers that are tried as a commitment."""


@dataclass(frozen=True, slots=True)
class ExactResult:
    """What an exact search knows when it ends."""

    blocks: tuple[int, ...] | None
    """An optimal order with a peak below the ceiling, or None."""
    bound: int
    """No order has a smaller peak."""
    complete: bool
    """Whether the order is optimal, or it is proved that no order has a peak below the ceiling."""
    states: int
    """The number of states explored."""


class _RefusedStep(NamedTuple):
    """A state with a step that exceeds the level. level: the lowest level that permits one of its
    refused steps. number: breaks ties; smaller if the state was explored earlier."""

    level: int
    number: int
    done: int
    ready: int
    live: int


class ExactSearch:
    """Explores the states of one graph; `run` may be called again with a larger budget."""

    def __init__(self, graph: BitGraph, *, level: int, ceiling: int) -> None:
        self.graph = graph
        self.level = level
        self.ceiling = ceiling
        self.states = 0
        self.reached_from: dict[int, tuple[int, tuple[int, ...]]] = {}
        """State -> (the state before it, the blocks run in between)."""
        self.stack = [(0, graph.ready, graph.start)]
        self.heap: list[_RefusedStep] = []
        self.reached_from[0] = (0, ())

    def run(self, budget: int, clock: Clock) -> ExactResult:
        """Explores until the final state is reached, no state is left below the ceiling, or the
        budget (a number of states) or the time is spent.
        """
        end = self.graph.everything
        while self.level < self.ceiling:
            while self.stack:
                done, ready, live = self.stack.pop()
                if done == end:
                    return ExactResult(self._trace_blocks(), self.level, True, self.states)
                self.states += 1
                if self.states > budget or clock.spent():
                    self.stack.append((done, ready, live))
                    return ExactResult(None, self.level, False, self.states)
                self._expand(done, ready, live)
            if not self.heap:
                break
            step = heappop(self.heap)
            self.level = step.level
            self.stack.append((step.done, step.ready, step.live))
        return ExactResult(None, self.ceiling, True, self.states)

    def _expand(self, done: int, ready: int, live: int) -> None:
        graph, reached_from, level = self.graph, self.reached_from, self.level
        moves: list[tuple[int, int]] = []
        changes: dict[int, int] = {}
        refused = self.ceiling
        left = ready
        while left:
            low = left & -left
            left ^= low
            b = low.bit_length() - 1
            rise, change = graph.cost(done, b)
            changes[b] = change
            if live + rise > level:
                refused = min(refused, live + rise)
            elif change <= 0:
                self._push_run(done, ready, live, ((b, change),))
                return
            else:
                moves.append((change, b))
        for change, b in moves:
            run = self._find_run(done, ready, live, b, change)
            if run:
                self._push_run(done, ready, live, run)
                return
            run = self._find_reader_set(done, ready, live, b, changes)
            if run:
                self._push_run(done, ready, live, run)
                return
        if refused < self.ceiling:
            heappush(self.heap, _RefusedStep(refused, self.states, done, ready, live))
        # The stack pops the last entry first: the smallest growth, then file order.
        moves.sort(reverse=True)
        for change, b in moves:
            after = done | 1 << b
            if after not in reached_from:
                reached_from[after] = (done, (b,))
                self.stack.append((*graph.after(done, ready, b), live + change))

    def _find_run(
        self, done: int, ready: int, live: int, b: int, change: int
    ) -> tuple[tuple[int, int], ...]:
        """A run that starts with block b and ends with at most as many live bytes as before it;
        empty if none is found."""
        graph, run, total = self.graph, [(b, change)], change
        while len(run) < LONGEST_RUN:
            done, now = graph.after(done, ready, b)
            newly_ready = now & ~ready
            ready = now
            best: tuple[int, int] | None = None
            while newly_ready:
                low = newly_ready & -newly_ready
                newly_ready ^= low
                c = low.bit_length() - 1
                rise, step = graph.cost(done, c)
                if live + total + rise <= self.level and (best is None or step < best[0]):
                    best = step, c
            if best is None:
                return ()
            total += best[0]
            b = best[1]
            run.append((b, best[0]))
            if total <= 0:
                return tuple(run)
        return ()

    def _find_reader_set(
        self, done: int, ready: int, live: int, b: int, changes: dict[int, int]
    ) -> tuple[tuple[int, int], ...]:
        """The last readers of an operand of b, if they are ready, few, and a commitment.

        A quick test comes first: the death of the operand must free at least the bytes by which
        these readers raise the live bytes.
        """
        for readers, size in self.graph.sharers[b]:
            unfinished = readers & ~done
            if unfinished & ready == unfinished and 1 < unfinished.bit_count() <= WIDEST_SET:
                written = sum(change for c, change in changes.items() if unfinished >> c & 1)
                if written <= size:
                    run = self._order_commitment(done, live, unfinished)
                    if run:
                        return run
        return ()

    def _order_commitment(self, done: int, live: int, members: int) -> tuple[tuple[int, int], ...]:
        """An order of these ready blocks with no step above the level, if their set is a
        commitment.

        Any subset of ready blocks may run first, so all subsets are checked.
        """
        graph = self.graph
        blocks = [b for b in range(members.bit_length()) if members >> b & 1]
        lives: dict[int, int] = {0: 0}
        paths: dict[int, tuple[tuple[int, int], ...]] = {0: ()}
        for subset in range(1, 1 << len(blocks)):
            for k, b in enumerate(blocks):
                if not subset >> k & 1:
                    continue
                before = subset ^ 1 << k
                state = done
                for j, c in enumerate(blocks):
                    state |= (before >> j & 1) << c
                rise, change = graph.cost(state, b)
                lives[subset] = lives[before] + change
                if before in paths and live + lives[before] + rise <= self.level:
                    paths.setdefault(subset, (*paths[before], (b, change)))
        everything = (1 << len(blocks)) - 1
        return paths.get(everything, ()) if lives[everything] <= min(lives.values()) else ()

    def _push_run(self, done: int, ready: int, live: int, run: tuple[tuple[int, int], ...]) -> None:
        before = done
        for b, change in run:
            done, ready = self.graph.after(done, ready, b)
            live += change
        if done not in self.reached_from:
            self.reached_from[done] = (before, tuple(b for b, _ in run))
            self.stack.append((done, ready, live))

    def _trace_blocks(self) -> tuple[int, ...]:
        state, parts = self.graph.everything, list[tuple[int, ...]]()
        while state:
            state, blocks = self.reached_from[state]
            parts.append(blocks)
        return tuple(b for blocks in reversed(parts) for b in blocks)
