"""Writes the JSON schemas of all documents: `python -m tflm_planner.cli.schemas FOLDER`.

types of documents --> schema/*.schema.json committed; a test checks that they agree
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tflm_planner.codesign.fitting import fit_types
from tflm_planner.device.measuring import measurement_types
from tflm_planner.jobs import batch_types
from tflm_planner.report import memory_fit
from tflm_planner.report.json import arena as arena_types
from tflm_planner.report.json import common as json_types
from tflm_planner.report.json import comparison as comparison_types
from tflm_planner.report.json import memory_map as memory_map_types
from tflm_planner.report.json import report as report_types
from tflm_planner.report.json import streamed as streamed_types
from tflm_planner.report.json import verification as verification_types
from tflm_planner.support.documents import Document, schema_of
from tflm_planner.tflm.target_file import TargetFile

_REPORT, _MEASURED = json_types.SCHEMA_VERSION, measurement_types.SCHEMA_VERSION
_DOCUMENTS: dict[str, tuple[type[Document], int, str]] = {
    "report": (report_types.ReportJson, _REPORT, "What tflm-plan found"),
    "inspection": (
        memory_map_types.InspectionJson,
        _REPORT,
        "What tflm-plan inspect --json prints",
    ),
    "verification": (
        verification_types.VerificationJson,
        _REPORT,
        "What tflm-plan verify --json prints of two",
    ),
    "plan-verification": (
        verification_types.PlanVerificationJson,
        _REPORT,
        "What tflm-plan verify --json prints of one model",
    ),
    "arena": (arena_types.ArenaOnTargetJson, _REPORT, "What tflm-plan arena --json prints"),
    "check": (memory_fit.FitChecks, _REPORT, "What tflm-plan check --json prints"),
    "common-arena": (
        arena_types.ArenaOfSeveralJson,
        _REPORT,
        "What tflm-plan arena --shared --json prints",
    ),
    "comparison": (
        comparison_types.BoardComparisonJson,
        _REPORT,
        "What tflm-plan compare --json prints",
    ),
    "batch": (batch_types.BatchJson, _REPORT, "What tflm-plan batch --json prints"),
    "fit": (fit_types.NetworksThatFitJson, _REPORT, "What tflm-plan fit --json prints"),
    "streamed": (
        streamed_types.StreamedJson,
        _REPORT,
        "What tflm-plan stream-input --json prints",
    ),
    "measurement": (measurement_types.MeasurementJson, _MEASURED, "What tflm-plan measure prints"),
    "target": (TargetFile, 1, "A target of tflm-plan (TOML, in JSON Schema's terms)"),
}


def schemas() -> dict[str, str]:
    """The text of each schema, by the name of its file."""
    texts: dict[str, str] = {}
    for name, (kind, version, title) in _DOCUMENTS.items():
        schema = schema_of(kind, title, f"urn:tflm-planner:{name}:{version}")
        texts[f"{name}.schema.json"] = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
    return texts


def write(folder: Path) -> None:
    """Write all schemas into a folder."""
    for name, text in schemas().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
