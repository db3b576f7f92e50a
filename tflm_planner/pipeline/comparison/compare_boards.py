"""Compares what one model needs on many boards, as it is and planned.

    boards --kernel_twin--> a few kinds of firmware --plan, search--> cells, shared by their boards

Order and plan take a fraction of a second for each kind of firmware. Tiles, more operators, and
tiles with the lean library are searched only on request. Plans are made, read back and validated as
for a file (`planned_cells`), but they are neither run nor written. It must not know how cells are
shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tflm_planner.pipeline.comparison.cell_search import CellSearch
from tflm_planner.pipeline.inspection.arenas import arena_in
from tflm_planner.report.comparison import Cell, Comparison, TargetRow
from tflm_planner.report.document import RungKind
from tflm_planner.tflm.targets import Target, kernel_twin

AS_IS: tuple[RungKind, ...] = ("stock",)
"""Only the unchanged model, which is computed at once, also in a browser."""
QUICK: tuple[RungKind, ...] = ("stock", "plan", "lean")
"""The kinds of cells that need no search. For the lean library, the plan made for stock TFLM is
evaluated."""
WITH_TILES: tuple[RungKind, ...] = ("stock", "plan", "tiles", "lean")
ALL: tuple[RungKind, ...] = ("stock", "plan", "tiles", "more operators", "lean")
"""With these columns, tiles and loops are also searched for lean firmware."""
_UNPROVED = "figures are those of plans that were made and checked, not run; `tflm-plan IN` proves"


def compare(data: bytes, source: str, targets: Sequence[Target], search: CellSearch) -> Comparison:
    """Compare the model in `data`, named `source`, on these targets. Raises ModelError if it cannot
    be read."""
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


def _cells(data: bytes, target: Target, search: CellSearch) -> tuple[Cell, ...]:
    """The cells that all targets with these kernels share."""
    _, arena = arena_in(data, target)
    stock = Cell.of("stock", arena, len(data))
    if search.columns == AS_IS:
        return (stock,)
    # these import the searches, and numpy
    from tflm_planner.pipeline.comparison.planned_cells import PlannedCells
    from tflm_planner.pipeline.planning.versions import reasons_against
    from tflm_planner.verification.prepared import as_target_takes

    data, _ = as_target_takes(data, target)
    model, _ = arena_in(data, target)
    if reasons_against(model, target):
        return tuple(replace(stock, kind=kind) for kind in search.columns)

    cells = [stock, *PlannedCells(data, target, search).cells()]
    by_kind = {cell.kind: cell for cell in cells}
    return tuple(by_kind[kind] for kind in search.columns)
