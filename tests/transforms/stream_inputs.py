"""Models split for streamed input, for tests: random ones, planned, run as an application does."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from tests.placed_replay import replay_planned
from tests.tflm.wheel import Wheel
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.pipeline.options import MemoryOptions, StreamOptions
from tflm_planner.pipeline.stream_input.pairs import plan_split
from tflm_planner.support.units import align_up
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.row_loop import NotStreamableError
from tflm_planner.transforms.row_loop.split_input import can_split, split_points_of
from tflm_planner.verification.inputs import input_sets
from tflm_planner.verification.pair_worker import Application
from tflm_planner.verification.pairs import Pair, describe_pair
from tflm_planner.verification.worker import load_litert, load_tflm

Where = tuple[tuple[int, ...], int]
"""Operators of the front, and rows of the boundary a turn."""


def cleaned(data: bytes) -> Model:
    """The model as it is split."""
    model = read_model(data)
    run(model, Normalize())
    return model


def places(model: Model, turns: tuple[int, ...] = (1, 2, 3, 5)) -> list[Where]:
    """Everywhere that the model can be split."""
    found: list[Where] = []
    for ops in split_points_of(model):
        for rows in turns:
            try:
                can_split(model, ops, rows)
            except NotStreamableError:
                continue
            found.append((ops, rows))
    return found


def some_place(model: Model, rng: random.Random) -> Where | None:
    """One of them; long fronts are more likely."""
    found = places(model)
    if not found:
        return None
    longest = max(len(ops) for ops, _ in found)
    if rng.random() < 0.6:
        found = [(ops, rows) for ops, rows in found if len(ops) == longest]
    return rng.choice(found)


def halves(data: bytes, where: Where, *, overlap: bool = True, seconds: float = 1.0) -> Pair:
    """The model split there, both halves planned for this machine's TFLM."""
    on = api.kernels_of(api.load_target("x86-64/wheel"))
    options = MemoryOptions(allocator="greedy", time_limit=seconds, kernels=on, overlap=overlap)
    found = plan_split(cleaned(data), *where, StreamOptions(options))
    return Pair(found.front.data, found.back.data, found.schedule)


def differences(data: bytes, pair: Pair, *, images: int = 5) -> list[str]:
    """Where the pair computes something else, on one interpreter for all images."""
    found: list[str] = []
    graph = read_model(data).main
    about, count = describe_pair(pair), len(graph.outputs)
    for name, load in (("LiteRT", load_litert), ("TFLM", load_tflm)):
        with tempfile.TemporaryDirectory() as folder:
            runs = []
            files = ((data, count), (pair.front, 1 + len(pair.strips.fills)), (pair.back, count))
            for i, (file, outputs) in enumerate(files):
                path = Path(folder) / f"{i}.tflite"
                path.write_bytes(file)
                runs.append(load(str(path), 1 << 21, outputs)[1])
            original, front, back = runs
            application = Application(front, back, about, keeps=name == "TFLM")
            for label, values in input_sets(graph, 3, count=images):
                pairs = zip(original(values), application.invoke(values), strict=True)
                if any(a.tobytes() != b.tobytes() for a, b in pairs):
                    found.append(f"{name}: {label} input")
    return found


def wrong_sizes(pair: Pair) -> list[str]:
    """Halves whose head on real TFLM is another, or that do not work in their smallest arena."""
    wrong: list[str] = []
    for name, data in (("front", pair.front), ("back", pair.back)):
        arena = api.arena(data, api.load_target("x86-64/wheel"))
        runtime = Wheel(data)
        found = runtime.run(align_up(arena.arena) + (1 << 16))  # the tail is told for such sizes
        if found != (arena.head, arena.tail):
            wrong.append(f"{name}: head and tail {arena.head}, {arena.tail}, really {found}")
        if runtime.run(arena.arena) is None:
            wrong.append(f"{name}: does not work in the predicted arena of {arena.arena}")
        runtime.close()
    return wrong


def faults(data: bytes, where: Where, *, host: bool) -> list[str]:
    """What is wrong with a split: its bits, with overlaps and without; its plans byte by byte; with
    `wheel`, its sizes."""
    rigid = halves(data, where, overlap=False)
    wrong = differences(data, rigid)
    wrong += [f"replay of the front: {f}" for f in replay_planned(rigid.front)]
    wrong += [f"replay of the back: {f}" for f in replay_planned(rigid.back)]
    if not wrong and host:
        pair = halves(data, where)
        wrong += [f"overlapped: {d}" for d in differences(data, pair)]
        wrong += wrong_sizes(pair)
    return wrong
