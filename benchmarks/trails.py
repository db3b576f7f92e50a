"""What overlaps cost in planning time, and what they gain: a Markdown table for each target.

    PYTHONPATH=. python benchmarks/trails.py FILES_OR_FOLDERS... [--target T ...] [--random N]

Planning time is processor time of ordering and packing (least of three runs where they are
short), with a fresh machine each: nothing is remembered from an earlier model. `ratio` is with
overlaps to without; times below 50 ms are not counted in the summary. `proved`: no plan of that
order is lower.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tflm_planner.pipeline import api
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.pipeline.planning.memory_search import plan_memory
from tflm_planner.support.errors import PlannerError

TARGETS = ["x86-64/reference", "cortex-m4/cmsis-nn", "cortex-m55/cmsis-nn"]
COLUMNS = [
    "model", "operators", "trails", "apart B", "overlapping B", "saved", "bound B", "proved",
    "apart ms", "overlapping ms", "ratio",
]  # fmt: skip
COUNTED = 0.05
"""Seconds from which on a ratio counts."""


@dataclass(frozen=True)
class Outcome:
    """One plan. seconds: of the processor, for ordering and packing."""

    operators: int
    input_overlaps: int
    height: int
    bound: int
    optimal: bool
    seconds: float


def sources(paths: list[Path], random: int) -> Iterator[tuple[str, bytes]]:
    """(name, model) of all files named or below the folders named, then of random models."""
    for path in paths:
        for file in sorted(path.rglob("*.tflite")) if path.is_dir() else [path]:
            yield file.stem, file.read_bytes()
    if random:
        from tests.models.generator import random_model

        for seed in range(random):
            yield f"random {seed}", random_model(seed)


def outcome(data: bytes, target: str, *, overlap: bool, time_limit: float | None) -> Outcome:
    """Plan a model up to three times, while that is quick."""
    least: Outcome | None = None
    for _ in range(3):
        model = api.read_model(data)
        kernels = api.kernels_of(api.load_target(target))
        options = MemoryOptions(kernels=kernels, overlap=overlap, time_limit=time_limit)
        begun = time.process_time()
        found = plan_memory(model, options)
        seconds = time.process_time() - begun
        solution, loose = found.solution, [o for o in found.problem.overlaps if not o.is_alias]
        if least is None or seconds < least.seconds:
            least = Outcome(
                len(list(model.ops())), len(loose), solution.height, solution.lower_bound,
                solution.optimal, seconds,
            )  # fmt: skip
        if seconds > 1:
            break
    assert least is not None
    return least


def row(name: str, apart: Outcome, over: Outcome) -> str:
    """One line of the table."""
    cells = [
        name,
        f"{over.operators}",
        f"{over.input_overlaps}",
        f"{apart.height:,}",
        f"{over.height:,}",
        f"{100 * (1 - over.height / max(apart.height, 1)):.1f} %",
        f"{over.bound:,}",
        "yes" if over.optimal else f"gap {over.height - over.bound:,}",
        f"{apart.seconds * 1000:.1f}",
        f"{over.seconds * 1000:.1f}",
        f"{over.seconds / max(apart.seconds, 1e-9):.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print a table for each target, and the ratios that count."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--target", action="append")
    parser.add_argument("--random", type=int, default=0, metavar="N")
    parser.add_argument("--time-limit", type=float, default=None)
    given = parser.parse_args()
    for target in given.target or TARGETS:
        print(f"\n{target}\n\n| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
        total = [0.0, 0.0]
        slow: list[str] = []
        for name, data in sources(given.paths, given.random):
            try:
                apart, over = (
                    outcome(data, target, overlap=overlap, time_limit=given.time_limit)
                    for overlap in (False, True)
                )
            except PlannerError as error:
                print(f"| {name} | {error} |")
                continue
            print(row(name, apart, over), flush=True)
            total = [total[0] + apart.seconds, total[1] + over.seconds]
            if over.seconds > max(COUNTED, 1.5 * apart.seconds):
                slow.append(f"{name} ({over.seconds / apart.seconds:.2f})")
        print(f"\nall: {total[0]:.2f} s apart, {total[1]:.2f} s overlapping")
        print(f"above 1.5 and {COUNTED * 1000:.0f} ms: {', '.join(slow) or 'none'}")


if __name__ == "__main__":
    main()
