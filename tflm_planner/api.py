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

from tflm_planner import __version__
from tflm_planner.errors import ModelError, OutputsDifferError, UnsoundPlanError
from tflm_planner.files import check_writable, read_file, write_file
from tflm_planner.ir import Model, Tensor
from tflm_planner.memory_map import live_between, memory_map
from tflm_planner.passes.base import run
from tflm_planner.passes.cleanup import entry_graphs
from tflm_planner.passes.place import Place, carried_plan
from tflm_planner.planning.bounds import live_bytes
from tflm_planner.planning.lifetimes import (
    Timeline,
    placement_requests,
    planning_problem,
    timeline,
)
from tflm_planner.planning.problem import Plan, Problem, validate
from tflm_planner.proof import replay_all, taken_aliases, taken_trails
from tflm_planner.report.document import (
    AllocationSummary,
    ArenaFigures,
    Limits,
    MemoryMap,
    OrderSummary,
    Report,
    Side,
    Wheel,
)
from tflm_planner.search import Candidate, SearchOptions, lowest_peak, search, silent
from tflm_planner.serde import read_model, write_model
from tflm_planner.tflm import greedy
from tflm_planner.tflm.arena import Arena, arena_of
from tflm_planner.tflm.machine import WHEEL, Machine, machine
from tflm_planner.tflm.targets import Target, load_target
from tflm_planner.units import align_up
from tflm_planner.verify import Allocation, Verdict, verify
from tflm_planner.verify import Options as VerifyOptions

Source = str | Path | bytes
Progress = Callable[[str], None]


@dataclass(frozen=True)
class TilePermission:
    """What tiling may do. overhead: instructions allowed, relative to the original. dialect:
    views that cost no operator, which only TFLM understands. new_kinds: operators that the
    firmware may have to register in addition; None for all."""

    overhead: float = 1.10
    dialect: bool = True
    new_kinds: frozenset[str] | None = frozenset()

    def __post_init__(self) -> None:
        if not self.overhead >= 1:
            raise UsageError(f"latency overhead {self.overhead} is below 1")


@dataclass(frozen=True)
class PlanOptions:
    """search: what may be tried and for how long. tiles: what tiling may do (None: no tiles).
    budget: bytes of arena that the model must fit (None: as small as possible). verify: None
    writes the result unproved. force: replace an existing file."""

    search: SearchOptions = field(default_factory=SearchOptions)
    tiles: TilePermission | None = None
    budget: int | None = None
    verify: VerifyOptions | None = field(default_factory=VerifyOptions)
    force: bool = False


@dataclass(frozen=True)
class Result:
    """A planned model: its bytes, and all there is to say about it."""

    data: bytes
    report: Report


@dataclass(frozen=True)
class Inspection:
    """A model as it is: its map and arena on a target, what this machine should say, and the
    floors of its head."""

    model: Model
    map: MemoryMap
    arena: ArenaFigures
    wheel: Wheel
    limits: Limits
    notes: tuple[str, ...]


def plan(
    source: Source,
    destination: str | Path | None = None,
    options: PlanOptions | None = None,
    on_progress: Progress | None = None,
) -> Result:
    """Plan a model, prove the result equal to it, and write it if `destination` is given.

    `source`: a path, or the bytes of a .tflite file. `on_progress` is told what is being done.
    Raises UsageError, ModelError, or OutputsDifferError (then nothing was written). A result
    over budget is written and returned: ask `report.within_budget`.
    """
    options = options or PlanOptions()
    say = on_progress or silent
    started = time.monotonic()
    if destination is not None:
        inputs = () if isinstance(source, bytes) else (Path(source),)
        check_writable(Path(destination), force=options.force, inputs=inputs)
    original = load(source)
    model = read_model(original)
    seen = _seen(model, options.search.machine)
    before = _side(seen, len(original))
    candidate = search(model, options.search, on_progress)
    searched = time.monotonic()
    data, written, sharing = _written(candidate, options.search)
    after = _side(written, len(data))
    verdict = _proved(original, data, options.verify, say)
    seconds = {"plan": searched - started, "verify": time.monotonic() - searched}
    if verdict is not None:
        before = _measured(before, verdict.original_arena)
        after = _measured(after, verdict.result_arena)
    limits = Limits(
        inputs=seen.limits.inputs,
        order=seen.limits.order,
        best_order=candidate.order.lower_bound,
        overlap=written.limits.overlap,
    )
    made = _Run(source, destination, original, data, options)
    report = _report(made, (before, after), limits, candidate, sharing, verdict, seconds)
    if destination is not None:
        write_file(Path(destination), data)
    return Result(data, report)


def inspect(source: Source, options: SearchOptions | None = None) -> Inspection:
    """The memory of a model as stock TFLM runs it: with the plan that it carries, or its own.

    `options`: the target, and bounds for the search for the best order, of which only the limit
    is shown.
    """
    options = options or SearchOptions(time_limit=20.0)
    data = load(source)
    seen = _seen(read_model(data), options.machine)
    limits = replace(seen.limits, best_order=lowest_peak(read_model(data), options))
    return replace(seen, limits=limits)


def problem(source: Source, options: SearchOptions | None = None) -> tuple[Problem, Plan]:
    """The planning problem of a model in its own order, and the plan that TFLM runs it with: the
    one it carries, or TFLM's own."""
    options = options or SearchOptions()
    model = read_model(load(source))
    line = timeline(model, options.machine.scratch_of)
    placed = greedy.place(placement_requests(line, carried_plan(model) or {}))
    return planning_problem(line, options.trails_of), Plan(tuple(placed))


def arena(source: Source, target: Target | None = None) -> Arena:
    """The arena that a model needs on a target (Cortex-M4 with CMSIS-NN if none is given), with
    the plan that the model carries, if it does."""
    model = read_model(load(source))
    return arena_of(model, target or machine().target, carried_plan(model))


def _seen(model: Model, on: Machine) -> Inspection:
    line = timeline(model, on.scratch_of)
    offsets = carried_plan(model)
    placed = greedy.place(placement_requests(line, offsets or {}))
    figures = arena_of(model, on.target, offsets)
    here = arena_of(model, load_target(WHEEL), offsets)
    return Inspection(
        model,
        memory_map(model, line, placed, figures.head),
        ArenaFigures(
            figures.head,
            figures.tail,
            figures.planning_temp,
            figures.prepare_temp,
            figures.arena,
            figures.alignment_slack,
        ),
        Wheel(here.head, here.tail),
        _limits(model, line),
        (*figures.warnings, *(_notes_on_plan(model, offsets, on) if offsets else ())),
    )


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
    data: bytes
    options: PlanOptions


@dataclass(frozen=True)
class _Sharing:
    aliases: tuple[str, ...]
    trails: tuple[str, ...]
    replayed: int


def _written(candidate: Candidate, options: SearchOptions) -> tuple[bytes, Inspection, _Sharing]:
    """The candidate's file, read back: the plan found in it is validated and its overlaps are
    replayed, not those meant."""
    run(candidate.model, Place(candidate.offsets))
    data = write_model(candidate.model)
    model = read_model(data)
    offsets = carried_plan(model)
    line = timeline(model, options.machine.scratch_of, entries=entry_graphs(model))
    if offsets is None:
        raise UnsoundPlanError("the plan is not in the file that was made; please report it")
    placed = greedy.place(placement_requests(line, offsets))
    wrong = validate(planning_problem(line, options.trails_of), Plan(tuple(placed)))
    if wrong:
        raise UnsoundPlanError(f"the plan made is not legal: {wrong[0]}; please report it")
    aliases = list(taken_aliases(line, offsets))
    trails = list(taken_trails(line, offsets, options.machine))
    replayed = replay_all(trails, options.machine)
    sharing = _Sharing(tuple(map(str, aliases)), tuple(map(str, trails)), replayed)
    return data, _seen(model, options.machine), sharing


def _proved(
    original: bytes, data: bytes, options: VerifyOptions | None, say: Progress
) -> Verdict | None:
    if options is None:
        return None
    verdict = verify(original, data, options, say)
    if verdict.differs:
        found = next(c for c in verdict.checks if c.status == "different")
        raise OutputsDifferError(
            f"the planned model computes something else on {found.runtime}: {found.detail}; "
            "nothing was written. Please report this model"
        )
    if not verdict.proved:
        reasons = "; ".join(f"{c.runtime}: {c.status}, {c.detail}" for c in verdict.checks)
        raise ModelError(
            f"no runtime could compare the planned model with the original ({reasons}); "
            "nothing was written. --no-verify writes it unproved"
        )
    return verdict


def _limits(model: Model, line: Timeline) -> Limits:
    problem = planning_problem(line)
    whole = Problem(problem.buffers)
    inputs = sum(align_up(t.nbytes) for t in _distinct(model.main.inputs) if id(t) in line.spans)
    peak = max((size for _, size in live_bytes(whole)), default=0)
    return Limits(inputs=inputs, order=peak, best_order=None, overlap=live_between(line))


def _distinct(tensors: list[Tensor]) -> list[Tensor]:
    return list({id(t): t for t in tensors}.values())


def _notes_on_plan(model: Model, offsets: dict[int, int], on: Machine) -> tuple[str, ...]:
    """Warnings about a plan that a model already carries."""
    line = timeline(model, on.scratch_of, entries=entry_graphs(model))
    placed = greedy.place(placement_requests(line, offsets))
    wrong = validate(planning_problem(line, on.trails_of), Plan(tuple(placed)))
    if not wrong:
        return ("the model carries an offline plan; it is shown",)
    return (
        f"the plan that the model carries shares memory in {len(wrong)} places beyond what the "
        f"kernels of {on.target.id} allow, for example: {wrong[0]}",
    )


def _report(
    made: _Run,
    sides: tuple[Side, Side],
    limits: Limits,
    candidate: Candidate,
    sharing: _Sharing,
    verdict: Verdict | None,
    seconds: dict[str, float],
) -> Report:
    order, solution = candidate.order, candidate.solution
    name = "model" if isinstance(made.source, bytes) else str(made.source)
    return Report(
        version=__version__,
        target=made.options.search.machine.target.id,
        source=name,
        destination="" if made.destination is None else str(made.destination),
        sha256_before=hashlib.sha256(made.original).hexdigest(),
        sha256_after=hashlib.sha256(made.data).hexdigest(),
        before=sides[0],
        after=sides[1],
        limits=limits,
        order=OrderSummary(
            order.method, order.changed, order.peak, order.lower_bound, order.optimal
        ),
        allocation=AllocationSummary(
            solution.allocator,
            solution.height,
            solution.lower_bound,
            solution.optimal,
            sharing.aliases,
            sharing.trails,
            sharing.replayed,
        ),
        checks=() if verdict is None else verdict.checks,
        verified=verdict is not None and verdict.proved,
        budget=made.options.budget,
        notes=(*candidate.notes, *_interruption(candidate)),
        seconds={**seconds, "total": sum(seconds.values())},
    )


def _interruption(candidate: Candidate) -> tuple[str, ...]:
    return ("interrupted: this is the best plan found until then",) if candidate.interrupted else ()


def _side(seen: Inspection, file_bytes: int) -> Side:
    return Side(
        operators=sum(1 for _ in seen.model.ops()),
        tensors=sum(1 for _ in seen.model.tensors()),
        file_bytes=file_bytes,
        arena=seen.arena,
        wheel=seen.wheel,
        map=seen.map,
    )


def _measured(side: Side, real: Allocation | None) -> Side:
    if real is None:
        return side
    wheel = replace(side.wheel, measured_head=real.head, measured_tail=real.tail)
    return replace(side, wheel=wheel)
