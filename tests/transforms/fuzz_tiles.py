"""Tiles random models in random ways: `python -m tests.transforms.fuzz_tiles [first] [count]`."""

from __future__ import annotations

import re
import sys
import traceback
from collections import Counter

from tests.model_replay import replay
from tests.models.generator import random_model
from tests.transforms.random_tiles import random_scheme, random_sum
from tests.transforms.tiled import (
    KINDS,
    RARE_KINDS,
    SUM_KINDS,
    dialect_of,
    outputs_of_both,
    quick_differences,
    rewritten,
)
from tflm_planner.verification.tolerance import Differences, Tolerance


def sum_faults(seed: int, seen: Counter[str]) -> list[str]:
    """What is wrong with shares of sums: floats too far apart, or int8 by more than the operators
    behind the sum can make of one step."""
    data = random_model(seed, steps=1 + seed % 5, kinds=SUM_KINDS)
    scheme = random_sum(data, seed)
    _, (result,) = rewritten(data, scheme)
    if not result.refusal:
        return ["a sum was split without permission"]
    made, (result,) = rewritten(data, scheme, inexact=True)
    if result.refusal:
        seen["sums not split"] += 1
        return []
    seen["sums split"] += 1
    wrong: list[str] = []
    found = Differences(Tolerance(quantised=8.0, relative=1e-5))
    for name, label, a, b in outputs_of_both(data, made):
        why = found.add(a, b)
        wrong += [f"{name}, {label} input: {why}"] if why is not None else []
        if a.dtype.itemsize == 1:
            apart = abs(a.astype(int) - b.astype(int)).max(initial=0)
            seen[f"int8 outputs at most {apart} steps apart"] += 1
    return wrong


def faults(seed: int, seen: Counter[str]) -> list[str]:
    """What is wrong with the tiles of one random model, and with its dialect."""
    kinds = RARE_KINDS if seed % 2 else KINDS
    data = random_model(seed, steps=2 + seed % 12, kinds=kinds)
    made, (result,) = rewritten(data, random_scheme(data, seed))
    if result.refusal:
        seen["not tiled"] += 1
        seen[_reason(result.note)] += 1
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
            wrong = sum_faults(seed, seen) if seed % 5 == 4 else faults(seed, seen)
        except Exception:
            wrong = [traceback.format_exc(limit=-3)]
        if wrong:
            seen["wrong"] += 1
            print(seed, wrong[:2], flush=True)
    for what, times in seen.most_common():
        print(f"{times:6} {what}")


if __name__ == "__main__":
    main()
