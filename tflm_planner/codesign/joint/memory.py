"""Decides whether a network fits a board by the cheapest test that can tell: bounds, TFLM's own
plan, our plan.

    parameters > flash       rejected by "flash"     microseconds
    fattest operator         rejected by "floor"     a millisecond
    predicted instructions   rejected by "time"      some ten milliseconds
    stock arena fits         accepted by "stock"     some twenty milliseconds
    planned arena fits       accepted by "plan"      some fifty milliseconds
    tiles, where permitted   accepted or rejected by "tiles", after a search of seconds;
                             rejected by "plan" if tiles are not permitted

The schedule of a network is the one that the planner makes. The arena is exact: it is what
`tflm-plan arena` gives for the file. For comparison, the verdict also has MCUNetV2's count, which
counts only activations. It must not know where networks come from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from tflm_planner.codesign.chains.chain import Chain, steps
from tflm_planner.codesign.chains.sizes import floors_of, size_of
from tflm_planner.codesign.networks.build import build
from tflm_planner.codesign.quick_searches import TO_JUDGE
from tflm_planner.cost import latency_of
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline.inspection.arenas import arena_in
from tflm_planner.pipeline.options import MemoryOptions, PlanOptions, TilePermission
from tflm_planner.pipeline.planning.planned_file import PlannedFile
from tflm_planner.pipeline.planning.planning_session import PlanningSession
from tflm_planner.support.progress import silent
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.target import Target
from tflm_planner.tflm.target_kernels import kernels_of

Test = Literal["flash", "floor", "time", "stock", "plan", "tiles"]

QUICK_TILES = TilePermission(search_budget=TO_JUDGE)
"""A short search for tiles with the firmware's own operators: 0.9 s of processor time for each
network (docs/joint-search.md)."""


@dataclass(frozen=True)
class BoardLimits:
    """The limits that a network must keep."""

    target: Target
    """The target, which may be a board."""
    arena: int
    """Bytes that the arena may take."""
    flash: int | None = None
    """Bytes that its file may take. None: not limited."""
    instructions: int | None = None
    """Predicted instructions that one inference may take. None: not limited."""
    tiles: TilePermission | None = None
    """How a network may be tiled if it does not fit otherwise. None: not at all."""
    exact: bool = False
    """Whether the arena is computed even if a bound decides."""


@dataclass(frozen=True)
class MemoryVerdict:
    """Whether a network fits."""

    fits: bool
    """Whether the network fits."""
    by: Test
    """The test that decided."""
    macs: int
    """Multiply-accumulates of one inference."""
    counted: int
    """Bytes of activations, as MCUNetV2 counts them."""
    arena: int | None = None
    """Bytes of arena of the last schedule that was made, which is TFLM's own if `by` is "stock".
    None if a bound decided."""
    file_bytes: int | None = None
    """Bytes of the file of the same schedule. None if a bound decided."""


@dataclass(frozen=True)
class FitQuestion:
    """A network and its limits. It is a job for an engine."""

    chain: Chain
    limits: BoardLimits


@dataclass(frozen=True)
class _Schedule:
    """A schedule of a network. by: the kind of schedule. arena, file_bytes: bytes. is_in_time:
    whether it stays within the allowed instructions."""

    by: Test
    arena: int
    file_bytes: int
    is_in_time: bool


def judge(question: FitQuestion) -> MemoryVerdict:
    """Decide whether the network fits."""
    chain, limits = question.chain, question.limits
    macs, counted = size_of(chain).macs, counted_activations(chain)
    bound = _bound(chain, limits)
    if bound is not None and not limits.exact:
        return MemoryVerdict(False, bound, macs, counted)
    data = build(chain)
    is_in_time = limits.instructions is None or _instructions(data, limits) <= limits.instructions
    if bound is None and not is_in_time:
        bound = "time"
        if not limits.exact:
            return MemoryVerdict(False, bound, macs, counted)
    found = _schedule(data, limits, is_in_time=is_in_time)
    if bound is None and limits.flash is not None and found.file_bytes > limits.flash:
        bound = "flash"
    if bound is None and not found.is_in_time:
        bound = "time"
    fits = bound is None and found.arena <= limits.arena
    return MemoryVerdict(fits, bound or found.by, macs, counted, found.arena, found.file_bytes)


def _bound(chain: Chain, limits: BoardLimits) -> Test | None:
    """The test that rules the network out before its file is made; None if none does."""
    floors = floors_of(chain)
    if limits.flash is not None and size_of(chain).parameter_bytes > limits.flash:
        return "flash"
    floor = floors.plan if limits.tiles is None else floors.tiles
    return "floor" if floor > limits.arena else None


def _instructions(data: bytes, limits: BoardLimits) -> int:
    """Predicted instructions of the network without tiles."""
    return latency_of(read_model(data), limits.target).instructions


def _schedule(data: bytes, limits: BoardLimits, *, is_in_time: bool) -> _Schedule:
    """The first schedule that fits: TFLM's own, then the planned one, then one in tiles. If none
    fits, the last one that was made. is_in_time: whether the network without tiles stays within the
    allowed instructions."""
    arena = arena_in(data, limits.target)[1].arena
    if arena <= limits.arena and not limits.exact:
        return _Schedule("stock", arena, len(data), is_in_time)
    planned = _planned("plan", data, limits)
    if planned.arena <= limits.arena or limits.tiles is None:
        return planned
    return _planned("tiles", data, limits)


def _planned(by: Test, data: bytes, limits: BoardLimits) -> _Schedule:
    memory = MemoryOptions(kernels=kernels_of(limits.target))
    tiles = limits.tiles if by == "tiles" else None
    options = PlanOptions(memory, tiles, given_arena_limit=limits.arena, verify=None)
    file: PlannedFile = PlanningSession(data, Stop(), silent).plan(options).file
    most = limits.instructions
    is_in_time = most is None or file.instructions(limits.target) <= most
    return _Schedule(by, file.inspection.arena.arena, len(file.data), is_in_time)


def counted_activations(chain: Chain) -> int:
    """Bytes of activations as MCUNetV2 counts them: the largest sum, over all layers, of operand,
    result and the sources of skips that are alive."""
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
