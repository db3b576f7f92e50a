"""One model on many boards: what it needs on each, as it is and planned.

    boards --kernel_twin--> a few sorts of firmware --plan, search--> cells, shared by their boards

Order and plan take a fraction of a second for each sort of firmware; tiles, more operators and the
lean library with tiles are searched only where that was asked for. Plans are made, read back and
validated as for a file, but not run: nothing is written. It must not know how cells are shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tflm_planner.model.clone import clone
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline.inspection import arena_in, without_wrong_plan
from tflm_planner.pipeline.memory_plan import Progress
from tflm_planner.pipeline.options import MemoryOptions, PlanOptions, TilePermission, VerifyOptions
from tflm_planner.pipeline.planned_model import PlannedModel
from tflm_planner.pipeline.planning import Planning
from tflm_planner.pipeline.prove import Prover
from tflm_planner.report.comparison import Cell, Comparison, Row
from tflm_planner.report.document import RungKind
from tflm_planner.support import defaults
from tflm_planner.support.errors import PlannerError
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.arena.predict import Arena, arena_of
from tflm_planner.tflm.element_types import cannot_run
from tflm_planner.tflm.lean.pool import WritePool
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tflm.targets import Target, can_be_lean, kernel_twin, with_lean
from tflm_planner.transforms.attach_plan import carried_plan
from tflm_planner.transforms.base import run

QUICK: tuple[RungKind, ...] = ("stock", "plan", "lean")
"""Kinds of cells that need no search: the lean library takes the plan that was made without it."""
WITH_TILES: tuple[RungKind, ...] = ("stock", "plan", "tiles", "lean")
ALL: tuple[RungKind, ...] = ("stock", "plan", "tiles", "more operators", "lean")
"""Here lean firmware has tiles and loops of its own."""
_UNPROVED = "figures are those of plans that were made and checked, not run; `tflm-plan IN` proves"
_NO_LEAN = "the lean library is not for these kernels"


@dataclass(frozen=True)
class Search:
    """columns: kinds of cells, "stock" first. workers: processes of a search. stop: may end it."""

    columns: tuple[RungKind, ...]
    stop: Stop
    report_progress: Progress
    workers: int = defaults.WORKERS


def compare(data: bytes, source: str, targets: Sequence[Target], search: Search) -> Comparison:
    """The model in `data`, whose name is `source`, on all of these targets. Raises ModelError where
    it cannot be read."""
    known: dict[Target, tuple[Cell, ...]] = {}
    rows: list[Row] = []
    for target in targets:
        twin = kernel_twin(target)
        if twin not in known:
            search.report_progress(f"planning for {target.id}")
            known[twin] = _cells(data, replace(target, board=None), search)
        rows.append(Row(target, known[twin]))
    notes = (*search.stop.notes, _UNPROVED)
    return Comparison(source, len(data), search.columns, tuple(rows), notes)


def _cells(data: bytes, target: Target, search: Search) -> tuple[Cell, ...]:
    """The cells of all targets that have these kernels."""
    model, arena = arena_in(data, target)
    stock = _cell("stock", arena, len(data))
    if cannot_run(model.ops(), target):
        return tuple(replace(stock, kind=kind) for kind in search.columns)
    found = [stock, *_Firmware(data, model, target, search).cells()]
    by_kind = {cell.kind: cell for cell in found}
    return tuple(by_kind[kind] for kind in search.columns)


def _cell(kind: RungKind, arena: Arena, file_bytes: int, *, at_most: bool = False) -> Cell:
    """A cell with an arena, or without a figure where TFLM does not run such a model."""
    if arena.cannot_run:
        return Cell(kind, remark=f"cannot run: {arena.cannot_run[0]}")
    return Cell(kind, arena.arena, arena.bound, at_most, file_bytes, arena.warnings)


@dataclass(frozen=True)
class _Firmware:
    """A model to be planned for the kernels of one target."""

    data: bytes
    model: Model
    target: Target
    search: Search

    def cells(self) -> Iterator[Cell]:
        """All cells but that of the model as it is; of two of a kind the later one counts."""
        try:
            reference, _ = without_wrong_plan(self.data, self.model, kernels_of(self.target))
            planning = Planning(reference, self.search.stop, self.search.report_progress)
            options = PlanOptions(MemoryOptions(kernels=kernels_of(self.target)), verify=None)
            planned = planning.plan(options)[0]
        except PlannerError as error:
            for kind in self.search.columns[1:]:
                yield Cell(kind, remark=f"refused: {error}")
            return
        yield _cell("plan", planned.inspection.arena, len(planned.data))
        yield self._lean(planned)
        yield from self._searched(planning, options)

    def _lean(self, planned: PlannedModel) -> Cell:
        """The very plan that was made, on lean firmware."""
        if not can_be_lean(self.target):
            return Cell("lean", remark=_NO_LEAN)
        model = clone(planned.inspection.model)
        run(model, WritePool())
        arena = arena_of(model, with_lean(self.target), carried_plan(model))
        return _cell("lean", arena, len(write_model(model)), at_most=True)

    def _searched(self, planning: Planning, plain: PlanOptions) -> Iterator[Cell]:
        """What searches find, as far as it could be proved here."""
        tiles = TilePermission(workers=self.search.workers)
        if "tiles" in self.search.columns:
            yield self._found("tiles", planning, replace(plain, tiles=tiles))
        if "more operators" not in self.search.columns:
            return
        options = replace(plain, tiles=replace(tiles, new_kinds=None))
        yield self._found("more operators", planning, options)
        if can_be_lean(self.target):
            lean = kernels_of(with_lean(self.target))
            options = replace(options, search=replace(options.search, kernels=lean))
            yield self._found("lean", planning, options)

    def _found(self, kind: RungKind, planning: Planning, options: PlanOptions) -> Cell:
        """What one search comes to."""
        kernels = options.search.kernels
        self.search.report_progress(f"searching for {kind} on {kernels.target.id}")
        prover = Prover(
            planning.original,
            VerifyOptions(inputs=1),
            kernels,
            self.search.report_progress,
            self.search.stop,
        )
        try:
            tiles = prover.provable_tiles(read_model(planning.original), options.tiles)
            planned = planning.plan(replace(options, tiles=tiles))[0]
        except PlannerError as error:
            return Cell(kind, remark=f"refused: {error}")
        return _cell(kind, planned.inspection.arena, len(planned.data))
