"""What each limit of planning memory buys: halved and doubled, on random problems and on networks.

    PYTHONPATH=. python benchmarks/memory_budgets.py best | pack | order [MODELS...] [--only LIMITS]

best: `AllocatorBudget`, with which one model is planned. pack: `PackBudget`, with which the search
plans its candidates. order: `OrderBudget`, on the synthetic networks of `tests/memory`, with the
states of a caller who asks often. Each line is one limit changed: by how much the sum of all
heights (or peaks) differs from that with the limits as they are, how many problems are better and
how many worse, and how the processor's seconds compare.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.memory.network_dags import NETWORKS
from tflm_planner.memory.allocators import AllocatorOptions, best_of, packing
from tflm_planner.memory.budgets import AllocatorBudget, OrderBudget, PackBudget
from tflm_planner.memory.order import Dag, best_order
from tflm_planner.memory.problem import UNBOUNDED, Buffer, Overlap, Problem
from tflm_planner.model.serde import read_model
from tflm_planner.tflm.liveness import planning_problem, timeline_of
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tflm.targets import load_target

SEEDS = 24
TARGET = "cortex-m4/cmsis-nn"


def random_problem(seed: int) -> Problem:
    """20 to 300 buffers of a network that has branches; some results lie in an operand, or
    overlap it from a distance on."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(20, 301))
    buffers: list[Buffer] = []
    overlaps: list[Overlap] = []
    for i in range(count):
        end = i + 2 + int(rng.geometric(0.5) * rng.geometric(0.7)) - 1
        buffers.append(Buffer(f"b{i}", 16 * int(rng.integers(1, 400)), i, min(end, count + 1)))
        before = [j for j in range(max(i - 8, 0), i) if buffers[j].end == i + 1]
        draw = rng.random()
        if before and draw < 0.3:
            overlaps.append(Overlap(before[-1], i, 0, 0))
        elif before and draw < 0.6:
            least = 16 * int(rng.integers(0, 30))
            overlaps.append(Overlap(before[-1], i, least, UNBOUNDED))
    return Problem.of(tuple(buffers), tuple(overlaps))


def model_problem(path: Path) -> Problem:
    """The problem of a model as it is."""
    kernels = kernels_of(load_target(TARGET))
    timeline = timeline_of(read_model(path.read_bytes()), kernels.scratch_of)
    return planning_problem(timeline, kernels.input_overlaps_of)


@dataclass(frozen=True)
class Outcome:
    """Heights of all problems, and seconds of the processor."""

    heights: tuple[int, ...]
    seconds: float

    def told_beside(self, plain: Outcome) -> str:
        """The outcome beside that of the limits as they are."""
        pairs = list(zip(self.heights, plain.heights, strict=True))
        change = 100 * (sum(self.heights) / sum(plain.heights) - 1)
        return (
            f"{change:+.2f} %, {sum(a < b for a, b in pairs)} better, "
            f"{sum(a > b for a, b in pairs)} worse of {len(pairs)}, "
            f"x {self.seconds / plain.seconds:.2f} seconds"
        )


def outcome(solve: Callable[[Any], int], tasks: Sequence[Any]) -> Outcome:
    """All tasks solved."""
    started = time.process_time()
    heights = tuple(map(solve, tasks))
    return Outcome(heights, time.process_time() - started)


def _best(limits: AllocatorBudget) -> Callable[[Problem], int]:
    return lambda problem: best_of(problem, AllocatorOptions(budget=limits)).height


def _pack(limits: PackBudget) -> Callable[[Problem], int]:
    return lambda problem: packing.pack(problem, (), budget=limits).height(problem)


def _order(limits: OrderBudget) -> Callable[[Dag], int]:
    return lambda dag: best_order(dag, budget=limits).peak


def main() -> None:
    """Print a line for each change."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["best", "pack", "order"])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--only", nargs="*", default=[], metavar="LIMIT")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="random problems")
    given = parser.parse_args()
    plain: Any = {
        "best": AllocatorBudget(), "pack": PackBudget(), "order": OrderBudget(segment_states=20_000)
    }[given.what]  # fmt: skip
    solver: Callable[[Any], Callable[[Any], int]] = {"best": _best, "pack": _pack, "order": _order}[
        given.what
    ]
    tasks: list[Any] = [network() for network in NETWORKS.values()]
    if given.what != "order":
        tasks = [*map(random_problem, range(given.seeds)), *map(model_problem, given.models)]
    outcome(solver(plain), tasks[:1])  # compiles
    before = outcome(solver(plain), tasks)
    print(f"as they are: {sum(before.heights):,} in {before.seconds:.1f} s", flush=True)
    for name in given.only or [field.name for field in fields(plain)]:
        value = getattr(plain, name)
        if not isinstance(value, tuple):
            for text, new in (("halved", value // 2), ("doubled", value * 2)):
                after = outcome(solver(replace(plain, **{name: new})), tasks)
                print(name, text, after.told_beside(before), flush=True)


if __name__ == "__main__":
    main()
