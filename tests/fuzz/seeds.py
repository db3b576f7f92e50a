"""Model files to start from, and how one is packed again."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import flatbuffers
import numpy as np

from tests.models.generator import random_model
from tests.models.handmade import MODELS
from tests.tflm.custom_models import MODELS as OPERATORS

Rng = np.random.Generator


class Draws:
    """Random integers as numpy's generators draw them, one by one several times as fast."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed).random

    def integers(self, low: int, high: int | None = None) -> int:
        """An integer of [low, high), or of [0, low)."""
        first, end = (0, low) if high is None else (low, high)
        return first + int((end - first) * self._random())


SMALL_SEEDS = 24
"""Random models in the corpus."""


@cache
def corpus() -> list[tuple[str, bytes]]:
    """(name, bytes): the hand-made models, random models, and planned models."""
    from tflm_planner.pipeline import api

    made = [(name, model.make()) for name, model in MODELS.items()]
    made += [(f"operator {name}", make()) for name, make in OPERATORS.items()]
    made += [(f"random {s}", random_model(s, steps=1 + s)) for s in range(SMALL_SEEDS)]
    options = api.PlanOptions(api.MemoryOptions(time_limit=1.0), verify=None)
    for name, data in made[:: len(made) // 12]:
        try:
            made.append((f"planned {name}", api.plan(data, None, options).data))
        except api.ModelError:  # pragma: no cover - an unsupported hand-made model
            continue
    return made


def packed(model: Any) -> bytes:
    """The flatbuffer of a `ModelT`."""
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())
