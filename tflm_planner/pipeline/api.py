"""The typed Python interface: `plan`, `inspect` and `check_equal` do what the commands do.

result = plan("vww.tflite", "vww_planned.tflite")
print(result.report.before.arena.arena, "->", result.report.after.arena.arena)
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from tflm_planner.cost import latency_of, profile_notes
from tflm_planner.memory.allocators import compiling
from tflm_planner.memory.problem import Plan, Problem
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline.inspection import (
    Inspection,
    arena_in,
    inspect_model,
    read_any,
    shares_by_calls,
)
from tflm_planner.pipeline.memory_plan import MemoryOptions, lowest_peak, silent
from tflm_planner.pipeline.pareto import with_stock
from tflm_planner.pipeline.planned_model import (
    PlannedModel,
    TilePermission,
    add_lean_pool,
    planned_models,
)
from tflm_planner.pipeline.prove import check_provable, prove_first, prove_first_pair
from tflm_planner.pipeline.stream_input.render import header as strips_header
from tflm_planner.pipeline.stream_input.split import StreamedPair, StreamOptions
from tflm_planner.pipeline.stream_input.split import streamed_pairs as offered_splits
from tflm_planner.pipeline.versions import refuse_unrunnable, version_notes
from tflm_planner.report.document import (
    Allocation,
    HeadLimits,
    ParetoFront,
    Report,
    Side,
)
from tflm_planner.support.errors import ModelError, OutputsDifferError, UsageError
from tflm_planner.support.files import check_writable, read_file, write_file
from tflm_planner.support.interrupts import heeding
from tflm_planner.support.stopping import Reason, Stop
from tflm_planner.support.version import __version__
from tflm_planner.tflm.arena.predict import Arena, arena_of
from tflm_planner.tflm.arena.uncertainty import bound_of
from tflm_planner.tflm.liveness import (
    planning_problem,
    timeline_of,
)
from tflm_planner.tflm.placement import placement_of
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tflm.targets import Target, load_target
from tflm_planner.tflm.versions import with_tflm
from tflm_planner.tiling.permissions import COMPILED
from tflm_planner.transforms.attach_plan import carried_plan
from tflm_planner.transforms.tile.tile import Patch, TiledRegion
from tflm_planner.verification import HostAllocation, Tolerance, Verdict, verify
from tflm_planner.verification import Options as VerifyOptions

__all__ = [
    "Inspection",
    "MemoryOptions",
    "ModelError",
    "OutputsDifferError",
    "Patch",
    "PlanOptions",
    "PlanResult",
    "SplitResult",
    "StreamOptions",
    "TilePermission",
    "TiledRegion",
    "Tolerance",
    "UsageError",
    "VerifyOptions",
    "arena",
    "check_equal",
    "inspect",
    "kernels_of",
    "load",
    "load_target",
    "plan",
    "problem",
    "read_model",
    "stream_input",
    "with_tflm",
]  # fmt: skip

Source = str | Path | bytes
Progress = Callable[[str], None]


@dataclass(frozen=True)
class PlanOptions:
    """search: what may be tried and for how long. tiles: what tiling may do (None: no tiles).
    budget: bytes of arena that the model must fit (None: as small as possible). verify: None
    writes the result unproved. force: replace an existing file."""

    search: MemoryOptions = field(default_factory=MemoryOptions)
    tiles: TilePermission | None = None
    budget: int | None = None
    verify: VerifyOptions | None = field(default_factory=VerifyOptions)
    force: bool = False


@dataclass(frozen=True)
class PlanResult:
    """A planned model: its bytes, and all there is to say about it."""

    data: bytes
    report: Report


def plan(
    source: Source,
    destination: str | Path | None = None,
    options: PlanOptions | None = None,
    on_progress: Progress | None = None,
) -> PlanResult:
    """Plan a model, prove the result equal to it, and write it if `destination` is given.

    `source`: a path, or the bytes of a .tflite file. `on_progress` is told what is being done.
    Raises UsageError, ModelError, or OutputsDifferError (then nothing was written); a tiling found
    that is not equal is refused, said to be in the report, and the next best is made. A result
    over budget is written and returned: ask `report.within_budget`. Ctrl-C ends the search: the
    best so far is proved, and `report.stopped` says so; asked again, the proof ends too, with
    KeyboardInterrupt.
    """
    options = options or PlanOptions()
    stop = Stop(options.search.time_limit)
    try:
        with heeding(stop):
            return _planned(source, destination, options, on_progress or silent, stop)
    finally:
        compiling.abandon()


def _planned(
    source: Source,
    destination: str | Path | None,
    options: PlanOptions,
    say: Progress,
    stop: Stop,
) -> PlanResult:
    started = time.monotonic()
    if destination is not None:
        inputs = () if isinstance(source, bytes) else (Path(source),)
        check_writable(Path(destination), force=options.force, inputs=inputs)
    original = load(source)
    model = read_model(original)
    tiles, asked = options.tiles, time.monotonic()
    if options.verify is not None and (tiles is None or tiles.dialect):
        refuse_unrunnable(model, options.search.kernels.target)
    if tiles is not None and not tiles.by_hand:
        compiling.start(COMPILED)
    if tiles is not None and options.verify is not None:
        tiles = check_provable(original, model, tiles, options.verify, say)
    proving = time.monotonic() - asked
    before_search = inspect_model(model, options.search.kernels)
    before = _side(before_search, len(original), options.search.kernels.target)
    start, model = add_lean_pool(original, model, options.search.kernels.target)
    offered = planned_models(start, model, options.search, tiles, options.budget, say, stop)
    made, verdict, spent = prove_first(original, offered, options.verify, say, stop)
    after = _side(made.inspection, len(made.data), options.search.kernels.target)
    proving += spent
    seconds = {"plan": time.monotonic() - started - proving, "verify": proving}
    if verdict is not None:
        before = _measured(before, verdict.original_arena)
        after = _measured(after, verdict.result_arena)
    limits = HeadLimits(
        inputs=before_search.limits.inputs,
        order=before_search.limits.order,
        best_order=None
        if shares_by_calls(made.inspection.model)
        else made.candidate.order.lower_bound,
        overlap=made.inspection.limits.overlap,
    )
    ran = _Run(source, destination, original, options)
    report = _report(ran, (before, after), limits, made, verdict, seconds, stop)
    if destination is not None:
        write_file(Path(destination), made.data)
    return PlanResult(made.data, report)


@dataclass(frozen=True)
class SplitResult:
    """A model split for streamed input. before: bytes of arena of the model as it came. stopped:
    why the search was cut short, if it was."""

    found: StreamedPair
    before: int
    verdict: Verdict | None
    stopped: Reason | None = None


def stream_input(
    source: Source,
    destinations: tuple[Path, Path] | None = None,
    options: StreamOptions | None = None,
    proof: VerifyOptions | None = None,
    header: Path | None = None,
    force: bool = False,
    on_progress: Progress | None = None,
) -> SplitResult:
    """Split a model so that its input comes row by row; prove the pair equal to it, and write it.

    destinations: of front and back. header: of C++ that runs them. proof: None writes unproved.
    Raises UsageError, ModelError, or OutputsDifferError (then nothing was written); a split found
    that is not equal is refused, said to be in `found.refused`, and the next best is made.
    """
    options, say = options or StreamOptions(), on_progress or silent
    paths = [*(destinations or ()), *([header] if header is not None else [])]
    inputs = () if isinstance(source, bytes) else (Path(source),)
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError("front, back and header must be different files")
    for path in paths:
        check_writable(path, force=force, inputs=inputs)
    stop = Stop(options.search.time_limit)
    try:
        with heeding(stop):
            return _split(source, destinations, options, proof, header, say, stop)
    finally:
        compiling.abandon()


def _split(
    source: Source,
    destinations: tuple[Path, Path] | None,
    options: StreamOptions,
    proof: VerifyOptions | None,
    header: Path | None,
    say: Progress,
    stop: Stop,
) -> SplitResult:
    paths = [*(destinations or ()), *([header] if header is not None else [])]
    data, on = load(source), options.search.kernels.target
    model = read_model(data)
    if proof is not None:
        refuse_unrunnable(model, on)
        options = replace(options, tiles=check_provable(data, model, options.tiles, proof, say))
    offered = offered_splits(data, options, say, stop)
    elsewhere = (
        "--end names another last operator of the front"
        if options.end is None
        else "without --end the model is split elsewhere"
    )
    found, verdict = prove_first_pair(data, offered, proof, elsewhere, say, stop)
    name = "model" if isinstance(source, bytes) else Path(source).stem
    files = [found.front.data, found.back.data, strips_header(found, name, on).encode()]
    for path, file in zip(paths, files if destinations else files[2:], strict=False):
        write_file(path, file)
    before = arena_of(model, on, carried_plan(model)).arena
    return SplitResult(found, before, verdict, stop.reason)


def inspect(source: Source, options: MemoryOptions | None = None) -> Inspection:
    """The memory of a model as stock TFLM runs it: with the plan that it carries, or its own.

    `options`: the target, and bounds for the search for the best order, of which only the limit
    is shown.
    """
    options = options or MemoryOptions()
    data = load(source)
    model, dialect = read_any(data)
    found = inspect_model(model, options.kernels, dialect=dialect)
    if dialect:
        return replace(found, notes=(*found.notes, "the model is in the TFLM dialect"))
    if shares_by_calls(model):
        return found
    limits = replace(found.limits, best_order=lowest_peak(read_model(data), options))
    return replace(found, limits=limits)


def problem(source: Source, options: MemoryOptions | None = None) -> tuple[Problem, Plan]:
    """The planning problem of a model in its own order, and the plan that TFLM runs it with: the
    one it carries, or TFLM's own."""
    options = options or MemoryOptions()
    model = read_model(load(source))
    line = timeline_of(model, options.kernels.scratch_of)
    plan = placement_of(line, carried_plan(model)).plan
    return planning_problem(line, options.input_overlaps_of), plan


def arena(source: Source, target: Target | None = None) -> Arena:
    """The arena that a model needs on a target (Cortex-M4 with CMSIS-NN if none is given), with
    the plan that the model carries, if it does."""
    return arena_in(load(source), target or kernels_of().target)[1]


def check_equal(
    original: Source,
    result: Source,
    options: VerifyOptions | None = None,
    on_progress: Progress | None = None,
) -> Verdict:
    """Compare two models bit by bit on the runtimes that are here."""
    return verify(load(original), load(result), options, on_progress)


def load(source: Source) -> bytes:
    """The bytes of a model given as path or bytes."""
    return source if isinstance(source, bytes) else read_file(Path(source))


@dataclass(frozen=True)
class _Run:
    source: Source
    destination: str | Path | None
    original: bytes
    options: PlanOptions


def _report(
    ran: _Run,
    sides: tuple[Side, Side],
    limits: HeadLimits,
    made: PlannedModel,
    verdict: Verdict | None,
    seconds: dict[str, float],
    stop: Stop,
) -> Report:
    candidate = made.candidate
    name = "model" if isinstance(ran.source, bytes) else str(ran.source)
    uncertainties = [uncertainty for side in sides for uncertainty in side.arena.uncertainties]
    return Report(
        version=__version__,
        target=ran.options.search.kernels.target.id,
        source=name,
        destination="" if ran.destination is None else str(ran.destination),
        sha256_before=hashlib.sha256(ran.original).hexdigest(),
        sha256_after=hashlib.sha256(made.data).hexdigest(),
        before=sides[0],
        after=sides[1],
        limits=limits,
        order=candidate.order,
        allocation=Allocation(candidate.solution, made.aliases, made.input_overlaps, made.replayed),
        checks=() if verdict is None else verdict.checks,
        verified=_is_verified(made, verdict),
        budget=ran.options.budget,
        stopped=stop.reason,
        notes=(
            *stop.notes,
            *made.refused,
            *_inexact(made),
            *made.inspection.arena.warnings,
            *version_notes(made.inspection.model, ran.options.search.kernels.target),
            *profile_notes(ran.options.search.kernels.target, made.inspection.model),
            *candidate.notes,
            *made.notes,
        ),
        seconds={**seconds, "total": sum(seconds.values())},
        front=None
        if made.front is None
        else with_stock(made.front, _stock(sides[0], made.front), bound_of(uncertainties)),
    )


def _is_verified(made: PlannedModel, verdict: Verdict | None) -> bool:
    """Whether the bits are known to be equal where the file will run."""
    return (
        verdict is not None
        and verdict.proved
        and verdict.exact
        and not made.inspection.arena.cannot_run
    )


def _stock(side: Side, front: ParetoFront) -> int:
    return side.arena.arena if front.objective == "arena" else side.head


def _inexact(made: PlannedModel) -> tuple[str, ...]:
    if made.exact:
        return ()
    return ("NOT EXACT: a sum was split, as --allow-inexact permits; see the checks for how far",)


def _side(found: Inspection, file_bytes: int, target: Target) -> Side:
    return Side(
        operators=sum(1 for _ in found.model.ops()),
        tensors=sum(1 for _ in found.model.tensors()),
        file_bytes=file_bytes,
        arena=found.arena,
        host=found.host,
        map=found.map,
        macs=latency_of(found.model, target).total.macs,
    )


def _measured(side: Side, real: HostAllocation | None) -> Side:
    return replace(side, host=replace(side.host, measured=real))
