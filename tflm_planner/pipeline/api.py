"""The commands as functions of files and options: `plan`, `stream_input`, `inspect`, `problem`,
`arena`, `compare`, `check_equal`, `check_plan`.

    cli, device, tests, benchmarks --options--> api      has every option
    users --keywords--> interface --options---> api      the same verbs, simpler; exported by the
                                                         package, and stable

This module reads and writes files; the modules that it calls do the rest. Functions that only read
are in `read_only`, which imports little and starts at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tflm_planner.memory.allocators import compiling
from tflm_planner.memory.problem import Plan, Problem
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline.comparison import compare_boards
from tflm_planner.pipeline.comparison.cell_search import CellSearch
from tflm_planner.pipeline.guidance.ladder import LadderParts, ladder, smaller_file
from tflm_planner.pipeline.guidance.plan_report import ReportParts, plan_report
from tflm_planner.pipeline.inspection.arenas import (
    NamedModel,
    Source,
    arena,
    common_arena,
    load,
    name_of,
    read_any,
    split_arena,
)
from tflm_planner.pipeline.inspection.inspect_model import (
    Inspection,
    inspect_model,
    without_wrong_plan,
)
from tflm_planner.pipeline.options import (
    MemoryOptions,
    PlanOptions,
    StreamOptions,
    TilePermission,
    VerifyOptions,
)
from tflm_planner.pipeline.planning.planning_session import PlanningSession
from tflm_planner.pipeline.planning.versions import refuse_unrunnable
from tflm_planner.pipeline.prove import (
    Prover,
    check_model_proved,
    check_pair_proved,
    check_runs_on_boards,
)
from tflm_planner.pipeline.read_only import inspect
from tflm_planner.pipeline.stream_input.pairs import StreamedPair
from tflm_planner.pipeline.stream_input.render import render_header
from tflm_planner.pipeline.stream_input.split import split_for_rows
from tflm_planner.report.comparison import Comparison
from tflm_planner.report.document import Report, RungKind
from tflm_planner.support import defaults
from tflm_planner.support.errors import ModelError, OutputsDifferError, UsageError
from tflm_planner.support.files import check_writable, write_files
from tflm_planner.support.interrupts import stop_on_ctrl_c
from tflm_planner.support.progress import Progress, silent
from tflm_planner.support.stopping import Reason, Stop
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tflm.arena.predict import Arena, arena_of
from tflm_planner.tflm.liveness import planning_problem, timeline_of
from tflm_planner.tflm.placement import placement_of
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tflm.targets import Target, load_target
from tflm_planner.tflm.versions import with_tflm
from tflm_planner.tiling.permissions import COMPILED
from tflm_planner.transforms.attach_plan import carried_plan
from tflm_planner.transforms.normalize import as_tflm_runs_it
from tflm_planner.transforms.tile.tile import Patch, TiledRegion
from tflm_planner.verification import Equality, Tolerance, Verdict, judge_equality
from tflm_planner.verification.planned import PlanVerdict, verify_plan
from tflm_planner.verification.prepared import as_litert_tells, prepared
from tflm_planner.verification.terms import TermsProof

__all__ = [
    "AllowedOperators",
    "Inspection",
    "MemoryOptions",
    "ModelError",
    "NamedModel",
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
    "check_plan",
    "common_arena",
    "compare",
    "inspect",
    "kernels_of",
    "load",
    "load_target",
    "plan",
    "problem",
    "read_model",
    "split_arena",
    "stream_input",
    "with_tflm",
]  # fmt: skip

_WAY_OUT = (
    "--no-verify plans it all the same, for firmware with kernels of its own, and with --portable "
    "LiteRT proves it, where LiteRT runs it"
)
"""What can be done about a model that the target's TFLM does not run."""

WriteBeside = Callable[[Report], Mapping[Path, bytes]]
"""Report -> further files to write, by path."""


@dataclass(frozen=True)
class PlanResult:
    """A planned model: its bytes, and the report."""

    data: bytes
    report: Report


def plan(
    source: Source,
    destination: str | Path | None = None,
    options: PlanOptions | None = None,
    on_progress: Progress = silent,
    beside: WriteBeside | None = None,
    stop: Stop | None = None,
) -> PlanResult:
    """Plan a model, prove the result equal to it, and write it if `destination` is given.

    `beside` makes further files from the report; either all of them appear together with the model,
    or none. `on_progress` is told what is being done. Raises UsageError, ModelError, or
    OutputsDifferError (then nothing was written). A tiling whose outputs differ is refused, the
    report says so, and the next best one is made. A result that exceeds the budget is still written
    and returned; `report.may_fit` tells.

    The first Ctrl-C ends the search: the best result so far is proved, and `report.stopped` says
    so. A second one ends the proof with KeyboardInterrupt. After the proof, Ctrl-C only ends the
    search for what further permissions reach, and the result is written. Another thread can end the
    search with `stop.interrupt()`. An exception from `on_progress` or `beside` ends everything, and
    nothing is written.
    """
    options = options or PlanOptions()
    if destination is not None:
        check_writable(Path(destination), force=options.force, inputs=_paths(source))
    with _search(stop or Stop(options.memory.time_limit)) as stop:
        result = _plan(source, destination, options, on_progress, stop)
        files = {} if destination is None else {Path(destination): result.data}
        write_files(files | dict(beside(result.report) if beside is not None else {}))
    return result


def _plan(
    source: Source,
    destination: str | Path | None,
    options: PlanOptions,
    on_progress: Progress,
    stop: Stop,
) -> PlanResult:
    started = time.monotonic()
    original = load(source)
    runnable, rewritten = prepared(original, options.target, on_progress)
    model = read_model(runnable)
    kernels = options.memory.kernels
    before = inspect_model(as_tflm_runs_it(model), kernels)
    reference, dropped = without_wrong_plan(runnable, model, kernels)
    prover = Prover(reference, options.verify, kernels, on_progress, stop)
    options = replace(options, tiles=_provable_tiles(model, options, prover))
    session = PlanningSession(reference, stop, on_progress)
    result = session.plan(options, prover.prove_model)
    check_model_proved(result.file, result.proof)
    if options.tiles is None:
        check_runs_on_boards(model, result.proof, options.verify)
    name = name_of(source)
    ladder_parts = LadderParts(
        data=reference,
        model=as_tflm_runs_it(read_model(reference)),
        stock=before.arena,
        options=options,
        planned=result.file,
        search=result.search,
        source=name,
        attempt=lambda other_options: session.plan(other_options).file,
        on_progress=on_progress,
        stop=stop,
    )
    parts = ReportParts(
        source=name,
        destination="" if destination is None else str(destination),
        options=options,
        original=original,
        before=before,
        dropped=(*rewritten, *dropped),
        result=result,
        ladder=ladder(ladder_parts),
        smaller_file=smaller_file(ladder_parts),
        seconds={"plan": time.monotonic() - started - prover.seconds, "verify": prover.seconds},
        stop=stop,
    )
    return PlanResult(result.file.data, plan_report(parts))


def _provable_tiles(model: Model, options: PlanOptions, prover: Prover) -> TilePermission | None:
    """The part of the tile permission whose results can be proved here. Raises ModelError if no
    result could be proved. Also starts to compile the code that a search for tiles needs."""
    tiles = options.tiles
    if options.verify is not None and (tiles is None or tiles.dialect):
        refuse_unrunnable(model, options.target, _WAY_OUT)
    if tiles is None:
        return None
    if not tiles.by_hand:
        compiling.start(COMPILED)
    return prover.provable_tiles(model, tiles)


@contextmanager
def _search(stop: Stop) -> Generator[Stop]:
    """A context in which Ctrl-C ends searches by `stop`."""
    try:
        with stop_on_ctrl_c(stop):
            yield stop
    finally:
        compiling.abandon()


@dataclass(frozen=True)
class SplitResult:
    """A model split for streamed input. pair: its two halves. before: bytes of arena of the
    original model. verdict: the runtimes' verdict on the pair; None if no proof was asked for.
    stopped: why the search was cut short, or None. terms: the proof for every input; None if no
    proof was asked for."""

    pair: StreamedPair
    before: int
    verdict: Verdict | None
    stopped: Reason | None = None
    terms: TermsProof | None = None


def stream_input(
    source: Source,
    destinations: tuple[Path, Path] | None = None,
    options: StreamOptions | None = None,
    header: Path | None = None,
    on_progress: Progress = silent,
) -> SplitResult:
    """Split a model so that its input comes row by row; prove the pair equal to it, and write it.

    destinations: paths of front and back. header: path of the C++ header that runs them. Raises
    UsageError, ModelError, or OutputsDifferError (then nothing was written); a split whose outputs
    differ is refused and listed in `pair.refused`, and the next best one is made.
    """
    options = options or StreamOptions()
    paths = [*(destinations or ()), *([header] if header is not None else [])]
    if len({path.resolve() for path in paths}) < len(paths):
        raise UsageError("front, back and header must be different files")
    for path in paths:
        check_writable(path, force=options.force, inputs=_paths(source))
    with _search(Stop(options.memory.time_limit)) as stop:
        result = _split(load(source), options, on_progress, stop)
        files = [result.pair.front.data, result.pair.back.data] if destinations else []
        if header is not None:
            name = Path(name_of(source)).stem
            code = render_header(result.pair, name, options.target)
            files.append(code.encode())
        write_files(dict(zip(paths, files, strict=True)))
    return result


def _split(
    data: bytes,
    options: StreamOptions,
    on_progress: Progress,
    stop: Stop,
) -> SplitResult:
    data, _ = prepared(data, options.target, on_progress)
    model, target = read_model(data), options.target
    kernels = options.memory.kernels
    data, _ = without_wrong_plan(data, model, kernels)
    prover = Prover(data, options.verify, kernels, on_progress, stop)
    if options.verify is not None:
        refuse_unrunnable(
            model, target, "--no-verify splits it all the same, for firmware with its own kernels"
        )
        provable = prover.provable_tiles(model, options.tiles)
        options = replace(options, tiles=provable)
    pair, proof = split_for_rows(
        data, options, prove=prover.prove_pair, on_progress=on_progress, stop=stop
    )
    elsewhere = (
        "--end names another last operator of the front"
        if options.end is None
        else "without --end the model is split elsewhere"
    )
    check_pair_proved(pair, proof, elsewhere)
    before = arena_of(model, target, carried_plan(model)).arena
    return SplitResult(pair, before, proof.verdict, stop.reason, proof.terms)


def problem(source: Source, options: MemoryOptions | None = None) -> tuple[Problem, Plan]:
    """The planning problem of a model in its own operator order, and the plan that TFLM uses: the
    one that the model carries, or TFLM's own."""
    options = options or MemoryOptions()
    model = read_model(load(source))
    timeline = timeline_of(model, options.kernels.scratch_of)
    plan = placement_of(timeline, carried_plan(model)).plan
    return planning_problem(timeline, options.input_overlaps_of), plan


def compare(
    source: Source,
    targets: Sequence[Target],
    columns: Sequence[RungKind] = compare_boards.QUICK,
    workers: int = defaults.WORKERS,
    on_progress: Progress = silent,
    stop: Stop | None = None,
) -> Comparison:
    """What a model needs on each target for each kind of plan in `columns`. Nothing is written, and
    plans are not run. Ctrl-C, or another thread with `stop`, ends the searches, and the result says
    so."""
    data, _ = as_litert_tells(load(source), on_progress)
    with _search(stop or Stop()) as stop:
        search = CellSearch(tuple(columns), stop, on_progress, workers)
        return compare_boards.compare(data, name_of(source), targets, search)


def check_equal(
    original: Source,
    result: Source,
    options: VerifyOptions | None = None,
    on_progress: Progress = silent,
    target: Target | None = None,
) -> Equality:
    """Compare two models for every input, and bit by bit on the runtimes that are installed here.
    target: for which a plan in the result is judged (default: Cortex-M4 with CMSIS-NN)."""
    models = load(original), load(result)
    return judge_equality(*models, kernels_of(target), options, on_progress)


def check_plan(source: Source, target: Target | None = None) -> tuple[PlanVerdict, Arena]:
    """The verdict on the plan that a model carries, from any tool, for a target (default: Cortex-M4
    with CMSIS-NN), and the arena as `arena` gives it."""
    kernels = kernels_of(target)
    data = load(source)
    model, _ = read_any(data, to_look_at=False)
    return verify_plan(model, kernels), arena(data, kernels.target)


def _paths(source: Source) -> tuple[Path, ...]:
    """The input files, which must not be overwritten."""
    return () if isinstance(source, (bytes, NamedModel)) else (Path(source),)
