"""Makes the planned file: orders, tiles if they are allowed, places, writes, and reads back.

Every guard before the runtimes stands here: the plan found in the file is validated, its overlaps
are replayed, the scratch of the dialect is checked.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace

from tflm_planner.choice.search import (
    Found,
    Method,
    Objective,
    TileOptions,
    Tiling,
    check_choices,
)
from tflm_planner.choice.trials.trial import has_tiles
from tflm_planner.errors import UnsoundPlanError, UsageError
from tflm_planner.inspection import Inspection, seen
from tflm_planner.ir import Model
from tflm_planner.making.advice import advice
from tflm_planner.making.by_hand import tiling_by_hand
from tflm_planner.making.finishing import finish
from tflm_planner.making.front import front_points
from tflm_planner.making.refusals import Refusal, Suspects
from tflm_planner.making.steps import Steps, search_steps
from tflm_planner.making.tiled import into_dialect, new_kinds, tiled_model
from tflm_planner.making.versions import refuse_plan
from tflm_planner.passes.base import run
from tflm_planner.passes.cleanup import entry_graphs
from tflm_planner.passes.place import carried_plan
from tflm_planner.passes.stream import Loop
from tflm_planner.passes.tile import Patch, Scheme
from tflm_planner.planning.lifetimes import placement_requests, planning_problem, timeline
from tflm_planner.planning.problem import Plan, Problem, validate
from tflm_planner.proof import replay_all, shared_in_place, taken_trails
from tflm_planner.report.document import Front
from tflm_planner.rewriter import lend_names
from tflm_planner.search import Candidate, Progress, SearchOptions, search
from tflm_planner.serde import read_model, write_model
from tflm_planner.stopping import Stop, StoppedError
from tflm_planner.tflm import greedy
from tflm_planner.tflm.element_types import newly_unsupported
from tflm_planner.tflm.lean import WritePool
from tflm_planner.tflm.machine import runners
from tflm_planner.tflm.resolver_methods import resolver_method
from tflm_planner.tflm.targets import Target

REFUSED = "REFUSED, and the next best was made instead; please report this model"
_FINAL_EFFORT = 0.05
"""Of exact packing, for the last plan of a tiled model: it starts from its trial's, which is mostly
as low as it gets."""


@dataclass(frozen=True)
class TilePermission:
    """What tiling may do. overhead: instructions allowed, relative to the original. dialect:
    views that cost no operator, which only TFLM understands. new_kinds: operators that the
    firmware may have to register in addition; None for all. method, objective: how the search
    goes, and the bytes that it lowers (`choice.search`). workers: processes that it uses. by_hand:
    what is to be tiled, in place of a search. inexact: whether sums may be split, which changes
    bits."""

    overhead: float = 1.10
    dialect: bool = True
    new_kinds: frozenset[str] | None = frozenset()
    method: Method = "regions"
    objective: Objective = "arena"
    workers: int = 2
    by_hand: tuple[Scheme | Patch | Loop, ...] = ()
    inexact: bool = False

    def __post_init__(self) -> None:
        if not self.overhead >= 1:
            raise UsageError(f"latency overhead {self.overhead} is below 1")
        check_choices(self.method, self.objective)


@dataclass(frozen=True)
class Made:
    """The file that was made. twin: for one that only TFLM runs, the portable model that computes
    the same on every runtime. exact: whether every element is computed by the sum that it was.
    tiled: whether parts of it are computed in tiles or in loops.
    front: what else a search found. refused: what promised more, and why it was not made: it was
    refused by a guard, or by the proof, which is a fault of this tool."""

    data: bytes
    candidate: Candidate
    inspection: Inspection
    aliases: tuple[str, ...]
    trails: tuple[str, ...]
    replayed: int
    twin: bytes | None = None
    notes: tuple[str, ...] = ()
    exact: bool = True
    tiled: bool = False
    front: Front | None = None
    refused: tuple[str, ...] = ()


def offers(
    original: bytes,
    model: Model,
    options: SearchOptions,
    permission: TilePermission | None,
    budget: int | None,
    say: Progress,
    stop: Stop | None = None,
) -> Generator[Made, Refusal | None, None]:
    """The smallest file: with tiles, if they are allowed and lower the arena; and when the proof
    refuses it, for a reason that is sent here, the next one to fall back on, the plan without
    tiles at last. `model` is the one in `original`, and is changed. `budget`: bytes of arena;
    tiles that keep it may be fewer. `stop`: may end all searching; what was found until then is
    made. Raises UnsoundPlanError where a guard refuses the last one."""
    refuse_plan(model, options.machine.target)
    stop = stop or Stop(options.time_limit)
    if permission is not None and permission.by_hand:
        yield _by_hand(original, permission, options, say, stop)
        return
    plain = _written(search(model, options, say, stop), options)
    if permission is None:
        yield plain
        return
    try:
        steps = search_steps(original, _wanted(permission, budget, options), say, stop)
    except StoppedError:
        yield replace(plain, notes=("no tiles were looked for", *plain.notes))
        return
    careful = replace(options, effort=_FINAL_EFFORT)
    searched = _Searched(original, plain, permission, careful, budget, say, stop)
    refused = list[str]()
    steps = yield from _tilings(searched, steps, refused)
    found = steps.found
    tried = f"{found.tried} ways to tile and to stream were tried; none"
    proof = " that stood the proof" if refused else ""
    hints = advice(plain.inspection, read_model(original), options.machine)
    said = (f"{tried}{proof} lowers the arena within what is allowed", *hints)
    front = _front(found, permission, plain, None, plain)
    yield replace(plain, notes=(*said, *plain.notes), front=front, refused=tuple(refused))


@dataclass(frozen=True)
class _Searched:
    """What tilings were found for. options: of the last plan of each."""

    original: bytes
    plain: Made
    permission: TilePermission
    options: SearchOptions
    budget: int | None
    say: Progress
    stop: Stop


def _tilings(
    job: _Searched, steps: Steps, refused: list[str]
) -> Generator[Made, Refusal | None, Steps]:
    """Files of the tilings that lower what is to be lowered, each should those before be refused;
    what was is noted in `refused`, and what shares the cause is not tried. Returns what is left of
    the search."""
    suspects = Suspects(job.original)
    for tiling in steps.found.finalists:
        if suspects.shares(tiling):
            steps = steps.without(tiling, job.budget)
            suspects.skip()
            continue
        try:
            tiled = _tiled(job.original, tiling, job.permission, job.options, job.say, job.stop)
        except (UnsoundPlanError, UsageError) as error:
            refused.append(f"passed over: {_named(tiling)}: {error}")
        else:
            if _lowered(tiled, job.permission) >= _lowered(job.plain, job.permission):
                continue
            if suspects.holds(tiled.data, tiled.twin):
                steps = steps.without(tiling, job.budget)
                suspects.skip()
                continue
            told = (*refused, *_skipped(suspects))
            reason = yield replace(_told(job, steps, tiling, tiled), refused=told)
            suspects.note(tiling, reason)
            refused.append(f"{REFUSED}: {_named(tiling)}: {reason}")
        job.say(refused[-1])
        steps = steps.without(tiling, job.budget).unlike(suspects.shares)
    refused += _skipped(suspects)
    return steps


def _skipped(suspects: Suspects) -> list[str]:
    """What was not tried for what was refused before."""
    if not suspects.skipped:
        return []
    return [f"not tried, as they share the cause: {suspects.skipped} more ways to tile"]


def _told(job: _Searched, steps: Steps, tiling: Tiling, tiled: Made) -> Made:
    """A tiled model with what a report says of the search that led to it."""
    original = read_model(job.original)
    more = new_kinds(original, tiled.candidate.model)
    sizes = _lowered(job.plain, job.permission), _lowered(tiled, job.permission)
    said = steps.notes(*sizes, more, tiled.inspection.arena.bound)
    notes = (*said, *advice(tiled.inspection, original, job.options.machine), *tiled.notes)
    front = _front(steps.found, job.permission, job.plain, tiling, tiled)
    return replace(tiled, notes=notes, front=front)


def _named(tiling: Tiling) -> str:
    """A tiling as a report says which one it was."""
    regions = ", ".join(map(_region_named, tiling.schemes))
    return f"{tiling.bytes:,} B of {tiling.objective} by operators {regions}"


def _region_named(region: Scheme | Loop) -> str:
    ops = f"{region.ops[0]}-{region.ops[-1]}"
    if isinstance(region, Loop):
        return f"{ops} in a {region.border} loop, rows a turn: {region.rows}"
    return f"{ops} in {' x '.join(str(n) for _, n in region.splits)} parts, halo {region.halo}"


def _wanted(permission: TilePermission, budget: int | None, options: SearchOptions) -> TileOptions:
    return TileOptions(
        options.machine,
        options.trails_of,
        overhead=permission.overhead,
        method=permission.method,
        objective=permission.objective,
        budget=budget,
        dialect=permission.dialect,
        new_kinds=permission.new_kinds,
        workers=permission.workers,
    )


def _lowered(made: Made, permission: TilePermission) -> int:
    """The bytes that the search was to lower."""
    arena = made.inspection.arena
    return arena.arena if permission.objective == "arena" else arena.head


def _front(
    found: Found, permission: TilePermission, plain: Made, tiling: Tiling | None, made: Made
) -> Front:
    sizes = _lowered(plain, permission), _lowered(made, permission)
    return front_points(
        found, permission.objective, permission.overhead, sizes[0], tiling, sizes[1]
    )


def _by_hand(
    original: bytes, permission: TilePermission, options: SearchOptions, say: Progress, stop: Stop
) -> Made:
    """What was asked for, whether it pays or not. Of both ways to treat views the one that needs
    no operator which the firmware may not have, and then the smaller one."""
    tiling = tiling_by_hand(original, permission.by_hand, options.machine, permission.inexact)
    made: list[Made] = []
    for bound in (True, False) if permission.dialect else (False,):
        try:
            way = replace(tiling, bound=bound)
            made.append(_tiled(original, way, permission, options, say, stop))
        except (UnsoundPlanError, UsageError):
            if not made and not bound:
                raise
    used, more = read_model(original), permission.new_kinds

    def rank(m: Made) -> tuple[bool, int]:
        beyond = more is not None and {*new_kinds(used, m.inspection.model)} - more
        return bool(beyond), m.inspection.arena.arena

    return min(made, key=rank)


def _tiled(
    original: bytes,
    tiling: Tiling,
    permission: TilePermission,
    options: SearchOptions,
    say: Progress,
    stop: Stop | None = None,
) -> Made:
    exact = all(s.exact for s in tiling.schemes if isinstance(s, Scheme))
    source, target = read_model(original), options.machine.target
    twin, notes = tiled_model(
        original, tiling.schemes, crop=False, order=tiling.order, inexact=permission.inexact
    )
    more = new_kinds(source, twin)
    if not (permission.dialect and has_tiles(tiling.schemes) and exact):
        _check_runs(source, twin, target)
    if not (permission.dialect and has_tiles(tiling.schemes)):
        made = _written(search(twin, replace(options, recipe=tiling.recipe), say, stop), options)
        registered = registrations(more)
        notes = [*notes, _speed(tiling), *registered, *made.notes]
        return replace(made, notes=tuple(notes), exact=exact, tiled=bool(tiling.schemes))
    cropped, notes = tiled_model(
        original, tiling.schemes, crop=True, order=tiling.order, inexact=permission.inexact
    )
    wanted = replace(options, bind_views=tiling.bound, recipe=tiling.recipe)
    candidate = search(cropped, wanted, say, stop)
    _check_legal(candidate.problem, candidate.solution.plan)
    trails = list(taken_trails(candidate.line, candidate.offsets, options.machine))
    aliases = shared_in_place(candidate.line, candidate.offsets)
    replayed = replay_all(trails, options.machine)
    notes += into_dialect(candidate, options)
    written = finish(candidate, options)
    back = read_model(written.data, dialect=True)
    lend_names(back, written.names)
    _check_runs(source, back, target)
    if _listed(back, carried_plan(back)) != _listed(candidate.model, candidate.offsets):
        raise UnsoundPlanError("the plan in the file that was made is another; please report it")
    registered = registrations(new_kinds(source, back))
    return Made(
        written.data,
        candidate,
        seen(back, options.machine, dialect=True),
        aliases,
        tuple(map(str, trails)),
        replayed,
        twin=write_model(twin),
        notes=(*notes, _speed(tiling), *registered, *written.notes),
        exact=exact,
        tiled=True,
    )


def _check_runs(source: Model, made: Model, target: Target) -> None:
    """Raise UsageError where TFLM could not run what was made of a model that it does run."""
    why = newly_unsupported(source.ops(), made.ops(), runners(target))
    if why is not None:
        raise UsageError(f"TFLM could not run the result: {why}; leave out what has this type")


def with_pool(data: bytes, model: Model, target: Target) -> tuple[bytes, Model]:
    """For lean firmware: the model with its pool, so that the search counts with it."""
    if not target.lean:
        return data, model
    run(model, WritePool())
    pooled = write_model(model)
    return pooled, read_model(pooled)


def _listed(model: Model, offsets: Mapping[int, int] | None) -> list[int | None]:
    return [(offsets or {}).get(id(t)) for t in model.tensors()]


def _speed(tiling: Tiling) -> str:
    return f"predicted instructions: {100 * (tiling.overhead - 1):+.1f} %"


def registrations(kinds: list[str]) -> list[str]:
    """What the firmware must register in addition, and the lines to paste."""
    if not kinds:
        return []
    methods = (resolver_method(kind) for kind in kinds)
    lines = " ".join(f"resolver.{method}();" for method in methods if method)
    return [
        f"the firmware must also register {', '.join(kinds)}",
        f"in C++, with room for {len(kinds)} more in MicroMutableOpResolver: {lines}",
    ]


def _check_legal(problem: Problem, plan: Plan) -> None:
    wrong = validate(problem, plan)
    if wrong:
        raise UnsoundPlanError(f"the plan made is not legal: {wrong[0]}; please report it")


def _written(candidate: Candidate, options: SearchOptions) -> Made:
    """The candidate's file, read back: the plan found in it is validated and its overlaps are
    replayed, not those meant."""
    written = finish(candidate, options)
    model = read_model(written.data)
    lend_names(model, written.names)
    offsets = carried_plan(model)
    line = timeline(model, options.machine.scratch_of, entries=entry_graphs(model))
    if offsets is None:
        raise UnsoundPlanError("the plan is not in the file that was made; please report it")
    placed = greedy.place(placement_requests(line, offsets))
    _check_legal(planning_problem(line, options.trails_of), Plan(tuple(placed)))
    aliases = shared_in_place(line, offsets)
    trails = list(taken_trails(line, offsets, options.machine))
    replayed = replay_all(trails, options.machine)
    return Made(
        written.data,
        candidate,
        seen(model, options.machine),
        aliases,
        tuple(map(str, trails)),
        replayed,
        twin=written.portable,
        notes=written.notes,
    )
