"""What a model needs on boards, as data: one row for each board, one cell for each way to run it.

Nothing here computes figures. All sizes are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflm_planner.report.document import RungKind
from tflm_planner.tflm.arena.predict import Arena
from tflm_planner.tflm.arena.uncertainty import BoundKind, may_need_more
from tflm_planner.tflm.targets import Board, Target


@dataclass(frozen=True, slots=True)
class Cell:
    """One way to run the model on one target. arena: bytes; None if there is no figure, in which
    case `remark` says why. bound: whether the arena is exact or "at least". at_most: whether a
    search might find a smaller arena. file_bytes: bytes of the model's file. warnings: why the
    arena is only "at least", and other problems."""

    kind: RungKind
    arena: int | None = None
    bound: BoundKind = "exact"
    at_most: bool = False
    file_bytes: int = 0
    warnings: tuple[str, ...] = ()
    remark: str = ""

    @classmethod
    def of(cls, kind: RungKind, arena: Arena, file_bytes: int, *, at_most: bool = False) -> Cell:
        """A cell with an arena, or without a figure if TFLM cannot run the model."""
        if arena.cannot_run:
            return cls(kind, remark=f"cannot run: {arena.cannot_run[0]}")
        return cls(kind, arena.arena, arena.bound, at_most, file_bytes, arena.warnings)

    def fits(self, board: Board | None) -> bool | None:
        """Whether arena and file fit a board; None if that is not known."""
        if board is None or self.arena is None:
            return None
        if self.file_bytes > board.flash:
            return False
        if self.bound == "about" or (self.at_most and self.arena > board.sram):
            return None
        if self.arena <= board.sram:
            return None if may_need_more(self.bound) else True
        return False

    def margin(self, board: Board | None) -> int | None:
        """Bytes of SRAM that are left beside the arena. A negative number says by how much the
        arena is too large. None without a board or an arena."""
        return None if board is None or self.arena is None else board.sram - self.arena


@dataclass(frozen=True, slots=True)
class TargetRow:
    """A target, perhaps with a board, and what the model needs there."""

    target: Target
    cells: tuple[Cell, ...]

    @property
    def name(self) -> str:
        """Id of the board, or of the target if no board was named."""
        return self.target.id if self.target.board is None else self.target.board.id


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a model needs on boards. source: its name. file_bytes: bytes of the original file.
    columns: the kinds of the cells of every row, in order. notes: other remarks."""

    source: str
    file_bytes: int
    columns: tuple[RungKind, ...]
    rows: tuple[TargetRow, ...]
    notes: tuple[str, ...] = ()
