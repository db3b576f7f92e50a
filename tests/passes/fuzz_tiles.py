"""Tiles random models in random ways: `python -m tests.passes.fuzz_tiles [first] [count]`."""

from __future__ import annotations

import re
import sys
import traceback
from collections import Counter

from tests.models.generator import random_model
from tests.passes.test_tile import random_scheme
from tests.passes.tiled import KINDS, RARE_KINDS, dialect_of, quick_differences, tiled
from tests.replay import replay


def faults(seed: int, seen: Counter[str]) -> list[str]:
    """What is wrong with the tiles of one random model, and with its dialect."""
    kinds = RARE_KINDS if seed % 2 else KINDS
    data = random_model(seed, steps=2 + seed % 12, kinds=kinds)
    made, notes = tiled(data, random_scheme(data, seed))
    if notes[0].startswith("not tiled"):
        seen["not tiled"] += 1
        seen[_reason(notes[0])] += 1
        return []
    seen["tiled"] += 1
    wrong = quick_differences(data, made)
    if seed % 3 == 0 and not wrong:
        planned = dialect_of(made)
        seen["dialect"] += 1
        seen["operators dropped"] += len(planned.dropped)
        wrong += [f"replay: {f}" for f in replay(planned.portable)]
        again = replay(planned.portable, scratch=planned.scratch, dropped=planned.dropped)
        wrong += [f"dialect replay: {f}" for f in again]
        wrong += quick_differences(data, planned.portable)
        wrong += quick_differences(data, planned.dialect, ("TFLM",))
    return wrong


def _reason(note: str) -> str:
    """A refusal without the names in it."""
    return re.sub(r"'[^']*'", "..", note)


def main() -> None:
    """Print every seed that fails, then the totals."""
    first, count = (int(a) for a in (*sys.argv[1:], "0", "300")[:2])
    seen: Counter[str] = Counter()
    for seed in range(first, first + count):
        try:
            wrong = faults(seed, seen)
        except Exception:
            wrong = [traceback.format_exc(limit=-3)]
        if wrong:
            seen["wrong"] += 1
            print(seed, wrong[:2], flush=True)
    for what, times in seen.most_common():
        print(f"{times:6} {what}")


if __name__ == "__main__":
    main()
