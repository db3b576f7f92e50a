"""Renders a measurement as text, JSON, CSV and HTML. It must not know boards' lines.

predicted | measured | difference       sizes, latency
share predicted | share measured        of every operator
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tflm_planner.device.measuring import measurement_types as types
from tflm_planner.device.measuring.energy import Energy
from tflm_planner.device.measuring.measurement import Measurement, OperatorTime, OutputCheck
from tflm_planner.report import page
from tflm_planner.report.page import Column, Row, Table, pairs
from tflm_planner.report.text.bounds import hedge
from tflm_planner.report.text.safe import safe_text
from tflm_planner.report.text.words import shorten
from tflm_planner.support.documents import plain, view

_NAME, _SHOWN = 60, 12


def render(measurement: Measurement) -> str:
    """The measurement as text for a terminal, ending in a line break."""
    return "\n".join(_lines(measurement)) + "\n"


def _lines(measurement: Measurement) -> Iterator[str]:
    says = measurement.board
    yield f"{safe_text(measurement.model)} on {safe_text(_board(measurement))}"
    sizes = list(_sizes(measurement))
    wide = max([12, *(len(row[1]) for row in sizes)])
    yield f"  {'':<20} {'predicted':>{wide}} {'measured':>12} {'difference':>12}"
    for row in sizes:
        yield f"  {row[0]:<20} {row[1]:>{wide}} {row[2]:>12} {row[3]:>12}"
    yield f"  {'latency':<20} {_rough(measurement):>{wide}} {_time(measurement.latency.median):>12}"
    for title, value in _facts(measurement):
        yield f"  {title:<20} {safe_text(value)}"
    if measurement.operators:
        yield f"  {'operators':<20} {'predicted':>12} {'measured':>12} {'median':>12}"
    slowest = sorted(measurement.operators, key=lambda o: -o.time.median)[:_SHOWN]
    for op in slowest:
        label = shorten(f"{op.index} {op.operator} {op.name}", 44)
        share = f"{100 * op.predicted:>6.1f} % {100 * op.measured:>6.1f} %"
        yield f"    {label:<44} {share} {_time(op.time.median):>10} x{op.runs}"
    if len(measurement.operators) > len(slowest):
        yield f"    and {len(measurement.operators) - len(slowest)} faster ones (--json has all)"
    if says.virtual:
        yield "  latencies are those of this machine, not of a board"
    for note in measurement.notes:
        yield f"  note                 {safe_text(note)}"


def _board(measurement: Measurement) -> str:
    says = measurement.board
    lean = ", lean library" if measurement.lean else ""
    return (
        f"{says.board} ({says.core}, {says.kernels}, TFLM {says.tflm}, firmware {says.firmware}"
        f"{lean}), predicted for {measurement.target}"
    )


def _sizes(measurement: Measurement) -> Iterator[tuple[str, str, str, str]]:
    for f in measurement.sizes:
        signed = "" if f.difference is None else f"{f.difference:+,}"
        yield f.name, hedge(f.bound) + _number(f.predicted), _number(f.measured), signed


def _facts(measurement: Measurement) -> Iterator[tuple[str, str]]:
    latency = measurement.latency
    yield (
        "",
        f"{latency.runs} runs: fastest {_time(latency.minimum)}, slowest {_time(latency.spread)} "
        "more",
    )
    yield "AllocateTensors", _time(measurement.allocate_seconds)
    stack = measurement.memory.stack_allocate, measurement.memory.stack_invoke
    if any(mark is not None for mark in stack):
        yield "stack", f"AllocateTensors {_number(stack[0])} B, Invoke {_number(stack[1])} B"
    ram = measurement.memory.static, measurement.memory.heap_peak
    if any(size is not None for size in ram):
        yield "RAM", f"static {_number(ram[0])} B, heap at most {_number(ram[1])} B"
    if measurement.energy is not None:
        power = measurement.energy.power
        kind = "measured" if power.measured else "an estimate"
        yield (
            "energy",
            f"{1e3 * measurement.energy.joules:.4g} mJ an inference, {kind} ({power.source})",
        )
    for check in measurement.outputs:
        yield (
            f"output {check.index}",
            f"{check.name}: {check.size:,} B, {_verdict(check, measurement)}",
        )


def _verdict(check: OutputCheck, measurement: Measurement) -> str:
    steps = measurement.steps
    if check.equal is None:
        return f"CRC {check.crc:08x}, not compared"
    if check.equal:
        return "equal to TFLM here" + (f" in {steps} Invokes in a row" if steps > 1 else "")
    place = f", first in Invoke {(check.first_wrong or 0) + 1} of {steps}" if steps > 1 else ""
    return f"{check.different:,} BYTES DIFFER from TFLM here{place}"


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _rough(measurement: Measurement) -> str:
    return (
        "?" if measurement.predicted_seconds is None else f"~{_time(measurement.predicted_seconds)}"
    )


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3f} {unit}"
    return f"{seconds * 1e6:.1f} us"


# --- documents -----------------------------------------------------------------------------------


def to_json(measurement: Measurement) -> dict[str, Any]:
    """The measurement as the JSON document of `measurement_types`."""
    return plain(
        view(
            measurement,
            types.MeasurementJson,
            schema_version=types.SCHEMA_VERSION,
            model=types.ModelJson(measurement.model, measurement.sha256),
            board=view(measurement.board, types.BoardJson, lean=measurement.lean),
            latency=view(
                measurement.latency,
                types.LatencyJson,
                predicted_seconds=measurement.predicted_seconds,
                predicted_instructions=measurement.predicted_instructions,
                allocate_seconds=measurement.allocate_seconds,
            ),
            operators=[_operator(o) for o in measurement.operators],
            outputs=[
                types.OutputJson(
                    index=c.index,
                    name=c.name,
                    bytes=c.size,
                    crc=f"{c.crc:08x}",
                    equal=c.equal,
                    different_bytes=c.different,
                    first_wrong_step=c.first_wrong,
                )
                for c in measurement.outputs
            ],
            energy=None if measurement.energy is None else _energy(measurement.energy),
        )
    )


def _operator(o: OperatorTime) -> types.OperatorJson:
    of, times = (o.index, o.operator, o.name, o.runs, o.predicted, o.measured), o.time
    return types.OperatorJson(*of, times.minimum, times.median, times.spread, times.runs)


def _energy(energy: Energy) -> types.EnergyJson:
    power = energy.power
    return types.EnergyJson(energy.joules, power.watts, power.source, power.measured)


def to_csv(measurement: Measurement) -> str:
    """The measurement as CSV, with one row for each figure: what it is, predicted, measured,
    difference, unit, and the bound of the prediction."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("what", "predicted", "measured", "difference", "unit", "bound"))
    for f in measurement.sizes:
        writer.writerow((f.name, f.predicted, f.measured, f.difference, "bytes", f.bound))
    writer.writerow(
        ("latency", measurement.predicted_seconds, measurement.latency.median, None, "seconds", "")
    )
    for o in measurement.operators:
        label = f"{o.index} {o.operator} {safe_text(o.name)}"
        writer.writerow((label, o.predicted, o.measured, o.measured - o.predicted, "share", ""))
    return text.getvalue()


def to_html(measurement: Measurement) -> str:
    """The measurement as an HTML page in the style of the planner's reports."""
    heading = shorten(measurement.model, 90)
    facts = [(title or "runs", value) for title, value in _facts(measurement)]
    sizes = [
        *_sizes(measurement),
        ("latency", _rough(measurement), _time(measurement.latency.median), ""),
    ]
    tables = [
        ("Predicted and measured", _table(("", "predicted", "measured", "difference"), sizes)),
        ("On the board", pairs(facts)),
    ]
    if measurement.operators:
        columns = ("operator", "share predicted", "share measured", "median", "runs")
        tables.append(("Operators", _table(columns, [_share(o) for o in measurement.operators])))
    if measurement.notes:
        notes = Table([Column("", "head")], [Row([note]) for note in measurement.notes])
        tables.append(("Notes", notes))
    about, title = _board(measurement), f"{heading}: measured"
    return page.render("tables.html", title=title, heading=heading, about=about, tables=tables)


def _share(o: OperatorTime) -> tuple[str, ...]:
    label = f"{o.index} {o.operator} {shorten(o.name, _NAME)}"
    shares = f"{100 * o.predicted:.1f} %", f"{100 * o.measured:.1f} %"
    return (label, *shares, _time(o.time.median), str(o.runs))


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    columns = [Column(title, "n" if i else "head") for i, title in enumerate(titles)]
    return Table(columns, [Row(row) for row in rows])


def _json(measurement: Measurement) -> str:
    return json.dumps(to_json(measurement), indent=2, allow_nan=False) + "\n"


RENDERERS: dict[str, Callable[[Measurement], str]] = {
    ".json": _json,
    ".csv": to_csv,
    ".html": to_html,
}
"""File ending -> renderer."""
