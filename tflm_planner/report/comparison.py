"""What a model needs on boards, as data: one row a board, one cell a way to run it there.

Nothing here computes figures. All sizes are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflm_planner.report.document import RungKind
from tflm_planner.tflm.arena.predict import Arena
from tflm_planner.tflm.arena.uncertainty import BoundKind
from tflm_planner.tflm.targets import Board, Target


@dataclass(frozen=True, slots=True)
class Cell:
    """One way to run the model on one target. arena: bytes (None: there is no figure, and `remark`
    says why). bound: how it is known. at_most: whether a search might need less. file_bytes: of
    the model's file. warnings: why it is no more than "at least", and what else is wrong."""

    kind: RungKind
    arena: int | None = None
    bound: BoundKind = "exact"
    at_most: bool = False
    file_bytes: int = 0
    warnings: tuple[str, ...] = ()
    remark: str = ""

    @classmethod
    def of(cls, kind: RungKind, arena: Arena, file_bytes: int, *, at_most: bool = False) -> Cell:
        """A cell with an arena, or without a figure where TFLM does not run such a model."""
        if arena.cannot_run:
            return cls(kind, remark=f"cannot run: {arena.cannot_run[0]}")
        return cls(kind, arena.arena, arena.bound, at_most, file_bytes, arena.warnings)

    def fits(self, board: Board | None) -> bool | None:
        """Whether arena and file have room on a board; None where that is not known."""
        if board is None or self.arena is None:
            return None
        if self.file_bytes > board.flash:
            return False
        if self.arena <= board.sram:
            return True if self.bound != "at least" else None
        return None if self.at_most else False

    def margin(self, board: Board | None) -> int | None:
        """Bytes of SRAM that are left beside the arena (negative: that it is too large by)."""
        return None if board is None or self.arena is None else board.sram - self.arena


@dataclass(frozen=True, slots=True)
class TargetRow:
    """A target, with its board if it has one, and what the model needs there."""

    target: Target
    cells: tuple[Cell, ...]

    @property
    def name(self) -> str:
        """Id of the board, or of the target where no board was named."""
        return self.target.id if self.target.board is None else self.target.board.id


@dataclass(frozen=True, slots=True)
class Comparison:
    """A model on boards. source: its name. file_bytes: of the file as it came. columns: the kinds
    of every row's cells, in order. notes: what else is to be known."""

    source: str
    file_bytes: int
    columns: tuple[RungKind, ...]
    rows: tuple[TargetRow, ...]
    notes: tuple[str, ...] = ()
