"""Splits random models for streamed input: `python -m tests.passes.fuzz_splits --count 1000`."""

from __future__ import annotations

import argparse
import random
import traceback
from collections import Counter

from tests.passes.splits import cleaned, faults, some_place
from tests.passes.streamed import random_blocks


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
    return faults(data, where, wheel=seed % 3 == 0)


def main() -> None:
    """Print every seed that fails, then the totals."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    given = parser.parse_args()
    seen: Counter[str] = Counter()
    for seed in range(given.first, given.first + given.count):
        try:
            wrong = wrong_with(seed, seen)
        except Exception:
            wrong = [traceback.format_exc(limit=-3)]
        seen["models"] += 1
        if wrong:
            seen["wrong"] += 1
            print(seed, wrong[:2], flush=True)
    for what, count in seen.most_common():
        print(f"{count:6} {what}")


if __name__ == "__main__":
    main()
