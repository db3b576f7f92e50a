"""Plans random models and checks all that is promised: `python -m tests.fuzz.random_models`.

For each model: replayed byte by byte without a fault; the same bits on LiteRT's reference kernels
and on TFLM; TFLM's own head is the one predicted, before and after; the head does not grow; the
same bytes when planned again. Every other model has its operators shuffled first. `--types`: with
chains of QUANTIZE, DEQUANTIZE and CAST from type to type, which may run in place: so planned, they
are replayed too.
"""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.seeds import packed
from tests.model_replay import replay
from tests.models.build import schema
from tests.models.generator import KINDS, random_model
from tests.placed_replay import placement, replay_planned
from tflm_planner.model.ir import Op
from tflm_planner.tflm.kernels.contracts import InputOverlap
from tflm_planner.tflm.target_kernels import TargetKernels

SECONDS = 2.0
"""Time limit of the search for one model; the planner rarely needs it."""


def search_options(seconds: float = SECONDS, *, overlap: bool = False) -> Any:
    """The wheel as target: the reference kernels on x86-64. `overlap`: results may trail their
    operands inside a kernel, which the replay, knowing nothing of kernels, must refuse."""
    from tflm_planner.pipeline import api

    target = api.load_target("x86-64/reference")
    return api.MemoryOptions(time_limit=seconds, kernels=api.kernels_of(target), overlap=overlap)


class TypesAlone(TargetKernels):
    """A machine of which only QUANTIZE, DEQUANTIZE and CAST may trail: the replay knows them."""

    def input_overlaps_of(self, op: Op) -> Iterable[InputOverlap]:
        if op.kind in ("QUANTIZE", "DEQUANTIZE", "CAST"):
            yield from super().input_overlaps_of(op)


def types_in_place(data: bytes) -> tuple[list[str], int]:
    """What is wrong with a plan that lets results of other types trail, and how many do."""
    from tflm_planner.pipeline import api

    options = search_options(overlap=True)
    options = replace(options, kernels=TypesAlone(options.kernels.target, options.kernels.builds))
    result = api.plan(data, None, api.PlanOptions(options, verify=None))
    offsets, scratch = placement(result.data)
    wrong = [*replay_planned(result.data, scratch), *replay(result.data, offsets, scratch)]
    return [f"types: {fault}" for fault in wrong], len(result.report.allocation.input_overlaps)


def shuffled(data: bytes, seed: int) -> bytes:
    """The model with its main graph's operators in a random order that runs."""
    rng = np.random.default_rng(seed)
    model = schema.ModelT.InitFromPackedBuf(data, 0)
    graph = model.subgraphs[0]
    ops = list(graph.operators)
    missing = [{int(t) for t in op.inputs} for op in ops]
    made = {int(t) for op in ops for t in op.outputs}
    ready = {t for t in range(len(graph.tensors)) if t not in made} | {-1}
    order: list[Any] = []
    left = list(range(len(ops)))
    while left:
        free = [i for i in left if missing[i] <= ready]
        chosen = free[int(rng.integers(len(free)))]
        left.remove(chosen)
        order.append(ops[chosen])
        ready |= {int(t) for t in ops[chosen].outputs}
    graph.operators = order
    return packed(model)


def check(data: bytes, *, runtimes: bool = True) -> list[str]:
    """What is wrong with the plan of `data`; empty when all is as promised."""
    from tflm_planner.pipeline import api

    options = api.PlanOptions(search_options(), verify=None)
    result = api.plan(data, None, options)
    report, wrong = result.report, list[str]()
    offsets, scratch = placement(result.data)
    wrong += [f"replay: {fault}" for fault in replay_planned(result.data, scratch)]
    wrong += [f"replay with TFLM's places: {f}" for f in replay(result.data, offsets, scratch)]
    wrong += [f"replay of the original: {f}" for f in replay(data, *placement(data))]
    if report.after.head > report.before.head:
        wrong.append(f"head grew from {report.before.head} to {report.after.head}")
    if api.plan(data, None, options).data != result.data:
        wrong.append("planned twice, two results")
    wrong += types_in_place(data)[0]
    bold = api.plan(data, None, api.PlanOptions(search_options(overlap=True), verify=None))
    if runtimes:
        wrong += _compare(data, result.data, report.before.head, report.after.head)
        heads = bold.report.before.head, bold.report.after.head
        wrong += [f"overlap: {w}" for w in _compare(data, bold.data, *heads)]
    return wrong


def _compare(original: bytes, result: bytes, before: int, after: int) -> list[str]:
    """Run both models on both runtimes, in this process."""
    from tflm_planner.verification.worker import load_litert, load_tflm

    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder) / "original.tflite", Path(folder) / "result.tflite"
        paths[0].write_bytes(original)
        paths[1].write_bytes(result)
        graph = schema.ModelT.InitFromPackedBuf(original, 0).subgraphs[0]
        count = len(graph.outputs)
        for name, load in (("LiteRT", load_litert), ("TFLM", load_tflm)):
            (said, first), (said_after, second) = (load(str(p), 1 << 22, count) for p in paths)
            for k, values in enumerate(_inputs(graph)):
                pairs = zip(first(values), second(values), strict=True)
                if any(a.tobytes() != b.tobytes() for a, b in pairs):
                    wrong.append(f"{name}: outputs differ on input {k}")
            if name == "TFLM" and (said["head"], said_after["head"]) != (before, after):
                measured = said["head"], said_after["head"]
                wrong.append(f"TFLM measured heads {measured}, predicted {(before, after)}")
    return wrong


def _inputs(graph: Any) -> list[list[Any]]:
    """Random, lowest, highest and random values for the inputs of a graph."""
    rng = np.random.default_rng(5)
    types = {
        "INT8": np.int8, "INT16": np.int16, "FLOAT32": np.float32, "UINT8": np.uint8,
        "INT32": np.int32, "BOOL": np.bool_,
    }  # fmt: skip
    names = {getattr(schema.TensorType, n): t for n, t in types.items()}

    def values(tensor: Any, kind: int) -> Any:
        dtype, shape = names[tensor.type], tuple(int(d) for d in tensor.shape)
        if dtype is np.float32:
            return (
                rng.normal(size=shape).astype(dtype)
                if kind in (0, 3)
                else np.full(shape, -4.0 if kind == 1 else 4.0, dtype)
            )
        if dtype is np.bool_:
            return rng.random(shape) < (0.5, 0, 1, 0.5)[kind]
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        if kind in (0, 3):
            return rng.integers(low, high + 1, shape).astype(dtype)
        return np.full(shape, low if kind == 1 else high, dtype)

    inputs = [graph.tensors[int(t)] for t in graph.inputs]
    return [[values(t, kind) for t in inputs] for kind in range(4)]


def model_of(seed: int, *, types: bool = False) -> bytes:
    """The random model of a seed; odd seeds are shuffled. `types`: of many types."""
    steps = 1 + seed * 7 % 40
    kinds = {**KINDS, "retype": 12} if types else None
    data = random_model(seed, steps=steps, kinds=kinds)
    return shuffled(data, seed) if seed % 2 else data


def main() -> int:
    """Check `--count` models; exit code 1 when something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--types", action="store_true", help="from type to type, in place")
    arguments = parser.parse_args()
    kinds: collections.Counter[str] = collections.Counter()
    started = time.monotonic()
    for seed in range(arguments.first, arguments.first + arguments.count):
        try:
            wrong = check(model_of(seed, types=arguments.types))
        except Exception as error:
            wrong = [f"{type(error).__name__}: {error}"]
        for line in wrong:
            print(f"seed {seed}: {line}", flush=True)
        kinds["wrong" if wrong else "right"] += 1
        if (seed + 1) % 100 == 0:
            print(f"{seed + 1} models, {time.monotonic() - started:.0f} s", flush=True)
    print(f"{arguments.count} models, {time.monotonic() - started:.0f} s: {dict(kinds)}")
    return 1 if kinds["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
