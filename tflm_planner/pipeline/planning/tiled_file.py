"""Makes the files of a tiling: the portable twin, and its TFLM dialect.

    original -Regions-> portable twin -------------------------> plan, AttachPlan    every runtime
                             |------ Crop -> plan -> Dialect -> AttachPlan           TFLM only

The twin is an ordinary model. In the dialect, views need no operators. Only TFLM, following the
plan, runs such a file correctly. So its scratch is checked against the life spans of the twin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tflm_planner.model.edit import number_origins, reorder
from tflm_planner.model.ir import Model, Tensor
from tflm_planner.model.reachability import entry_graphs
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline.inspection.inspect_model import inspect_model
from tflm_planner.pipeline.options import MemoryOptions, TilePermission
from tflm_planner.pipeline.planning.memory_plan import MemoryPlan, PlacedModel
from tflm_planner.pipeline.planning.memory_search import plan_memory
from tflm_planner.pipeline.planning.planned_file import (
    PlannedFile,
    check_legal,
    check_sharing,
    write_and_check,
)
from tflm_planner.pipeline.planning.write import write_planned
from tflm_planner.support.errors import ForbiddenOperatorsError, UnsoundPlanError, UsageError
from tflm_planner.support.progress import Progress
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.element_types import new_refusal
from tflm_planner.tflm.kernels.scratch import reference_scratch
from tflm_planner.tflm.liveness import timeline_of
from tflm_planner.tflm.resolver_methods import resolver_method
from tflm_planner.tflm.target_kernels import runners
from tflm_planner.tflm.targets import Target
from tflm_planner.tiling.evaluate.candidate import has_tiles
from tflm_planner.tiling.options import COPYING
from tflm_planner.tiling.search import Tiling
from tflm_planner.tiling.spellings import SpellingPermission
from tflm_planner.tiling.tilings import in_running_order
from tflm_planner.transforms.attach_plan import carried_plan
from tflm_planner.transforms.base import run
from tflm_planner.transforms.dialect import Crop, Dialect, scratch_faults
from tflm_planner.transforms.normalize import clean_up
from tflm_planner.transforms.regions import Regions
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.subsample import Subsample
from tflm_planner.transforms.tile.tile import TiledRegion

_OUTPUTS_STAY = (
    "TFLM dialect: what puts the outputs together stays, as TFLM would place scratch over them "
    "before the end; with a RESHAPE anywhere in the model it could be dropped"
)


def plan_tiling(
    original: bytes,
    tiling: Tiling,
    permission: TilePermission,
    options: MemoryOptions,
    on_progress: Progress,
    stop: Stop | None = None,
    preferred: int | None = None,
) -> PlannedFile:
    """Make the file of a tiling; its slowdown is not counted here. It is in the dialect if that is
    permitted and the tiling has views, and portable otherwise. preferred: instructions above which
    operators are spelled otherwise only if no plan is within them. Raises UsageError if TFLM could
    not run it, UnsoundPlanError if a guard refuses it, and ForbiddenOperatorsError if a plan that
    was searched needs operators that are not permitted."""
    source, used_kinds = read_model(original), clean_up(read_model(original)).kinds
    maker = _FileMaker(original, source, used_kinds, tiling, permission, options, preferred)
    forbidden: list[str] = []
    for search in maker.searches():
        planned = maker.file(search, on_progress, stop)
        kinds = new_kinds(maker.source, planned.inspection.model)
        forbidden = [kind for kind in kinds if not maker.is_permitted(kind)]
        if not forbidden:
            return planned
    raise ForbiddenOperatorsError(f"its plan needs {', '.join(forbidden)}, which may not be added")


@dataclass(frozen=True)
class _FileMaker:
    """Makes the files of one tiling, each with another search for the plan. source: the model in
    the file `original`. used_kinds: the kinds of operators that its firmware has. options: those of
    the final plan. preferred: as of `plan_tiling`."""

    original: bytes
    source: Model
    used_kinds: frozenset[str]
    tiling: Tiling
    permission: TilePermission
    options: MemoryOptions
    preferred: int | None

    @property
    def in_dialect(self) -> bool:
        """Whether the files are in the dialect."""
        return self.permission.dialect and self.tiling.has_views

    def is_permitted(self, kind: str) -> bool:
        """Whether operators of a kind may be in the file."""
        operators, target = self.permission.operators, self.options.kernels.target
        return bool(self.permission.by_hand) or operators.allows(kind, self.used_kinds, target)

    def searches(self) -> Iterator[MemoryOptions]:
        """The options of the search for the plan, which starts from the plan with which the tiling
        was evaluated; then, where a view may not be a copy, those that forbid it. The plan of the
        evaluation may have needed no copy although no view was bound."""
        tiling = self.tiling
        search = replace(self.options, recipe=tiling.recipe, tiled=True)
        if tiling.respell is not None:
            rows = self.in_dialect or self.is_permitted("RESHAPE")
            spellings = SpellingPermission(1.0, tiling.respell, rows, self.preferred)
            search = replace(search, spellings=spellings)
        if not self.in_dialect:
            yield search
            return
        yield replace(search, bind_views=tiling.bind_views, in_dialect=True)
        copying = frozenset(filter(self.is_permitted, COPYING))
        if not tiling.bind_views and len(copying) < len(COPYING):
            yield replace(search, bind_views=True, copying=copying, in_dialect=True)

    def file(self, search: MemoryOptions, on_progress: Progress, stop: Stop | None) -> PlannedFile:
        """The file with the plan that a search finds."""
        exact = all(r.exact for r in self.tiling.regions if isinstance(r, TiledRegion))
        target = self.options.kernels.target
        twin, notes = self._tiled(crop=False)
        if not (self.in_dialect and exact):
            _check_runs(self.source, twin, target)
        if self.in_dialect:
            cropped, notes = self._tiled(crop=has_tiles(self.tiling.regions))
            memory_plan = plan_memory(cropped, search, on_progress, stop)
            planned, dialect_notes = _write_dialect(memory_plan, self.options)
            _check_runs(self.source, planned.inspection.model, target)
            origins = tuple(op.origins for op in twin.main.ops)
            planned = replace(planned, twin=write_model(twin), twin_origins=origins)
            notes += dialect_notes
        else:
            planned = write_and_check(plan_memory(twin, search, on_progress, stop), self.options)
        more = new_kinds(self.source, planned.inspection.model)
        every_note = (*notes, *registration_notes(more), *planned.notes)
        tiled = bool(self.tiling.regions)
        return replace(planned, notes=every_note, exact=exact, tiled=tiled)

    def _tiled(self, *, crop: bool) -> tuple[Model, list[str]]:
        """The tiled model before it is planned, with notes."""
        tiling, inexact = self.tiling, self.permission.inexact
        return tiled_model(
            self.original, tiling.regions, crop=crop, order=tiling.order, inexact=inexact,
            subsample=tiling.subsample,
        )  # fmt: skip


def _write_dialect(
    memory_plan: MemoryPlan, options: MemoryOptions
) -> tuple[PlannedFile, list[str]]:
    """Write the plan's file in the dialect, with notes on the operators that were dropped. The plan
    is checked before they are dropped, because afterwards life spans do not tell whether it is
    legal."""
    check_legal(memory_plan.problem, memory_plan.solution.plan)
    sharing = check_sharing(memory_plan.timeline, memory_plan.offsets, options.kernels)
    dialect, notes = into_dialect(memory_plan, options)
    written = write_planned(dialect, options)
    model = written.read_back(dialect=True)
    if _offsets_in_file_order(model, carried_plan(model)) != _offsets_in_file_order(
        dialect.model, dialect.offsets
    ):
        raise UnsoundPlanError("the plan in the file that was made is another; please report it")
    planned = PlannedFile(
        data=written.data,
        memory_plan=memory_plan,
        inspection=inspect_model(model, options.kernels, dialect=True),
        sharing=sharing,
        notes=written.notes,
    )
    return planned, notes


def _check_runs(source: Model, result: Model, target: Target) -> None:
    """Raise UsageError if TFLM could not run the result although it runs the source."""
    why = new_refusal(source.ops(), result.ops(), runners(target))
    if why is not None:
        raise UsageError(f"TFLM could not run the result: {why}; leave out what has this type")


def _offsets_in_file_order(model: Model, offsets: Mapping[Tensor, int] | None) -> list[int | None]:
    return [(offsets or {}).get(t) for t in model.tensors()]


def registration_notes(kinds: list[str]) -> list[str]:
    """Notes on the operators that the firmware must register in addition, with the lines to
    paste."""
    if not kinds:
        return []
    methods = (resolver_method(kind) for kind in kinds)
    lines = " ".join(f"resolver.{method}();" for method in methods if method)
    return [
        f"the firmware must also register {', '.join(kinds)}",
        f"in C++, with room for {len(kinds)} more in MicroMutableOpResolver: {lines}",
    ]


def tiled_model(
    data: bytes,
    regions: Sequence[TiledRegion | LoopedRegion],
    *,
    crop: bool,
    order: Sequence[int] | None = None,
    inexact: bool = False,
    subsample: Subsample | None = None,
) -> tuple[Model, list[str]]:
    """The model in `data`, normalized, subsampled and tiled, with notes. `regions`: operators are
    given by position in the model before tiles. `crop`: whether to crop for the dialect. `order`:
    the order in which operators are to run, as a list of these positions. `inexact`: whether sums
    may be split. `subsample`: how pixels that nothing reads are left out; None: they are not."""
    model = read_model(data)
    notes, kinds = clean_up(model)
    number_origins(model)
    if subsample is not None:
        notes += run(model, subsample)
    if order is not None:
        reorder(model.main, [model.main.ops[i] for i in order])
        regions = in_running_order(regions, order)
    notes += run(model, Regions(tuple(regions), inexact))
    return model, notes + (run(model, Crop("RESHAPE" in kinds)) if crop else [])


def into_dialect(memory_plan: MemoryPlan, options: MemoryOptions) -> tuple[PlacedModel, list[str]]:
    """A copy, in the dialect, of a model that was planned with `bind_views`, and notes.

    Raises UnsoundPlanError if TFLM would place scratch over bytes that are still needed, on the
    target or with the reference kernels that prove the file on this machine.
    """
    rules = (options.kernels.scratch_of, reference_scratch)
    faults: list[str] = []
    for outputs in (True, False):
        copy = memory_plan.placed.copy()
        model, offsets, entries = copy.model, copy.offsets, entry_graphs(copy.model)
        before_dialect = [timeline_of(model, rule, entries=entries) for rule in rules]
        notes = run(model, Dialect(offsets, outputs=outputs))
        faults = [
            fault
            for line, rule in zip(before_dialect, rules, strict=True)
            for fault in scratch_faults(line, model, offsets, rule, options.input_overlaps_of)
        ]
        if not faults:
            left = {t: offsets[t] for t in model.tensors() if t in offsets}
            return PlacedModel(model, left), notes if outputs else [*notes, _OUTPUTS_STAY]
    raise UnsoundPlanError(f"scratch of the TFLM dialect: {faults[0]}; use --portable")


def new_kinds(before: Model, after: Model) -> list[str]:
    """The kinds of operators that only the second model has, and that the firmware must also
    register."""
    return sorted({op.kind for op in after.ops()} - {op.kind for op in before.ops()})
