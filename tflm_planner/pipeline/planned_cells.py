"""The cells of a comparison that need a plan or a search: for the kernels of one target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tflm_planner.model.clone import clone
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline.comparison import Search, cell_of
from tflm_planner.pipeline.inspection import without_wrong_plan
from tflm_planner.pipeline.options import MemoryOptions, PlanOptions, TilePermission, VerifyOptions
from tflm_planner.pipeline.planned_model import PlannedFile
from tflm_planner.pipeline.planning import Planning
from tflm_planner.pipeline.prove import Prover
from tflm_planner.report.comparison import Cell
from tflm_planner.report.document import RungKind
from tflm_planner.support.errors import PlannerError
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.lean.pool import WritePool
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tflm.targets import Target, can_be_lean, with_lean
from tflm_planner.transforms.attach_plan import carried_plan
from tflm_planner.transforms.base import run

_NOT_LEAN = "the lean library is not for these kernels"


@dataclass(frozen=True)
class PlannedCells:
    """A model to be planned for the kernels of one target, as far as a search asks for it."""

    data: bytes
    target: Target
    search: Search

    def cells(self) -> Iterator[Cell]:
        """All cells but that of the model as it is; of two of a kind the later one counts."""
        try:
            reference, _ = without_wrong_plan(
                self.data, read_model(self.data), kernels_of(self.target)
            )
            planning = Planning(reference, self.search.stop, self.search.on_progress)
            options = PlanOptions(MemoryOptions(kernels=kernels_of(self.target)), verify=None)
            planned = planning.plan(options).file
        except PlannerError as error:
            for kind in self.search.columns[1:]:
                yield Cell(kind, remark=f"refused: {error}")
            return
        yield cell_of("plan", planned.inspection.arena, len(planned.data))
        yield self._lean(planned)
        yield from self._searched_cells(planning, options)

    def _lean(self, planned: PlannedFile) -> Cell:
        """The very plan that was made, on lean firmware."""
        if not can_be_lean(self.target):
            return Cell("lean", remark=_NOT_LEAN)
        model = clone(planned.inspection.model)
        run(model, WritePool())
        arena = arena_of(model, with_lean(self.target), carried_plan(model))
        return cell_of("lean", arena, len(write_model(model)), at_most=True)

    def _searched_cells(self, planning: Planning, plain: PlanOptions) -> Iterator[Cell]:
        """What searches find, as far as it could be proved here."""
        tiles = TilePermission(workers=self.search.workers)
        if "tiles" in self.search.columns:
            yield self._searched_cell("tiles", planning, replace(plain, tiles=tiles))
        if "more operators" not in self.search.columns:
            return
        options = replace(plain, tiles=replace(tiles, operators=AllowedOperators.ALL))
        yield self._searched_cell("more operators", planning, options)
        if can_be_lean(self.target):
            lean = kernels_of(with_lean(self.target))
            options = replace(options, search=replace(options.search, kernels=lean))
            yield self._searched_cell("lean", planning, options)

    def _searched_cell(self, kind: RungKind, planning: Planning, options: PlanOptions) -> Cell:
        """What one search comes to."""
        kernels = options.search.kernels
        self.search.on_progress(f"searching for {kind} on {kernels.target.id}")
        prover = Prover(
            planning.original,
            VerifyOptions(inputs=1),
            kernels,
            self.search.on_progress,
            self.search.stop,
        )
        try:
            tiles = prover.provable_tiles(read_model(planning.original), options.tiles)
            planned = planning.plan(replace(options, tiles=tiles)).file
        except PlannerError as error:
            return Cell(kind, remark=f"refused: {error}")
        return cell_of(kind, planned.inspection.arena, len(planned.data))
