"""Chooses which skips to change so that the arena shrinks: those alive at the peak, the best first.

    chain --plan--> peak --> skips around its layers --each changed, planned--> smallest arena
      ^                                                                                   |
      +------------------------------- as long as it shrinks -------------------------------+

Skips elsewhere do not add to the peak, and stay. It must not know how a change is made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from tflm_planner.codesign.chains.chain import Chain
from tflm_planner.codesign.chains.residuals import units
from tflm_planner.codesign.networks.build import build_traced
from tflm_planner.codesign.networks.folding import running
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline.inspection.inspect_model import Inspection, inspect_model
from tflm_planner.pipeline.options import (
    MemoryOptions,
    PlanOptions,
    StreamOptions,
    TilePermission,
)
from tflm_planner.pipeline.planning.planning_session import PlanningSession
from tflm_planner.pipeline.stream_input.split import split_for_rows
from tflm_planner.support.progress import silent
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.target import Target
from tflm_planner.tflm.target_kernels import kernels_of

Change = Callable[[Chain, Collection[int]], Chain]
"""(chain, layers at which the skips to change end) -> the changed chain."""


@dataclass(frozen=True, slots=True)
class ChainMemory:
    """The memory that a chain needs. arena, head: bytes. peak: the indices of the layers that run
    at the peak."""

    arena: int
    head: int
    peak: frozenset[int]


MemoryOf = Callable[[Chain], ChainMemory]


@dataclass(frozen=True)
class Selection:
    """The result of a selection. chain: the changed chain. changed: the layers at which the changed
    skips ended. memory: the memory of the changed chain. tried: how many chains were planned."""

    chain: Chain
    changed: frozenset[int]
    memory: ChainMemory
    tried: int


def select(chain: Chain, change: Change, memory_of: MemoryOf) -> Selection:
    """Change skips at the peak one after the other as long as head and arena shrink. If no single
    change lowers the head, because other skips need as much, all skips at the peak are changed
    together. If changes give equal arenas, the skip that ends first is changed."""
    best = Selection(chain, frozenset(), memory_of(chain), 1)
    while True:
        around = [u for u in units(chain) if not u <= best.changed and _is_around(u, chain, best)]
        tried = best.tried + len(around)
        better = _least(best, [_try_unit(chain, change, best, u, memory_of) for u in around])
        if better is None and len(around) > 1:
            together = frozenset[int]().union(*around)
            better = _least(best, [_try_unit(chain, change, best, together, memory_of)])
            tried += 1
        best = replace(best if better is None else better, tried=tried)
        if better is None:
            return best


def _try_unit(
    chain: Chain, change: Change, best: Selection, unit: frozenset[int], memory_of: MemoryOf
) -> Selection:
    places = best.changed | unit
    changed = change(chain, places)
    return Selection(changed, places, memory_of(changed), 0)


def _least(best: Selection, candidates: Sequence[Selection]) -> Selection | None:
    """The candidate with the smallest arena among those that lower head and arena; None if none
    does."""
    before = best.memory
    lower = [c for c in candidates if c.memory.head < before.head and c.memory.arena < before.arena]
    return min(lower, key=lambda selection: selection.memory.arena, default=None)


def _is_around(unit: frozenset[int], chain: Chain, best: Selection) -> bool:
    """Whether a skip of the unit goes around a layer at the peak. If layers were dropped or added,
    indices do not correspond, and every unit is tried."""
    if len(best.chain.layers) != len(chain.layers):
        return True
    return any(
        end + 1 - chain.layers[end].skip <= place <= end
        for end in unit
        for place in best.memory.peak
    )


def stock_memory(chain: Chain, target: Target) -> ChainMemory:
    """The memory if TFLM places the tensors itself."""
    data, layers = build_traced(running(chain))
    return _memory(inspect_model(read_model(data), kernels_of(target)), data, layers)


def planned_memory(
    chain: Chain, target: Target, tiles: TilePermission | None = None
) -> ChainMemory:
    """The memory with the planner's operator order and offsets, and with the tiles that are
    permitted. Where tiles are at the peak, it is of all layers."""
    data, layers = build_traced(running(chain))
    memory = MemoryOptions(kernels=kernels_of(target))
    planning = PlanningSession(data, Stop(), silent)
    planned = planning.plan(PlanOptions(memory, tiles, verify=None)).file
    return _memory(planned.inspection, data, layers)


def streamed_memory(
    chain: Chain, target: Target, tiles: TilePermission | None = None
) -> ChainMemory:
    """The memory of both halves if the image comes row by row (`stream_input`), with the tiles that
    are permitted in the back. Its head is that of the back, where the front has its room; its peak
    is of all layers. Raises ModelError if the image cannot come so."""
    data, layers = build_traced(running(chain))
    options = StreamOptions(MemoryOptions(kernels=kernels_of(target)), tiles, verify=None)
    pair, _ = split_for_rows(data, options)
    head = pair.back.inspection.arena.head
    return ChainMemory(pair.sram, head, frozenset(layers))


def _memory(inspection: Inspection, data: bytes, layers: tuple[int, ...]) -> ChainMemory:
    operators = read_model(data).main.ops
    layer_of = {op.outputs[0].name: n for op, n in zip(operators, layers, strict=True)}
    run = inspection.map.steps
    most = max(step.live_bytes for step in run)
    peak = {layer_of.get(step.name) for step in run if step.live_bytes == most}
    arena = inspection.arena
    peak_layers = frozenset(place for place in peak if place is not None)
    return ChainMemory(arena.arena, arena.head, peak_layers or frozenset(layers))
