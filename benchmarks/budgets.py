"""What a budget of bytes gets: how much slower a model becomes that must fit, by the default search
and by one with ten times as much of everything that is counted.

    python -m benchmarks.budgets MODELS... [--target T] [--times 10] [--parts 4] [--own]

The budgets of a model lie at equal distances between the smallest arena that the default search
finds and that of order and plan alone, both left out: with `--parts 4` at a quarter, a half and
three quarters. A search is made for each, as `tflm-plan --budget` does; "2.31 % (60,112 B)" is the
fastest tiling within the budget, "-" says that none fits. The last line is the mean of what the
larger search would save, in points of per cent. Nothing is run on a runtime: figures are those of
plans.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from statistics import mean

from benchmarks.fronts import enlarged, options_for, untiled_arena
from tflm_planner.tiling.budget import SearchBudget
from tflm_planner.tiling.permissions import search_by_permission
from tflm_planner.tiling.tilings import Tiling


def budgets_between(smallest: int, largest: int, parts: int) -> list[int]:
    """Bytes at equal distances between two arenas, both left out."""
    return [smallest + (largest - smallest) * n // parts for n in range(1, parts)]


def best_within(data: bytes, target: str, search: SearchBudget, limit: int, *, own: bool) -> Tiling:
    """The best tiling for an arena of at most `limit` bytes; the smallest if none fits."""
    options = replace(options_for(target, search, own=own), arena_limit=limit)
    return search_by_permission(data, options).result.best


def cell(tiling: Tiling, limit: int) -> str:
    """How much slower, and in how many bytes."""
    return f"{tiling.slowdown - 1:.2%} ({tiling.arena:,} B)" if tiling.arena <= limit else "-"


def compare(path: Path, target: str, times: int, parts: int, *, own: bool) -> list[float]:
    """Prints a row for each budget; the slowdown that the larger search saves within each that both
    keep."""
    data = path.read_bytes()
    options = options_for(target, SearchBudget(), own=own)
    smallest = search_by_permission(data, options).result.best.arena
    saved: list[float] = []
    for limit in budgets_between(smallest, untiled_arena(data, options), parts):
        usual, larger = (
            best_within(data, target, search, limit, own=own)
            for search in (SearchBudget(), enlarged(times))
        )
        print(
            f"| {path.stem} | {limit:,} | {cell(usual, limit)} | {cell(larger, limit)} |",
            flush=True,
        )
        if max(usual.arena, larger.arena) <= limit:
            saved.append(usual.slowdown - larger.slowdown)
    return saved


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--target", default="cortex-m4/cmsis-nn")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--own", action="store_true", help="with the firmware's operators alone")
    given = parser.parse_args()
    print(f"| model | budget | slower | x{given.times} |\n|---|---|---|---|")
    saved = [
        points
        for path in given.models
        for points in compare(path, given.target, given.times, given.parts, own=given.own)
    ]
    print(f"mean {100 * mean(saved):.2f} points")


if __name__ == "__main__":
    main()
