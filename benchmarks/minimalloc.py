"""The MiniMalloc set: how fast our exact allocator packs each problem into its capacity.

    python benchmarks/minimalloc.py DIR [--time-limit 120] [--lower D J]

DIR holds the eleven problems of google/minimalloc (benchmarks/challenging); the capacity is in
each file's name. Every problem is solved on one core. All times are of the processor, so that
other work on the machine does not count; the time to load or compile the search is given apart.
`--lower` then goes on below the capacity for the named problems.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from tflm_planner.memory.allocators import exact
from tflm_planner.memory.allocators.greedy import GreedyPlacer
from tflm_planner.memory.allocators.items import Items, bind
from tflm_planner.memory.allocators.sections import sections_of
from tflm_planner.memory.bounds import lower_bound
from tflm_planner.memory.minimalloc_csv import read_csv
from tflm_planner.memory.problem import Plan, Problem, validate


def main() -> None:
    """Parse, solve, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("dir", type=Path, help="folder with the CSV files")
    parser.add_argument(
        "--time-limit", type=float, default=120.0, help="processor seconds for each problem"
    )
    parser.add_argument("--lower", nargs="*", default=[], help="problems to take below capacity")
    args = parser.parse_args()
    begun = time.process_time()
    exact.warm_up()
    print(f"loading the compiled search: {time.process_time() - begun:.2f} s\n")
    print("problem  buffers   capacity  first fit     height    gap   seconds      nodes")
    total, reached = 0.0, 0
    files = sorted(args.dir.glob("*.csv"))
    for path in files:
        seconds, found = _solve(path, args.time_limit)
        total, reached = total + seconds, reached + found
    print(f"\n{reached} of {len(files)} at capacity in {total:.2f} s")
    for path in files:
        if path.name.split(".")[0] in args.lower:
            _lower(path, args.time_limit)


def _solve(path: Path, time_limit: float) -> tuple[float, bool]:
    name, capacity = path.name.split(".")[0], int(path.name.split(".")[1])
    problem = read_csv(path)
    begun = time.process_time()
    items = bind(problem, ())
    attempt = exact.Attempt(sections_of(items), capacity)
    while not attempt.advance() and time.process_time() - begun < time_limit:
        pass
    seconds = time.process_time() - begun
    first = _first_fit(items)
    offsets = attempt.offsets if attempt.offsets is not None else first
    plan = Plan(tuple(offsets))
    _check(problem, plan)
    height = plan.height(problem)
    print(
        f"{name:<7} {len(problem.buffers):>8} {capacity:>10,} "
        f"{Plan(tuple(first)).height(problem) / capacity:>9.3f}x {height:>10,} "
        f"{height / capacity - 1:>+6.1%} {seconds:>9.2f} {attempt.nodes:>10,}",
        flush=True,
    )
    return seconds, attempt.offsets is not None


def _first_fit(items: Items) -> list[int]:
    placer = GreedyPlacer(items)
    order = next(placer.orders())[1]
    offsets = placer.first_fit(order)
    assert offsets is not None
    return offsets


def _lower(path: Path, time_limit: float) -> None:
    """Bisect between the lower bound and the capacity until time is up."""
    problem = read_csv(path)
    items = bind(problem, ())
    search = exact.Minimiser(items, high=int(path.name.split(".")[1]), bound=lower_bound(problem))
    begun, slices, height = time.process_time(), 4, search.high
    print(f"\n{path.name.split('.')[0]}: lower bound {search.low:,}, capacity {search.high:,}")
    while not search.done and time.process_time() - begun < time_limit:
        search.advance(slices, lambda: time.process_time() - begun > time_limit)
        slices *= 2
        if search.offsets is not None and search.high < height:
            height = search.high
            _check(problem, Plan(tuple(search.offsets)))
            print(f"  {height:,} after {time.process_time() - begun:.1f} s", flush=True)
    state = "optimal" if search.proved else f"at least {search.low:,}"
    print(f"  {search.high:,} ({state}), {search.nodes:,} nodes")


def _check(problem: Problem, plan: Plan) -> None:
    violations = validate(problem, plan)
    if violations:
        raise SystemExit(f"illegal plan: {violations[0]}")


if __name__ == "__main__":
    main()
