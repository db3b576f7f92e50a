"""Whole models in tiles around their bulges: how many tiles each bulge takes.

    bulges (order, spans) -> trials of each bulge in a few parts -> the least that all can have

The search over intervals of one line (`regions`) finds what lies together in the order that is
best for the model as it is. Here the order follows the tiles. It must not know how tiles are
made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tflm_planner.cost import cost_of_case
from tflm_planner.cost.case import Case, Operand
from tflm_planner.model.ir import Op, Tensor
from tflm_planner.ops.axes import axis_map
from tflm_planner.ops.axis_rules import Slide
from tflm_planner.tiling.estimate.schedule import LinearSchedule
from tflm_planner.tiling.evaluate.candidate import CLIMB, Candidate, Evaluation
from tflm_planner.tiling.evaluate.evaluator import EvaluationRequest, Evaluator
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.hotspots.contraction import ContractedOrder
from tflm_planner.tiling.hotspots.orders import HotspotOrder, Hotspots, estimate_order, hotspot_sets
from tflm_planner.tiling.model_evaluations import ModelEvaluations
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.tiling.segments import LARGE_WORK
from tflm_planner.transforms.tile.operator_tiles import Border
from tflm_planner.transforms.tile.tile import ROWS, TiledRegion
from tflm_planner.transforms.tile.tiler import region_results

PROMISING = 4
"""Orders of which bulges are tried in tiles."""
MOST_WORK = 12_000
"""Operators planned in trials of a bulge."""
_ENOUGH = 12_000
"""Operators planned in trials, after which no other order is looked at."""
_SIZES = (12, 6, 4, 2, 1)
"""Rows of a tile that are tried, the largest first; of the result with the fewest rows."""
_MUCH = 1.25
"""Times the bytes of the smallest tiles, from which on larger tiles are not tried."""
_FINER = 2
"""Tiles of each row that are tried where tensors inside a bulge have as many rows more."""
_DEAR = 2
"""PAD is dear where it takes so many times the instructions of SLICE."""


@dataclass(frozen=True)
class _HotspotOption:
    """head: bytes. tail, cost: bytes and instructions that it adds."""

    scheme: TiledRegion
    head: int
    tail: int
    cost: int

    @property
    def parts(self) -> int:
        """Tiles."""
        return self.scheme.splits[0][1]


@dataclass(frozen=True)
class _EstimateOrderJob:
    """The guess for one set of bulges, as a job. most, halos: as in `orders.guess`."""

    bulges: Hotspots
    halos: tuple[int, ...]
    most: int

    def on(self, bench: Evaluator) -> list[HotspotOrder]:
        """One, or none."""
        found = estimate_order(bench.dag, self.bulges, self.halos, self.most)
        return [] if found is None else [found]


@dataclass
class HotspotTiles:
    """whole: the models that the search has tried. allowed: instructions that may be added."""

    workers: Workers
    options: TilingOptions
    whole: ModelEvaluations
    allowed: int
    tried: int = 0
    _work: int = 0
    _outcomes: dict[tuple[object, ...], Evaluation | None] = field(
        default_factory=dict[tuple[object, ...], Evaluation | None], repr=False
    )
    """By operators, what lives through, and scheme."""

    def trials(self) -> Iterator[Candidate]:
        """Whole models in tiles, those of the most promising order first."""
        bench = self.workers.bench
        graph = bench.model.main
        copies = all(self.options.allows(k, self.whole.used) for k in ("SLICE", "CONCATENATION"))
        if not copies or any(op.graphs for op in graph.ops):
            return
        halos = tuple(halo_bytes(op) for op in graph.ops)
        most = self._known - self._added(0, self.whole.plain.tail)
        sets = hotspot_sets(bench.dag, self.whole.plain.head)
        guesses = self.workers.done([_EstimateOrderJob(bulges, halos, most) for bulges in sets])
        promising = sorted((g for found in guesses for g in found), key=lambda g: g.rank)
        for found in promising[:PROMISING]:
            made = self._trial_of(found.hoped)
            if made is not None:
                yield made
            if self._work > _ENOUGH:
                return

    def _trial_of(self, found: ContractedOrder) -> Candidate | None:
        """The fewest bytes for the instructions that may be added; None where they are no fewer
        than is known."""
        line = self.workers.bench.line(found.order)
        inside = {p for first, end in found.spans for p in range(first, end)}
        floor = max((n for p, n in enumerate(line.needs) if p not in inside), default=0)
        spans = sorted(found.spans, key=lambda s: (-max(line.needs[s[0] : s[1]]), s))
        ways = [self._dearest(line, found.order, spans[0], floor)]
        if not ways[0]:
            return None
        # The dearest bulge says what is enough for the others; where one comes to no less, the
        # others need not either.
        least = self._enough(floor, ways[0])
        for span in spans[1:]:
            ways.append(self._ways(line, found.order, span, least))
            least = self._enough(least, ways[-1])
        chosen = self._affordable(ways, floor)
        if chosen is None:
            ways[0] += self._ways(line, found.order, spans[0], floor)
            chosen = self._affordable(ways, floor)
        if chosen is None:
            return None
        schemes = sorted(chosen, key=lambda s: s.ops)
        self._work += sum(s.splits[0][1] * len(s.ops) for s in schemes)
        return Candidate(tuple(schemes), False, found.order, CLIMB)

    def _dearest(
        self, line: LinearSchedule, order: tuple[int, ...], span: tuple[int, int], floor: int
    ) -> list[_HotspotOption]:
        """The bulge that needs most: of a head, its smallest tiles, and larger ones only near
        them. Tiles add to the tail; where that counts, the largest first, until more of them
        cannot come to less than is known."""
        if self.options.objective == "head":
            return self._smallest(line, order, span)
        found = self._ways(line, order, span, floor)
        return [w for w in found if not self._is_vain(w.head, w.tail)]

    def _added(self, head: int, tail: int) -> int:
        """Bytes that are to be small, of a head and what is added to the tail."""
        return head + tail if self.options.objective == "arena" else head

    def _is_vain(self, head: int, tail: int) -> bool:
        """Whether a head and what is added to the tail are no less than what is known."""
        return self._added(head, self.whole.plain.tail + tail) >= self._known

    @property
    def _known(self) -> int:
        """Bytes that are to be gone below."""
        return max(self.whole.best.bytes, self.options.budget or 0)

    def _may_help(self, parts: int, floor: int, tail: int, known: Sequence[_HotspotOption]) -> bool:
        """Whether so many tiles may come to less than `known` fewer ones, and than the best whole
        model. n times as many need an n-th of the bytes at best, and no less than `floor`, and add
        n times as much to the tail. `tail`: that of the tiles, without what puts them together."""
        if not known:
            return not self._is_vain(floor, tail)
        last = max(known, key=lambda w: w.parts)
        head = max(floor, last.head * last.parts // parts)
        tail = max(tail, last.tail * (parts - 1) // (last.parts - 1))
        least = min(self._added(w.head, w.tail) for w in known)
        return self._added(head, tail) < least and not self._is_vain(head, tail)

    def _enough(self, least: int, ways: Sequence[_HotspotOption]) -> int:
        """A head that is low enough, where that was `least`; another bulge takes one of `ways`."""
        if not ways:
            return least
        return max(least, min(ways, key=lambda w: (self._added(w.head, w.tail), w.cost)).head)

    def _affordable(
        self, ways: Sequence[Sequence[_HotspotOption]], floor: int
    ) -> list[TiledRegion] | None:
        """A way of each bulge, for the fewest bytes that may be had for the instructions that may
        be added; None where there are none, or not fewer than is known."""
        best: tuple[int, list[TiledRegion]] | None = None
        for head in sorted({floor, *(w.head for of in ways for w in of if w.head > floor)}):
            chosen = [min((w for w in of if w.head <= head), key=_cheapest, default=None)
                      for of in ways]  # fmt: skip
            taken = [w for w in chosen if w is not None]
            if len(taken) < len(ways) or sum(w.cost for w in taken) > self.allowed:
                continue
            tail = sum(w.tail for w in taken)
            bytes_ = self._added(head, tail)
            if not self._is_vain(head, tail) and (best is None or bytes_ < best[0]):
                best = bytes_, [w.scheme for w in taken]
        return best and best[1]

    def _smallest(
        self, line: LinearSchedule, order: tuple[int, ...], span: tuple[int, int]
    ) -> list[_HotspotOption]:
        """A bulge in ever larger tiles, until they need much more than the smallest."""
        first, end = span
        found: list[_HotspotOption] = []
        for parts in reversed(_parts(line.ops[first:end], line)):
            if parts * (end - first) > MOST_WORK:
                continue
            ways = self._cut(line, parts, order, span)
            found += ways
            least = min((w.head for w in found), default=0)
            if ways and min(w.head for w in ways) > _MUCH * least:
                break
        return found

    def _ways(
        self, line: LinearSchedule, order: tuple[int, ...], span: tuple[int, int], floor: int
    ) -> list[_HotspotOption]:
        """A bulge in ever smaller tiles, until it needs no more than the operators around, or
        smaller ones cannot help."""
        first, end = span
        found: list[_HotspotOption] = []
        work, tail = 0, sum(line.tail[first:end])
        for parts in _parts(line.ops[first:end], line):
            work += parts * (end - first)
            if work > MOST_WORK:
                break
            if not self._may_help(parts, floor, tail * (parts - 1), found):
                continue
            found += self._cut(line, parts, order, span)
            if any(w.head <= floor for w in found):
                break
        return found

    def _cut(
        self, line: LinearSchedule, parts: int, order: tuple[int, ...], span: tuple[int, int]
    ) -> list[_HotspotOption]:
        """A bulge in so many tiles."""
        first, end = span
        inner = tuple(range(end - first))
        schemes = [
            TiledRegion(inner, ((ROWS, parts),), "merge", border, eager=True)
            for border in self._borders(parts * len(inner), line.ops[first])
        ]
        return self._tried(line, schemes, order, span)

    def _borders(self, work: int, op: Op) -> tuple[Border, ...]:
        """Ways to pad, of a bulge with so many operators in tiles, the first of which is `op`."""
        borders = self.options.borders(self.whole.used)
        if "pad" in borders and pads_are_dear(op.outputs[0], self.options):
            borders = ("waste", "ahead", "once")
        return borders if work <= LARGE_WORK or len(borders) == 1 else borders[1:]

    def _tried(
        self,
        line: LinearSchedule,
        schemes: Sequence[TiledRegion],
        order: tuple[int, ...],
        span: tuple[int, int],
    ) -> list[_HotspotOption]:
        """Ways of a bulge; `schemes`: with positions counted from its first operator."""
        first, end = span
        place = (*map(id, line.ops[first:end]), *map(id, line.through(first, end)))
        keys = [(s, *place) for s in schemes]
        fresh = [(k, s) for k, s in zip(keys, schemes, strict=True) if k not in self._outcomes]
        questions = [
            EvaluationRequest(Candidate((s,), False, None, CLIMB), span, order) for _, s in fresh
        ]
        self.tried += len(questions)
        self._work += sum(s.splits[0][1] * len(s.ops) for _, s in fresh)
        for (key, _), outcome in zip(fresh, self.workers.answers(questions), strict=True):
            self._outcomes[key] = outcome
        return [
            _HotspotOption(
                replace(s, ops=tuple(range(first, end))), o.head, o.tail, max(o.instructions, 0)
            )
            for k, s in zip(keys, schemes, strict=True)
            if (o := self._outcomes[k]) is not None
        ]


def halo_bytes(op: Op) -> int:
    """Bytes of the rows that an operator keeps from tile to tile."""
    total = 0
    for link in axis_map(op).links_of(ROWS):
        operand = op.inputs[link.operand]
        if isinstance(link.rule, Slide) and operand is not None and not operand.is_constant:
            rows = max((operand.shape or ())[link.axis], 1)
            total += operand.nbytes * min(link.rule.reach - 1, rows) // rows
    return total


def pads_are_dear(tensor: Tensor, options: TilingOptions) -> bool:
    """Whether to pad such a tensor takes many times the instructions of another copy: kernels
    that weigh every element."""
    shape = tensor.shape or ()
    numbers = Operand("int32", (len(shape), 2), True, 0, (0,) * (2 * len(shape)))
    data, begin = Operand(tensor.type_name, shape), Operand("int32", (len(shape),), True)
    target = options.machine.target
    pad = cost_of_case(Case("PAD", (data, numbers), (data,)), target)
    cut = cost_of_case(Case("SLICE", (data, begin, begin), (data,)), target)
    return pad.instructions > _DEAR * cut.instructions


def _parts(ops: Sequence[Op], line: LinearSchedule) -> list[int]:
    """Numbers of tiles that are tried."""
    results = region_results(line.model.main, ops)
    rows = min(((t.shape or ())[ROWS:][:1] for t in results), default=())
    parts = [-(-n // size) for n in rows for size in _SIZES]
    tall = max((n for op in ops for t in op.outputs for n in (t.shape or ())[ROWS:][:1]), default=0)
    parts += [_FINER * n for n in rows if tall >= 2 * _FINER * n]
    return [p for p in dict.fromkeys(parts) if p > 1]


def _cheapest(way: _HotspotOption) -> tuple[int, int]:
    return way.cost, way.head
