from __future__ import annotations

import csv
import importlib
import io
import json
import pkgutil
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path

import jsonschema
import msgspec
import pytest

import tflm_planner
from tests.conftest import CNN
from tests.report.report_samples import unbroken
from tflm_planner.cli.schemas import schemas
from tflm_planner.pipeline import api
from tflm_planner.report.csv_document import HEADER, to_csv
from tflm_planner.report.document import HostRuntime, MemoryMap, Report
from tflm_planner.report.html import to_html
from tflm_planner.report.json.document import (
    arena_to_json,
    equality_to_json,
    inspection_to_json,
    to_json,
)
from tflm_planner.tflm.arena.predict import ScratchUse
from tflm_planner.tflm.targets import load_target
from tflm_planner.verification import Equality, installed_versions
from tflm_planner.verification.terms import TermsProof
from tflm_planner.verification.verdict import Verdict

FOLDER = Path(__file__).parents[2] / "schema"
SCHEMA = json.loads((FOLDER / "report.schema.json").read_text(encoding="utf-8"))


def objects(schema: object) -> list[dict[str, object]]:
    """Every schema of an object with properties, however deep."""
    if isinstance(schema, list):
        return [found for item in schema for found in objects(item)]
    if not isinstance(schema, dict):
        return []
    inner = [found for item in schema.values() for found in objects(item)]
    return [schema, *inner] if "properties" in schema and "type" in schema else inner


def test_the_schema_is_valid_and_describes_every_property() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert len(objects(SCHEMA)) >= 10
    for schema in objects(SCHEMA):
        properties = schema["properties"]
        assert isinstance(properties, dict)
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(properties)
        assert all("description" in p for p in properties.values())


def test_the_schemas_are_those_of_the_types() -> None:
    """`python -m tflm_planner.cli.schemas schema` writes them."""
    committed = {p.name: p.read_text(encoding="utf-8") for p in FOLDER.glob("*.schema.json")}
    assert committed == schemas()


@pytest.mark.parametrize("which", ["report", "hostile"])
def test_a_report_follows_the_schema(which: str, request: pytest.FixtureRequest) -> None:
    document = to_json(request.getfixturevalue(which))
    text = json.dumps(document, allow_nan=False, ensure_ascii=False)
    text.encode("utf-8")
    assert json.loads(text) == document
    jsonschema.Draft202012Validator(SCHEMA).validate(document)


def test_keys_come_in_the_order_of_the_schema(report: Report) -> None:
    document = to_json(report)
    assert list(document) == list(SCHEMA["properties"])
    assert list(document["before"]) == list(SCHEMA["$defs"]["Side"]["properties"])
    step = document["before"]["map"]["steps"][0]
    assert list(step) == list(SCHEMA["$defs"]["Step"]["properties"])


def test_what_is_not_known_is_null(report: Report) -> None:
    unknown = replace(
        report,
        budget=None,
        limits=replace(report.limits, best_order_bytes=None, overlap_bytes=None),
        before=replace(report.before, host=HostRuntime(report.before.arena)),
    )
    document = to_json(unknown)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert document["budget"] == {"bytes": None, "met": True}
    assert document["before"]["host"]["measured_head"] is None


def test_the_schema_refuses_what_it_does_not_know(report: Report) -> None:
    for change in ({"extra": 1}, {"schema_version": 1}, {"verified": "yes"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft202012Validator(SCHEMA).validate({**to_json(report), **change})


def test_what_breaks_the_schema_is_no_document(report: Report) -> None:
    with pytest.raises(msgspec.ValidationError, match="sha256"):
        to_json(replace(report, sha256_after="none"))


def test_verdicts_and_arenas_follow_their_schemas(report: Report) -> None:
    target = load_target("nano33ble")
    scratch = (ScratchUse("conv", 64, 128),)
    arena = replace(report.after.arena, scratch=scratch, tail_parts={"tensors": 96})
    for name, document in (
        (
            "verification",
            equality_to_json(
                Equality(Verdict(report.checks), TermsProof("equal", -110.0)),
                (report.before.arena, report.after.arena),
                load_target(report.target),
            ),
        ),
        ("arena", arena_to_json(arena, target)),
        ("inspection", inspection_to_json(report.after.map, report.limits, report.notes)),
    ):
        schema = json.loads((FOLDER / f"{name}.schema.json").read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator(schema).validate(document)
        assert list(document) == list(schema["properties"])


@pytest.mark.parametrize("optimal", [True, False])
@pytest.mark.parametrize("changed", [True, False])
def test_the_json_says_how_the_order_was_found(
    report: Report, optimal: bool, changed: bool
) -> None:
    order = replace(report.order, optimal=optimal, changed=changed, method="exact")
    document = to_json(replace(report, order=order))
    assert document["order"] == asdict(order)


def test_the_json_holds_the_figures(report: Report) -> None:
    document = to_json(report)
    assert document["head"] == {"before": 64512, "after": 55296}
    assert document["arena"] == {"before": 91492, "after": 82276, "saved": 9216, "bound": "exact"}
    assert document["before"]["map"]["steps"][2]["live_bytes"] == 55296


def test_the_csv_of_a_map(before: MemoryMap) -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(before))))
    assert tuple(rows[0]) == HEADER
    assert [row["step"] for row in rows] == list("012345")
    assert [row["peak"] for row in rows] == list("001000")
    for row in rows:
        parts = [int(row[f"{part}_bytes"]) for part in ("input", "output", "other", "workspace")]
        assert int(row["live_bytes"]) == sum(parts) - int(row["shared_bytes"])


def test_the_csv_of_a_report_has_both_sides(report: Report) -> None:
    rows = list(csv.reader(io.StringIO(to_csv(report))))
    assert rows[0] == ["side", *HEADER, "slowdown"]
    assert [row[0] for row in rows[1:]] == ["before"] * 6 + ["after"] * 6


def test_no_cell_is_a_formula_or_breaks_its_row(hostile: Report, before: MemoryMap) -> None:
    for start in ("=1+1", "+1", "-1", "@SUM(A1)", "  =1", "\t=1", "\r=1"):
        named = replace(before.steps[0], name=start + ',";\n')
        text = to_csv(replace(before, steps=(named,)))
        cell = next(iter(csv.DictReader(io.StringIO(text))))["name"]
        assert cell[0] in "'\\" and "\n" not in cell
    text = to_csv(hostile)
    assert text.count("\n") == 5
    text.encode("utf-8")


def test_the_page_says_when_and_by_which_command_it_was_made(report: Report) -> None:
    made = "2026-11-24 15:09 UTC"
    page = to_html(replace(report, command="tflm-plan 'my net.tflite'", made=made))
    assert made in page
    assert "tflm-plan &#39;my net.tflite&#39;" in unbroken(page)
    assert "<th>command</th>" in page and "<th>command</th>" not in to_html(report)


def test_the_page_says_on_which_versions_it_was_verified(report: Report) -> None:
    versions = installed_versions()
    assert f"ai_edge_litert {version('ai-edge-litert')}" in versions
    page = to_html(replace(report, versions=versions))
    assert f"<th>versions</th><td>{', '.join(versions)}</td>" in page
    assert "<th>versions</th>" not in to_html(report)
    planned = api.plan(CNN, None, api.PlanOptions(verify=None))
    assert planned.report.versions == versions


OTHER_NAMES = {
    "BatchJson.tool_version": "version",
    "FrontJson.allowed": "max_slowdown",
    "LimitsJson.best_order_bytes": "best_order",
    "LimitsJson.file_order_bytes": "order",
    "LimitsJson.input_bytes": "inputs",
    "LimitsJson.overlap_bytes": "overlap",
    "LatencyJson.median": "median_seconds",
    "LatencyJson.minimum": "minimum_seconds",
    "LatencyJson.runs": "timed_runs",
    "LatencyJson.spread": "spread_seconds",
    "OperatorJson.measured": "measured_share",
    "OperatorJson.predicted": "predicted_share",
    "PlanVerificationJson.left": "left_to_tflm",
    "PlanVerificationJson.terms": "proof",
    "VerificationJson.terms": "proof",
    "PointJson.added": "added_operators",
    "PointJson.size": "bytes",
    "TimesJson.median": "median_seconds",
    "TimesJson.minimum": "minimum_seconds",
    "TimesJson.runs": "timed_runs",
    "TimesJson.spread": "spread_seconds",
}
"""Attribute in Python -> key in JSON, where they differ: a key stands alone in a file, so that its
unit, or whose it is, belongs to its name; all of `limits` is bytes, as its schema says. A key is
never another word for the same thing."""


def test_a_key_is_called_as_in_python() -> None:
    structs, found = list[type[msgspec.Struct]](), dict[str, str]()
    for info in pkgutil.walk_packages(tflm_planner.__path__, "tflm_planner."):
        if info.name.endswith("_types") or ".report.json." in info.name:
            members = vars(importlib.import_module(info.name)).values()
            structs += [m for m in members if isinstance(m, type) and issubclass(m, msgspec.Struct)]
    assert len({*structs}) > 40, "the types were read"
    for struct in structs:
        for field in msgspec.structs.fields(struct):
            if field.encode_name != field.name:
                found[f"{struct.__name__}.{field.name}"] = field.encode_name
    assert found == OTHER_NAMES
