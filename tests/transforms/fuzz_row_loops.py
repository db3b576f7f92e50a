"""Puts random regions of random models into loops:
`python -m tests.transforms.fuzz_row_loops --count 2000`.
"""

from __future__ import annotations

import random
from collections import Counter

from tests.transforms.fuzzing import fuzz
from tests.transforms.row_loops import faults, random_blocks, random_loops, streamed


def wrong_with(seed: int, seen: Counter[str]) -> list[str]:
    """What is wrong with the streamed regions of one random model."""
    rng = random.Random(seed)
    data = random_blocks(seed, rng.randint(3, 16))
    loops = random_loops(data, rng)
    made, notes = streamed(data, *loops)
    done = [(n, loop) for n, loop in zip(notes[-len(loops) :], loops, strict=True)]
    for note, loop in done:
        if note.startswith("not streamed"):
            seen["not streamed"] += 1
        else:
            for what in (loop.border, "in place" if "in place" in note else "store of its own"):
                seen[what] += 1
            seen[f"{min(len(loop.ops), 6)} operators"] += 1
    if all(note.startswith("not streamed") for note, _ in done):
        return []
    seen["models streamed"] += 1
    return faults(data, made, host=seed % 4 == 0)


if __name__ == "__main__":
    fuzz(wrong_with)
