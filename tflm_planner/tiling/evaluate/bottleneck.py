"""The bottleneck of a planned model: the operator of the given model at the memory peak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.tflm.liveness import (
    Timeline,
)
from tflm_planner.tflm.placement import placement_of
from tflm_planner.tiling.evaluate.tiled_model import TiledModel
from tflm_planner.tiling.tilings import Region


def bottleneck_of(
    tiled: TiledModel, timeline: Timeline, offsets: Mapping[Tensor, int], regions: Sequence[Region]
) -> int | None:
    """The operator of the given model that has most live bytes among those that run while the
    highest buffer lives."""
    placement = placement_of(timeline, offsets)
    requests = placement.requests
    tops = [offset + r.size for offset, r in zip(placement.offsets, requests, strict=True)]
    if not tops:
        return None
    highest = requests[tops.index(max(tops))]
    live = dict.fromkeys(range(highest.first, highest.last + 1), 0)
    for request in requests:
        first, last = max(request.first, highest.first), min(request.last, highest.last)
        for scope in range(first, last + 1):
            live[scope] += request.size
    scope = max(live, key=lambda s: (live[s], -s))
    return _operator_at(tiled, timeline.scopes, scope, regions)


def _operator_at(
    tiled: TiledModel,
    scopes: Mapping[Op, list[tuple[int, int]]],
    scope: int,
    regions: Sequence[Region],
) -> int | None:
    """The operator of the given model that runs at `scope`. If an operator of a tile runs there:
    the middle operator of its region, which is the first region after the last untiled operator."""
    before = -1
    for op in tiled.model.main.ops:
        if op in tiled.position:
            before = tiled.position[op]
        if any(start <= scope <= end for start, end in scopes.get(op, ())):
            if op in tiled.position:
                return before
            behind = [r for r in regions if max(r.ops) > before]
            return behind[0].ops[len(behind[0].ops) // 2] if behind else None
    return 0 if tiled.model.main.ops else None
