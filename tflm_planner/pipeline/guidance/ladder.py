"""Computes what arena each further permission reaches: rungs of a ladder, each with a command.

    as it was             122,012 B
    order and plan         91,180 B
    tiles                  84,316 B  +9.6 %   this file
    more operators                            tflm-plan in.tflite --firmware more-ops
    lean                                      tflm-plan in.tflite --firmware lean

Each rung also allows everything that the rungs above it allow. If the model fits, or if there is no
limit, rungs beyond the given permission have a figure only if it is cheap to compute. If the model
does not fit, these rungs are searched one after the other until one fits. A run that searched less
than the default (--search none, spellings or motes, tiles by hand, fewer instructions allowed, the
head made small) has the default search as such a rung, below a rung for what it did itself; with
--search none and tiles by hand no rung is searched. No figure is a guess: each is the arena of
a plan that was made for it. (Further search may lower figures that say "at most".) A figure that is
not lower than what was reached is left out. An error while planning a rung never loses the plan
itself: the rung only has no figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tflm_planner.model.clone import clone
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline.guidance.rung_commands import (
    FIRMWARE_OPTION,
    default_search,
    firmware_words,
    rung_command,
    same_command,
    searching_command,
    stream_command,
    words_for_ends,
)
from tflm_planner.pipeline.options import MemoryOptions, PlanOptions, StreamOptions, TilePermission
from tflm_planner.pipeline.planning.memory_search import plan_memory
from tflm_planner.pipeline.planning.planned_file import PlannedFile, on_lean_firmware
from tflm_planner.pipeline.planning.planning_result import SearchSummary
from tflm_planner.pipeline.planning.tiled_file import new_kinds
from tflm_planner.pipeline.planning.write import strip_file
from tflm_planner.pipeline.stream_input.pairs import StreamedPair
from tflm_planner.pipeline.stream_input.split import split_for_rows
from tflm_planner.report.document import Rung, RungKind, SmallerFile
from tflm_planner.support.errors import PlannerError
from tflm_planner.support.progress import Progress
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tflm.arena.predict import Arena, arena_of
from tflm_planner.tflm.arena.uncertainty import may_need_more
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tflm.targets import can_be_lean, with_lean
from tflm_planner.transforms.base import run
from tflm_planner.transforms.drop_conversions import drop_conversions
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.row_loop.split_input import can_stream

_LITTLE_EFFORT = 0.05
"""Effort of exact packing for figures that say "at most"."""

PlanUnproved = Callable[[PlanOptions], PlannedFile]
"""Plans the same model with other options, without a proof."""


@dataclass(frozen=True)
class LadderParts:
    """The inputs of a ladder. data, model: the original. stock: its arena. options: the options of
    the plan that was made. planned: the planned file. search: a summary of the search for it.
    source: the model's name in commands. attempt: plans the model with other options. on_progress:
    is told what is being searched. stop: the stop of the whole run."""

    data: bytes
    model: Model
    stock: Arena
    options: PlanOptions
    planned: PlannedFile
    search: SearchSummary
    source: str
    attempt: PlanUnproved
    on_progress: Progress
    stop: Stop

    @property
    def arena(self) -> Arena:
        """The arena of the planned file."""
        return self.planned.inspection.arena

    @property
    def search_rungs(self) -> bool:
        """Whether rungs are to be searched: the run may search, was not ended, and the file does
        not fit yet."""
        limit = self.options.arena_limit
        if self.options.tiles is None:
            return False
        return limit is not None and self.arena.arena > limit and not self.stop.is_over

    def fits(self, arena: int | None) -> bool:
        """Whether an arena of `arena` bytes is within the limit. False without a limit or an
        arena."""
        limit = self.options.arena_limit
        return limit is not None and arena is not None and arena <= limit


def ladder(parts: LadderParts) -> tuple[Rung, ...]:
    """The rungs, the original first. After Ctrl-C, those that were found by then."""
    rungs: list[Rung] = []
    try:
        with parts.stop.skippable():
            for rung in _rungs(parts):
                rungs.append(rung)
    except KeyboardInterrupt:
        parts.stop.interrupt()
    return tuple(rungs)


def _rungs(parts: LadderParts) -> Iterator[Rung]:
    yield Rung("stock", parts.stock.arena, 1.0)
    permission = parts.options.tiles
    if permission is not None and permission.by_hand:
        yield Rung("by hand", parts.arena.arena, parts.planned.slowdown, taken=True)
        yield Rung("tiles", command=searching_command(parts.options, parts.source))
        return
    yield from _within(parts, permission)
    yield from _beyond(parts, permission)


def smaller_file(parts: LadderParts) -> SmallerFile | None:
    """The file's size with --strip, and the command. None if the file fits the board's flash, or
    was stripped already."""
    memory, planned = parts.options.memory, parts.planned
    board = memory.kernels.target.board
    if board is None or len(planned.data) <= board.flash or memory.strip != "nothing":
        return None
    permission = parts.options.tiles
    is_portable = permission is not None and not permission.dialect
    how = replace(memory, strip="unread" if is_portable else "unread by TFLM")
    model = read_model(planned.data, dialect=True)
    command = same_command(parts.options, parts.source, "--strip")
    return SmallerFile(len(strip_file(model, how)), command)


def _within(parts: LadderParts, permission: TilePermission | None) -> Iterator[Rung]:
    """Yield the rungs that the given permission allows."""
    planned, arena = parts.planned, parts.arena.arena
    plain = arena if parts.search.plain is None else parts.search.plain
    is_changed = planned.tiled or arena < plain
    yield Rung("plan", plain, 1.0, taken=not is_changed)
    if permission is None:
        return
    is_default = default_search(parts.options, permission) == permission
    kind: RungKind = "tiles" if is_default else "given search"
    if is_changed:
        yield from _changed(parts, permission, kind)
    elif parts.fits(plain) and not may_need_more(parts.arena.bound):
        yield Rung(kind, remark="not needed: it fits without")
    elif parts.stop.reason is not None:
        yield Rung(kind, remark="none was found before the search was ended")
    else:
        proved = " that stood the proof" if parts.search.refused else ""
        most = 100 * (permission.max_slowdown - 1)
        yield Rung(kind, plain, 1.0, remark=f"none{proved} lowers the arena within +{most:.3g} %")


def _changed(parts: LadderParts, permission: TilePermission, kind: RungKind) -> Iterator[Rung]:
    """Yield the rung that was written, and before it the best without its operators. kind: what the
    search was."""
    planned = parts.planned
    if kind == "tiles" and new_kinds(parts.model, planned.inspection.model):
        yield from _own_tiles(parts.search)
        kind = "more operators" if permission.operators.every else "given search"
    yield Rung(kind, parts.arena.arena, planned.slowdown, taken=True)


def _own_tiles(search: SearchSummary) -> Iterator[Rung]:
    """Yield the smallest result that needs no further operators, if the search found one."""
    front = search.front
    if front is None or front.objective != "arena":
        return
    own = [p for p in front.points if p.role == "tiled" and not p.added]
    if own:
        least = min(own, key=lambda point: point.size)
        yield Rung("tiles", least.size, least.slowdown)


def _beyond(parts: LadderParts, permission: TilePermission | None) -> Iterator[Rung]:
    """Yield the rungs of further permissions. They are searched until one fits, if nothing fits
    yet."""
    parts.on_progress("looking for what further permissions reach")
    search_rungs = parts.search_rungs
    for step in _steps(parts, permission):
        rung = _attempt(parts, step) if search_rungs else step.rung
        yield rung
        search_rungs = search_rungs and not parts.fits(rung.arena)


@dataclass(frozen=True)
class _Step:
    """A rung beyond the permission. options: the options of its search. rung: what is known without
    a search."""

    options: PlanOptions | StreamOptions
    rung: Rung


def _steps(parts: LadderParts, given: TilePermission | None) -> Iterator[_Step]:
    """Yield the rungs beyond the given permission. Each also has the options of the rungs before
    it. The default search comes first, unless it was made."""
    permission = default_search(parts.options, given)
    options = replace(parts.options, verify=None, force=True, tiles=permission)
    ends = words_for_ends(options)
    firmware = firmware_words(options, permission)

    def step(kind: RungKind, arena: int | None = None) -> _Step:
        lower = arena if arena is not None and arena < parts.arena.arena else None
        command = rung_command(parts.options, parts.source, *ends, *firmware)
        return _Step(options, Rung(kind, lower, at_most=True, command=command))

    if given != permission:
        yield step("tiles")
    kernels = options.memory.kernels
    drops = options.io == "keep" and bool(drop_conversions(clone(parts.model)))
    if drops:
        ends = ("--io", "int8")
        options = replace(options, io="int8")
        yield step("int8 ends", _with_int8_ends(parts))
    if not permission.operators.every:
        options = replace(options, tiles=replace(permission, operators=AllowedOperators.ALL))
        firmware = (FIRMWARE_OPTION, "more-ops")
        yield step("more operators")
    if can_be_lean(kernels.target):
        lean = kernels_of(with_lean(kernels.target))
        options = replace(options, memory=replace(options.memory, kernels=lean))
        firmware = (FIRMWARE_OPTION, "lean")
        yield step("lean", None if drops else _with_same_plan_when_lean(parts))
    normalized = clone(parts.model)
    run(normalized, Normalize())
    if can_stream(normalized):
        streamed = StreamOptions(parts.options.memory)
        command = stream_command(parts.options, parts.source)
        yield _Step(streamed, Rung("rows streamed", command=command))


def _attempt(parts: LadderParts, step: _Step) -> Rung:
    """Search this rung and return it with its figure. If the inputs alone exceed the limit, the
    rung is not searched and gets a remark."""
    limit, inputs = parts.options.arena_limit or 0, parts.planned.inspection.limits.input_bytes
    rung = replace(step.rung, searched=True)
    try:
        if not isinstance(step.options, StreamOptions) and inputs > limit:
            return replace(rung, remark=f"cannot fit: the inputs alone take {inputs:,} B")
        if isinstance(step.options, StreamOptions):
            pair: StreamedPair = split_for_rows(parts.data, step.options, stop=parts.stop)[0]
            return replace(rung, arena=pair.sram, slowdown=pair.slowdown, at_most=True)
        planned = parts.attempt(step.options)
    except PlannerError as error:
        return replace(rung, arena=None, remark=f"tried, and refused: {error}")
    arena = planned.inspection.arena.arena
    return replace(rung, arena=arena, slowdown=planned.slowdown, at_most=False)


def _with_int8_ends(parts: LadderParts) -> int | None:
    """Bytes of arena with order and plan if the conversions at inputs and outputs are dropped. None
    if no plan can be made."""
    model, options = clone(parts.model), parts.options.memory
    drop_conversions(model)
    try:
        plan = plan_memory(
            model, MemoryOptions(kernels=options.kernels, exact_effort=_LITTLE_EFFORT)
        )
    except PlannerError:
        return None
    return arena_of(plan.model, options.kernels.target, plan.offsets).arena


def _with_same_plan_when_lean(parts: LadderParts) -> int:
    """Bytes of arena of the same plan on lean firmware."""
    return on_lean_firmware(parts.planned, parts.options.target)[1].arena
