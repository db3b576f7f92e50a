"""MOTES's search: a memory-bottleneck-aware beam (Algorithm 1, section 4.5), as published.

    state P   schemes p = (S, A, V_I, V_O, n): disjoint regions, each in n parts along one axis
    step      find the bottleneck operator of each state; add every region of the cell that has it,
              along every axis that has it; keep the `width` best states (LessThen)

The paper's `Schedule` is reverse post-order. LessThen compares bytes first among states within the
permitted latency, and latency first among others. A cell is split once only. Two things differ from
the paper: the bytes are the arena of the target (`objective="head"` gives the paper's), and a
region is used only if its operators can compute their tiles exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tflm_planner.model.ir import Op
from tflm_planner.support.progress import Progress, silent
from tflm_planner.tiling.evaluate.candidate import Candidate, if_permitted, tiling_of
from tflm_planner.tiling.evaluate.evaluator import EvaluationRequest
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.tiling.segments import TILE_ORDERS, added_work
from tflm_planner.tiling.tilings import (
    Tiling,
    TilingResult,
    best_tiling,
    pareto_fronts,
    slower_front,
)
from tflm_planner.tiling.trials import trials_of
from tflm_planner.transforms.axis_graph import Axis, axis_graph, cells
from tflm_planner.transforms.schedules import Effort
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion


@dataclass(frozen=True)
class _TilingState:
    """A candidate, its figures, and the cells that are not split yet (C_rest)."""

    candidate: Candidate
    tiling: Tiling
    unsplit_cells: frozenset[int]


class BeamSearch:
    """One beam search. `result()` may be called at any time, also after StoppedError in `run()`."""

    def __init__(self, options: TilingOptions, workers: Workers) -> None:
        self._options, self._workers = options, workers
        model = workers.evaluator.model
        self._ops = model.main.ops
        self._cells = cells(model.main)
        self._used_kinds = workers.evaluator.used_kinds
        self._model_outputs = {*model.main.outputs}
        self._position = {op: i for i, op in enumerate(self._ops)}
        start = Candidate((), options.dialect, effort=Effort.FIRST_FITS, tile_order="rpo")
        (untiled,) = workers.evaluate([EvaluationRequest(start)])
        assert untiled is not None, "the model itself is always possible"
        self._original_instructions = untiled.instructions
        tiling = tiling_of(start, untiled, options, self._original_instructions)
        self._start = _TilingState(start, tiling, frozenset(range(len(self._cells))))
        self._states = [self._start]
        self._seen = {start}
        self._work_left = math.inf if options.work_limit is None else options.work_limit

    def result(self) -> TilingResult:
        """The tilings so far."""
        most = self._options.max_slowdown
        tilings = [s.tiling for s in self._states]
        allowed, slower = ([t for t in tilings if (t.slowdown > most) == s] for s in (False, True))
        front = pareto_fronts(allowed)
        trials = trials_of(self._ops, allowed, slower)
        past = slower_front(front, tilings)
        return TilingResult(self._best(allowed), front, len(self._seen), past, trials)

    def _best(self, allowed: Sequence[Tiling]) -> Tiling:
        smallest = min(allowed, key=lambda t: t.rank)
        return best_tiling([smallest, *allowed], self._options.arena_limit)

    def run(self, on_progress: Progress = silent) -> None:
        """Run Algorithm 1, then plan its best states with more effort. Raises StoppedError."""
        states = [self._start]
        for _ in range(self._options.search_budget.beam_steps):
            states = self._step(states)
            if not states:
                break
            best = self.result().best
            on_progress(f"MOTES: {best.bytes:,} B, {len(self._seen)} states scheduled")
        ranked = sorted(self._states, key=lambda s: _less_than(s, self._options.max_slowdown))
        careful = [
            (replace(s.candidate, effort=Effort.CAREFUL, tile_order=tile_order), s.unsplit_cells)
            for s in ranked[: self._options.width]
            for tile_order in TILE_ORDERS
        ]
        self._states += self._evaluate(careful)

    def _step(self, states: list[_TilingState]) -> list[_TilingState]:
        """Lines 5 to 17: extend each state by one region in all ways; returns the `width` best."""
        moves: list[tuple[Candidate, frozenset[int]]] = []
        for state in states:
            cell = self._bottleneck_cell(state)
            if cell is None:
                continue
            for region in self._regions(self._cells[cell], state.tiling.bottleneck):
                regions = tuple(sorted((*state.candidate.regions, region), key=lambda r: r.ops))
                bind_views = state.candidate.bind_views
                candidate = Candidate(
                    regions, bind_views, effort=Effort.FIRST_FITS, tile_order="rpo"
                )
                if candidate not in self._seen and self._work_left > 0:
                    self._work_left -= len(self._ops) + sum(map(added_work, regions))
                    self._seen.add(candidate)
                    moves.append((candidate, state.unsplit_cells - {cell}))
        reached = self._evaluate(moves)
        self._states += reached
        reached.sort(key=lambda s: _less_than(s, self._options.max_slowdown))
        return reached[: self._options.width]

    def _evaluate(self, moves: Sequence[tuple[Candidate, frozenset[int]]]) -> list[_TilingState]:
        """The states of candidates that are possible and permitted, each with its unsplit cells."""
        requests = [EvaluationRequest(candidate) for candidate, _ in moves]
        states: list[_TilingState] = []
        for (candidate, unsplit), outcome in zip(
            moves, self._workers.evaluate(requests), strict=True
        ):
            evaluation = if_permitted(outcome, self._options, self._used_kinds)
            if evaluation is not None:
                original = self._original_instructions
                tiling = tiling_of(candidate, evaluation, self._options, original)
                states.append(_TilingState(candidate, tiling, unsplit))
        return states

    def _bottleneck_cell(self, state: _TilingState) -> int | None:
        """The cell with the bottleneck; None if there is no bottleneck, or its cell is already
        split."""
        bottleneck = state.tiling.bottleneck
        if bottleneck is None:
            return None
        op = self._ops[bottleneck]
        return next((c for c in state.unsplit_cells if any(o is op for o in self._cells[c])), None)

    def _regions(self, cell: list[Op], bottleneck: int | None) -> Iterator[TiledRegion]:
        """GenSchemes for every axis of the cell to which a tensor of the bottleneck belongs."""
        if bottleneck is None:
            return
        op = self._ops[bottleneck]
        touched = {*op.operands(), *op.outputs}
        for axis in axis_graph(cell).axes():
            if axis.sizes and any(v.tensor in touched for v in axis.vertices):
                yield from self._regions_along(cell, axis, bottleneck)

    def _regions_along(self, cell: list[Op], axis: Axis, bottleneck: int) -> Iterator[TiledRegion]:
        """The operators of the cell whose results lie on the axis, if the bottleneck is one of
        them, in every number of parts that divides the axis' length."""
        axis_of = {v.tensor: v.axis - 1 for v in axis.vertices if v.axis > 0}
        ops = [op for op in cell if op.outputs and all(t in axis_of for t in op.outputs)]
        if all(op is not self._ops[bottleneck] for op in ops):
            return
        inner = {*ops}
        result_axes = {
            axis_of[t]
            for op in ops
            for t in op.outputs
            if t in self._model_outputs or any(c not in inner for c in t.consumers)
        }
        positions = tuple(self._position[op] for op in ops)
        for parts in _divisors(min(axis.sizes)):
            for splits in ((Split(index, parts),) for index in result_axes):
                for border in self._options.borders(self._used_kinds):
                    yield TiledRegion(positions, splits, border=border)
                    if self._options.allows("CONCATENATION", self._used_kinds):  # figure 7 (e)
                        yield TiledRegion(positions, splits, "merge", border)


def _less_than(state: _TilingState, max_slowdown: float) -> tuple[float, ...]:
    """LessThen as a sort key: bytes first within the permitted latency, else latency first."""
    tiling = state.tiling
    if tiling.slowdown <= max_slowdown:
        return (0, tiling.bytes, tiling.slowdown)
    return (1, tiling.slowdown, tiling.bytes)


def _divisors(size: int) -> list[int]:
    return [n for n in range(2, size + 1) if size % n == 0]
