"""Whole fronts of tilings: what ten times the budget would add, and what another target's would.

    python benchmarks/fronts.py MODELS... [--target T] [--times 10] [--max-slowdown 1.1]
    python benchmarks/fronts.py MODELS... --target cortex-m55/cmsis-nn --replay cortex-m4/cmsis-nn

A front is the (arena, slowdown) of every tiling that a search offers. Its hypervolume is the area
that it dominates below the model as it is and `--max-slowdown`; "share" is that of the default
budget beside that of both fronts together, the other with `--times` as much of everything that is
counted in work or in attempts. "free" is the smallest arena at no more instructions than the model
as it is, with either. With `--max-slowdown 1.0` a front is one arena, and "share" is the smaller of
both beside the one of the default budget.

With `--replay`, every tiling of the front for another target is evaluated on this one, in all its
orders: "here" is the best that the search for this target found, "replayed" the best of the
other's tilings. The last line is the mean. Nothing is run on a runtime: figures are those of plans.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean

from tflm_planner.support.defaults import SLOWDOWN
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tflm.targets import load_target
from tflm_planner.tiling.budget import SearchBudget
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.model_evaluations import ModelEvaluations
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.tiling.permissions import search_by_permission
from tflm_planner.tiling.tilings import Tiling, TilingResult
from tflm_planner.tiling.work import WorkBudget
from tflm_planner.transforms.schedules import Effort

COUNTED = (
    "search_work", "same_firmware_work", "same_firmware_work_large", "branches", "patch_stages",
    "unbound_retries", "neighboured_models", "climbs_among_loops", "spelled_models",
    "spelled_fully", "front_work",
    "front_batches_without_gain", "resizing_work", "finalists", "careful_work",
    "gap_work", "gap_batches_without_gain", "lower_limit_work",
    "free_parts_work", "free_gap_work", "free_gap_batches_without_gain",
    "segmentations_without_gain",
    "attempts_without_gain",
    "hotspots_of_cap", "hotspot_orders", "hotspot_work",
    "contracted_order_states", "beam_steps",
)  # fmt: skip
"""Fields of `SearchBudget` that bound how much is looked at, not what."""


def options_for(target: str, budget: SearchBudget, *, own: bool) -> TilingOptions:
    """A search with all operators, or with those that the firmware has."""
    kernels = kernels_of(load_target(target))
    operators = AllowedOperators.NONE if own else AllowedOperators.ALL
    return TilingOptions(
        kernels, kernels.input_overlaps_of, operators=operators, search_budget=budget, workers=2
    )


def hypervolume(points: Iterable[tuple[int, float]], arena: int, slowdown: float) -> float:
    """Area that the points dominate, below and left of a corner, as a share of the rectangle from
    (0 B, as fast as the model as it is) to that corner."""
    area, lowest = 0.0, arena
    for slower, size in sorted((max(slower, 1.0), size) for size, slower in points):
        if slower < slowdown and size < lowest:
            area += (lowest - size) * (slowdown - slower)
            lowest = size
    return area / (arena * (slowdown - 1.0))


def points_of(result: TilingResult) -> list[tuple[int, float]]:
    """(bytes, slowdown) of what a search offers."""
    return [(t.arena, t.slowdown) for t in (result.best, *result.front)]


def enlarged(times: int) -> SearchBudget:
    """The default budget with so many times as much of what is counted."""
    plain = SearchBudget()
    return replace(plain, **{name: getattr(plain, name) * times for name in COUNTED})


def untiled_arena(data: bytes, options: TilingOptions) -> int:
    """Bytes of the model with order and plan alone."""
    workers = Workers(data, options)
    try:
        return models_of(workers, options).untiled.arena
    finally:
        workers.close()


def models_of(workers: Workers, options: TilingOptions) -> ModelEvaluations:
    """Whole models, with work for any number of evaluations."""
    work = 1 << 40
    return ModelEvaluations(
        workers, options, len(workers.evaluator.model.main.ops), WorkBudget(work)
    )


def compare_budgets(
    path: Path, target: str, times: int, max_slowdown: float, *, own: bool
) -> float:
    """Prints a row; the share of the hypervolume."""
    data = path.read_bytes()
    plain, larger = (
        replace(options_for(target, budget, own=own), max_slowdown=max_slowdown)
        for budget in (SearchBudget(), enlarged(times))
    )
    untiled = untiled_arena(data, plain)
    fronts = [points_of(search_by_permission(data, options).result) for options in (plain, larger)]
    free = [min([untiled, *(a for a, s in points if s <= 1.0)]) for points in fronts]
    best = [min(a for a, _ in points) for points in fronts]
    if max_slowdown > 1.0:
        usual, both = (
            hypervolume(points, untiled, max_slowdown)
            for points in (fronts[0], [*fronts[0], *fronts[1]])
        )
        share = usual / both if both else 1.0
    else:
        share = min(free) / free[0]
    cells = [f"{share:.2%}", *(f"{n:,}" for pair in (best, free) for n in pair)]
    print(f"| {path.stem} | {' | '.join(cells)} |", flush=True)
    return share


def replayed(data: bytes, tilings: Sequence[Tiling], options: TilingOptions) -> int:
    """The smallest arena that tilings of another target come to, as fast as this one asks. Those of
    a model in which values were left out are not replayed."""
    workers = Workers(data, options)
    try:
        models = models_of(workers, options)
        limit = int(options.max_slowdown * models.untiled.instructions)
        for tiling in (t for t in tilings if t.subsample is None):
            respell = None if tiling.respell is None else limit
            plain = Candidate(tiling.ordered_regions, False, tiling.order, Effort.CAREFUL)
            models.add([
                replace(plain, bind_views=bound, respell=respell) for bound in (True, False)
            ])  # fmt: skip
        return models.best.arena
    finally:
        workers.close()


def compare_targets(path: Path, target: str, other: str, *, own: bool) -> float:
    """Prints a row; bytes here relative to bytes replayed."""
    data = path.read_bytes()
    here, there = (options_for(t, SearchBudget(), own=own) for t in (target, other))
    best = search_by_permission(data, here).result.best.arena
    front = search_by_permission(data, there).result.front
    least = replayed(data, front, here)
    print(f"| {path.stem} | {best:,} | {least:,} | {best / least - 1:+.2%} |", flush=True)
    return best / least


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--target", default="cortex-m4/cmsis-nn")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--max-slowdown", type=float, default=SLOWDOWN)
    parser.add_argument("--replay")
    parser.add_argument("--own", action="store_true", help="with the firmware's operators alone")
    given = parser.parse_args()
    if given.replay:
        print("| model | here | replayed | here beside replayed |\n|---|---|---|---|")
        rows = [compare_targets(m, given.target, given.replay, own=given.own) for m in given.models]
    else:
        print(f"| model | share | arena | x{given.times} | free | x{given.times} |")
        print("|---|---|---|---|---|---|")
        rows = [
            compare_budgets(m, given.target, given.times, given.max_slowdown, own=given.own)
            for m in given.models
        ]
    print(f"mean {mean(rows):.2%}")


if __name__ == "__main__":
    main()
