"""Streams random regions of random models: `python -m tests.passes.fuzz_streams --count 2000`."""

from __future__ import annotations

import argparse
import random
import traceback
from collections import Counter

import numpy as np

from tests.models.generator import random_model
from tests.passes.streamed import KINDS, random_loop
from tests.passes.tiled import quick_differences
from tflm_planner.passes.base import run
from tflm_planner.passes.stream import Stream
from tflm_planner.serde import read_model, write_model


def faults(seed: int, seen: Counter[str]) -> list[str]:
    """What is wrong with a streamed region of one random model."""
    rng = random.Random(seed)
    data = random_model(
        np.random.default_rng(seed), steps=rng.randint(2, 14), kinds=KINDS
    )
    loop = random_loop(data, rng)
    if loop is None:
        seen["no region"] += 1
        return []
    model = read_model(data)
    notes = run(model, Stream((loop,)))
    if notes[0].startswith("not streamed"):
        seen["not streamed"] += 1
        seen[notes[0][:60]] += 1
        return []
    seen[f"{loop.border}"] += 1
    seen["in place" if "in place" in notes[0] else "own store"] += 1
    seen[model.main.inputs[0].type_name] += 1
    return quick_differences(data, write_model(model))


def main() -> None:
    """Print every seed that fails, then the totals."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    given = parser.parse_args()
    seen: Counter[str] = Counter()
    for seed in range(given.first, given.first + given.count):
        try:
            wrong = faults(seed, seen)
        except Exception:
            wrong = [traceback.format_exc(limit=-3)]
        if wrong:
            seen["wrong"] += 1
            print(seed, wrong[:2], flush=True)
    for what, count in seen.most_common():
        print(f"{count:6} {what}")


if __name__ == "__main__":
    main()
