"""Makes whole models with tiles in their hotspots, and chooses the number of tiles of each hotspot.

    hotspots (order, intervals) -> evaluations of each hotspot in a few part counts
                                -> one part count each, for the fewest bytes of the whole model

The search of segments tiles intervals of one schedule, whose order is the best one for the untiled
model. Here the order is chosen for the tiles. This module knows tiles only as a region with splits
and a number of parts; `transforms.tile` makes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tflm_planner.cost import cost_of_case
from tflm_planner.cost.case import Case, Operand
from tflm_planner.model.draft import region_results
from tflm_planner.model.ir import Op, Tensor
from tflm_planner.ops.axes import axis_map
from tflm_planner.ops.axis_rules import Slide
from tflm_planner.ops.window import ROWS
from tflm_planner.tflm.target import Target
from tflm_planner.tiling.budget import SearchBudget
from tflm_planner.tiling.estimate.interval import Interval, ScheduleInterval
from tflm_planner.tiling.estimate.schedule import LinearSchedule
from tflm_planner.tiling.evaluate.candidate import Candidate, Evaluation
from tflm_planner.tiling.evaluate.evaluator import EvaluationRequest, Evaluator
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.hotspots.contraction import ContractedOrder
from tflm_planner.tiling.hotspots.orders import HotspotOrder, Hotspots, estimate_order, hotspot_sets
from tflm_planner.tiling.model_evaluations import ModelEvaluations
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.transforms.schedules import Effort
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.operator_tiles import Border
from tflm_planner.transforms.tile.tile import TiledRegion

_DEAR_PAD = 2
"""PAD is too expensive if it takes more than this many times the instructions of SLICE. 1 or 4: no
change on randwire and nasnet_mobile."""


@dataclass(frozen=True)
class HotspotOption:
    """A hotspot in one number of tiles."""

    region: TiledRegion
    head: int
    """Bytes of the head while it runs."""
    tail: int
    """Bytes that it adds to the tail."""
    instructions: int
    """Instructions that it adds."""


@dataclass(frozen=True)
class _EstimateOrderJob:
    """A job: `estimate_order` for one set of hotspots."""

    hotspots: Hotspots
    halos: tuple[int, ...]
    most: int

    def run(self, evaluator: Evaluator) -> list[HotspotOrder]:
        """A list of one order, or an empty one."""
        budget = evaluator.options.search_budget
        order = estimate_order(evaluator.dag, self.hotspots, self.halos, self.most, budget)
        return [] if order is None else [order]


@dataclass
class HotspotTiles:
    """The hotspots of one search. models: the whole models that the search has evaluated.
    allowed_instructions: instructions that tiling may add. evaluated: hotspots evaluated so far."""

    workers: Workers
    options: TilingOptions
    models: ModelEvaluations
    allowed_instructions: int
    evaluated: int = 0
    _work: int = 0
    _evaluations: dict[tuple[object, ...], Evaluation | None] = field(
        default_factory=dict[tuple[object, ...], "Evaluation | None"], repr=False
    )
    """Cached by region, its operators, and the tensors that live through it."""

    @property
    def _budget(self) -> SearchBudget:
        return self.options.search_budget

    def candidates(self) -> Iterator[Candidate]:
        """Whole models with tiles in their hotspots, those of the most promising order first."""
        evaluator = self.workers.evaluator
        graph = evaluator.model.main
        if not self.options.allows_copies(self.models.used_kinds):
            return
        if any(op.graphs for op in graph.ops):
            return
        halos = tuple(halo_bytes(op) for op in graph.ops)
        most = self._known_bytes - self._objective_bytes(0, self.models.untiled.tail)
        sets = hotspot_sets(evaluator.dag, self.models.untiled.head, self._budget)
        jobs = [_EstimateOrderJob(hotspots, halos, most) for hotspots in sets]
        estimated = self.workers.run(jobs)
        promising = sorted((o for orders in estimated for o in orders), key=lambda o: o.rank)
        for order in promising[: self._budget.hotspot_orders]:
            candidate = self.candidate_of(order.optimistic)
            if candidate is not None:
                yield candidate
            if self._work > self._budget.hotspot_work:
                return

    def candidate_of(self, contracted: ContractedOrder) -> Candidate | None:
        """The candidate of an order with the fewest bytes within the permitted instructions; None
        if it does not need fewer bytes than the best known model."""
        schedule = self.workers.evaluator.linear_schedule(contracted.order)
        inside = {p for interval in contracted.intervals for p in interval.positions}
        live = schedule.live_bytes
        least_head = max((n for p, n in enumerate(live) if p not in inside), default=0)
        largest, *others = sorted(contracted.intervals, key=lambda i: (-max(live[i.as_slice]), i))
        options = [self._options_of_largest(schedule, largest, least_head)]
        if not options[0]:
            return None
        # The largest hotspot sets the head to reach. If another one cannot reach it, the head of
        # that one becomes the target for the hotspots after it.
        enough = self._low_enough(least_head, options[0])
        for interval in others:
            options.append(self._options_of(schedule, interval, enough))
            enough = self._low_enough(enough, options[-1])
        chosen = self._best_affordable(options, least_head)
        if chosen is None:
            options[0] += self._options_of(schedule, largest, least_head)
            chosen = self._best_affordable(options, least_head)
        if chosen is None:
            return None
        regions = sorted(chosen, key=lambda r: r.ops)
        self._work += sum(r.tiles * len(r.ops) for r in regions)
        return Candidate(tuple(regions), False, contracted.order, Effort.CLIMB)

    def _options_of_largest(
        self, schedule: LinearSchedule, interval: Interval, least_head: int
    ) -> list[HotspotOption]:
        """Options of the hotspot that needs the most bytes. With the head as objective: the
        smallest tiles, and larger ones that need few more bytes. Otherwise each tile also adds to
        the tail: all options but those that cannot beat the best model."""
        if self.options.objective == "head":
            return self._smallest_tiles(schedule, interval)
        options = self._options_of(schedule, interval, least_head)
        return [o for o in options if not self._cannot_win(o.head, o.tail)]

    def _objective_bytes(self, head: int, tail: int) -> int:
        """The bytes that the objective counts, from a head and a tail."""
        return head + tail if self.options.objective == "arena" else head

    def _cannot_win(self, head: int, tail: int) -> bool:
        """Whether a model with this head, and this addition to the tail, needs no fewer bytes than
        the best one so far."""
        return self._objective_bytes(head, self.models.untiled.tail + tail) >= self._known_bytes

    @property
    def _known_bytes(self) -> int:
        """The bytes that a candidate must undercut."""
        return max(self.models.best.bytes, self.options.arena_limit or 0)

    def _may_help(
        self, parts: int, least_head: int, tail: int, known: Sequence[HotspotOption]
    ) -> bool:
        """Whether `parts` tiles may need fewer bytes than the `known` options, which have fewer
        tiles, and than the best model. At best, n times as many tiles need 1/n of the head, but at
        least `least_head`, and they add n times as much to the tail. tail: bytes that the tiles add
        to it, not counting the operators that join them."""
        if not known:
            return not self._cannot_win(least_head, tail)
        last = max(known, key=lambda o: o.region.tiles)
        head = max(least_head, last.head * last.region.tiles // parts)
        tail = max(tail, last.tail * (parts - 1) // (last.region.tiles - 1))
        least = min(self._objective_bytes(o.head, o.tail) for o in known)
        return self._objective_bytes(head, tail) < least and not self._cannot_win(head, tail)

    def _low_enough(self, head: int, options: Sequence[HotspotOption]) -> int:
        """The head that is low enough for other hotspots: the larger of `head` and the head of the
        best of these options."""
        if not options:
            return head
        best = min(options, key=lambda o: (self._objective_bytes(o.head, o.tail), o.instructions))
        return max(head, best.head)

    def _best_affordable(
        self, options: Sequence[Sequence[HotspotOption]], least_head: int
    ) -> list[TiledRegion] | None:
        """One option of each hotspot, which together need the fewest bytes within the permitted
        instructions; None if that is impossible, or not better than the best model."""
        best: tuple[int, list[TiledRegion]] | None = None
        heads = {o.head for of_hotspot in options for o in of_hotspot if o.head > least_head}
        for head in sorted({least_head, *heads}):
            cheapest = [
                min((o for o in of_hotspot if o.head <= head), key=_cost, default=None)
                for of_hotspot in options
            ]
            chosen = [o for o in cheapest if o is not None]
            instructions = sum(o.instructions for o in chosen)
            if len(chosen) < len(options) or instructions > self.allowed_instructions:
                continue
            tail = sum(o.tail for o in chosen)
            size = self._objective_bytes(head, tail)
            if not self._cannot_win(head, tail) and (best is None or size < best[0]):
                best = size, [o.region for o in chosen]
        return best and best[1]

    def _smallest_tiles(self, schedule: LinearSchedule, interval: Interval) -> list[HotspotOption]:
        """A hotspot in larger and larger tiles, until they need much more than the smallest
        ones."""
        options: list[HotspotOption] = []
        for parts in reversed(_part_counts(schedule.ops[interval.as_slice], schedule)):
            if parts * interval.size > self._budget.hotspot_work:
                continue
            evaluated = self.evaluate_parts(schedule, parts, interval)
            options += evaluated
            least = min((o.head for o in options), default=0)
            if evaluated and min(o.head for o in evaluated) > self._budget.hotspot_excess * least:
                break
        return options

    def _options_of(
        self, schedule: LinearSchedule, interval: Interval, enough: int
    ) -> list[HotspotOption]:
        """A hotspot in smaller and smaller tiles, until its head is at most `enough` bytes, or
        smaller tiles cannot help."""
        options: list[HotspotOption] = []
        work, tail = 0, sum(schedule.tail[interval.as_slice])
        for parts in _part_counts(schedule.ops[interval.as_slice], schedule):
            work += parts * interval.size
            if work > self._budget.hotspot_work:
                break
            if not self._may_help(parts, enough, tail * (parts - 1), options):
                continue
            options += self.evaluate_parts(schedule, parts, interval)
            if any(o.head <= enough for o in options):
                break
        return options

    def evaluate_parts(
        self, schedule: LinearSchedule, parts: int, interval: Interval
    ) -> list[HotspotOption]:
        """A hotspot in `parts` tiles, once with every border that is worth trying."""
        inner = tuple(range(interval.size))
        regions = [
            TiledRegion(inner, (Split(ROWS, parts),), "merge", border, eager=True)
            for border in self._borders(parts * len(inner), schedule.ops[interval.first])
        ]
        return self._evaluate_regions(schedule, regions, interval)

    def _borders(self, work: int, first_op: Op) -> tuple[Border, ...]:
        """Borders to try for a hotspot; `work` is the number of operators of all its tiles."""
        borders = self.options.borders(self.models.used_kinds)
        if "pad" in borders and pads_are_dear(first_op.outputs[0], self.options.kernels.target):
            borders = ("waste", "ahead", "once")
        few = work <= self._budget.variants_segment or len(borders) == 1
        return borders if few else borders[1:]

    def _evaluate_regions(
        self, schedule: LinearSchedule, regions: Sequence[TiledRegion], interval: Interval
    ) -> list[HotspotOption]:
        """The options of those regions that are possible. Their positions are counted from the
        first operator of the hotspot."""
        inside, through = schedule.ops[interval.as_slice], schedule.tensors_living_through(interval)
        place = (*inside, *through)
        keys = [(region, *place) for region in regions]
        pairs = zip(keys, regions, strict=True)
        unknown = [(key, region) for key, region in pairs if key not in self._evaluations]
        part = ScheduleInterval(schedule.order, interval)
        requests = [
            EvaluationRequest(Candidate((region,), False, None, Effort.CLIMB), part)
            for _, region in unknown
        ]
        self.evaluated += len(requests)
        self._work += sum(region.tiles * len(region.ops) for _, region in unknown)
        evaluations = self.workers.evaluate(requests)
        for (key, _), evaluation in zip(unknown, evaluations, strict=True):
            self._evaluations[key] = evaluation
        options: list[HotspotOption] = []
        for key, region in zip(keys, regions, strict=True):
            one = self._evaluations[key]
            if one is not None:
                moved = replace(region, ops=tuple(interval.positions))
                added = max(one.instructions, 0)
                options.append(HotspotOption(moved, one.head, one.tail, added))
        return options


def halo_bytes(op: Op) -> int:
    """Bytes of the rows that an operator keeps from tile to tile."""
    total = 0
    for link in axis_map(op).links_of(ROWS):
        operand = op.inputs[link.operand]
        if isinstance(link.rule, Slide) and operand is not None and not operand.is_constant:
            rows = max((operand.shape or ())[link.axis], 1)
            total += operand.nbytes * min(link.rule.reach - 1, rows) // rows
    return total


def pads_are_dear(tensor: Tensor, target: Target) -> bool:
    """Whether padding such a tensor takes many times the instructions of another copy, as with
    kernels that check every element."""
    shape = tensor.shape or ()
    numbers = Operand("int32", (len(shape), 2), True, 0, (0,) * (2 * len(shape)))
    data, begin = Operand(tensor.type_name, shape), Operand("int32", (len(shape),), True)
    pad = cost_of_case(Case("PAD", (data, numbers), (data,)), target)
    cut = cost_of_case(Case("SLICE", (data, begin, begin), (data,)), target)
    return pad.instructions > _DEAR_PAD * cut.instructions


def _part_counts(ops: Sequence[Op], schedule: LinearSchedule) -> list[int]:
    """Part counts of a hotspot, the fewest tiles first."""
    budget = schedule.options.search_budget
    results = region_results(schedule.model.main, ops)
    rows = min(((t.shape or ())[ROWS:][:1] for t in results), default=())
    counts = [-(-n // size) for n in rows for size in budget.hotspot_tile_rows]
    tallest = max(
        (n for op in ops for t in op.outputs for n in (t.shape or ())[ROWS:][:1]), default=0
    )
    finer = budget.hotspot_finer_tiles
    counts += [finer * n for n in rows if tallest >= 2 * finer * n]
    return [n for n in dict.fromkeys(counts) if n > 1]


def _cost(option: HotspotOption) -> tuple[int, int]:
    return option.instructions, option.head
