"""Renders what a model needs on boards as a table for a terminal.

    board          SRAM     as it is            order and plan      lean library
    nano33ble   262,144     100,712  +161,432     82,280  +179,864  <=59,628  +202,516
    esp32s3     341,760   >=122,512         ? [1]  >=104,096         ? [1]  -

A cell shows the arena and the SRAM that is left; a negative number says by how much the arena is
too large. Names come from a model that someone else made.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from tflm_planner.report.comparison import Cell, Comparison, TargetRow
from tflm_planner.report.text.bounds import sign
from tflm_planner.report.text.fit import LABELS
from tflm_planner.report.text.safe import safe_text
from tflm_planner.support.words import count
from tflm_planner.tflm.targets import Board

_GAP = "  "
_FIGURE, _WORD = 9, 9
"""Width of an arena, and least width of what follows it."""
_MOST_MARKS = 2
"""If a cell has more warnings than this, only the first is shown."""
_LEGEND = (
    "Bytes of arena, and of SRAM left beside it (stack and data need some). -: too large by so "
    "much; no flash: the file is too large. >=: at least so much, ~: about, and ?: not "
    "known to fit. <=: a search may need less."
)


def render_comparison(comparison: Comparison, width: int) -> str:
    """The table with its remarks, ending in a line break."""
    return "\n".join(_lines(comparison, width)) + "\n"


def _lines(comparison: Comparison, width: int) -> Iterator[str]:
    remarks = _Remarks()
    table = [_cells_of(row, remarks) for row in comparison.rows]
    labels = {**LABELS, "stock": "as it is"}
    noun = "board" if any(sram for _, sram, *_ in table) else "target"
    heads = [noun, "SRAM", *(labels[kind] for kind in comparison.columns)]
    widths = [max(map(len, column)) for column in zip(heads, *table, strict=True)]
    many = count(len(comparison.rows), noun, f"{noun}s")
    yield f"{safe_text(comparison.source)}, a file of {comparison.file_bytes:,} B, on {many}"
    yield ""
    for row in (heads, *table):
        name, sram, *cells = row
        start = f"{name:<{widths[0]}}{_GAP}{sram:>{widths[1]}}"
        padded = (f"{cell:<{size}}" for cell, size in zip(cells, widths[2:], strict=True))
        yield _GAP.join((start, *padded)).rstrip()
    yield ""
    yield from textwrap.wrap(_LEGEND, width)
    for number, remark in remarks.by_number():
        yield from textwrap.wrap(f"[{number}] {remark}", width, subsequent_indent="    ")
    for note in comparison.notes:
        yield from textwrap.wrap(safe_text(note), width)


class _Remarks:
    """The numbered remarks below the table. Each is listed once."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def mark(self, *remarks: str) -> str:
        """The marks, such as "[1]", of a cell's remarks."""
        numbers = [self._numbers.setdefault(r, len(self._numbers) + 1) for r in remarks]
        return "".join(f"[{number}]" for number in numbers)

    def by_number(self) -> Iterator[tuple[int, str]]:
        """Yield all remarks with their numbers, as safe text."""
        for remark, number in self._numbers.items():
            yield number, safe_text(" ".join(remark.split()))


def _cells_of(row: TargetRow, remarks: _Remarks) -> list[str]:
    board = row.target.board
    sram = "" if board is None else f"{board.sram:,}"
    return [safe_text(row.name), sram, *(_cell(cell, board, remarks) for cell in row.cells)]


def _cell(cell: Cell, board: Board | None, remarks: _Remarks) -> str:
    if cell.arena is None:
        word, _, reason = cell.remark.partition(": ")
        return f"{word} {remarks.mark(cell.remark)}" if reason else f"{'-':>{_FIGURE}}"
    mark = sign(cell.bound) or "<=" * cell.at_most
    figure = f"{mark + format(cell.arena, ','):>{_FIGURE}}"
    marks = remarks.mark(*_few(cell.warnings))
    return " ".join(filter(None, (figure, f"{_margin(cell, board):>{_WORD}}", marks))).rstrip()


def _few(warnings: Sequence[str]) -> Sequence[str]:
    """The warnings of a cell; if there are too many, only the first and the number of the
    others."""
    if len(warnings) <= _MOST_MARKS:
        return warnings
    return (f"{warnings[0]} (and {len(warnings) - 1} more: `tflm-plan arena` names them)",)


def _margin(cell: Cell, board: Board | None) -> str:
    margin = cell.margin(board)
    if board is None or margin is None:
        return ""
    if margin >= 0 and cell.file_bytes > board.flash:
        return "no flash"
    if cell.fits(board) is None and (margin >= 0 or cell.bound == "about"):
        return "?"
    return f"{margin:+,}"
