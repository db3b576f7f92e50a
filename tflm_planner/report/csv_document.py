"""The tensor memory mapping of Sudharsan et al. (section 3.1) as CSV, one operator a row.

It must not know files. Columns (sizes in bytes):

    side             cannot run | before | after | front     (of a report only)
    step             place in execution order, from 0
    index            index of the operator, as in the other renderings
    graph            sub-graph
    operator, name   type, and name in the model
    input_bytes      operands
    output_bytes     results
    other_bytes      everything else that must be kept
    workspace_bytes  the kernel's scratch
    shared_bytes     counted twice in the columns before, as two tensors share them
    live_bytes       input + output + other + workspace - shared
    peak             1 at the first operator of most live bytes, else 0
    bound            what the bytes are: exact, enough, or at least so many
    slowdown         instructions relative to the source     (of the front only)

Rows of the front are ways to run the model: operator is its role (see `Point`), name what the
firmware must register for it, live_bytes its bytes of arena, or of head if that was lowered. Of
what the target's TFLM cannot run there are rows before all others: name is the reason.

Quoted after RFC 4180, lines end in "\\n". A spreadsheet takes a cell that begins with one of
`= + - @` for a formula; such a name gets a leading apostrophe (the remedy OWASP gives).
"""

from __future__ import annotations

import csv
import io

from tflm_planner.report.document import MemoryMap, Report
from tflm_planner.report.text.safe import safe_cell

HEADER = (
    "step",
    "index",
    "graph",
    "operator",
    "name",
    "input_bytes",
    "output_bytes",
    "other_bytes",
    "workspace_bytes",
    "shared_bytes",
    "live_bytes",
    "peak",
    "bound",
)
"""Columns of a memory map; those of a report have "side" before them."""


def to_csv(subject: Report | MemoryMap) -> str:
    """The header row, then one row an operator: of the map, or of before and then after."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if isinstance(subject, MemoryMap):
        writer.writerow(HEADER)
        writer.writerows(_rows(subject))
        return text.getvalue()
    writer.writerow(("side", *HEADER, "slowdown"))
    blank = ("",) * (len(HEADER) - len(("step", "index", "graph", "operator", "name")) + 1)
    for place, reason in enumerate(subject.cannot_run):
        writer.writerow(("cannot run", place, "", "", "", safe_cell(reason), *blank))
    for name, side in (("before", subject.before), ("after", subject.after)):
        writer.writerows((name, *row, "") for row in _rows(side.map))
    for place, point in enumerate(() if subject.front is None else subject.front.points):
        added = " ".join(point.added)
        bytes_of = ("", "", "", "", "", point.size, int(point.role == "chosen"), subject.bound)
        row = ("front", place, "", "", point.role, safe_cell(added), *bytes_of)
        writer.writerow((*row, f"{point.slowdown:.4f}"))
    return text.getvalue()


def _rows(memory_map: MemoryMap) -> list[tuple[int | str, ...]]:
    peak = memory_map.peak_step
    return [
        (
            place,
            step.index,
            step.graph,
            safe_cell(step.operator),
            safe_cell(step.name),
            step.input_bytes,
            step.output_bytes,
            step.other_bytes,
            step.workspace_bytes,
            step.shared_bytes,
            step.live_bytes,
            int(step is peak),
            memory_map.bound,
        )
        for place, step in enumerate(memory_map.steps)
    ]
