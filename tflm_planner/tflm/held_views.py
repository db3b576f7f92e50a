"""When the bytes of a planned model are taken, if views have no operator that makes them.

    x   written |====|                      in the TFLM dialect a view v of x has no producer: TFLM
    v               read |====|             takes it for live from the start, and x for dead after
    held        |=========|====|            its own last reader

A view begins where the last of its bytes is written, and whoever wrote them holds them until then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflm_planner.model.ir import Tensor
from tflm_planner.tflm.liveness import LifeSpan, Timeline


def held_spans(timeline: Timeline, offsets: Sequence[int]) -> dict[Tensor, LifeSpan]:
    """For each planned tensor, the scopes in which its bytes are taken. offsets: bytes from the
    head's start, in the order of `timeline.planned`. Equal to TFLM's life spans if there are no
    views; those of calls that come back are as TFLM has them."""
    spans = dict(timeline.spans)
    places = dict(zip(timeline.planned, offsets, strict=False))
    views = [t for t in timeline.planned if t.is_view and spans[t].last >= 0]
    if not views:
        return spans
    made = sorted(
        (t for t in timeline.planned if not t.is_view and spans[t].last >= 0),
        key=lambda t: spans[t].first,
        reverse=True,
    )
    for view in views:
        readers = (timeline.scopes[op][0][0] for op in view.consumers if op in timeline.scopes)
        read = min(readers, default=spans[view].last)
        before = (t for t in made if timeline.spans[t].first < read)
        writers = list(_writers(view, before, places, timeline))
        begin = max((timeline.spans[t].first for t in writers), default=read)
        spans[view] = LifeSpan(begin, max(timeline.spans[view].last, begin))
        for writer in writers:
            held = spans[writer]
            spans[writer] = LifeSpan(held.first, max(held.last, begin))
    return spans


def _writers(
    view: Tensor, made: Iterator[Tensor], places: dict[Tensor, int], timeline: Timeline
) -> Iterator[Tensor]:
    """Those of `made` that wrote the bytes of a view. made: the latest first."""
    missing = [(places[view], places[view] + timeline.sizes[view])]
    for tensor in made:
        if not missing:
            return
        low, high = places[tensor], places[tensor] + timeline.sizes[tensor]
        left = [part for span in missing for part in _without(span, low, high)]
        if left != missing:
            missing = left
            yield tensor


def _without(span: tuple[int, int], low: int, high: int) -> Iterator[tuple[int, int]]:
    """The parts of a span of bytes outside [low, high)."""
    for start, end in ((span[0], min(span[1], low)), (max(span[0], high), span[1])):
        if start < end:
            yield start, end
