"""When bytes are taken in the TFLM dialect, where views have no operator that makes them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.models.small import small_network, wide
from tests.transforms.plans import dialect_plan
from tests.transforms.row_loops import chain
from tflm_planner.model.ir import Tensor
from tflm_planner.model.serde import read_model
from tflm_planner.ops.window import ROWS
from tflm_planner.tflm.held_views import held_spans
from tflm_planner.tflm.liveness import LifeSpan, Timeline, timeline_of
from tflm_planner.tflm.placement import placement_of
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tflm.targets import load_target
from tflm_planner.transforms.attach_plan import carried_plan
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion

KERNELS = kernels_of(load_target("cortex-m4/cmsis-nn"))


def placed(data: bytes) -> tuple[Timeline, Sequence[int]]:
    model = read_model(data, dialect=True)
    timeline = timeline_of(model, KERNELS.scratch_of)
    return timeline, placement_of(timeline, carried_plan(model)).offsets


def bytes_not_held(
    timeline: Timeline, offsets: Sequence[int], spans: dict[Tensor, LifeSpan]
) -> list[str]:
    """What an operator reads of bytes that nobody held since they were written. One graph."""
    place = dict(zip(timeline.planned, offsets, strict=False))
    head = max(place[t] + timeline.sizes[t] for t in timeline.planned)
    scopes = len(timeline.ops) + 1
    held = np.zeros((scopes + 1, head), bool)
    for t, span in spans.items():
        held[span.first : span.last + 1, place[t] : place[t] + timeline.sizes[t]] = True
    written, wrong = np.zeros(head, int), list[str]()
    for op in timeline.ops:
        now = timeline.scopes[op][0][0]
        for t in (t for t in op.operands() if t in place):
            for byte in range(place[t], place[t] + t.nbytes):
                if not held[written[byte] : now + 1, byte].all():
                    wrong.append(f"{op.label} reads byte {byte}")
        for t in (t for t in op.outputs if t in place):
            written[place[t] : place[t] + t.nbytes] = now
    return wrong


@pytest.mark.parametrize(
    ("data", "region"),
    [
        (wide(), TiledRegion((0, 1, 2, 3), (Split(ROWS, 3),))),
        (wide(), TiledRegion((1, 2), (Split(ROWS, 4),), "merge")),
        (chain((3, 1, 4), (3, 1, 4), (3, 2, 4)), TiledRegion((0, 1), (Split(ROWS, 4),))),
        (chain((3, 1, 4), (3, 1, 4), (3, 2, 4)), TiledRegion((1, 2), (Split(ROWS, 3),))),
    ],
)
def test_bytes_are_held_from_where_they_are_written_to_where_they_are_read(
    data: bytes, region: TiledRegion
) -> None:
    timeline, offsets = placed(dialect_plan(data, [region]).data)
    views = [t for t in timeline.planned if t.is_view]
    spans = held_spans(timeline, offsets)
    assert views and bytes_not_held(timeline, offsets, spans) == []
    assert any(spans[v].first > timeline.spans[v].first for v in views)


def test_without_views_life_spans_are_those_of_tflm() -> None:
    model = read_model(small_network(1))
    timeline = timeline_of(model, KERNELS.scratch_of)
    assert held_spans(timeline, placement_of(timeline, None).offsets) == timeline.spans
