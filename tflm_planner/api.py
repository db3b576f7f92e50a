"""The typed Python interface: `plan`, `inspect` and `check_equal` do what the commands do.

result = plan("vww.tflite", "vww_planned.tflite")
print(result.report.before.arena.arena, "->", result.report.after.arena.arena)
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tflm_planner import __version__
from tflm_planner.errors import ModelError, OutputsDifferError, UnsoundPlanError, UsageError
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
from tflm_planner.tile_search import TileOptions, Tiling, search_tiles
from tflm_planner.tiled import into_dialect, new_kinds, tiled_model
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
    made = _made(original, model, options, say)
    searched = time.monotonic()
    after = _side(made.inspection, len(made.data))
    verdict = _proved(original, made, options.verify, say)
    seconds = {"plan": searched - started, "verify": time.monotonic() - searched}
    if verdict is not None:
        before = _measured(before, verdict.original_arena)
        after = _measured(after, verdict.result_arena)
    limits = Limits(
        inputs=seen.limits.inputs,
        order=seen.limits.order,
        best_order=made.candidate.order.lower_bound,
        overlap=made.inspection.limits.overlap,
    )
    ran = _Run(source, destination, original, options)
    report = _report(ran, (before, after), limits, made, verdict, seconds)
    if destination is not None:
        write_file(Path(destination), made.data)
    return Result(made.data, report)


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


def _seen(model: Model, on: Machine, *, dialect: bool = False) -> Inspection:
    line = timeline(model, on.scratch_of)
    offsets = carried_plan(model)
    placed = greedy.place(placement_requests(line, offsets or {}))
    figures = arena_of(model, on.target, offsets)
    here = arena_of(model, load_target(WHEEL), offsets)
    notes = _notes_on_plan(model, offsets, on) if offsets and not dialect else ()
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
        (*figures.warnings, *notes),
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
    options: PlanOptions


@dataclass(frozen=True)
class _Made:
    """The file that was made. twin: for the TFLM dialect, the portable model that computes the
    same on every runtime."""

    data: bytes
    candidate: Candidate
    inspection: Inspection
    aliases: tuple[str, ...]
    trails: tuple[str, ...]
    replayed: int
    twin: bytes | None = None
    notes: tuple[str, ...] = ()


def _made(original: bytes, model: Model, options: PlanOptions, say: Progress) -> _Made:
    """The smallest file: with tiles, if they are allowed and lower the arena."""
    plain = _written(search(model, options.search, say), options.search)
    permission = options.tiles
    if permission is None:
        return plain
    wanted = TileOptions(
        options.search.machine,
        options.search.trails_of,
        overhead=permission.overhead,
        time_limit=options.search.time_limit,
        budget=options.budget,
        dialect=permission.dialect,
        new_kinds=permission.new_kinds,
    )
    tiling = search_tiles(original, wanted, say)
    if not tiling.schemes:
        return replace(plain, notes=("no tiling lowers the arena within what is allowed",))
    tiled = _tiled(original, tiling, permission, options.search, say)
    if tiled.inspection.arena.arena < plain.inspection.arena.arena:
        return tiled
    return replace(plain, notes=("no tiling lowers the arena within what is allowed",))


def _tiled(
    original: bytes,
    tiling: Tiling,
    permission: TilePermission,
    options: SearchOptions,
    say: Progress,
) -> _Made:
    twin, notes = tiled_model(original, tiling.schemes, crop=False)
    more = new_kinds(read_model(original), twin)
    if not permission.dialect:
        made = _written(search(twin, options, say), options)
        registered = _registrations(more)
        return replace(made, notes=(*notes, _speed(tiling), *registered))
    cropped, notes = tiled_model(original, tiling.schemes, crop=True)
    candidate = search(cropped, replace(options, bind_views=tiling.bound), say)
    _check_legal(candidate.problem, candidate.solution.plan)
    trails = list(taken_trails(candidate.line, candidate.offsets, options.machine))
    aliases = tuple(map(str, taken_aliases(candidate.line, candidate.offsets)))
    replayed = replay_all(trails, options.machine)
    notes += into_dialect(candidate, options)
    run(candidate.model, Place(candidate.offsets))
    data = write_model(candidate.model)
    back = read_model(data, dialect=True)
    if _listed(back, carried_plan(back)) != _listed(candidate.model, candidate.offsets):
        raise UnsoundPlanError("the plan in the file that was made is another; please report it")
    registered = _registrations(new_kinds(read_model(original), back))
    return _Made(
        data,
        candidate,
        _seen(back, options.machine, dialect=True),
        aliases,
        tuple(map(str, trails)),
        replayed,
        twin=write_model(twin),
        notes=(*notes, _speed(tiling), *registered),
    )


def _listed(model: Model, offsets: Mapping[int, int] | None) -> list[int | None]:
    return [(offsets or {}).get(id(t)) for t in model.tensors()]


def _speed(tiling: Tiling) -> str:
    return f"predicted instructions: {100 * (tiling.overhead - 1):+.1f} %"


def _registrations(kinds: list[str]) -> list[str]:
    return [f"the firmware must also register {', '.join(kinds)}"] if kinds else []


def _check_legal(problem: Problem, plan: Plan) -> None:
    wrong = validate(problem, plan)
    if wrong:
        raise UnsoundPlanError(f"the plan made is not legal: {wrong[0]}; please report it")


def _written(candidate: Candidate, options: SearchOptions) -> _Made:
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
    _check_legal(planning_problem(line, options.trails_of), Plan(tuple(placed)))
    aliases = tuple(map(str, taken_aliases(line, offsets)))
    trails = list(taken_trails(line, offsets, options.machine))
    replayed = replay_all(trails, options.machine)
    seen = _seen(model, options.machine)
    return _Made(data, candidate, seen, aliases, tuple(map(str, trails)), replayed)


def _proved(
    original: bytes, made: _Made, options: VerifyOptions | None, say: Progress
) -> Verdict | None:
    if options is None:
        return None
    verdict = _compared(original, made, options, say)
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


def _compared(original: bytes, made: _Made, options: VerifyOptions, say: Progress) -> Verdict:
    """The result against the original. A result in the TFLM dialect runs on TFLM only: its
    portable twin is compared as well, on every runtime, and must not differ either."""
    if made.twin is None:
        return verify(original, made.data, options, say)
    twin = verify(original, made.twin, options, say)
    checks = [replace(c, runtime=f"{c.runtime}, portable twin") for c in twin.checks]
    verdict = verify(original, made.data, replace(options, runtimes=("TFLM",)), say)
    if not verdict.proved:  # what only the twin proves is not enough
        checks = [c for c in checks if c.status != "equal"]
    return replace(verdict, checks=(*checks, *verdict.checks))


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
    ran: _Run,
    sides: tuple[Side, Side],
    limits: Limits,
    made: _Made,
    verdict: Verdict | None,
    seconds: dict[str, float],
) -> Report:
    candidate = made.candidate
    order, solution = candidate.order, candidate.solution
    name = "model" if isinstance(ran.source, bytes) else str(ran.source)
    return Report(
        version=__version__,
        target=ran.options.search.machine.target.id,
        source=name,
        destination="" if ran.destination is None else str(ran.destination),
        sha256_before=hashlib.sha256(ran.original).hexdigest(),
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
            made.aliases,
            made.trails,
            made.replayed,
        ),
        checks=() if verdict is None else verdict.checks,
        verified=verdict is not None and verdict.proved,
        budget=ran.options.budget,
        notes=(*candidate.notes, *made.notes, *_interruption(candidate)),
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
