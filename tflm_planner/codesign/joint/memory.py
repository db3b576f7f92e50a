"""Whether a network fits a board, as cheaply as that can be told: bounds, TFLM's own plan, ours.

    parameters > flash       rejected by "flash"     microseconds
    fattest operator         rejected by "floor"     a millisecond
    predicted instructions   rejected by "time"      some ten milliseconds
    stock arena fits         accepted by "stock"     some twenty milliseconds
    planned arena fits       accepted by "plan"      some fifty milliseconds
    tiles, where permitted   accepted or rejected by "tiles", which a search of seconds finds;
                             rejected by "plan" where they are not permitted

So the schedule of a network is whatever the planner makes of it. The arena is exact: what
`tflm-plan arena` says of the file. Beside it stands the count of MCUNetV2, which knows activations
alone, to be compared. It must not know where networks come from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from tflm_planner.codesign.chains.chain import Chain, steps
from tflm_planner.codesign.chains.sizes import floors_of, size_of
from tflm_planner.codesign.networks.build import build
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
from tflm_planner.tiling.budget import DEFAULT_BUDGET

Test = Literal["flash", "floor", "time", "stock", "plan", "tiles"]

QUICK_TILES = TilePermission(
    search_budget=replace(DEFAULT_BUDGET, search_work=200, same_firmware_work=200, front_work=0)
)
"""Tiles of the firmware's own operators, looked for with a fiftieth of the usual work: 0.9 s of a
processor for a network (docs/joint-search.md). What they do not make fit a longer search may."""


@dataclass(frozen=True)
class BoardLimits:
    """What a network may take."""

    target: Target
    """The board, or a target with any memory."""
    arena: int
    """Bytes of arena."""
    flash: int | None = None
    """Bytes of its file. None: not limited."""
    instructions: int | None = None
    """Of one inference, as predicted. None: not limited."""
    tiles: TilePermission | None = None
    """What a network that does not fit whole may be tiled with. None: nothing."""
    exact: bool = False
    """Whether the arena is found also where a bound is enough."""


@dataclass(frozen=True)
class MemoryVerdict:
    """Whether a network fits."""

    fits: bool
    """Whether it does."""
    by: Test
    """What decided."""
    macs: int
    """Multiply-accumulates of one inference."""
    counted: int
    """Bytes of activations, as MCUNetV2 counts them."""
    arena: int | None = None
    """Bytes, of the last schedule that was made: TFLM's own if `by` is "stock". None: a bound was
    enough."""
    file_bytes: int | None = None
    """Bytes of the same schedule's file. None: a bound was enough."""


@dataclass(frozen=True)
class FitQuestion:
    """A network and what it may take: a job for an engine."""

    chain: Chain
    limits: BoardLimits


@dataclass(frozen=True)
class _Schedule:
    """How a network runs. by: which kind of schedule it is. arena, file_bytes: bytes. is_quick:
    whether it keeps to the instructions that are allowed."""

    by: Test
    arena: int
    file_bytes: int
    is_quick: bool


def judge(question: FitQuestion) -> MemoryVerdict:
    """Whether the network fits."""
    chain, limits = question.chain, question.limits
    macs, counted = size_of(chain).macs, counted_activations(chain)
    bound = _bound(chain, limits)
    if bound is not None and not limits.exact:
        return MemoryVerdict(False, bound, macs, counted)
    data = build(chain)
    is_quick = limits.instructions is None or _instructions(data, limits) <= limits.instructions
    if bound is None and not is_quick:
        bound = "time"
        if not limits.exact:
            return MemoryVerdict(False, bound, macs, counted)
    found = _schedule(data, limits, is_quick=is_quick)
    if bound is None and limits.flash is not None and found.file_bytes > limits.flash:
        bound = "flash"
    if bound is None and not found.is_quick:
        bound = "time"
    fits = bound is None and found.arena <= limits.arena
    return MemoryVerdict(fits, bound or found.by, macs, counted, found.arena, found.file_bytes)


def _bound(chain: Chain, limits: BoardLimits) -> Test | None:
    """What rules the network out before its file is made."""
    floors = floors_of(chain)
    if limits.flash is not None and size_of(chain).parameter_bytes > limits.flash:
        return "flash"
    floor = floors.plan if limits.tiles is None else floors.tiles
    return "floor" if floor > limits.arena else None


def _instructions(data: bytes, limits: BoardLimits) -> int:
    """Of the network as it is."""
    return latency_of(read_model(data), limits.target).instructions


def _schedule(data: bytes, limits: BoardLimits, *, is_quick: bool) -> _Schedule:
    """The first schedule that fits: TFLM's own, in the best order and places, in tiles. Else the
    last one. is_quick: whether the network as it is keeps to the instructions."""
    arena = arena_in(data, limits.target)[1].arena
    if arena <= limits.arena and not limits.exact:
        return _Schedule("stock", arena, len(data), is_quick)
    planned = _planned("plan", data, limits)
    if planned.arena <= limits.arena or limits.tiles is None:
        return planned
    return _planned("tiles", data, limits)


def _planned(by: Test, data: bytes, limits: BoardLimits) -> _Schedule:
    search = MemoryOptions(kernels=kernels_of(limits.target))
    tiles = limits.tiles if by == "tiles" else None
    options = PlanOptions(search, tiles, given_arena_limit=limits.arena, verify=None)
    file: PlannedFile = PlanningSession(data, Stop(), silent).plan(options).file
    most = limits.instructions
    is_quick = most is None or file.instructions(limits.target) <= most
    return _Schedule(by, file.inspection.arena.arena, len(file.data), is_quick)


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
