"""Tiles that run from the last to the first, for chains of tensors that overlap their operands.

    forward    x [........]              backward       x [........]
               y   <-[........]  a halo  of some tiles     [........]-> y
               z     <-[........]                       z [........]

A kernel reads ahead of the bytes that it writes, so a result that overlaps its operand lies a
little below it. A long chain then needs its largest tensor plus the sum of all these distances.
Results of tiles that run backward lie above their operands instead: a few such operators balance
the distances of the chain, and take hardly any time. This module knows regions and overlaps; it
must not know what they are worth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tflm_planner.model.ir import Tensor
from tflm_planner.ops.window import ROWS
from tflm_planner.tiling.estimate.schedule import LinearSchedule
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.schedules import Effort
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.operator_tiles import Border
from tflm_planner.transforms.tile.tile import TiledRegion


def with_backward_tiles(candidate: Candidate) -> list[Candidate]:
    """The candidate itself; with the tiled regions 0, 2, 4, ... reversed; and with the regions
    1, 3, 5, ... reversed."""
    tiled = [i for i, r in enumerate(candidate.regions) if isinstance(r, TiledRegion)]
    halves = (set(tiled[k::2]) for k in (0, 1) if tiled[k::2])
    return [candidate, *(_reverse_regions(candidate, half) for half in halves)]


def _reverse_regions(candidate: Candidate, chosen: set[int]) -> Candidate:
    regions = tuple(
        r if i not in chosen or isinstance(r, LoopedRegion) else replace(r, backward=not r.backward)
        for i, r in enumerate(candidate.regions)
    )
    return replace(candidate, regions=regions)


def backward_candidates(
    schedule: LinearSchedule, order: tuple[int, ...], head: int, border: Border
) -> Iterator[Candidate]:
    """Candidates with a single operator of the longest chain of overlapping tensors tiled backward.
    None if the untiled model's plan, of `head` bytes, is as low as its largest operator permits."""
    budget = schedule.options.search_budget
    if head <= max(schedule.live_bytes, default=0):
        return
    chain = _longest_chain(schedule)
    step = -(-len(chain) // budget.backward_operators) if chain else 1
    for position in chain[::step]:
        (result,) = schedule.ops[position].outputs
        rows = (*(result.shape or ()), 0, 0)[ROWS]
        for parts in budget.backward_part_counts:
            if parts <= rows:
                region = TiledRegion(
                    (position,), (Split(ROWS, parts),), border=border, backward=True
                )
                yield Candidate((region,), True, order, Effort.CLIMB)


def _longest_chain(schedule: LinearSchedule) -> list[int]:
    """The longest sequence of adjacent operators each of which reuses a part of the memory of the
    result before it."""

    def overlaps(operand: Tensor, position: int) -> bool:
        saved = schedule.reused_bytes[position][operand]
        is_next = schedule.defined_at[operand] == position - 1
        dies = schedule.last_use[operand] == position
        return is_next and dies and saved < schedule.bytes[operand]

    best, run = list[int](), list[int]()
    for position, op in enumerate(schedule.ops):
        continues = len(op.outputs) == 1 and any(
            overlaps(operand, position) for operand in schedule.reused_bytes[position]
        )
        run = [*run, position] if continues else []
        best = max(best, run, key=len)
    return best
