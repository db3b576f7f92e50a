"""Problems and plans as CSV in MiniMalloc's columns: id, lower, upper, size[, offset].

Life spans are half-open: `upper` is one past the last time step. MiniMalloc's older files name the
column `end`, which is the last time step itself; they are read too. Overlaps have no column in this
format and are not written.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TextIO

from tflm_planner.memory.problem import Buffer, Plan, Problem
from tflm_planner.support.errors import UsageError

_ALIASES = {"id": ("id", "buffer_id", "buffer"), "lower": ("lower", "start"), "size": ("size",)}


def read_csv(source: str | Path | TextIO) -> Problem:
    """The problem in a CSV file or open text stream.

    Raises `UsageError`, naming line and column, if the file is not such a problem.
    """
    if isinstance(source, (str, Path)):
        try:
            with Path(source).open(newline="", encoding="utf-8") as stream:
                return _read(stream, str(source))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read {source}: {error}") from error
    return _read(source, str(getattr(source, "name", "CSV")))


def write_csv(problem: Problem, stream: TextIO, plan: Plan | None = None) -> None:
    """Write a problem; if a plan is given, also the offset of each buffer."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["id", "lower", "upper", "size", *(["offset"] if plan else [])])
    for i, b in enumerate(problem.buffers):
        row = [b.name, b.start, b.end, b.size]
        writer.writerow([*row, plan.offsets[i]] if plan else row)


def _read(stream: TextIO, where: str) -> Problem:
    reader = csv.reader(stream)
    try:
        header = [name.strip() for name in next(reader, list[str]())]
        column = {key: _column(header, names, where) for key, names in _ALIASES.items()}
        inclusive = "upper" not in header and "end" in header
        column["upper"] = _column(header, ("upper", "end"), where)
        buffers = [
            _buffer(row, header, column, int(inclusive), f"{where}, line {reader.line_num}")
            for row in reader
            if row
        ]
    except csv.Error as error:
        raise UsageError(f"{where}, line {reader.line_num}: {error}") from error
    return Problem.of(tuple(buffers))


def _column(header: list[str], names: tuple[str, ...], where: str) -> int:
    for name in names:
        if name in header:
            return header.index(name)
    raise UsageError(
        f"{where}, line 1: column {names[0]!r} is missing; the header must hold "
        f"id,lower,upper,size, and holds {','.join(header) or 'nothing'}"
    )


def _buffer(
    row: list[str], header: list[str], column: dict[str, int], inclusive: int, where: str
) -> Buffer:
    if len(row) != len(header):
        raise UsageError(f"{where}: {len(row)} columns, but the header has {len(header)}")

    def number(key: str) -> int:
        text = row[column[key]].strip()
        try:
            return int(text)
        except ValueError:
            name = header[column[key]]
            raise UsageError(f"{where}, column {name!r}: {text!r} is not a whole number") from None

    start, end, size = number("lower"), number("upper") + inclusive, number("size")
    if size <= 0:
        raise UsageError(f"{where}, column 'size': {size} is not positive")
    if start >= end:
        name = header[column["upper"]]
        raise UsageError(f"{where}, column {name!r}: life span [{start}, {end}) is empty")
    return Buffer(row[column["id"]].strip(), size, start, end)
