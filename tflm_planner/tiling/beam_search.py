"""MOTES's search: a memory-bottleneck-aware beam (Algorithm 1, section 4.5), as it stands there.

    state P   schemes p = (S, A, V_I, V_O, n): disjoint regions along one axis in n parts
    step      find the bottleneck of each state's schedule; add every scheme of the cell that holds
              it, along every axis that holds it; keep the `width` best (LessThen)

`Schedule` is reverse post-order. LessThen compares bytes first among states that keep the latency,
and latency first otherwise. A cell that was split is not looked at again. Ours are the bytes (the
arena of the target; `objective="head"` is the paper's), and that schemes are kept only where the
operators can compute their tiles exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tflm_planner.model.ir import Op
from tflm_planner.tiling.evaluate.candidate import (
    CAREFUL,
    FIRST_FITS,
    Candidate,
    if_permitted,
    tiling_of,
)
from tflm_planner.tiling.evaluate.evaluator import EvaluationRequest
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.options import (
    Progress,
    Tiling,
    TilingOptions,
    TilingResult,
    pareto_fronts,
    silent,
    slower_front,
)
from tflm_planner.tiling.segments import SCHEDULES, added_work
from tflm_planner.transforms.axis_graph import Axis, axis_graph, cells
from tflm_planner.transforms.tile.tile import TiledRegion

MOST_STEPS = 12
"""The paper needs "generally less than 5"."""


@dataclass(frozen=True)
class _BeamState:
    trial: Candidate
    tiling: Tiling
    rest: frozenset[int]
    """Cells that are not split yet (C_rest)."""


class BeamSearch:
    """One search. `found()` is good at any time, also after StoppedError in `run()`."""

    def __init__(self, options: TilingOptions, workers: Workers) -> None:
        self._options, self._workers = options, workers
        model = workers.bench.model
        self._ops = model.main.ops
        self._cells = cells(model.main)
        self._used = frozenset(op.kind for op in model.ops())
        self._kept = {id(t) for t in model.main.outputs}
        self._position = {id(op): i for i, op in enumerate(self._ops)}
        start = Candidate((), options.dialect, effort=FIRST_FITS, schedule="rpo")
        (plain,) = workers.answers([EvaluationRequest(start)])
        assert plain is not None, "the model itself is always possible"
        self._base = plain.instructions
        tiling = tiling_of(start, plain, options, self._base)
        self._start = _BeamState(start, tiling, frozenset(range(len(self._cells))))
        self._found = [self._start]
        self._seen = {start}
        self._work = options.most_work

    def found(self) -> TilingResult:
        """What there is so far."""
        allowed = [s.tiling for s in self._found if s.tiling.overhead <= self._options.overhead]
        best = min(allowed, key=lambda t: t.rank)
        for other in allowed:
            best = other if other.beats(best, self._options.budget) else best
        front = pareto_fronts(allowed)
        slower = slower_front(front, (s.tiling for s in self._found))
        return TilingResult(best, front, len(self._seen), slower)

    def run(self, say: Progress = silent) -> None:
        """Algorithm 1, then its best state planned with care. Raises StoppedError."""
        states = [self._start]
        for _ in range(MOST_STEPS):
            states = self._step(states)
            if not states:
                break
            best = self.found().best
            say(f"MOTES: {best.bytes:,} B, {len(self._seen)} states scheduled")
        ranked = sorted(self._found, key=lambda s: _less_than(s, self._options.overhead))
        careful = [
            (replace(s.trial, effort=CAREFUL, schedule=how), s.rest)
            for s in ranked[: self._options.width]
            for how in SCHEDULES
        ]
        self._found += self._made(careful)

    def _step(self, states: list[_BeamState]) -> list[_BeamState]:
        """Lines 5 to 17: all states with one scheme more, the `width` best of them."""
        moves: list[tuple[Candidate, frozenset[int]]] = []
        for state in states:
            cell = self._cell_of(state)
            if cell is None:
                continue
            for scheme in self._schemes(self._cells[cell], state.tiling.bottleneck):
                schemes = tuple(sorted((*state.trial.schemes, scheme), key=lambda s: s.ops))
                trial = Candidate(schemes, state.trial.bound, effort=FIRST_FITS, schedule="rpo")
                if trial not in self._seen and self._work > 0:
                    self._work -= len(self._ops) + sum(map(added_work, schemes))
                    self._seen.add(trial)
                    moves.append((trial, state.rest - {cell}))
        made = self._made(moves)
        self._found += made
        made.sort(key=lambda s: _less_than(s, self._options.overhead))
        return made[: self._options.width]

    def _made(self, moves: Sequence[tuple[Candidate, frozenset[int]]]) -> list[_BeamState]:
        """States of trials with the cells that are left, as far as they are permitted."""
        answers = self._workers.answers([EvaluationRequest(t) for t, _ in moves])
        made: list[_BeamState] = []
        for (trial, rest), answer in zip(moves, answers, strict=True):
            outcome = if_permitted(answer, self._options, self._used)
            if outcome is not None:
                tiling = tiling_of(trial, outcome, self._options, self._base)
                made.append(_BeamState(trial, tiling, rest))
        return made

    def _cell_of(self, state: _BeamState) -> int | None:
        """The cell with the bottleneck, if it is whole still."""
        peak = state.tiling.bottleneck
        if peak is None:
            return None
        op = self._ops[peak]
        return next((c for c in state.rest if any(o is op for o in self._cells[c])), None)

    def _schemes(self, cell: list[Op], peak: int | None) -> Iterator[TiledRegion]:
        """GenSchemes of every axis of the cell with the bottleneck on it."""
        if peak is None:
            return
        touched = {*self._ops[peak].operands(), *self._ops[peak].outputs}
        for axis in axis_graph(cell).connected():
            if axis.sizes and any(v.tensor in touched for v in axis.vertices):
                yield from self._along(cell, axis, peak)

    def _along(self, cell: list[Op], axis: Axis, peak: int) -> Iterator[TiledRegion]:
        """The operators around the bottleneck whose results lie on the axis, in `factors` of its
        length."""
        at = {v.tensor: v.axis - 1 for v in axis.vertices if v.axis > 0}
        ops = [op for op in cell if op.outputs and all(t in at for t in op.outputs)]
        if all(op is not self._ops[peak] for op in ops):
            return
        inner = {id(op) for op in ops}
        borders = {
            at[t]
            for op in ops
            for t in op.outputs
            if id(t) in self._kept or any(id(c) not in inner for c in t.consumers)
        }
        positions = tuple(self._position[id(op)] for op in ops)
        for n in _factors(min(axis.sizes)):
            for index in borders:
                for border in self._options.borders(self._used):
                    yield TiledRegion(positions, ((index, n),), border=border)
                    if self._options.allows("CONCATENATION", self._used):  # figure 7 (e)
                        yield TiledRegion(positions, ((index, n),), "merge", border)


def _less_than(state: _BeamState, allowed: float) -> tuple[float, ...]:
    """LessThen: bytes first where the latency is kept, else latency first."""
    tiling = state.tiling
    if tiling.overhead <= allowed:
        return (0, tiling.bytes, tiling.overhead)
    return (1, tiling.overhead, tiling.bytes)


def _factors(size: int) -> list[int]:
    return [n for n in range(2, size + 1) if size % n == 0]
