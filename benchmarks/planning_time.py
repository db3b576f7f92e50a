"""What overlaps cost in planning time: the search with and without, model by model.

    PYTHONPATH=. python benchmarks/planning_time.py MODEL.tflite ... [--rounds 5] [--limit 1.5]

Milliseconds of processor time of `search` alone, the best of several rounds, on Cortex-M4 with
CMSIS-NN and on x86-64 with the reference kernels. Each round starts with a target that knows no
contract yet. Exits with 1 when the sum over all models grows by more than the limit.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from pathlib import Path

from tflm_planner.memory.allocators import exact
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.pipeline.planning.memory_search import plan_memory
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tflm.targets import load_target

TARGETS = ("cortex-m4/cmsis-nn", "x86-64/reference")


def seconds(data: bytes, target: str, *, overlap: bool) -> float:
    """Processor time of one search."""
    options = MemoryOptions(kernels=kernels_of(load_target(target)), overlap=overlap)
    model = read_model(data)
    gc.collect()
    started = time.process_time()
    plan_memory(model, options)
    return time.process_time() - started


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=float, default=1.5)
    wanted = parser.parse_args()
    exact.warm_up()  # compiles, once
    totals = dict.fromkeys(((t, o) for t in TARGETS for o in (False, True)), 0.0)
    print(f"{'ms':28}" + "".join(f"{t:>24} {'overlaps':>8} {'ratio':>6}" for t in TARGETS))
    for path in wanted.models:
        data, cells = path.read_bytes(), list[float]()
        for target in TARGETS:
            best = {o: min(seconds(data, target, overlap=o) for _ in range(wanted.rounds))
                    for o in (False, True)}  # fmt: skip
            for o, s in best.items():
                totals[target, o] += s
            cells += [1000 * best[False], 1000 * best[True], best[True] / best[False]]
        print(f"{path.stem:28}{_row(cells)}", flush=True)
    ratios = [totals[t, True] / totals[t, False] for t in TARGETS]
    sums = [v for t, r in zip(TARGETS, ratios, strict=True)
            for v in (1000 * totals[t, False], 1000 * totals[t, True], r)]  # fmt: skip
    print(f"{'all':28}{_row(sums)}")
    sys.exit(max(ratios) > wanted.limit)


def _row(cells: list[float]) -> str:
    forms = ("{:24.1f}", " {:8.1f}", " {:6.2f}")
    return "".join(forms[i % 3].format(cell) for i, cell in enumerate(cells))


if __name__ == "__main__":
    main()
