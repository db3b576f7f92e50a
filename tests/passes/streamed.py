"""Streamed models for tests: random regions of random models."""

from __future__ import annotations

import random

from tests.models.generator import KINDS as ALL_KINDS
from tflm_planner.ir import Graph, Op
from tflm_planner.passes.stream import EDGES, Loop, NotStreamableError, can_stream
from tflm_planner.serde import read_model

KINDS = {
    **{k: 1 for k in ALL_KINDS},
    "conv_2d": 12, "depthwise_conv_2d": 8, "max_pool_2d": 3, "average_pool_2d": 3, "pad": 3,
    "add": 5, "mul": 2, "relu": 2, "concatenation": 3,
}  # fmt: skip
"""Mostly what can be streamed."""


def between(graph: Graph, first: Op, last: Op) -> list[int]:
    """Positions of the operators on paths from `first` to `last`, both included."""
    after, before = {id(first)}, {id(last)}
    for op in graph.ops:
        if any(t.producer is not None and id(t.producer) in after for t in op.operands()):
            after.add(id(op))
    for op in reversed(graph.ops):
        if any(id(c) in before for t in op.outputs for c in t.consumers):
            before.add(id(op))
    return [i for i, op in enumerate(graph.ops) if id(op) in after & before]


def random_loop(data: bytes, rng: random.Random) -> Loop | None:
    """A random region that can be streamed, if a few tries find one; else one that cannot."""
    model = read_model(data)
    ops = model.main.ops
    loop: Loop | None = None
    for _ in range(60):
        first = rng.randrange(len(ops))
        chosen = between(model.main, ops[first], ops[rng.randrange(first, len(ops))])
        if not chosen:
            continue
        loop = Loop(tuple(chosen), rng.choice((1, 1, 1, 2, 2, 3, 4)), rng.choice(EDGES))
        try:
            can_stream(model, loop)
        except NotStreamableError:
            continue
        if len(chosen) > 1 or rng.random() < 0.2:
            return loop
    return loop
