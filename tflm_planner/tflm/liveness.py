"""From a model to its planning problem: which buffers live when, and which may share memory.

The life spans are TFLM's own (AllocationInfoBuilder::MarkAllocationLifetimes): a counter of scopes
runs over the operators, and over the body of a control-flow operator where it is called.

    scope  0      1      2 ............. 5      6
           input  CONV   WHILE           :      SOFTMAX
                         | cond 3 | body 4, 5 |
    operands and results of WHILE live during all of [2, 5]

It knows tensors and operators; it must not know offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tflm_planner.memory.problem import UNBOUNDED, Buffer, Overlap, Problem
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.model.schema import element_bits
from tflm_planner.ops import Sharing, sharings
from tflm_planner.ops.layout import multiplies_matrix
from tflm_planner.ops.window import in_rows
from tflm_planner.support.errors import ModelError
from tflm_planner.support.units import ALIGNMENT, align_up
from tflm_planner.tflm.aliases import EqualPair, copies, equal_tensors
from tflm_planner.tflm.control_flow import if_calls, same_places, unneeded_spans, while_calls
from tflm_planner.tflm.kernels.contracts import InputOverlap
from tflm_planner.tflm.kernels.scratch import ScratchModel

InputOverlapRule = Callable[[Op], Iterable[InputOverlap]]
"""Operator -> the overlaps that its kernels permit beyond aliases (`tflm.kernels.contracts`)."""


def no_input_overlaps(_: Op) -> Iterable[InputOverlap]:
    """The rule for unknown kernels: no overlap is permitted."""
    return ()


VIEW_MAKERS = ("SLICE", "CONCATENATION", "SPLIT", "SPLIT_V")
"""Kinds that need not run if they copy bytes onto themselves (see `transforms.dialect`)."""


def makes_views(op: Op) -> bool:
    """Whether `op` need not run if it copies bytes onto themselves: its kind is among VIEW_MAKERS,
    or it is a RESHAPE between a tensor and its rows (`transforms.spelling`)."""
    if op.kind != "RESHAPE":
        return op.kind in VIEW_MAKERS
    (result,), data = op.outputs, op.inputs[0]
    before = data is not None and data.producer is not None and _computes_rows(data.producer)
    return before or (bool(result.consumers) and all(map(_computes_rows, result.consumers)))


def _computes_rows(op: Op) -> bool:
    return in_rows(op) or multiplies_matrix(op)


UNUSED = -1
"""First and last use of a tensor that is no operand, result, input or output."""


@dataclass(slots=True)
class LifeSpan:
    """First and last scope of use, both inclusive, as TFLM counts them."""

    first: int = UNUSED
    last: int = UNUSED

    def create(self, scope: int) -> None:
        """TFLM's UpdateFirstCreated: the earliest creation counts."""
        if self.first == UNUSED:
            self.first = scope

    def use(self, scope: int) -> None:
        """TFLM's UpdateLastUsed."""
        self.last = max(self.last, scope)


@dataclass(frozen=True, slots=True)
class Scratch:
    """A scratch request of one operator; `size` is rounded up to 16."""

    op: Op
    size: int
    span: LifeSpan


@dataclass(slots=True)
class Timeline:
    """Life spans of all tensors that TFLM's planner places, and of all scratch.

    planned: the tensors that get memory, in file order (sub-graph by sub-graph). ops: the operators
    in file order. scopes: first and last scope of each call of an operator; entered: the same for
    each graph, from the scope at which its inputs are written. unneeded: scopes at which TFLM
    counts a tensor as live although its bytes are not needed (see `control_flow`). sizes: bytes of
    each planned tensor, rounded up to 16.
    """

    ops: list[Op]
    planned: list[Tensor]
    spans: dict[Tensor, LifeSpan]
    scopes: dict[Op, list[tuple[int, int]]] = field(default_factory=dict[Op, list[tuple[int, int]]])
    scratch: list[Scratch] = field(default_factory=list[Scratch])
    graph_outputs: set[Tensor] = field(default_factory=set[Tensor])
    sizes: dict[Tensor, int] = field(default_factory=dict[Tensor, int])
    entered: dict[Graph, list[tuple[int, int]]] = field(
        default_factory=dict[Graph, list[tuple[int, int]]]
    )
    unneeded: dict[Tensor, list[tuple[int, int]]] = field(
        default_factory=dict[Tensor, list[tuple[int, int]]]
    )

    def span(self, tensor: Tensor) -> LifeSpan:
        """The life span of a planned tensor."""
        return self.spans[tensor]


def planned_bytes(tensor: Tensor) -> int:
    """Bytes that TFLM's planner gives the tensor: 0 for constants, variables, the results of
    VAR_HANDLE (these lie in the tail), and empty tensors. An int4 element takes a byte there."""
    if tensor.is_constant or tensor.is_variable:
        return 0
    if tensor.producer is not None and tensor.producer.kind == "VAR_HANDLE":
        return 0
    bits = element_bits(tensor.type)
    if bits is None:
        raise ModelError(
            f"tensor {tensor.name!r} has type {tensor.type_name}, which TFLM cannot hold in its "
            "arena; give the operator that makes it another type"
        )
    return tensor.elements * max(bits, 8) // 8


def timeline_of(
    model: Model, scratch_of: ScratchModel, *, entries: Sequence[Graph] = ()
) -> Timeline:
    """Simulate TFLM's life-span marking from the main graph.

    `entries`: further graphs that an application may invoke by themselves. TFLM does not mark them;
    here they come after the main graph, so that they can share its memory.
    """
    sized = [(t, n) for t in model.tensors() if (n := planned_bytes(t)) > 0]
    planned = [t for t, _ in sized]
    timeline = Timeline(list(model.ops()), planned, {t: LifeSpan() for t in planned})
    timeline.sizes = {t: align_up(n) for t, n in sized}
    timeline.graph_outputs = {t for graph in model.graphs for t in graph.outputs}
    scope = _mark(model.main, 0, timeline)
    for graph in entries:
        scope = _mark(graph, scope + 1, timeline)
    _find_unneeded(timeline)
    timeline.scratch = [
        Scratch(op, align_up(size), LifeSpan(timeline.scopes[op][0][0], timeline.scopes[op][-1][1]))
        for op in timeline.ops
        if op in timeline.scopes
        for size in scratch_of(op)
        if size > 0
    ]
    return timeline


def _mark(graph: Graph, scope: int, timeline: Timeline) -> int:
    """MarkAllocationLifetimes for one graph entered at `scope`; returns the last scope."""

    spans = timeline.spans

    def mark(tensors: Iterable[Tensor], at: int, *, created: bool) -> None:
        for tensor in tensors:
            span = spans.get(tensor)
            if span is not None:
                if created:
                    span.create(at)
                span.use(at)

    mark(graph.inputs, scope, created=True)
    entry = scope
    for op in graph.ops:
        scope += 1
        start = scope
        mark(op.outputs, scope, created=True)
        for called in op.called_graphs() if op.graphs else ():
            scope = _mark(called, scope + 1, timeline)
        mark(op.operands(), scope, created=False)
        mark(op.outputs, scope, created=False)
        timeline.scopes.setdefault(op, []).append((start, scope))
    mark(graph.outputs, scope, created=True)
    timeline.entered.setdefault(graph, []).append((entry, scope))
    return scope


def _find_unneeded(timeline: Timeline) -> None:
    last = {key: span.last for key, span in timeline.spans.items()}
    loops = while_calls(timeline.ops, timeline.scopes, timeline.entered)
    unneeded = [s for call in loops for s in unneeded_spans(call, last, timeline.graph_outputs)]
    for choice in if_calls(timeline.ops, timeline.scopes, timeline.entered):
        unneeded += choice.unneeded_spans(last, timeline.graph_outputs)
    for tensor, span in unneeded:
        if tensor in last and span[0] <= span[1]:
            timeline.unneeded.setdefault(tensor, []).append(span)


def planning_problem(
    timeline: Timeline, input_overlaps_of: InputOverlapRule = no_input_overlaps
) -> Problem:
    """The planning problem: buffers of all planned tensors, then of all scratch (sizes rounded up
    to 16), and the permitted overlaps. These are the aliases that every kernel library permits, and
    the input overlaps that the target's contracts permit, each only if the operand dies at the
    operator.

    An offline plan cannot place scratch, but must leave space for it: because scratch is among the
    buffers, every plan has a gap in which TFLM's first fit can place it.
    """
    index = {t: i for i, t in enumerate(timeline.planned)}
    tensors = [
        Buffer(t.name, timeline.sizes[t], (span := timeline.spans[t]).first, span.last + 1)
        for t in timeline.planned
    ]
    scratch = [
        Buffer(f"scratch of {s.op.label}", s.size, s.span.first, s.span.last + 1)
        for s in timeline.scratch
    ]
    aliased = [(index[s.operand], index[s.result], s.distance) for s in legal_in_place(timeline)]
    aliased += [(index[v.first], index[v.second], v.distance) for v in equal_pairs(timeline)]
    aliased += [(index[a], index[b], 0) for a, b in loop_pairs(timeline)]
    aliases = [Overlap(i, j, d, d) for i, j, d in dict.fromkeys(map(_canonical, aliased))]
    apart = [
        Overlap(index[a], index[b], -UNBOUNDED, UNBOUNDED) for a, b in never_together(timeline)
    ]
    plain = Problem.of((*tensors, *scratch), (*aliases, *apart))
    return (
        plain
        if input_overlaps_of is no_input_overlaps
        else with_input_overlaps(plain, timeline, input_overlaps_of)
    )


def with_input_overlaps(
    plain: Problem, timeline: Timeline, input_overlaps_of: InputOverlapRule
) -> Problem:
    """A problem that `planning_problem` made without input overlaps, with those of
    `input_overlaps_of` added."""
    index = {t: i for i, t in enumerate(timeline.planned)}
    input_overlaps = tuple(
        Overlap(index[t.result], index[t.operand], t.low, t.high)
        for t in legal_input_overlaps(timeline, input_overlaps_of)
    )
    return plain.permitting((*plain.overlaps, *input_overlaps)) if input_overlaps else plain


def _canonical(pair: tuple[int, int, int]) -> tuple[int, int, int]:
    i, j, distance = pair
    return (i, j, distance) if i < j else (j, i, -distance)


def legal_in_place(timeline: Timeline) -> Iterator[Sharing]:
    """Sharings between planned tensors whose operand is not needed after the operator.

    Distances are multiples of 16, because TFLM rounds every buffer up to that: a view at another
    distance would reach beyond the end of its parent.
    """
    for op in timeline.ops:
        for s in sharings(op):
            if s.distance % ALIGNMENT == 0 and hands_over(op, s.operand, s.result, timeline):
                yield s


def loop_pairs(timeline: Timeline) -> Iterator[tuple[Tensor, Tensor]]:
    """Pairs of planned tensors that the copies of a WHILE or an IF make equal whenever both are
    needed; see `control_flow`."""
    loops = while_calls(timeline.ops, timeline.scopes, timeline.entered)
    pairs = [pair for call in loops for pair in same_places(call, timeline.unneeded)]
    for choice in if_calls(timeline.ops, timeline.scopes, timeline.entered):
        pairs += choice.same_places()
    for a, b in pairs:
        both_planned = a is not b and a in timeline.spans and b in timeline.spans
        if (
            both_planned
            and planned_bytes(a) == planned_bytes(b)
            and _spans_intersect(timeline.span(a), timeline.span(b))
        ):
            yield a, b


def loop_aliases(timeline: Timeline) -> list[Overlap]:
    """The overlaps with which no loop copies any of its variables. Indices are those of
    `planning_problem`."""
    index = {t: i for i, t in enumerate(timeline.planned)}
    aliased = [(index[a], index[b], 0) for a, b in loop_pairs(timeline)]
    return [Overlap(i, j, d, d) for i, j, d in dict.fromkeys(map(_canonical, aliased))]


def never_together(timeline: Timeline) -> Iterator[tuple[Tensor, Tensor]]:
    """Pairs of planned tensors that TFLM counts as live together, although their bytes are never
    needed at the same time: they may share memory at any distance."""
    last = {key: span.last for key, span in timeline.spans.items()}
    for choice in if_calls(timeline.ops, timeline.scopes, timeline.entered):
        for a, b in choice.unneeded_once_written(last, timeline.graph_outputs):
            if b in last:
                yield a, b
    if timeline.unneeded:
        yield from _unneeded_pairs(timeline)


def _unneeded_pairs(timeline: Timeline) -> Iterator[tuple[Tensor, Tensor]]:
    """Pairs as in `never_together` in which at least one tensor has unneeded scopes."""
    needed = {t: _needed_scopes(timeline, t) for t in timeline.planned}
    unneeded = [t for t in timeline.planned if t in timeline.unneeded]
    for i, a in enumerate(unneeded):
        others = (t for t in timeline.planned if t not in timeline.unneeded)
        for b in (*unneeded[i + 1 :], *others):
            live_together = _spans_intersect(timeline.span(a), timeline.span(b))
            if live_together and not any(_meet(p, q) for p in needed[a] for q in needed[b]):
                yield a, b


def _needed_scopes(timeline: Timeline, tensor: Tensor) -> list[tuple[int, int]]:
    """The scopes at which a tensor's bytes are needed."""
    span = timeline.span(tensor)
    needed = [(span.first, span.last)]
    for low, high in timeline.unneeded.get(tensor, ()):
        pieces = [(a, min(b, low - 1)) for a, b in needed]
        pieces += [(max(a, high + 1), b) for a, b in needed]
        needed = [(a, b) for a, b in pieces if a <= b]
    return needed


def _meet(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] <= b[1] and b[0] <= a[1]


def _spans_intersect(a: LifeSpan, b: LifeSpan) -> bool:
    return a.first <= b.last and b.first <= a.last


def equal_pairs(timeline: Timeline) -> Iterator[EqualPair]:
    """Pairs of planned tensors that contain the same bytes and are live together at some time; see
    `aliases`.

    Operators with two callers are left out: their tensors also live between the calls.
    """
    once = [op for op in timeline.ops if len(timeline.scopes.get(op, ())) == 1]
    for pair in equal_tensors(once):
        a, b = timeline.spans.get(pair.first), timeline.spans.get(pair.second)
        if a is not None and b is not None and a.first <= b.last and b.first <= a.last:
            yield pair


def view_aliases(timeline: Timeline, graph: Graph, but: Collection[str] = ()) -> list[Overlap]:
    """The overlaps with which every operator of `graph` that makes views along the outermost axis
    copies bytes onto themselves. Indices are those of `planning_problem`. but: kinds of operators
    whose views are left out."""
    index = {t: i for i, t in enumerate(timeline.planned)}
    makers = [op for op in graph.ops if makes_views(op) and op.kind not in but]
    once = [op for op in makers if len(timeline.scopes.get(op, ())) == 1]
    aliased = [
        (index[s.operand], index[s.result], s.distance)
        for op in once
        for s in copies(op)
        if s.operand in index and s.result in index
    ]
    return [Overlap(i, j, d, d) for i, j, d in dict.fromkeys(map(_canonical, aliased))]


def legal_input_overlaps(
    timeline: Timeline, input_overlaps_of: InputOverlapRule
) -> Iterator[InputOverlap]:
    """Input overlaps between planned tensors whose operand is not needed after the operator."""
    for op in timeline.ops:
        for t in input_overlaps_of(op):
            if hands_over(op, t.operand, t.result, timeline):
                yield t


def hands_over(op: Op, operand: Tensor, result: Tensor, timeline: Timeline) -> bool:
    """Whether the operand's life ends where the result's begins, at the only run of `op`."""
    calls = timeline.scopes.get(op, [])
    if len(calls) != 1:  # never run, or run by two callers: its tensors also live in between
        return False
    ending, beginning = timeline.spans.get(operand), timeline.spans.get(result)
    if ending is None or beginning is None or operand in timeline.graph_outputs:
        return False
    return ending.last == calls[0][0] == beginning.first
