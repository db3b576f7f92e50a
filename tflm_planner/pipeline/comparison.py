"""One model on many boards: what it needs on each, as it is and planned.

    boards --kernel_twin--> a few sorts of firmware --plan, search--> cells, shared by their boards

Order and plan take a fraction of a second for each sort of firmware; tiles, more operators and the
lean library with tiles are searched only where that was asked for. Plans are made, read back
and validated as for a file (`planned_cells`), but not run: nothing is written. It must not know how
cells are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tflm_planner.pipeline.arenas import arena_in
from tflm_planner.report.comparison import Cell, Comparison, TargetRow
from tflm_planner.report.document import RungKind
from tflm_planner.support import defaults
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.arena.predict import Arena
from tflm_planner.tflm.element_types import cannot_run
from tflm_planner.tflm.targets import Target, kernel_twin

AS_IS: tuple[RungKind, ...] = ("stock",)
"""The model as it came: at once, and in a browser."""
QUICK: tuple[RungKind, ...] = ("stock", "plan", "lean")
"""Kinds of cells that need no search: the lean library takes the plan that was made without it."""
WITH_TILES: tuple[RungKind, ...] = ("stock", "plan", "tiles", "lean")
ALL: tuple[RungKind, ...] = ("stock", "plan", "tiles", "more operators", "lean")
"""Here lean firmware has tiles and loops of its own."""
_UNPROVED = "figures are those of plans that were made and checked, not run; `tflm-plan IN` proves"


@dataclass(frozen=True)
class Search:
    """columns: kinds of cells, "stock" first. workers: processes of a search. stop: may end it."""

    columns: tuple[RungKind, ...]
    stop: Stop
    on_progress: Callable[[str], None]
    workers: int = defaults.WORKERS


def compare(data: bytes, source: str, targets: Sequence[Target], search: Search) -> Comparison:
    """The model in `data`, whose name is `source`, on all of these targets. Raises ModelError where
    it cannot be read."""
    cells_by_twin: dict[Target, tuple[Cell, ...]] = {}
    rows: list[TargetRow] = []
    for target in targets:
        twin = kernel_twin(target)
        if twin not in cells_by_twin:
            search.on_progress(f"planning for {target.id}")
            cells_by_twin[twin] = _cells(data, replace(target, board=None), search)
        rows.append(TargetRow(target, cells_by_twin[twin]))
    notes = search.stop.notes if search.columns == AS_IS else (*search.stop.notes, _UNPROVED)
    return Comparison(source, len(data), search.columns, tuple(rows), notes)


def _cells(data: bytes, target: Target, search: Search) -> tuple[Cell, ...]:
    """The cells of all targets that have these kernels."""
    model, arena = arena_in(data, target)
    stock = cell_of("stock", arena, len(data))
    if search.columns == AS_IS:
        return (stock,)
    if cannot_run(model.ops(), target):
        return tuple(replace(stock, kind=kind) for kind in search.columns)
    from tflm_planner.pipeline.planned_cells import PlannedCells  # the searches, and numpy

    cells = [stock, *PlannedCells(data, target, search).cells()]
    by_kind = {cell.kind: cell for cell in cells}
    return tuple(by_kind[kind] for kind in search.columns)


def cell_of(kind: RungKind, arena: Arena, file_bytes: int, *, at_most: bool = False) -> Cell:
    """A cell with an arena, or without a figure where TFLM does not run such a model."""
    if arena.cannot_run:
        return Cell(kind, remark=f"cannot run: {arena.cannot_run[0]}")
    return Cell(kind, arena.arena, arena.bound, at_most, file_bytes, arena.warnings)
