"""Exact search: the smallest bottleneck on a path through the states of a segment.

This module knows a `Board` and bytes. The states are the down-sets of the blocks (Serenity,
Ahn et al. 2020, section 3.1, solves the same lattice by dynamic programming under a budget that
it guesses). Here the budget needs no guess: states are explored in the order of the peak that it
takes to reach them (Dijkstra with max for plus). All states of one *level* are explored depth
first before the level rises to the cheapest step refused so far, so

- no state is explored twice at one level;
- the level is at any time a lower bound, which a search out of budget still returns;
- where the level holds already (a slack segment, a tight bound) the first dive is the answer.

*Commitment.* In state S at level L let X be a set of blocks that can be run with no step above L,
such that live(S + X) <= live(S + Y) for every Y that could come between (dependences closed).
Then X may be run at once and all other choices in S dropped. Proof: live is submodular, live(A) +
live(B) >= live(A + B) + live(A & B), as it is a sum of size * ([written in A] - [written and all
read in A]). Take any completion P0 = S, P1, ... and run X, then P's other blocks in P's order.
With B = S + X: live(P_i + B) <= live(P_i) + live(B) - live(P_i & B) <= live(P_i). A block in state
P_i + B writes and needs as much as in P_i, and absorbs no less since an operand that dies at it
in P_i dies at it here. So no later step is higher than it was. Levels only rise, and the optimum
is at least the level, so a commitment stands for good.

Sets tried are single blocks; runs in which each block waits for the one before it, so that every
Y is a prefix; and the last readers of one tensor, all ready, so that every Y is a subset.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

from tflm_planner.memory.order.clock import Clock
from tflm_planner.memory.order.fusing import BitGraph

LONGEST_RUN, WIDEST_SET = 6, 4
"""Blocks that a commitment looks at."""


@dataclass(frozen=True, slots=True)
class ExactResult:
    """What an exact search knows when it ends."""

    blocks: tuple[int, ...] | None
    """An order below the ceiling that is optimal, or None."""
    bound: int
    """No order has a smaller peak."""
    complete: bool
    """The order is optimal, or nothing lies below the ceiling."""
    states: int
    """States explored."""


class _RefusedStep(NamedTuple):
    """A state with a step that is above the level. level: the lowest that allows one. number:
    breaks ties, by when the state was explored."""

    level: int
    number: int
    done: int
    ready: int
    live: int


class ExactSearch:
    """Explores the states of one board; `run` may be called again with a larger budget."""

    def __init__(self, board: BitGraph, *, level: int, ceiling: int) -> None:
        self.board = board
        self.level = level
        self.ceiling = ceiling
        self.states = 0
        self.reached_from: dict[int, tuple[int, tuple[int, ...]]] = {}
        """State -> (the state before it, the blocks run in between)."""
        self.stack = [(0, board.ready, board.start)]
        self.heap: list[_RefusedStep] = []
        self.reached_from[0] = (0, ())

    def run(self, budget: int, clock: Clock) -> ExactResult:
        """Explores until the end is reached, nothing is left below the ceiling, or the budget
        (states) or the time is spent.
        """
        end = self.board.everything
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
        board, reached_from, level = self.board, self.reached_from, self.level
        moves: list[tuple[int, int]] = []
        changes: dict[int, int] = {}
        refused = self.ceiling
        left = ready
        while left:
            low = left & -left
            left ^= low
            b = low.bit_length() - 1
            rise, change = board.cost(done, b)
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
        # The stack pops the last: prefer what grows least, then file order.
        moves.sort(reverse=True)
        for change, b in moves:
            after = done | 1 << b
            if after not in reached_from:
                reached_from[after] = (done, (b,))
                self.stack.append((*board.after(done, ready, b), live + change))

    def _find_run(
        self, done: int, ready: int, live: int, b: int, change: int
    ) -> tuple[tuple[int, int], ...]:
        """A run from block b on that ends with no more live than it began with, or nothing."""
        board, run, total = self.board, [(b, change)], change
        while len(run) < LONGEST_RUN:
            done, now = board.after(done, ready, b)
            newly_ready = now & ~ready
            ready = now
            best: tuple[int, int] | None = None
            while newly_ready:
                low = newly_ready & -newly_ready
                newly_ready ^= low
                c = low.bit_length() - 1
                rise, step = board.cost(done, c)
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

        A quick test comes first: the operand's death must free at least the bytes that they write,
        one after the other.
        """
        for readers, size in self.board.sharers[b]:
            unfinished = readers & ~done
            if unfinished & ready == unfinished and 1 < unfinished.bit_count() <= WIDEST_SET:
                written = sum(change for c, change in changes.items() if unfinished >> c & 1)
                if written <= size:
                    run = self._order_commitment(done, live, unfinished)
                    if run:
                        return run
        return ()

    def _order_commitment(self, done: int, live: int, members: int) -> tuple[tuple[int, int], ...]:
        """An order of ready blocks with no step above the level, if their set is a commitment.

        Any subset of ready blocks may come between, so that all are looked at.
        """
        board = self.board
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
                rise, change = board.cost(state, b)
                lives[subset] = lives[before] + change
                if before in paths and live + lives[before] + rise <= self.level:
                    paths.setdefault(subset, (*paths[before], (b, change)))
        everything = (1 << len(blocks)) - 1
        return paths.get(everything, ()) if lives[everything] <= min(lives.values()) else ()

    def _push_run(self, done: int, ready: int, live: int, run: tuple[tuple[int, int], ...]) -> None:
        before = done
        for b, change in run:
            done, ready = self.board.after(done, ready, b)
            live += change
        if done not in self.reached_from:
            self.reached_from[done] = (before, tuple(b for b, _ in run))
            self.stack.append((done, ready, live))

    def _trace_blocks(self) -> tuple[int, ...]:
        state, parts = self.board.everything, list[tuple[int, ...]]()
        while state:
            state, blocks = self.reached_from[state]
            parts.append(blocks)
        return tuple(b for blocks in reversed(parts) for b in blocks)
