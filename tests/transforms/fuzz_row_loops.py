"""Puts random regions of random models into loops:
`python -m tests.transforms.fuzz_row_loops --count 2000`.
"""

from __future__ import annotations

import random
from collections import Counter

from tests.transforms.fuzzing import fuzz
from tests.transforms.row_loops import faults, random_blocks, random_loops
from tests.transforms.stream_inputs import cleaned
from tests.transforms.tiled import rewritten
from tflm_planner.model.serde import write_model


def wrong_with(seed: int, seen: Counter[str]) -> list[str]:
    """What is wrong with the streamed regions of one random model."""
    rng = random.Random(seed)
    data = write_model(cleaned(random_blocks(seed, rng.randint(3, 16), cuts=4 * (seed % 2))))
    loops = random_loops(data, rng)
    made, results = rewritten(data, *loops, clean=True)
    for loop, result in zip(loops, results, strict=True):
        if result.refusal:
            seen["not streamed"] += 1
        else:
            place = "in place" if "in place" in result.note else "store of its own"
            for what in (loop.border, place):
                seen[what] += 1
            seen[f"{min(len(loop.ops), 6)} operators"] += 1
    if all(result.refusal for result in results):
        return []
    seen["models streamed"] += 1
    return faults(data, made, host=seed % 4 == 0)


if __name__ == "__main__":
    fuzz(wrong_with)
