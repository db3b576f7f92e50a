"""A batch as text, JSON, CSV and HTML. Names come from models that someone else made.

name         before     after            verdict
kws          22,824     16,888  -26.0 %  fits 24,576 B
damaged                                  REFUSED: not a TensorFlow Lite model ...
"""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import quote

from tflm_planner.jobs.batch import SUMMARY, Batch
from tflm_planner.jobs.batch_types import BatchRow, batch_to_json
from tflm_planner.report.page import Column, PageLink, Row, Table, render
from tflm_planner.report.text.bounds import sign
from tflm_planner.report.text.safe import safe_cell, safe_text
from tflm_planner.report.text.words import shorten
from tflm_planner.support.version import __version__
from tflm_planner.support.words import count

_NAME, _LONG = 40, 160
CSV_COLUMNS = (
    "name", "source", "options", "outcome", "target", "arena_before", "arena_after", "bound",
    "arena_limit", "slowdown", "file_bytes", "verified", "seconds", "file", "words",
)  # fmt: skip
"""The columns are keys of `BatchRow` in JSON."""


def render_batch(batch: Batch, width: int) -> str:
    """The batch as text for a terminal, ending in a line break."""
    return "\n".join(_lines(batch, width)) + "\n"


def _lines(batch: Batch, width: int) -> Iterator[str]:
    yield summary_line(batch)
    heads = ("name", "before", "after", "", "slower")
    rows = [_cells(row) for row in batch.rows]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    yield _table_line(heads, widths, "verdict")
    for row, cells in zip(batch.rows, rows, strict=True):
        yield _table_line(cells, widths, row.outcome.upper())
        if row.outcome not in ("fits", "planned"):
            yield from (f"    {line}" for line in textwrap.wrap(safe_text(row.words), width - 4))
    if batch.unfinished:
        names = ", ".join(safe_text(name) for name in batch.unfinished)
        yield from textwrap.wrap(f"not finished: {names}; the same command goes on", width)


def _table_line(cells: Sequence[str], widths: Sequence[int], verdict: str) -> str:
    name, *figures = cells
    padded = [f"{f:>{size}}" for f, size in zip(figures, widths[1:], strict=True)]
    return "  ".join((f"{name:<{widths[0]}}", *padded, verdict))


def summary_line(batch: Batch) -> str:
    """How many jobs have each outcome, in one line."""
    outcomes = Counter(row.outcome for row in batch.rows)
    parts = [f"{number} {outcome}" for outcome, number in outcomes.most_common()]
    parts += [f"{len(batch.unfinished)} not finished"] * bool(batch.unfinished)
    earlier = f" ({batch.resumed} by an earlier run)" if batch.resumed else ""
    jobs = count(len(batch.rows) + len(batch.unfinished), "plan", "plans")
    return f"{jobs}{earlier}: {', '.join(parts)}"


def _cells(row: BatchRow) -> tuple[str, ...]:
    """The cells of a row: name, arena before and after, the change of the arena and of the
    instructions in percent."""
    name = shorten(row.name, _NAME)
    if row.arena_before is None or row.arena_after is None:
        return name, "", "", "", ""
    least = sign(row.bound)
    change = row.arena_after / row.arena_before - 1 if row.arena_before else 0
    saved = f"{100 * change:+.1f} %" if change else ""
    slower = "" if row.slowdown is None else f"{100 * (row.slowdown - 1):+.1f} %"
    before, after = f"{least}{row.arena_before:,}", f"{least}{row.arena_after:,}"
    return name, before, after, saved, slower


def batch_csv(batch: Batch) -> str:
    """CSV: a header row, then one row for each job."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    document = batch_to_json(__version__, list(batch.rows), [])
    for row in document["models"]:
        cells = (row[column] for column in CSV_COLUMNS)
        writer.writerow(safe_cell(c) if isinstance(c, str) else c for c in cells)
    return text.getvalue()


def batch_html(batch: Batch) -> str:
    """An HTML page with a row for each job, which links to the job's own report."""
    columns = (
        Column("model", "link"),
        Column("options"),
        Column("before", "n"),
        Column("after", "n"),
        Column("", "n"),
        Column("slower", "n"),
        Column("outcome"),
        Column("in words"),
    )
    table = Table(columns, [_html_row(row) for row in batch.rows], "long")
    tables = [("Models", table)]
    if batch.unfinished:
        rows = [Row([shorten(name, _LONG)]) for name in batch.unfinished]
        tables.append(("Not finished: the same command goes on", Table([Column("", "head")], rows)))
    about = f"{summary_line(batch)}; tflm-plan {__version__}"
    return render("tables.html", title="Batch", heading="Batch", about=about, tables=tables)


def _html_row(row: BatchRow) -> Row:
    name, *figures = _cells(row)
    page = next((r for r in row.reports if r.endswith(".html")), "")
    link = PageLink(name, quote(page, safe=""))
    style = "top" * (row.outcome not in ("fits", "planned"))
    words = shorten(row.words, 400)
    return Row((link, shorten(row.options, _LONG), *figures, row.outcome, words), style)


def batch_json(batch: Batch) -> str:
    """The JSON document of `batch_types`."""
    document = batch_to_json(__version__, list(batch.rows), list(batch.unfinished))
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


SUMMARIES: dict[str, Callable[[Batch], str]] = {
    f"{SUMMARY}.txt": lambda batch: render_batch(batch, 100),
    f"{SUMMARY}.json": batch_json,
    f"{SUMMARY}.csv": batch_csv,
    f"{SUMMARY}.html": batch_html,
}
"""The summary files that are written into the folder of a batch."""
