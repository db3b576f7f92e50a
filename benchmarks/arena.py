"""Predicted arenas beside real ones.

    PYTHONPATH=. python benchmarks/arena.py [PATH ...] [--truth arena.json] [--generated N]

With --truth: against what TFLM did on emulated Cortex-M and x86-64 (the models are looked for
among the files given). Otherwise: against the tflite-micro wheel on this machine, printed head and
tail and the smallest arena that works, found by bisection, every trial in a process of its own.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

from tests.tflm.recorded_arenas import TARGETS
from tests.tflm.wheel import Wheel
from tflm_planner.model.serde import read_model
from tflm_planner.support.errors import PlannerError
from tflm_planner.tflm.arena.predict import PARTS, Arena, arena_of
from tflm_planner.tflm.targets import load_target
from tflm_planner.transforms.attach_plan import carried_plan


def against_wheel(name: str, data: bytes) -> tuple[str, bool | None, set[str]]:
    """One line for the table; whether all figures agree (None: not run); the operators."""
    try:
        model = read_model(data)
        predicted = arena_of(model, load_target("x86-64/wheel"), carried_plan(model))
    except PlannerError as error:
        return f"{name}: refused: {str(error)[:90]}", None, set()
    kinds = {op.kind for op in model.ops()}
    host = Wheel(data)
    try:
        big = (predicted.arena * 2 + 65536) // 16 * 16
        seen = host.run(big)
        if seen is None:
            return f"{name}: the wheel does not run it", None, set()
        real = (*seen, host.smallest(predicted.arena, big))
    finally:
        host.close()
    ours = (predicted.head, predicted.tail, predicted.arena)
    wrong = [
        f"{what} {a:,} is {b:,} ({a - b:+})"
        for what, a, b in zip(("head", "tail", "arena"), ours, real, strict=True)
        if a != b
    ]
    figures = f"head {real[0]:,} tail {real[1]:,} smallest {real[2]:,}"
    return f"{name}: {figures} {'; '.join(wrong) or 'exact'}", not wrong, kinds


def against_truth(truth: Path, files: list[Path]) -> None:
    """The table of differences, in bytes, for every record whose model is among the files."""
    paths = {path.name: path for path in files}
    exact = total = 0
    for record in json.loads(truth.read_text()):
        path = paths.get(record["model"])
        target = TARGETS.get(record["target"])
        if path is None or target is None:
            continue
        model = read_model(path.read_bytes())
        predicted = arena_of(model, load_target(target), carried_plan(model))
        wrong = differences(predicted, record)
        total += 1
        exact += not wrong
        told = ", ".join(f"{k} {v:+}" for k, v in wrong.items()) or "exact"
        print(f"{record['model']:32} {record['target']:10} arena {predicted.arena:>7,} {told}")
    print(f"{exact} of {total} records exact")


def differences(predicted: Arena, record: dict[str, object]) -> dict[str, int]:
    """Predicted minus real for every figure of a record that is wrong."""
    ours = {
        "head": predicted.head, "tail": predicted.tail, "min_arena": predicted.arena,
        "need_plan": predicted.need_plan, "need_prepare": predicted.need_prepare,
    }  # fmt: skip
    found = {k: v - int(str(record[k])) for k, v in ours.items() if k in record}
    parts = record.get("tail_breakdown")
    if isinstance(parts, dict):
        found |= {k: predicted.tail_parts[k] - parts.get(k, 0) for k in PARTS}
    scratch = record.get("scratch")
    if isinstance(scratch, list) and scratch:
        real = [entry[0] for entry in scratch if entry[0]]
        found["scratch"] = int([s.size for s in predicted.scratch] != real)
    return {k: v for k, v in found.items() if v}


def generated(count: int) -> dict[str, bytes]:
    """Hand-made models and random ones of the tests."""
    from tests.models.generator import random_model
    from tests.models.registry import MODELS
    from tests.tflm.custom_models import MODELS as OPERATORS

    made = {f"hand-made {name}": h.make() for name, h in MODELS.items() if h.runs_on_tflm}
    made |= {f"operator {name}": make() for name, make in OPERATORS.items()}
    return made | {f"random {seed}": random_model(seed) for seed in range(count)}


def main() -> None:
    """Parse the command line and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--truth", type=Path)
    parser.add_argument("--generated", type=int, metavar="N", default=None)
    options = parser.parse_args()
    files = [f for p in options.paths for f in (sorted(p.rglob("*.tflite")) if p.is_dir() else [p])]
    if options.truth:
        against_truth(options.truth, files)
        return
    models = {str(f): f.read_bytes() for f in files}
    if options.generated is not None:
        models |= generated(options.generated)
    results, covered = Counter[str](), set[str]()
    for name, data in models.items():
        line, exact, kinds = against_wheel(name, data)
        results["not run" if exact is None else "exact" if exact else "wrong"] += 1
        covered |= kinds if exact else set()
        print(line, flush=True)
    print(dict(results))
    print(f"{len(covered)} operators in exact models: {' '.join(sorted(covered))}")


if __name__ == "__main__":
    main()
