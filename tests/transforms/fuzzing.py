"""The loop of a longer run: one random model for each seed, what was wrong, and totals."""

from __future__ import annotations

import argparse
import traceback
from collections import Counter
from collections.abc import Callable

WrongWith = Callable[[int, Counter[str]], list[str]]
"""What is wrong with the model of a seed; counts what it saw."""


def fuzz(wrong_with: WrongWith) -> None:
    """Print every seed that fails, then the totals. Seeds come from the command line."""
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
        if seen["models"] % 500 == 0:
            print(dict(seen), flush=True)
    for what, count in seen.most_common():
        print(f"{count:6} {what}")
