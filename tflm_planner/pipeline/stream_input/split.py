"""Streamed input: where to split a model so that front and back need the least SRAM together.

    back's arena   | head: boundary, room, ...                 | tail |     + front, persistent
                             [ front: rows, halos, tiles ]

The front's memory, but for what must persist, is an input of the back that nothing reads: it is
planned beside the boundary, which the front fills, and below everything that the back computes
later. So the back's arena is that of both, and no plan of the two is better than a plan of one.
Fronts grow with every operator that they take in (halos, and rows by the product of strides),
backs shrink; in between the boundary itself counts. Ends are tried in the order of a lower bound,
planned without tiles first, and with tiles as long as that could still win. It must not know
runtimes.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace

from tflm_planner.cost import latency_of
from tflm_planner.model.clone import clone
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline.memory_plan import MemoryOptions, Progress, silent
from tflm_planner.pipeline.planned_model import (
    REFUSED,
    PlannedModel,
    TilePermission,
    add_lean_pool,
)  # fmt: skip
from tflm_planner.pipeline.planned_model import planned_models as offered_files
from tflm_planner.pipeline.refusals import MOST_REFUSED, Refusal
from tflm_planner.support.errors import ModelError, UnsoundPlanError, UsageError
from tflm_planner.support.stopping import Stop
from tflm_planner.support.units import align_up
from tflm_planner.tflm.arena.predict import SplitArena, split_arena
from tflm_planner.tflm.arena.uncertainty import Uncertainty
from tflm_planner.tflm.element_types import newly_unsupported
from tflm_planner.tflm.sharing import RemainingCopies
from tflm_planner.tflm.target_kernels import runners
from tflm_planner.tflm.targets import Target
from tflm_planner.transforms.attach_plan import carried_plan
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.row_loop.geometry import Geometry
from tflm_planner.transforms.row_loop.loop import NotStreamableError
from tflm_planner.transforms.row_loop.operand_rows import element_bytes
from tflm_planner.transforms.row_loop.split_input import (
    StripSchedule,
    add_room,
    can_split,
    ends_of,
    split_model,
)

End = tuple[int, tuple[int, ...], int]
"""Bytes that the pair needs at least, operators of the front, rows of the boundary a turn."""
_QUICK = 0.1
"""Effort for a plan that only shows where to split."""


@dataclass(frozen=True)
class StreamOptions:
    """search: of both halves. tiles: what tiling may do in the back (None: nothing); its overhead
    is that of the pair. rows: of the image in a strip (None: the fewest). end: the front's last
    operator, by its position in the file (None: where the least SRAM is needed). overhead:
    instructions of the pair, relative to the original, as far as a split keeps to them."""

    search: MemoryOptions = field(default_factory=MemoryOptions)
    tiles: TilePermission | None = None
    rows: int | None = None
    end: int | None = None
    overhead: float = 1.2

    def __post_init__(self) -> None:
        if not self.overhead >= 1:
            raise UsageError(f"latency overhead {self.overhead} is below 1")


@dataclass(frozen=True)
class StreamedPair:
    """A model in two halves, planned. ops: of the front, by position. apart: the front's two
    arenas, the second of which is the back's room. instructions: of the original, of all turns of
    the front, of the back. refused: what promised more, and why it was not made."""

    ops: tuple[int, ...]
    strips: StripSchedule
    front: PlannedModel
    back: PlannedModel
    apart: SplitArena
    instructions: tuple[int, int, int]
    refused: tuple[str, ...] = ()

    @property
    def sram(self) -> int:
        """Bytes that both need together."""
        return self.apart.persistent + self.back.inspection.arena.arena

    @property
    def uncertainties(self) -> tuple[Uncertainty, ...]:
        """Why these bytes are no more than "at least"; of both halves, each reason once."""
        arenas = self.front.inspection.arena, self.back.inspection.arena
        return tuple(
            dict.fromkeys(uncertainty for arena in arenas for uncertainty in arena.uncertainties)
        )

    @property
    def overhead(self) -> float:
        """Instructions of both, relative to the original."""
        original, front, back = self.instructions
        return (front + back) / max(original, 1)


def streamed_pairs(
    data: bytes, options: StreamOptions, say: Progress = silent, stop: Stop | None = None
) -> Generator[StreamedPair, Refusal | None, None]:
    """Front and back of the model in `data`, where they need the least SRAM together; and when the
    proof refuses them, for a reason that is sent here, the next best: split elsewhere, or there
    but with no tiles in the back. `stop`: may end all searching, for splits too; one is made in
    any case.

    Raises ModelError where the input cannot be streamed, UsageError where it cannot be so, and
    UnsoundPlanError where a guard refuses the only split."""
    model = read_model(data)
    run(model, Normalize())
    stop = stop or Stop(options.search.time_limit)
    hunt = _SplitSearch(model, options, say, _ends(model, options), stop)
    best, left = hunt.best(), MOST_REFUSED
    if best is None and hunt.fault is not None:
        raise hunt.fault
    while best is not None:
        reason = yield replace(best, refused=tuple(hunt.refused))
        if not left:
            return
        left -= 1
        hunt.drop(best, f"{REFUSED}: {_describe_split(best)}: {reason}")
        best = hunt.best()


class _SplitSearch:
    """The splits of a model, each planned as far as it may be the best: without tiles first, and
    then, if that could win, with them."""

    def __init__(
        self,
        model: Model,
        options: StreamOptions,
        say: Progress,
        ends: Sequence[End],
        stop: Stop,
    ) -> None:
        self._model, self._options, self._say, self._stop = model, options, say, stop
        self._ends = list(ends)
        self._plain: dict[tuple[int, ...], StreamedPair] = {}
        self._full: dict[tuple[int, ...], StreamedPair | None] = {}
        self.refused: list[str] = []
        self.fault: UnsoundPlanError | None = None
        """Why a guard refused the first of those that it did."""

    def best(self) -> StreamedPair | None:
        """The best split that was not dropped."""
        best: StreamedPair | None = None
        for found in (*self._plain.values(), *self._full.values()):
            best = best if found is None else self._better(best, found)
        while self._ends and not self._is_beaten(self._ends[0], best):
            _, ops, rows = self._ends.pop(0)
            self._say(f"splitting behind {self._model.main.ops[ops[-1]].label}")
            plain = self._planned(ops, rows, _quick_options(self._options))
            if plain is not None:
                self._plain[ops] = plain
                best = self._better(best, plain)
        if best is None:
            return None
        kept = best.overhead <= self._options.overhead
        for plain in sorted(self._plain.values(), key=_optimistic_sram):
            if self._stop.is_over:
                return best
            beyond = kept and plain.overhead > self._options.overhead
            if plain is best or not (beyond or _optimistic_sram(plain) >= best.sram):
                full = self._planned_in_full(plain)
                best = best if full is None else self._better(best, full)
        return best

    def drop(self, split: StreamedPair, why: str) -> None:
        """Give a split up. One whose back is in tiles stays without them."""
        self.refused.append(why)
        self._say(why)
        if not split.back.tiled:
            del self._plain[split.ops]
        self._full[split.ops] = None

    def _is_beaten(self, end: End, best: StreamedPair | None) -> bool:
        if best is not None and self._stop.is_over:
            return True
        if best is None or best.overhead > self._options.overhead:
            return False
        return end[0] >= best.sram

    def _better(self, best: StreamedPair | None, found: StreamedPair) -> StreamedPair:
        """The one that keeps to the overhead; of two such, the smaller one; else the faster one."""
        if best is None:
            return found

        def rank(one: StreamedPair) -> tuple[bool, float, float]:
            beyond = one.overhead > self._options.overhead
            return beyond, one.overhead if beyond else one.sram, one.overhead

        return min(best, found, key=rank)

    def _planned_in_full(self, plain: StreamedPair) -> StreamedPair | None:
        if plain.ops not in self._full:
            self._say(f"planning {len(plain.ops)} operators in strips, and the rest")
            made = plain.strips.made
            self._full[plain.ops] = self._planned(plain.ops, made, self._options)
        return self._full[plain.ops]

    def _planned(
        self, ops: tuple[int, ...], rows: int, options: StreamOptions
    ) -> StreamedPair | None:
        """The split, planned; None where a guard refuses it."""
        try:
            return planned_split(self._model, ops, rows, options, self._say, self._stop)
        except UnsoundPlanError as error:
            self.fault = self.fault or error
            self.refused.append(f"passed over: the split behind operator {ops[-1]}: {error}")
            self._say(self.refused[-1])
            return None


def _describe_split(split: StreamedPair) -> str:
    """A split as a report says which one it was."""
    tiles = ", the back in tiles" if split.back.tiled else ""
    return f"{split.sram:,} B, the front to operator {split.ops[-1]}{tiles}"


def _quick_options(options: StreamOptions) -> StreamOptions:
    """For a plan that only shows where to split."""
    return replace(options, search=replace(options.search, effort=_QUICK), tiles=None)


def _optimistic_sram(found: StreamedPair) -> int:
    """What the pair would need if tiles lowered the back to boundary and room."""
    boundary, _ = found.back.inspection.model.main.inputs
    tails = found.apart.persistent + found.back.inspection.arena.tail
    return tails + align_up(boundary.nbytes) + found.apart.shared


def _ends(model: Model, options: StreamOptions) -> list[End]:
    """Where the model can be split, the most promising end first. Raises ModelError where there is
    none."""
    if len(model.main.inputs) != 1:
        raise ModelError(
            f"the input cannot be streamed: the model has {len(model.main.inputs)} inputs, and "
            "rows can come for one only"
        )
    target = options.search.kernels.target
    _, pooled = add_lean_pool(write_model(model), clone(model), target)
    persistent = split_arena(pooled, target).persistent
    found: list[End] = []
    reasons: list[str] = []
    for ops in ends_of(model):
        if options.end not in (None, ops[-1]):
            continue
        try:
            made = _turns(model, ops, options.rows)
            shape = can_split(model, ops, made)
        except NotStreamableError as error:
            reasons.append(str(error))
            continue
        why = _unrunnable(model, ops, made, target)
        if why is not None:
            reasons.append(f"TFLM could not run the halves: {why}")
            continue
        found.append((persistent + shape.result.nbytes + _front_bytes(shape), ops, made))
    if found:
        return sorted(found)
    if options.end is not None:
        why = reasons[0] if reasons else "it does not depend on the input"
        raise UsageError(f"the front cannot end with operator {options.end}: {why}")
    why = f": {reasons[0]}" if reasons else ""
    raise ModelError(f"the input cannot be streamed{why}")


def _unrunnable(model: Model, ops: tuple[int, ...], rows: int, target: Target) -> str | None:
    """Why TFLM could not run the halves of a split, by the types of their operators."""
    halves = split_model(model, ops, rows)
    made = (*halves.front.ops(), *halves.back.ops())
    return newly_unsupported(model.ops(), made, runners(target))


def _front_bytes(shape: Geometry) -> int:
    """What a front needs at least: all halos, and the new rows of one operator."""
    new = (
        (u.tile - u.carried) * u.reading.width * element_bytes(u.reading.tensor) for u in shape.uses
    )
    return shape.halo_bytes + max(new, default=0)


def _turns(model: Model, ops: tuple[int, ...], rows: int | None) -> int:
    """Rows of the boundary a turn, for so many rows of the image in a strip."""
    if rows is None:
        return 1
    shape = can_split(model, ops, 1)
    each = shape.rows[shape.source]
    if rows % each:
        raise NotStreamableError(
            f"strips of {rows} rows: {each} rows of the image make one row behind "
            f"{shape.ops[-1].label}; take a multiple of {each}"
        )
    return rows // each


def planned_split(
    model: Model,
    ops: tuple[int, ...],
    rows: int,
    options: StreamOptions,
    say: Progress = silent,
    stop: Stop | None = None,
) -> StreamedPair:
    """Both halves of a split (see `transforms.row_loop.split_input.split`), planned."""
    halves, search, target = (
        split_model(model, ops, rows),
        options.search,
        options.search.kernels.target,
    )
    stop = stop or Stop(search.time_limit)
    front = _plan_half(halves.front, replace(search, states=halves.strips.states), None, say, stop)
    check_states(front, halves.strips.states)
    built = front.inspection.model
    apart = split_arena(built, target, carried_plan(built))
    original = latency_of(model, target).instructions
    turns = halves.strips.turns * _instructions(front, target)
    left = (options.overhead * original - turns) / latency_of(halves.back, target).instructions
    tiles = None if options.tiles is None else replace(options.tiles, overhead=max(left, 1.0))
    add_room(halves.back, apart.shared)
    back = _plan_half(halves.back, search, tiles, say, stop)
    spent = original, turns, _instructions(back, target)
    return StreamedPair(ops, halves.strips, front, back, apart, spent)


def _instructions(made: PlannedModel, target: Target) -> int:
    model = made.inspection.model
    copying = RemainingCopies(carried_plan(model) or {})
    return latency_of(
        model, target, in_place=copying.in_place, turn_bytes=copying.turn_bytes
    ).instructions


def _plan_half(
    model: Model, search: MemoryOptions, tiles: TilePermission | None, say: Progress, stop: Stop
) -> PlannedModel:
    data, model = add_lean_pool(write_model(model), model, search.kernels.target)
    return next(offered_files(data, read_model(data), search, tiles, None, say, stop))


def check_states(front: PlannedModel, states: tuple[tuple[int, int], ...]) -> None:
    """What the file says, not what was meant: halos stay where they are."""
    graph = front.inspection.model.main
    plan = carried_plan(front.inspection.model) or {}
    for given, left in states:
        before, after = graph.inputs[given], graph.outputs[left]
        if plan.get(before, -1) != plan.get(after, -2):
            raise UnsoundPlanError(f"the front's plan moves the halo {before.name!r}")
