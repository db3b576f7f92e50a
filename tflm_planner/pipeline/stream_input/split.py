"""Finds where to split a model so that front and back together need the least SRAM.

    back's arena   | head: boundary, room, ...                 | tail |     + front, persistent
                             [ front: rows, halos, tiles ]

The front's memory, except for what must persist, is an input of the back that nothing reads. (In
the drawing it is "room".) It lies beside the boundary, which the front fills, and shares memory
with everything that the back computes later. So the back's arena serves both halves, and planning
the back plans both. With every further operator the front grows (by halos, and by rows times the
product of strides) and the back shrinks; the boundary between them counts, too. Split points are
tried in the order of a lower bound, first planned without tiles, then with tiles as long as that
could still be better. It must not know runtimes: `prove` is a function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from tflm_planner.cost import latency_of
from tflm_planner.model.clone import clone
from tflm_planner.model.edit import number_origins
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline.options import (
    MOST_SLOWDOWN,
    MemoryOptions,
    StreamOptions,
    TilePermission,
)
from tflm_planner.pipeline.planning.model_planner import REFUSED, ModelPlanner, leave_unproved
from tflm_planner.pipeline.planning.planned_file import PlannedFile, add_lean_pool
from tflm_planner.pipeline.planning.refusals import MOST_REFUSED, Proof
from tflm_planner.support.errors import ModelError, UnsoundPlanError, UsageError
from tflm_planner.support.progress import Progress, silent
from tflm_planner.support.stopping import Stop
from tflm_planner.support.units import align_up
from tflm_planner.tflm.arena.predict import SplitArena, split_arena
from tflm_planner.tflm.arena.uncertainty import Uncertainty
from tflm_planner.tflm.element_types import new_refusal
from tflm_planner.tflm.target_kernels import runners
from tflm_planner.tflm.targets import Target
from tflm_planner.transforms.attach_plan import carried_plan
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.row_loop.geometry import LoopGeometry
from tflm_planner.transforms.row_loop.loop import NotStreamableError
from tflm_planner.transforms.row_loop.operand_rows import element_bytes
from tflm_planner.transforms.row_loop.split_input import (
    StripSchedule,
    add_room,
    can_split,
    split_model,
    split_points_of,
)

_QUICK_EFFORT = 0.1
"""Effort of exact packing for a plan that only helps to choose where to split."""


@dataclass(frozen=True, order=True)
class SplitPoint:
    """A place where a model can be split."""

    least_sram: int
    """Lower bound of the pair's SRAM in bytes."""
    ops: tuple[int, ...]
    """The front's operators, by position."""
    rows: int
    """Rows of the boundary that the front makes in each invoke."""


@dataclass(frozen=True)
class PairInstructions:
    """Instructions of one inference: of the original, of all invokes of the front, and of the
    back."""

    original: int
    front: int
    back: int


@dataclass(frozen=True)
class StreamedPair:
    """A model in two planned halves. ops: the front's operators, by their numbers in the file.
    schedule: which rows the front takes, and when. front_arena: the front's memory; its part
    `shared` is an input of the back. refused: better splits, and why they were refused."""

    ops: tuple[int, ...]
    schedule: StripSchedule
    front: PlannedFile
    back: PlannedFile
    front_arena: SplitArena
    instructions: PairInstructions
    refused: tuple[str, ...] = ()

    @property
    def sram(self) -> int:
        """Bytes of SRAM that both halves together need."""
        return self.front_arena.persistent + self.back.inspection.arena.arena

    @property
    def uncertainties(self) -> tuple[Uncertainty, ...]:
        """The uncertainties of both halves, without duplicates: why the bytes are only "at
        least"."""
        arenas = self.front.inspection.arena, self.back.inspection.arena
        return tuple(
            dict.fromkeys(uncertainty for arena in arenas for uncertainty in arena.uncertainties)
        )

    @property
    def cannot_run(self) -> tuple[str, ...]:
        """Why the target's TFLM cannot run one of the halves: operators and reasons."""
        arenas = self.front.inspection.arena, self.back.inspection.arena
        return tuple(dict.fromkeys(reason for arena in arenas for reason in arena.cannot_run))

    @property
    def slowdown(self) -> float:
        """Instructions of both halves, relative to the original."""
        counts = self.instructions
        return (counts.front + counts.back) / max(counts.original, 1)


def split_for_rows(
    data: bytes,
    options: StreamOptions,
    *,
    prove: Callable[[StreamedPair], Proof] = leave_unproved,
    on_progress: Progress = silent,
    stop: Stop | None = None,
) -> tuple[StreamedPair, Proof]:
    """The front and back of the model in `data` that together need the least SRAM and that `prove`
    does not refuse. After a refused pair, the next best one is tried, which is split elsewhere, or
    at the same place without tiles in the back. If all are refused, the last one is returned.
    `stop`: can end all searches; one split is made in any case.

    Raises ModelError if the input cannot be streamed at all, UsageError if it cannot be streamed
    with these options, and UnsoundPlanError if a guard refuses every split."""
    model = read_model(data)
    number_origins(model)
    last = len(model.main.ops) - 1
    run(model, Normalize())
    options = replace(options, end=_end_when_clean(model, options.end, last))
    stop = stop or Stop(options.memory.time_limit)
    search = _SplitSearch(model, options, on_progress, _split_points(model, options), stop)
    best, proof = _first_proved(search, prove)
    return replace(best, ops=_numbers_in_file(model, best.ops)), proof


def least_sram(data: bytes, options: StreamOptions) -> int:
    """A lower bound of the bytes of SRAM of every pair that `split_for_rows` can make of the model
    in `data`. Raises ModelError or UsageError as it does."""
    model = read_model(data)
    number_origins(model)
    last = len(model.main.ops) - 1
    run(model, Normalize())
    options = replace(options, end=_end_when_clean(model, options.end, last))
    points, _ = _points_by_geometry(model, options)
    points = points or _split_points(model, options)  # which says why there is none
    return min(points).least_sram


def _first_proved(
    search: _SplitSearch, prove: Callable[[StreamedPair], Proof]
) -> tuple[StreamedPair, Proof]:
    """The best pair that `prove` does not refuse; the last one if all are refused."""
    best = search.first()
    for _ in range(MOST_REFUSED):
        proof = prove(best)
        if proof.refusal is None:
            return best, proof
        search.drop(best, f"{REFUSED}: {search.describe(best)}: {proof.refusal}")
        following = search.best()
        if following is None:
            return best, proof
        best = following
    return best, prove(best)


def _end_when_clean(model: Model, end: int | None, last: int) -> int | None:
    """The place of the operator that has number `end` in the file, now that the model is cleaned
    up. last: the number of the file's last operator. Raises UsageError if there is none."""
    if end is None or last < 0:
        return end
    if end > last:
        raise UsageError(f"--end {end}: there are operators 0 to {last}")
    for place, op in enumerate(model.main.ops):
        if end in op.origins:
            return place
    raise UsageError(
        f"--end {end}: nothing is left of that operator once the model is cleaned up; name the one "
        "before or behind it"
    )


def _numbers_in_file(model: Model, ops: Iterable[int]) -> tuple[int, ...]:
    """The numbers in the file of operators of a model that was cleaned up."""
    numbers = (model.main.ops[place].origins or {place} for place in ops)
    return tuple(sorted(set[int]().union(*numbers)))


class _SplitSearch:
    """The splits of a model. Each is planned only as long as it may be the best: first without
    tiles, then with tiles if that could be better."""

    def __init__(
        self,
        model: Model,
        options: StreamOptions,
        on_progress: Progress,
        points: Sequence[SplitPoint],
        stop: Stop,
    ) -> None:
        self._model, self._options, self._stop = model, options, stop
        self._on_progress = on_progress
        self._points = list(points)
        self._without_tiles: dict[tuple[int, ...], StreamedPair] = {}
        self._with_tiles: dict[tuple[int, ...], StreamedPair | None] = {}
        self._refused: list[str] = []
        self._first_fault: UnsoundPlanError | None = None

    def first(self) -> StreamedPair:
        """The best split. Raises UnsoundPlanError if a guard refuses every split."""
        best = self.best()
        if best is None:
            assert self._first_fault is not None
            raise self._first_fault
        return best

    def best(self) -> StreamedPair | None:
        """The best split that was not dropped. Its `refused` lists those that were."""
        best = self._best()
        return None if best is None else replace(best, refused=tuple(self._refused))

    def _best(self) -> StreamedPair | None:
        best: StreamedPair | None = None
        for pair in (*self._without_tiles.values(), *self._with_tiles.values()):
            best = best if pair is None else self._better(best, pair)
        while self._points and not self._is_beaten(self._points[0], best):
            point = self._points.pop(0)
            self._on_progress(f"splitting behind {self._model.main.ops[point.ops[-1]].label}")
            plain = self._plan(point.ops, point.rows, _quick_options(self._options))
            if plain is not None:
                self._without_tiles[point.ops] = plain
                best = self._better(best, plain)
        if best is None:
            return None
        fast_enough = best.slowdown <= self._options.max_slowdown
        for plain in sorted(self._without_tiles.values(), key=_optimistic_sram):
            if self._stop.is_over:
                return best
            too_slow = fast_enough and plain.slowdown > self._options.max_slowdown
            if plain is best or not (too_slow or _optimistic_sram(plain) >= best.sram):
                full = self._plan_in_full(plain)
                best = best if full is None else self._better(best, full)
        return best

    def drop(self, split: StreamedPair, why: str) -> None:
        """Drop a split. If its back is in tiles, the split without tiles is kept."""
        self._refused.append(why)
        self._on_progress(why)
        if not split.back.tiled:
            del self._without_tiles[split.ops]
        self._with_tiles[split.ops] = None

    def _is_beaten(self, point: SplitPoint, best: StreamedPair | None) -> bool:
        if best is not None and self._stop.is_over:
            return True
        if best is None or best.slowdown > self._options.max_slowdown:
            return False
        return point.least_sram >= best.sram

    def _better(self, best: StreamedPair | None, pair: StreamedPair) -> StreamedPair:
        """The better of two pairs: the one within the permitted slowdown; if both are, the smaller
        one; if neither is, the faster one."""
        if best is None:
            return pair

        def rank(one: StreamedPair) -> tuple[bool, float, float]:
            too_slow = one.slowdown > self._options.max_slowdown
            return too_slow, one.slowdown if too_slow else one.sram, one.slowdown

        return min(best, pair, key=rank)

    def _plan_in_full(self, plain: StreamedPair) -> StreamedPair | None:
        if plain.ops not in self._with_tiles:
            self._on_progress(f"planning {len(plain.ops)} operators row by row, and the rest")
            rows = plain.schedule.made
            self._with_tiles[plain.ops] = self._plan(plain.ops, rows, self._options)
        return self._with_tiles[plain.ops]

    def _plan(self, ops: tuple[int, ...], rows: int, options: StreamOptions) -> StreamedPair | None:
        """Plan a split; None if a guard refuses it."""
        try:
            return plan_split(self._model, ops, rows, options, self._on_progress, self._stop)
        except UnsoundPlanError as fault:
            self._first_fault = self._first_fault or fault
            number = _numbers_in_file(self._model, ops)[-1]
            self._refused.append(f"passed over: the split behind operator {number}: {fault}")
            self._on_progress(self._refused[-1])
            return None

    def describe(self, split: StreamedPair) -> str:
        """A split in words, for a report."""
        tiles = ", the back in tiles" if split.back.tiled else ""
        number = _numbers_in_file(self._model, split.ops)[-1]
        return f"{split.sram:,} B, the front to operator {number}{tiles}"


def _quick_options(options: StreamOptions) -> StreamOptions:
    """Options for a plan that only helps to choose where to split."""
    return replace(options, memory=replace(options.memory, exact_effort=_QUICK_EFFORT), tiles=None)


def _optimistic_sram(pair: StreamedPair) -> int:
    """Bytes that the pair would need if tiles lowered the back's head to the boundary and the
    memory of the front."""
    boundary, _ = pair.back.inspection.model.main.inputs
    tails = pair.front_arena.persistent + pair.back.inspection.arena.tail
    return tails + align_up(boundary.nbytes) + pair.front_arena.shared


def _split_points(model: Model, options: StreamOptions) -> list[SplitPoint]:
    """The places where the model can be split, the lowest bound first. Raises ModelError if there
    are none, UsageError if there are none because of `options.end` or `options.rows`."""
    if len(model.main.inputs) != 1:
        raise ModelError(
            f"the input cannot be streamed: the model has {len(model.main.inputs)} inputs, and "
            "rows can come for one only"
        )
    points: list[SplitPoint] = []
    by_geometry, reasons = _points_by_geometry(model, options)
    for point in by_geometry:
        why = _why_halves_cannot_run(model, point.ops, point.rows, options.target)
        if why is None:
            points.append(point)
        else:
            reasons.append(f"TFLM could not run the halves: {why}")
    if points:
        return sorted(points)
    if options.end is not None:
        why = reasons[0] if reasons else "it does not depend on the input"
        number = _numbers_in_file(model, [options.end])[-1]
        raise UsageError(f"the front cannot end with operator {number}: {why}")
    if options.rows is not None:
        _split_points(model, replace(options, rows=None))  # else it is not the rows that forbid it
        raise UsageError(f"the input cannot be streamed with --rows {options.rows}: {reasons[0]}")
    why = f": {reasons[0]}" if reasons else ""
    raise ModelError(f"the input cannot be streamed{why}")


def _points_by_geometry(model: Model, options: StreamOptions) -> tuple[list[SplitPoint], list[str]]:
    """The places where the geometry allows a split; and why it allows none elsewhere."""
    target = options.target
    pooled = add_lean_pool(clone(model))[1] if target.lean else model
    persistent = split_arena(pooled, target).persistent
    points: list[SplitPoint] = []
    reasons: list[str] = []
    for ops in split_points_of(model):
        if options.end not in (None, ops[-1]):
            continue
        try:
            rows = _boundary_rows(model, ops, options.rows)
            geometry = can_split(model, ops, rows)
        except NotStreamableError as error:
            reasons.append(str(error))
            continue
        least_sram = persistent + geometry.result.nbytes + _front_bytes(geometry)
        points.append(SplitPoint(least_sram, ops, rows))
    return points, reasons


def _why_halves_cannot_run(
    model: Model, ops: tuple[int, ...], rows: int, target: Target
) -> str | None:
    """Why TFLM could not run the halves of a split, by the types of their operators."""
    halves = split_model(model, ops, rows)
    both = (*halves.front.ops(), *halves.back.ops())
    return new_refusal(model.ops(), both, runners(target))


def _front_bytes(geometry: LoopGeometry) -> int:
    """Lower bound of a front's bytes: all halos, and the new rows of one operator."""
    new = (
        (use.tile - use.carried) * use.reading.width * element_bytes(use.reading.tensor)
        for use in geometry.uses
    )
    return geometry.halo_bytes + max(new, default=0)


def _boundary_rows(model: Model, ops: tuple[int, ...], rows: int | None) -> int:
    """Rows of the boundary that each invoke makes from `rows` rows of the image. Raises
    NotStreamableError if that is not a whole number."""
    if rows is None:
        return 1
    geometry = can_split(model, ops, 1)
    image_rows = geometry.rows[geometry.source]
    if rows % image_rows:
        raise NotStreamableError(
            f"strips of {rows} rows: {image_rows} rows of the image make one row behind "
            f"{geometry.ops[-1].label}; take a multiple of {image_rows}"
        )
    return rows // image_rows


def plan_split(
    model: Model,
    ops: tuple[int, ...],
    rows: int,
    options: StreamOptions,
    on_progress: Progress = silent,
    stop: Stop | None = None,
) -> StreamedPair:
    """Plan both halves of a split (see `transforms.row_loop.split_input.split_model`)."""
    memory, target = options.memory, options.target
    halves = split_model(model, ops, rows)
    states = halves.strips.states
    stop = stop or Stop(memory.time_limit)
    front_memory = replace(memory, states=states)
    front = _plan_half(halves.front, front_memory, None, on_progress, stop)
    check_states(front, states)
    front_arena = split_arena(front.inspection.model, target, carried_plan(front.inspection.model))
    original = latency_of(model, target).instructions
    turns = halves.strips.turns * front.instructions(target)
    back_slowdown = (options.max_slowdown * original - turns) / latency_of(
        halves.back, target
    ).instructions
    allowed = min(max(back_slowdown, 1.0), MOST_SLOWDOWN)
    tiles = None if options.tiles is None else replace(options.tiles, max_slowdown=allowed)
    add_room(halves.back, front_arena.shared)
    back = _plan_half(halves.back, memory, tiles, on_progress, stop)
    instructions = PairInstructions(original, turns, back.instructions(target))
    return StreamedPair(ops, halves.strips, front, back, front_arena, instructions)


def _plan_half(
    model: Model,
    memory: MemoryOptions,
    tiles: TilePermission | None,
    on_progress: Progress,
    stop: Stop,
) -> PlannedFile:
    data = write_model(model)
    if memory.kernels.target.lean:
        data, _ = add_lean_pool(model)
    planner = ModelPlanner(memory, stop, tiles, on_progress=on_progress)
    return planner.plan(data, read_model(data)).file


def check_states(front: PlannedFile, states: tuple[tuple[int, int], ...]) -> None:
    """Check that halos keep their offsets in the plan that is found in the file, not in the
    intended one. Raises UnsoundPlanError if they do not."""
    graph = front.inspection.model.main
    plan = carried_plan(front.inspection.model) or {}
    for input_place, output_place in states:
        before, after = graph.inputs[input_place], graph.outputs[output_place]
        if plan.get(before, -1) != plan.get(after, -2):
            raise UnsoundPlanError(f"the front's plan moves the halo {before.name!r}")
