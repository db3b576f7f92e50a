"""Chooses the renderer of a report by the ending of the file."""

from __future__ import annotations

import json
from collections.abc import Callable

from tflm_planner.report.csv_document import to_csv
from tflm_planner.report.document import Report
from tflm_planner.report.html import to_html
from tflm_planner.report.json.document import to_json
from tflm_planner.report.svg.memory_map import before_after_svg


def _json(report: Report) -> str:
    return json.dumps(to_json(report), indent=2, allow_nan=False) + "\n"


def _svg(report: Report) -> str:
    title = report.source.rsplit("/", 1)[-1]
    return before_after_svg(report.before.map, report.after.map, title=title)


RENDERERS: dict[str, Callable[[Report], str]] = {
    ".json": _json,
    ".csv": to_csv,
    ".html": to_html,
    ".svg": _svg,
}
