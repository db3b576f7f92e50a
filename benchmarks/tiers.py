"""What each tier of planning reaches, model by model, and how far from the limits: Markdown.

    python benchmarks/tiers.py [--target T ...] [--objective head] MODELS...

Bytes of arena, and of the head in brackets:

    stock        TFLM plans by itself
    order+plan   operators ordered, tensors packed, no two live ones share memory
    +overlap     results in place of operands, views, and results that trail operands
    own          with tiles, in firmware as it is, the smallest that the search with all
                 operators came across: the objective's bytes
    all          with tiles and loops, all operators allowed; written, and proved on the runtimes

Limits of the head: L0 the inputs; L1 live bytes in the file's order; L2 the same in the best
order known; L3 results may trail operands by nothing (order of the file); L4 rows streamed
through intervals of operators, nothing recomputed and nothing copied, the best partition (a value
that some runtime could reach, not a proof). Limit of the arena on the firmware as it is: L5 is L4
with the tail that the operators take as they are, once they are cleaned up, to which tiles and
loops only add. gap: the smallest arena beside L5.
real: whether TFLM on this machine reported the head and the tail that were predicted for it, and
outputs were equal. seconds: of the whole search, by the clock.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from tflm_planner.memory.allocators import AllocatorOptions, best_of
from tflm_planner.memory.budgets import OrderBudget
from tflm_planner.memory.order import Dag, OrderResult, best_order
from tflm_planner.memory.problem import Problem
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.pipeline.inspection.inspect_model import inspect_model
from tflm_planner.report.document import Report
from tflm_planner.support.errors import PlannerError
from tflm_planner.tflm.arena.predict import Arena, arena_of
from tflm_planner.tflm.liveness import planning_problem, timeline_of
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.tiling.estimate.schedule import LinearSchedule
from tflm_planner.tiling.estimate.tiles import EstimateLimits, estimate_tiles
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.tiling.segmentation import InTiles, Segment, Segmenter, SegmentKey
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.reorder import Reorder

COLUMNS = [
    "model", "operators", "stock", "order+plan", "+overlap", "own", "slower", "all", "slower",
    "MACs", "L0", "L1", "L2", "L3", "L4", "L5", "gap", "real", "seconds",
]  # fmt: skip
_FREE = 1 << 60


def fresh(data: bytes, *, merges: bool = True) -> Model:
    """The model, cleaned up. merges: chains of operators that move elements, too."""
    model = read_model(data)
    run(model, Normalize(merges))
    return model


def apart(data: bytes, on: TargetKernels, *, merges: bool = True) -> tuple[Arena, int]:
    """The arena when no two live tensors share memory, and the lowest peak of an order known."""
    best: Arena | None = None
    peaks: list[int] = []

    def find(dag: Dag) -> OrderResult:
        plain = dag.with_nodes(tuple(replace(n, absorbs=()) for n in dag.nodes))
        found = best_order(plain, budget=OrderBudget(segment_states=100_000))
        peaks.append(found.peak)
        return found

    for ordered in (False, True):
        model = fresh(data, merges=merges)
        if ordered:
            Reorder(find, on.scratch_of).results(model)
        line = timeline_of(model, on.scratch_of)
        problem = Problem.of(planning_problem(line).buffers)
        plan = best_of(problem, AllocatorOptions(("local",))).plan
        offsets = dict(zip(line.planned, plan.offsets, strict=False))
        found = arena_of(model, on.target, offsets)
        best = found if best is None or found.arena < best.arena else best
    assert best is not None
    return best, max(peaks, default=0)


def streamed(data: bytes, on: TargetKernels) -> int:
    """L4."""
    model = fresh(data)
    schedule = LinearSchedule(
        model, range(len(model.main.ops)), TilingOptions(on, on.input_overlaps_of)
    )
    segmenter = Segmenter(schedule.live_bytes, _FREE)
    ends = schedule.narrow_positions if len(schedule) > 120 else list(range(len(schedule) + 1))
    for end in ends[1:]:
        (result, *_) = schedule.ops[end - 1].outputs
        shape = result.shape or ()
        axis = next((a for a, n in enumerate(shape) if n > 1), None)
        firsts = [p for p in ends if end - 40 <= p < end]
        if axis is not None:
            limits = EstimateLimits(_FREE, _FREE)
            for s in estimate_tiles(schedule, end, axis, [shape[axis]], firsts, limits, "rows"):
                key = SegmentKey(s.interval, InTiles(s.split, "recompute"))
                segmenter.add(Segment(key, s.head, 0, 0))
    return next(
        (cap for cap in segmenter.head_caps() if segmenter.best(cap)), max(schedule.live_bytes)
    )


def tiled(data: bytes, on: TargetKernels, given: argparse.Namespace) -> Report:
    """The model in tiles and loops, proved."""
    tiles = api.TilePermission(
        max_slowdown=given.max_slowdown, operators=api.AllowedOperators.ALL,
        objective=given.objective, method=given.search, workers=given.workers,
    )  # fmt: skip
    memory = api.MemoryOptions(kernels=on, time_limit=given.time_limit)
    options = api.PlanOptions(memory, tiles=tiles, verify=api.VerifyOptions(inputs=2))
    return api.plan(data, options=options).report


def row(path: Path, on: TargetKernels, given: argparse.Namespace) -> str:
    """One line of the table."""
    data = path.read_bytes()
    stock = inspect_model(read_model(data), on)
    plain, peak = apart(data, on)
    memory = api.MemoryOptions(kernels=on)
    overlap = api.plan(data, options=api.PlanOptions(memory, verify=None)).report.after.arena
    report = tiled(data, on, given)
    after, host = report.after, report.after.host
    same = (host.measured_head, host.measured_tail) == (
        host.predicted_head,
        host.predicted_tail,
    )
    assert report.front is not None
    own = min((p for p in report.front.points if not p.added), key=lambda p: p.size)
    chosen = next(p for p in report.front.points if p.role == "chosen")
    floor = streamed(data, on)
    limits = (
        stock.limits.input_bytes,
        stock.limits.file_order_bytes,
        peak,
        stock.limits.overlap_bytes,
        floor,
    )
    least = min(plain.arena, overlap.arena, own.size, after.arena.arena)
    firmware_limit = floor + min(stock.arena.tail, plain.tail)
    cells = [
        path.stem, f"{len(stock.model.main.ops)}", _bytes(stock.arena), _bytes(plain),
        _bytes(overlap), f"{own.size:,}", _more(own.slowdown), _bytes(after.arena),
        _more(chosen.slowdown), _more(after.macs / max(report.before.macs, 1)),
        *(f"{n or 0:,}" for n in (*limits, firmware_limit)),
        f"{100 * (least / max(firmware_limit, 1) - 1):+.0f} %",
        "=" if same and report.verified else "NO", f"{report.seconds['plan']:.0f}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _more(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"


def _bytes(found: Arena) -> str:
    return f"{found.arena:,} ({found.head:,})"


def main() -> None:
    """Print a table for each target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--target", action="append")
    parser.add_argument("--objective", choices=("arena", "head"), default="arena")
    parser.add_argument("--search", choices=("regions", "motes"), default="regions")
    parser.add_argument("--max-slowdown", type=float, default=1.10)
    parser.add_argument("--time-limit", type=float, default=None)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    for target in given.target or ["cortex-m4/cmsis-nn", "x86-64/wheel"]:
        on = api.kernels_of(api.load_target(target))
        print(f"\n{target}\n\n| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
        for path in given.models:
            try:
                print(row(path, on, given), flush=True)
            except PlannerError as error:
                print(f"| {path.stem} | {error} |", flush=True)


if __name__ == "__main__":
    main()
