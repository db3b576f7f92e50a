"""Which splits are worth planning: a lower bound for each, and those of a long model that promise
most.

    SRAM of a pair >= front, persistent + max(back's tail + boundary + halos + rows of one operator,
                                              what the back needs while TFLM plans it)

Bytes of tensors follow from the geometry. What TFLM adds for operators follows from the halves, and
making these takes as long as the model has operators; so of a long model only a few are made, and
the bytes between them are interpolated. That ranks the splits and rules none out. This module must
not plan memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

import numpy as np

from tflm_planner.model.ir import Model
from tflm_planner.pipeline.planning.planned_file import add_lean_pool
from tflm_planner.tflm.arena.predict import arena_of, split_arena
from tflm_planner.tflm.targets import Target
from tflm_planner.transforms.row_loop.split_input import SplitModel, split_model

_PLANNED_WORK = 4096
"""Operators of all models that are split and planned to choose where to split: each place in a
model of up to 64 operators, 13 places in one of 300. Networks for microcontrollers are shorter, or
plan fewer places anyway: MobileNetV2 0.35@144 plans 7."""
_FEWEST_PLACES = 8
"""Places that are planned however long the model is."""
_TILED_WORK = 1024
"""Operators of all splits whose backs are also searched for tiles: 16 splits of a model of 64
operators, 3 of one of 300, where each search takes half a minute."""
_FEWEST_TILED = 2
"""Splits whose backs are searched for tiles however long the model is."""
_SAMPLES = 9
"""Splits of a long model whose halves are made to estimate the others."""


@dataclass(frozen=True, order=True)
class SplitPoint:
    """A place where a model can be split."""

    least_sram: int
    """Lower bound of the pair's SRAM in bytes."""
    ops: tuple[int, ...]
    """The front's operators, by position."""
    rows: int
    """Rows of the boundary that the front makes in each invoke."""
    tensors: int
    """Lower bound of the bytes of tensors while the front runs: the boundary, all halos, and the
    new rows of one operator."""


@dataclass(frozen=True)
class RuntimeBytes:
    """Bytes that TFLM needs for two halves beside tensors. persistent: the front's. tail: the
    back's. planning: what the back's arena holds while TFLM plans it."""

    persistent: int
    tail: int
    planning: int

    def least_sram(self, tensors: int) -> int:
        """Lower bound of the pair's SRAM if its back holds `tensors` bytes of tensors."""
        return self.persistent + max(self.tail + tensors, self.planning)


def runtime_bytes(halves: SplitModel, target: Target) -> RuntimeBytes:
    """What TFLM needs for these halves. It may add the pool of lean firmware to them."""
    front, back = halves.front, halves.back
    if target.lean:
        front, back = add_lean_pool(front)[1], add_lean_pool(back)[1]
    arena = arena_of(back, target)
    return RuntimeBytes(split_arena(front, target).persistent, arena.tail, arena.need_plan)


def most_places(model: Model) -> int:
    """The largest number of places at which a split of `model` is planned."""
    return max(_FEWEST_PLACES, _PLANNED_WORK // max(len(model.main.ops), 1))


def most_tiled(model: Model) -> int:
    """The largest number of splits of `model` whose backs are searched for tiles."""
    return max(_FEWEST_TILED, _TILED_WORK // max(len(model.main.ops), 1))


def by_promise(model: Model, points: Sequence[SplitPoint], target: Target) -> list[SplitPoint]:
    """The points in the order in which they are worth planning. If there are few enough to plan
    all, that is by their bounds. Else it is by two estimates in turn: with tiles the back may need
    no more than the boundary, and without tiles it needs what lives at once behind it."""
    if len(points) <= most_places(model):
        return sorted(points)
    nearer = sorted(points, key=lambda point: (len(point.ops), point))
    last = len(nearer) - 1
    samples = [nearer[round(k * last / (_SAMPLES - 1))] for k in range(_SAMPLES)]
    sizes = [len(point.ops) for point in samples]
    bytes_there = [runtime_bytes(split_model(model, p.ops, p.rows), target) for p in samples]
    persistent = [each.persistent for each in bytes_there]
    tails = [each.tail for each in bytes_there]
    planning = [each.planning for each in bytes_there]

    def estimate(point: SplitPoint, tensors: int) -> int:
        known = (
            int(np.interp(len(point.ops), sizes, values))
            for values in (persistent, tails, planning)
        )
        return RuntimeBytes(*known).least_sram(tensors)

    peaks = _peaks_behind(model)
    in_tiles = sorted(points, key=lambda p: (estimate(p, p.tensors), p))
    whole = sorted(points, key=lambda p: (estimate(p, max(p.tensors, peaks[p.ops[-1]])), p))
    in_turn = chain.from_iterable(zip_longest(whole, in_tiles))
    return list(dict.fromkeys(point for point in in_turn if point is not None))


def _peaks_behind(model: Model) -> list[int]:
    """For each operator, the most bytes of tensors that live at once behind it, in the order in
    which operators stand."""
    graph = model.main
    place = {op: i for i, op in enumerate(graph.ops)}
    changes = [0] * (len(graph.ops) + 1)
    kept = set(graph.outputs)
    for made, op in enumerate(graph.ops):
        for t in op.outputs:
            read = [place[reader] for reader in t.consumers if reader in place]
            last = len(graph.ops) - 1 if t in kept else max(read, default=made)
            changes[made] += t.nbytes
            changes[last + 1] -= t.nbytes
    live = [int(n) for n in np.cumsum(changes[:-1])]
    peaks = [0] * len(live)
    for i in range(len(live) - 2, -1, -1):
        peaks[i] = max(peaks[i + 1], live[i + 1])
    return peaks
