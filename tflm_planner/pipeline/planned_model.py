"""Makes the planned file: orders, tiles if they are allowed, places, writes, and reads back.

Every guard before the runtimes stands here: the plan found in the file is validated, its overlaps
are replayed, the scratch of the dialect is checked.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace

from tflm_planner.cost import latency_of
from tflm_planner.memory.problem import Plan, Problem, validate
from tflm_planner.model.edit import lend_names
from tflm_planner.model.ir import Model, Tensor
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline.advice import advice
from tflm_planner.pipeline.by_hand import tiling_by_hand
from tflm_planner.pipeline.inspection import Inspection, inspect_model
from tflm_planner.pipeline.memory_plan import MemoryOptions, MemoryPlan, Progress, plan_memory
from tflm_planner.pipeline.pareto import pareto_front
from tflm_planner.pipeline.refusals import Refusal, Suspects
from tflm_planner.pipeline.tiled_model import into_dialect, new_kinds, tiled_model
from tflm_planner.pipeline.versions import refuse_plan
from tflm_planner.pipeline.write import write_planned
from tflm_planner.report.document import ParetoFront
from tflm_planner.support.errors import UnsoundPlanError, UsageError
from tflm_planner.support.stopping import Stop, StoppedError
from tflm_planner.tflm.element_types import newly_unsupported
from tflm_planner.tflm.lean.pool import WritePool
from tflm_planner.tflm.liveness import planning_problem, timeline
from tflm_planner.tflm.placement import placement_of
from tflm_planner.tflm.resolver_methods import resolver_method
from tflm_planner.tflm.sharing import (
    RemainingCopies,
    replay_all,
    shared_in_place,
    taken_input_overlaps,
)
from tflm_planner.tflm.target_kernels import runners
from tflm_planner.tflm.targets import Target
from tflm_planner.tiling.budget import DEFAULT_BUDGET, SearchBudget
from tflm_planner.tiling.evaluate.candidate import has_tiles
from tflm_planner.tiling.permissions import PermissionResults, search_by_permission
from tflm_planner.tiling.search import (
    Method,
    Objective,
    Tiling,
    TilingOptions,
    TilingResult,
    check_choices,
)
from tflm_planner.tiling.spellings import SpellingPermission
from tflm_planner.transforms.attach_plan import carried_plan
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import entry_graphs
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.tile.tile import Patch, TiledRegion

REFUSED = "REFUSED, and the next best was made instead; please report this model"
_FINAL_EFFORT = 0.05
"""Of exact packing, for the last plan of a tiled model: it starts from its trial's, which is mostly
as low as it gets."""


@dataclass(frozen=True)
class TilePermission:
    """What tiling may do. overhead: instructions allowed, relative to the original. dialect:
    views that cost no operator, which only TFLM understands. new_kinds: operators that the
    firmware may have to register in addition; None for all. method, objective: how the search
    goes, and the bytes that it lowers (`tiling.search`). tiles: whether there may be tiles and
    loops; other spellings of operators may be in any case (`tiling.spellings`). workers: how many
    processes it uses. by_hand:
    what is to be tiled, in place of a search. inexact: whether sums may be split, which changes
    bits. search_budget: the tuning constants of the search."""

    overhead: float = 1.10
    dialect: bool = True
    new_kinds: frozenset[str] | None = frozenset()
    method: Method = "regions"
    objective: Objective = "arena"
    workers: int = 2
    by_hand: tuple[TiledRegion | Patch | LoopedRegion, ...] = ()
    inexact: bool = False
    search_budget: SearchBudget = DEFAULT_BUDGET
    tiles: bool = True

    def allows(self, kind: str, source: Model) -> bool:
        """Whether what is made of a model may use operators of this kind."""
        more = self.new_kinds
        return more is None or kind in more or any(op.kind == kind for op in source.ops())

    def __post_init__(self) -> None:
        if not self.overhead >= 1:
            raise UsageError(f"latency overhead {self.overhead} is below 1")
        check_choices(self.method, self.objective)


@dataclass(frozen=True)
class PlannedModel:
    """The file that was made. twin: for one that only TFLM runs, the portable model that computes
    the same on every runtime. exact: whether every element is computed by the sum that it was.
    tiled: whether parts of it are computed in tiles or in loops.
    front: what else a search found. refused: what promised more, and why it was not made: it was
    refused by a guard, or by the proof, which is a fault of this tool."""

    data: bytes
    candidate: MemoryPlan
    inspection: Inspection
    aliases: tuple[str, ...]
    input_overlaps: tuple[str, ...]
    replayed: int
    twin: bytes | None = None
    notes: tuple[str, ...] = ()
    exact: bool = True
    tiled: bool = False
    front: ParetoFront | None = None
    refused: tuple[str, ...] = ()


def planned_models(
    original: bytes,
    model: Model,
    options: MemoryOptions,
    permission: TilePermission | None,
    budget: int | None,
    say: Progress,
    stop: Stop | None = None,
) -> Generator[PlannedModel, Refusal | None, None]:
    """The smallest file: with tiles, if they are allowed and lower the arena; and when the proof
    refuses it, for a reason that is sent here, the next one to fall back on, the plan without
    tiles at last. `model` is the one in `original`, and is changed. `budget`: bytes of arena;
    tiles that keep it may be fewer. `stop`: may end all searching; what was found until then is
    made. Raises UnsoundPlanError where a guard refuses the last one."""
    refuse_plan(model, options.kernels.target)
    stop = stop or Stop(options.time_limit)
    if permission is not None and permission.by_hand:
        yield _by_hand(original, permission, options, say, stop)
        return
    plain = _write_and_check(plan_memory(model, options, say, stop), options)
    if permission is None:
        yield plain
        return
    if not permission.tiles:
        respelled = _respelled(original, plain, permission, options, say, stop)
        refusal = None if respelled is None else (yield respelled)
        if respelled is None or refusal is not None:
            yield plain
        return
    try:
        steps = search_by_permission(
            original, _tiling_options(permission, budget, options), say, stop
        )
    except StoppedError:
        yield replace(plain, notes=("no tiles were looked for", *plain.notes))
        return
    careful = replace(options, effort=_FINAL_EFFORT)
    searched = _TilingJob(original, plain, permission, careful, budget, say, stop)
    refused = list[str]()
    steps = yield from _tiled_models(searched, steps, refused)
    found = steps.result
    tried = f"{found.evaluated} ways to tile and to stream were tried; none"
    proof = " that stood the proof" if refused else ""
    hints = advice(plain.inspection, read_model(original), options.kernels)
    said = (f"{tried}{proof} lowers the arena within what is allowed", *hints)
    front = _pareto_front(found, permission, plain, None, plain)
    yield replace(plain, notes=(*said, *plain.notes), front=front, refused=tuple(refused))


@dataclass(frozen=True)
class _TilingJob:
    """What tilings were found for. options: of the last plan of each."""

    original: bytes
    plain: PlannedModel
    permission: TilePermission
    options: MemoryOptions
    budget: int | None
    say: Progress
    stop: Stop


def _tiled_models(
    job: _TilingJob, steps: PermissionResults, refused: list[str]
) -> Generator[PlannedModel, Refusal | None, PermissionResults]:
    """Files of the tilings that lower what is to be lowered, each should those before be refused;
    what was is noted in `refused`, and what shares the cause is not tried. Returns what is left of
    the search."""
    suspects = Suspects(job.original)
    for tiling in steps.result.finalists:
        if suspects.shares(tiling):
            steps = steps.without(tiling, job.budget)
            suspects.skip()
            continue
        try:
            tiled = _plan_tiling(
                job.original, tiling, job.permission, job.options, job.say, job.stop
            )
        except (UnsoundPlanError, UsageError) as error:
            refused.append(f"passed over: {_describe_tiling(tiling)}: {error}")
        else:
            if _objective_bytes(tiled, job.permission) >= _objective_bytes(
                job.plain, job.permission
            ):
                continue
            if suspects.holds(tiled.data, tiled.twin):
                steps = steps.without(tiling, job.budget)
                suspects.skip()
                continue
            told = (*refused, *_skipped(suspects))
            reason = yield replace(_with_search_notes(job, steps, tiling, tiled), refused=told)
            suspects.note(tiling, reason)
            refused.append(f"{REFUSED}: {_describe_tiling(tiling)}: {reason}")
        job.say(refused[-1])
        steps = steps.without(tiling, job.budget).unlike(suspects.shares)
    refused += _skipped(suspects)
    return steps


def _skipped(suspects: Suspects) -> list[str]:
    """What was not tried for what was refused before."""
    if not suspects.skipped:
        return []
    return [f"not tried, as they share the cause: {suspects.skipped} more ways to tile"]


def _with_search_notes(
    job: _TilingJob, steps: PermissionResults, tiling: Tiling, tiled: PlannedModel
) -> PlannedModel:
    """A tiled model with what a report says of the search that led to it."""
    original = read_model(job.original)
    more = new_kinds(original, tiled.candidate.model)
    sizes = _objective_bytes(job.plain, job.permission), _objective_bytes(tiled, job.permission)
    said = steps.notes(*sizes, more, tiled.inspection.arena.bound)
    notes = (*said, *advice(tiled.inspection, original, job.options.kernels), *tiled.notes)
    front = _pareto_front(steps.result, job.permission, job.plain, tiling, tiled)
    return replace(tiled, notes=notes, front=front)


def _describe_tiling(tiling: Tiling) -> str:
    """A tiling as a report says which one it was."""
    regions = ", ".join(map(_describe_region, tiling.regions))
    spelled = "" if tiling.respell is None else " spelled otherwise"
    return f"{tiling.bytes:,} B of {tiling.objective} by operators{spelled} {regions}".rstrip()


def _describe_region(region: TiledRegion | LoopedRegion) -> str:
    ops = f"{region.ops[0]}-{region.ops[-1]}"
    if isinstance(region, LoopedRegion):
        return f"{ops} in a {region.border} loop, rows a turn: {region.rows}"
    return f"{ops} in {' x '.join(str(n) for _, n in region.splits)} parts, halo {region.halo}"


def _tiling_options(
    permission: TilePermission, budget: int | None, options: MemoryOptions
) -> TilingOptions:
    return TilingOptions(
        options.kernels,
        options.input_overlaps_of,
        overhead=permission.overhead,
        method=permission.method,
        objective=permission.objective,
        budget=budget,
        dialect=permission.dialect,
        new_kinds=permission.new_kinds,
        workers=permission.workers,
        search_budget=permission.search_budget,
    )


def _objective_bytes(made: PlannedModel, permission: TilePermission) -> int:
    """The bytes that the search was to lower."""
    arena = made.inspection.arena
    return arena.arena if permission.objective == "arena" else arena.head


def _pareto_front(
    found: TilingResult,
    permission: TilePermission,
    plain: PlannedModel,
    tiling: Tiling | None,
    made: PlannedModel,
) -> ParetoFront:
    sizes = _objective_bytes(plain, permission), _objective_bytes(made, permission)
    return pareto_front(
        found, permission.objective, permission.overhead, sizes[0], tiling, sizes[1]
    )


def _by_hand(
    original: bytes, permission: TilePermission, options: MemoryOptions, say: Progress, stop: Stop
) -> PlannedModel:
    """What was asked for, whether it pays or not. Of both ways to treat views the one that needs
    no operator which the firmware may not have, and then the smaller one."""
    tiling = tiling_by_hand(original, permission.by_hand, options.kernels, permission.inexact)
    made: list[PlannedModel] = []
    for bind_views in (True, False) if permission.dialect else (False,):
        try:
            way = replace(tiling, bind_views=bind_views)
            made.append(_plan_tiling(original, way, permission, options, say, stop))
        except (UnsoundPlanError, UsageError):
            if not made and not bind_views:
                raise
    used, more = read_model(original), permission.new_kinds

    def rank(m: PlannedModel) -> tuple[bool, int]:
        beyond = more is not None and {*new_kinds(used, m.inspection.model)} - more
        return bool(beyond), m.inspection.arena.arena

    return min(made, key=rank)


def _plan_tiling(
    original: bytes,
    tiling: Tiling,
    permission: TilePermission,
    options: MemoryOptions,
    say: Progress,
    stop: Stop | None = None,
) -> PlannedModel:
    exact = all(s.exact for s in tiling.regions if isinstance(s, TiledRegion))
    source, target = read_model(original), options.kernels.target
    twin, notes = tiled_model(
        original, tiling.regions, crop=False, order=tiling.order, inexact=permission.inexact
    )
    more = new_kinds(source, twin)
    dialect = permission.dialect and tiling.has_views
    wanted = replace(options, recipe=tiling.recipe)
    if tiling.respell is not None:
        rows = dialect or permission.allows("RESHAPE", source)
        wanted = replace(wanted, spellings=SpellingPermission(1.0, tiling.respell, rows))
    if not (dialect and exact):
        _check_runs(source, twin, target)
    if not dialect:
        made = _write_and_check(plan_memory(twin, wanted, say, stop), options)
        more = new_kinds(source, made.candidate.model)
        registered = registration_notes(more)
        notes = [*notes, _slowdown_note(tiling), *registered, *made.notes]
        return replace(made, notes=tuple(notes), exact=exact, tiled=bool(tiling.regions))
    crop = has_tiles(tiling.regions)
    cropped, notes = tiled_model(
        original, tiling.regions, crop=crop, order=tiling.order, inexact=permission.inexact
    )
    wanted = replace(wanted, bind_views=tiling.bind_views)
    candidate = plan_memory(cropped, wanted, say, stop)
    _check_legal(candidate.problem, candidate.solution.plan)
    input_overlaps = list(taken_input_overlaps(candidate.line, candidate.offsets, options.kernels))
    aliases = shared_in_place(candidate.line, candidate.offsets)
    replayed = replay_all(input_overlaps, options.kernels)
    notes += into_dialect(candidate, options)
    written = write_planned(candidate, options)
    back = read_model(written.data, dialect=True)
    lend_names(back, written.names)
    _check_runs(source, back, target)
    if _offsets_in_file_order(back, carried_plan(back)) != _offsets_in_file_order(
        candidate.model, candidate.offsets
    ):
        raise UnsoundPlanError("the plan in the file that was made is another; please report it")
    registered = registration_notes(new_kinds(source, back))
    return PlannedModel(
        written.data,
        candidate,
        inspect_model(back, options.kernels, dialect=True),
        aliases,
        tuple(map(str, input_overlaps)),
        replayed,
        twin=write_model(twin),
        notes=(*notes, _slowdown_note(tiling), *registered, *written.notes),
        exact=exact,
        tiled=bool(tiling.regions),
    )


def _respelled(
    original: bytes,
    plain: PlannedModel,
    permission: TilePermission,
    options: MemoryOptions,
    say: Progress,
    stop: Stop,
) -> PlannedModel | None:
    """The model without tiles, with operators spelled otherwise; None where that lowers nothing."""
    as_it_is = _instructions(plain.candidate, options)
    most = int(permission.overhead * as_it_is)
    tiling = Tiling((), 0, 1.0, None, True, objective=permission.objective, respell=most)
    try:
        made = _plan_tiling(original, tiling, permission, options, say, stop)
    except (UnsoundPlanError, UsageError) as error:
        say(f"passed over: other spellings: {error}")
        return None
    if _objective_bytes(made, permission) >= _objective_bytes(plain, permission):
        return None
    slower = _instructions(made.candidate, options) / as_it_is
    notes = [n for n in made.notes if n != _slowdown_note(tiling)]
    return replace(made, notes=(*notes, _slowdown_note(replace(tiling, overhead=slower))))


def _instructions(made: MemoryPlan, options: MemoryOptions) -> int:
    copies = RemainingCopies(made.offsets)
    return latency_of(
        made.model, options.kernels.target, in_place=copies.in_place, turn_bytes=copies.turn_bytes
    ).instructions


def _check_runs(source: Model, made: Model, target: Target) -> None:
    """Raise UsageError where TFLM could not run what was made of a model that it does run."""
    why = newly_unsupported(source.ops(), made.ops(), runners(target))
    if why is not None:
        raise UsageError(f"TFLM could not run the result: {why}; leave out what has this type")


def add_lean_pool(data: bytes, model: Model, target: Target) -> tuple[bytes, Model]:
    """For lean firmware: the model with its pool, so that the search counts with it."""
    if not target.lean:
        return data, model
    run(model, WritePool())
    pooled = write_model(model)
    return pooled, read_model(pooled)


def _offsets_in_file_order(model: Model, offsets: Mapping[Tensor, int] | None) -> list[int | None]:
    return [(offsets or {}).get(t) for t in model.tensors()]


def _slowdown_note(tiling: Tiling) -> str:
    return f"predicted instructions: {100 * (tiling.overhead - 1):+.1f} %"


def registration_notes(kinds: list[str]) -> list[str]:
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


def _write_and_check(candidate: MemoryPlan, options: MemoryOptions) -> PlannedModel:
    """The candidate's file, read back: the plan found in it is validated and its overlaps are
    replayed, not those meant."""
    written = write_planned(candidate, options)
    model = read_model(written.data)
    lend_names(model, written.names)
    offsets = carried_plan(model)
    line = timeline(model, options.kernels.scratch_of, entries=entry_graphs(model))
    if offsets is None:
        raise UnsoundPlanError("the plan is not in the file that was made; please report it")
    plan = placement_of(line, offsets).plan
    _check_legal(planning_problem(line, options.input_overlaps_of), plan)
    aliases = shared_in_place(line, offsets)
    input_overlaps = list(taken_input_overlaps(line, offsets, options.kernels))
    replayed = replay_all(input_overlaps, options.kernels)
    return PlannedModel(
        written.data,
        candidate,
        inspect_model(model, options.kernels),
        aliases,
        tuple(map(str, input_overlaps)),
        replayed,
        twin=written.portable,
        notes=written.notes,
    )
