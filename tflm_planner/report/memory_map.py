"""Makes the memory map and the limits that reports show from a timeline and offsets.

Time in a map is an operator's position in execution order. The operators of a called graph follow
the operator that calls it.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from tflm_planner.memory.problem import Overlap
from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.report.document import BlockKind, MapBlock, MapStep, MemoryMap
from tflm_planner.report.peak import covered_bytes
from tflm_planner.support.units import align_up
from tflm_planner.tflm.arena.uncertainty import BoundKind
from tflm_planner.tflm.held_views import held_spans
from tflm_planner.tflm.liveness import LifeSpan, Timeline, planned_bytes


def memory_map(
    model: Model, timeline: Timeline, offsets: Sequence[int], head: int, bound: BoundKind = "exact"
) -> MemoryMap:
    """The map of a placement. offsets: bytes from the head's start, first of the timeline's planned
    tensors, then of its scratch. bound: whether the head is exact or "at least"."""
    run = sorted(
        (op for op in timeline.ops if op in timeline.scopes), key=lambda op: _start(op, timeline)
    )
    scopes = [_start(op, timeline) for op in run]
    blocks = _blocks(model, timeline, offsets, scopes)
    tensors = dict(zip(timeline.planned, blocks, strict=False))
    graph_of = {op: g for g, graph in enumerate(model.graphs) for op in graph.ops}
    scratch: dict[Op, int] = {}
    for s in timeline.scratch:
        scratch[s.op] = scratch.get(s.op, 0) + s.size
    steps: list[MapStep] = []
    for i, live in enumerate(_live_at(blocks[: len(timeline.planned)], len(run))):
        op = run[i]
        ins = sum(b.size for b in _own(op.operands(), tensors))
        outs = sum(b.size for b in _own(op.outputs, tensors))
        sizes = sum(b.size for b in live)
        steps.append(
            MapStep(
                index=i,
                operator=op.kind,
                name=op.outputs[0].name if op.outputs else "",
                graph=graph_of[op],
                input_bytes=ins,
                output_bytes=outs,
                other_bytes=sizes - ins - outs,
                workspace_bytes=scratch.get(op, 0),
                shared_bytes=sizes - covered_bytes(live),
                live=tuple(b.name for b in live),
            )
        )
    return MemoryMap(tuple(steps), tuple(blocks), head, bound)


def live_between_operators(timeline: Timeline, overlaps: Sequence[Overlap]) -> int:
    """A lower bound of the head that holds however operands and results of an operator overlap: the
    larger of the largest tensor and of the most bytes that are live between two operators. If
    tensors may share memory across operators (`overlaps`), as a view and its parent do, only the
    larger one is counted."""
    change: dict[int, int] = {}
    covered_by_others = _tensors_shared_for_long(timeline, overlaps)
    largest = 0
    for tensor in timeline.planned:
        span, size = timeline.span(tensor), align_up(planned_bytes(tensor))
        largest = max(largest, size)
        if span.last > span.first and tensor not in covered_by_others:
            change[span.first] = change.get(span.first, 0) + size
            change[span.last] = change.get(span.last, 0) - size
    live = peak = 0
    for scope in sorted(change):
        live += change[scope]
        peak = max(peak, live)
    return max(peak, largest)


def _tensors_shared_for_long(timeline: Timeline, overlaps: Sequence[Overlap]) -> set[Tensor]:
    """The tensors that may lie inside a larger one while later operators need both."""
    smaller: set[Tensor] = set()
    for overlap in overlaps:
        if max(overlap.first, overlap.second) >= len(timeline.planned):
            continue  # scratch
        pair = timeline.planned[overlap.first], timeline.planned[overlap.second]
        spans = [timeline.span(t) for t in pair]
        if min(s.last for s in spans) > max(s.first for s in spans):
            smaller.add(min(pair, key=lambda t: timeline.sizes[t]))
    return smaller


def _start(op: Op, timeline: Timeline) -> int:
    return timeline.scopes[op][0][0]


def _own(tensors: list[Tensor], blocks: dict[Tensor, MapBlock]) -> list[MapBlock]:
    return [blocks[key] for key in dict.fromkeys(tensors) if key in blocks]


def _blocks(
    model: Model, timeline: Timeline, offsets: Sequence[int], scopes: list[int]
) -> list[MapBlock]:
    inputs = set(model.main.inputs)
    outputs = set(model.main.outputs)

    def block(name: str, kind: BlockKind, size: int, offset: int, span: LifeSpan) -> MapBlock:
        start = bisect.bisect_left(scopes, span.first)
        end = max(bisect.bisect_right(scopes, span.last), start + 1)
        if span.last < 0:  # of a graph that nothing calls: it has a place, and no time
            start = end = 0
        return MapBlock(name, kind, size, offset, start, end)

    blocks: list[MapBlock] = []
    spans = held_spans(timeline, offsets)
    for t, offset in zip(timeline.planned, offsets, strict=False):
        kind: BlockKind = "input" if t in inputs else "output" if t in outputs else "activation"
        blocks.append(block(t.name, kind, align_up(planned_bytes(t)), offset, spans[t]))
    for s, offset in zip(timeline.scratch, offsets[len(timeline.planned) :], strict=True):
        blocks.append(block(f"scratch of {s.op.label}", "scratch", s.size, offset, s.span))
    return blocks


def _live_at(blocks: Sequence[MapBlock], steps: int) -> list[list[MapBlock]]:
    """For each step, the blocks that are live during it."""
    starting: list[list[MapBlock]] = [[] for _ in range(steps)]
    for b in blocks:
        if b.start < min(b.end, steps):
            starting[b.start].append(b)
    live: list[MapBlock] = []
    live_by_step: list[list[MapBlock]] = []
    for i in range(steps):
        live = [b for b in live if b.end > i] + starting[i]
        live_by_step.append(list(live))
    return live_by_step
