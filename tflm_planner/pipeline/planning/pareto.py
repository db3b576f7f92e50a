"""Makes the Pareto front for reports: the tilings that a search found, by memory and instructions.

    bytes  o stock
           o order and plan
           o--+
              o----+          each step down costs instructions,
                   x  chosen  and perhaps operators to register
                     - - o    slower than allowed

This module must not know how anything is drawn, nor how candidates are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tflm_planner.report.document import ParetoFront, ParetoPoint, Role
from tflm_planner.tflm.arena.uncertainty import BoundKind
from tflm_planner.tiling.search import Objective, Tiling, TilingResult
from tflm_planner.transforms.row_loop import LoopedRegion


def front_of_search(
    result: TilingResult,
    objective: Objective,
    allowed: float,
    plain: int,
    written: Tiling | None,
    size: int,
    slowdown: float = 1.0,
) -> ParetoFront:
    """The front of a search. allowed: the permitted slowdown. plain: bytes with order and plan
    alone. written: the tiling that was written; None if the plain plan was. size, slowdown: of the
    final plan."""
    points = [ParetoPoint("chosen" if written is None else "plan", plain, 1.0)]
    for tiling in result.front:
        if tiling.is_changed and tiling != written and tiling.bytes < plain:
            points.append(_point("tiled", tiling, tiling.bytes))
    if written is not None:
        points.append(replace(_point("chosen", written, size), slowdown=slowdown))
    least = min(p.size for p in points)
    points += [_point("slower", t, t.bytes) for t in result.slower if t.bytes < least]
    return ParetoFront(objective, allowed, _without_dominated(points))


def with_stock(front: ParetoFront, stock: int, bound: BoundKind) -> ParetoFront:
    """The front with the original model as its first point. bound: whether the bytes of all points
    are exact, enough, or "at least"."""
    return replace(front, points=(ParetoPoint("stock", stock, 1.0), *front.points), bound=bound)


def _point(role: Role, tiling: Tiling, size: int) -> ParetoPoint:
    loops = sum(isinstance(s, LoopedRegion) for s in tiling.regions)
    tiles = len(tiling.regions) - loops
    return ParetoPoint(role, size, tiling.slowdown, tiling.new_kinds, tiles, loops)


def _without_dominated(points: Sequence[ParetoPoint]) -> tuple[ParetoPoint, ...]:
    """The points, largest first, without those that the chosen one dominates. Its final plan may
    need fewer bytes than its evaluation, so it may dominate points that it did not before."""
    chosen = next(p for p in points if p.role == "chosen")
    undominated = [
        p
        for p in points
        if p is chosen
        or p.role == "plan"
        or not (chosen.size <= p.size and chosen.slowdown <= p.slowdown)
        or (chosen.added and not p.added)
    ]
    return tuple(sorted(undominated, key=lambda p: (-p.size, p.slowdown)))
