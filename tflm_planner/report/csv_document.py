"""Writes the tensor memory mapping of Sudharsan et al. (section 3.1) as CSV, a row per operator.

It must not know files. Columns (sizes in bytes):

    side             cannot run | before | after | front     (only in a report)
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
    peak             1 at the first operator with the most live bytes, else 0
    bound            what the bytes are: exact, enough, or at least (see `bounds`)
    slowdown         instructions relative to the source     (only for the front)

Rows of the front are points of the Pareto front: `operator` is the role of the point (see
`ParetoPoint`), `name` lists the operators that the firmware must register for it, and `live_bytes`
is its bytes of arena, or of head if that was the objective. If the target's TFLM cannot run the
model, the first rows say why, in `name`.

Cells are quoted as in RFC 4180, and lines end in "\\n". A spreadsheet takes a cell that begins with
one of `= + - @` for a formula, so such a name gets a leading apostrophe, as OWASP recommends.
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
"""The columns for a memory map. A report also has the column "side" before them."""


def to_csv(subject: Report | MemoryMap) -> str:
    """A header row, then one row for each operator: of the map, or of the report's models before
    and after."""
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
