"""Chains whose results trail their operands drift through memory; tiles can turn them round.

    forward    x [........]              backward       x [........]
               y   <-[........]  a halo  of some tiles     [........]-> y
               z     <-[........]                       z [........]

A kernel reads ahead of what it writes, so that every result lies a little below its operand, and a
long chain needs its largest tensor and the sum of all those steps. Tiles that are made last one
first step the other way: a few of them keep the chain in place, and cost hardly any time. It
knows schemes and what trails; it must not know what they are worth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tflm_planner.tiling.estimate.schedule import LinearSchedule
from tflm_planner.tiling.evaluate.candidate import CLIMB, Candidate
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.tile.operator_tiles import Border
from tflm_planner.transforms.tile.tile import ROWS, TiledRegion

_PARTS = (4, 8, 16)
_MOST = 12
"""Operators that are turned round, one at a time."""


def with_backward_tiles(trial: Candidate) -> list[Candidate]:
    """A trial as it is; with every second region of tiles backward, and with the others."""
    tiles = [i for i, s in enumerate(trial.schemes) if isinstance(s, TiledRegion)]
    return [trial, *(_reverse_regions(trial, set(tiles[k::2])) for k in (0, 1) if tiles[k::2])]


def _reverse_regions(trial: Candidate, chosen: set[int]) -> Candidate:
    schemes = tuple(
        s if i not in chosen or isinstance(s, LoopedRegion) else replace(s, backward=not s.backward)
        for i, s in enumerate(trial.schemes)
    )
    return replace(trial, schemes=schemes)


def backward_candidates(
    line: LinearSchedule, order: tuple[int, ...], head: int, border: Border
) -> Iterator[Candidate]:
    """Single operators of the longest drifting chain in tiles, backward: where the plan of the
    model as it is, of `head` bytes, is higher than any operator needs."""
    if head <= max(line.needs, default=0):
        return
    chain = _longest_chain(line)
    step = -(-len(chain) // _MOST) if chain else 1
    for at in chain[::step]:
        (result,) = line.ops[at].outputs
        rows = (*(result.shape or ()), 0, 0)[ROWS]
        for parts in _PARTS:
            if parts <= rows:
                scheme = TiledRegion((at,), ((ROWS, parts),), border=border, backward=True)
                yield Candidate((scheme,), True, order, CLIMB)


def _longest_chain(line: LinearSchedule) -> list[int]:
    """The longest run of operators in a row each of which takes over memory of the one before."""
    best, run = list[int](), list[int]()
    for at, op in enumerate(line.ops):
        follows = len(op.outputs) == 1 and any(
            line.made[key] == at - 1 and line.last[key] == at and gain < line.bytes[key]
            for key, gain in line.saved[at].items()
        )
        run = [*run, at] if follows else []
        best = max(best, run, key=len)
    return best
