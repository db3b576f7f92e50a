"""Whether a network fits a board, as cheaply as that can be told: bounds, TFLM's own plan, ours.

    parameters > flash       rejected by "flash"     microseconds
    fattest operator         rejected by "floor"     a millisecond
    predicted instructions   rejected by "time"      some ten milliseconds
    stock arena fits         accepted by "stock"     some twenty milliseconds
    planned arena            accepted or rejected by "plan"

The arena is exact: what `tflm-plan arena` says of the file. Beside it stands the count of MCUNetV2,
which knows activations alone, to be compared. It must not know where networks come from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from tflm_planner.codesign.build import build
from tflm_planner.codesign.chain import Chain, steps
from tflm_planner.codesign.sizes import floors_of, size_of
from tflm_planner.cost import latency_of
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline.arenas import arena_in
from tflm_planner.pipeline.options import MemoryOptions, PlanOptions
from tflm_planner.pipeline.planning import Planning
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.target import Target
from tflm_planner.tflm.target_kernels import kernels_of

Test = Literal["flash", "floor", "time", "stock", "plan"]


@dataclass(frozen=True)
class BoardLimits:
    """What a network may take. arena, flash: bytes. instructions: of one inference, as predicted
    (None: not limited). exact: whether the arena is found also where a bound is enough."""

    target: Target
    arena: int
    flash: int | None = None
    instructions: int | None = None
    exact: bool = False


@dataclass(frozen=True)
class MemoryVerdict:
    """Whether a network fits. by: what decided. arena: bytes, planned unless `by` is "stock" (None:
    a bound was enough). counted: bytes of activations, as MCUNetV2 counts them."""

    fits: bool
    by: Test
    macs: int
    counted: int
    arena: int | None = None
    file_bytes: int | None = None


@dataclass(frozen=True)
class FitQuestion:
    """A network and what it may take: a job for an engine."""

    chain: Chain
    limits: BoardLimits


def judge(question: FitQuestion) -> MemoryVerdict:
    """Whether the network fits."""
    chain, limits = question.chain, question.limits
    size, counted = size_of(chain), counted_activations(chain)
    bound: Test | None = None
    if limits.flash is not None and size.parameter_bytes > limits.flash:
        bound = "flash"
    elif floors_of(chain).plan > limits.arena:
        bound = "floor"
    if bound is not None and not limits.exact:
        return MemoryVerdict(False, bound, size.macs, counted)
    data = build(chain)
    if bound is None and _is_slow(data, limits):
        bound = "time"
        if not limits.exact:
            return MemoryVerdict(False, bound, size.macs, counted)
    arena, file_bytes, by = _arena(data, limits)
    if bound is None and limits.flash is not None and file_bytes > limits.flash:
        bound = "flash"
    fits = bound is None and arena <= limits.arena
    return MemoryVerdict(fits, bound or by, size.macs, counted, arena, file_bytes)


def _is_slow(data: bytes, limits: BoardLimits) -> bool:
    if limits.instructions is None:
        return False
    return latency_of(read_model(data), limits.target).instructions > limits.instructions


def _arena(data: bytes, limits: BoardLimits) -> tuple[int, int, Test]:
    """Bytes of arena and file, and whose plan they are of: TFLM's own where that fits."""
    arena = arena_in(data, limits.target)[1].arena
    if arena <= limits.arena and not limits.exact:
        return arena, len(data), "stock"
    search = MemoryOptions(kernels=kernels_of(limits.target))
    planned = Planning(data, Stop(), lambda _: None).plan(PlanOptions(search, verify=None)).file
    return planned.inspection.arena.arena, len(planned.data), "plan"


def counted_activations(chain: Chain) -> int:
    """Bytes as MCUNetV2 counts them: operand and result of the fattest layer, and what a skip keeps
    meanwhile."""
    most = 0
    chain_steps = steps(chain)
    for place, step in enumerate(chain_steps):
        kept = sum(
            math.prod(end.source)
            for last, end in enumerate(chain_steps)
            if end.source is not None and last + 1 - end.layer.skip < place <= last
        )
        most = max(most, math.prod(step.shape_in) + math.prod(step.made) + kept)
    return most
