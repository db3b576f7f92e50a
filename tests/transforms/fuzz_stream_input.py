"""Splits random models for streamed input:
`python -m tests.transforms.fuzz_stream_input --count 1000`.
"""

from __future__ import annotations

import random
from collections import Counter

from tests.transforms.fuzzing import fuzz
from tests.transforms.row_loops import random_blocks
from tests.transforms.stream_inputs import cleaned, faults, some_place


def wrong_with(seed: int, seen: Counter[str]) -> list[str]:
    """What is wrong with one split of one random model."""
    rng = random.Random(seed)
    data = random_blocks(seed, rng.randint(2, 12))
    where = some_place(cleaned(data), rng)
    if where is None:
        return []
    seen["split"] += 1
    seen[f"fronts of {min(len(where[0]), 6)} operators"] += 1
    seen[f"{where[1]} rows a turn"] += 1
    return faults(data, where, host=seed % 3 == 0)


if __name__ == "__main__":
    fuzz(wrong_with)
