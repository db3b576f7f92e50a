"""Computes the cells that need a plan or a search, for the kernels of one target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline.comparison.cell_search import CellSearch
from tflm_planner.pipeline.inspection.inspect_model import without_wrong_plan
from tflm_planner.pipeline.options import MemoryOptions, PlanOptions, TilePermission, VerifyOptions
from tflm_planner.pipeline.planning.planned_file import PlannedFile, on_lean_firmware
from tflm_planner.pipeline.planning.planning_session import PlanningSession
from tflm_planner.pipeline.prove import Prover
from tflm_planner.report.comparison import Cell
from tflm_planner.report.document import RungKind
from tflm_planner.support.errors import PlannerError
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tflm.targets import Target, can_be_lean, with_lean

_NOT_LEAN = "the lean library is not for these kernels"


@dataclass(frozen=True)
class PlannedCells:
    """A model to be planned for the kernels of one target. search: which cells to compute."""

    data: bytes
    target: Target
    search: CellSearch

    def cells(self) -> Iterator[Cell]:
        """Yield all cells except that of the unchanged model. If a kind comes twice, the later cell
        counts."""
        try:
            reference, _ = without_wrong_plan(
                self.data, read_model(self.data), kernels_of(self.target)
            )
            session = PlanningSession(reference, self.search.stop, self.search.on_progress)
            options = PlanOptions(MemoryOptions(kernels=kernels_of(self.target)), verify=None)
            planned = session.plan(options).file
        except PlannerError as error:
            for kind in self.search.columns[1:]:
                yield Cell(kind, remark=f"refused: {error}")
            return
        yield Cell.of("plan", planned.inspection.arena, len(planned.data))
        yield self._lean(planned)
        yield from self._searched_cells(session, options)

    def _lean(self, planned: PlannedFile) -> Cell:
        """The same plan evaluated on lean firmware."""
        if not can_be_lean(self.target):
            return Cell("lean", remark=_NOT_LEAN)
        model, arena = on_lean_firmware(planned, self.target)
        return Cell.of("lean", arena, len(write_model(model)), at_most=True)

    def _searched_cells(self, session: PlanningSession, plain: PlanOptions) -> Iterator[Cell]:
        """Yield the cells that need a search. Only tilings that could be proved here are
        searched."""
        tiles = TilePermission(workers=self.search.workers)
        if "tiles" in self.search.columns:
            yield self._searched_cell("tiles", session, replace(plain, tiles=tiles))
        if "more operators" not in self.search.columns:
            return
        options = replace(plain, tiles=replace(tiles, operators=AllowedOperators.ALL))
        yield self._searched_cell("more operators", session, options)
        if can_be_lean(self.target):
            lean = kernels_of(with_lean(self.target))
            options = replace(options, memory=replace(options.memory, kernels=lean))
            yield self._searched_cell("lean", session, options)

    def _searched_cell(
        self, kind: RungKind, session: PlanningSession, options: PlanOptions
    ) -> Cell:
        """The cell of one search."""
        kernels = options.memory.kernels
        self.search.on_progress(f"searching for {kind} on {kernels.target.id}")
        prover = Prover(
            session.original,
            VerifyOptions(inputs=1),
            kernels,
            self.search.on_progress,
            self.search.stop,
        )
        try:
            tiles = prover.provable_tiles(read_model(session.original), options.tiles)
            planned = session.plan(replace(options, tiles=tiles)).file
        except PlannerError as error:
            return Cell(kind, remark=f"refused: {error}")
        return Cell.of(kind, planned.inspection.arena, len(planned.data))
