"""The main job end to end, on real runtimes."""

from __future__ import annotations

import json

import jsonschema
import pytest

from tests.conftest import ROOT, SHARED, needs_shared, needs_tflm
from tests.models.handmade import MODELS
from tflm_planner import api
from tflm_planner.errors import ModelError, OutputsDifferError, UsageError
from tflm_planner.passes import place
from tflm_planner.passes.place import PLAN_METADATA, carried_plan
from tflm_planner.report.json_document import to_json
from tflm_planner.serde import read_model, write_model

RUNNABLE = sorted(n for n, m in MODELS.items() if m.runs_on_litert or m.runs_on_tflm)


@needs_tflm
def test_cnn_reaches_its_bound(cnn):
    result = api.plan(cnn)
    report = result.report
    assert (report.before.head, report.after.head) == (99_072, 78_336)
    assert report.after.head == report.allocation.lower_bound == report.limits.best_order
    assert report.order.changed and report.order.optimal and report.allocation.optimal
    assert report.before.measured_head == report.before.head
    assert report.after.measured_head == report.after.head
    assert report.verified and all(c.outputs_vary for c in report.checks)
    schema = json.loads((ROOT / "schema" / "report.schema.json").read_text())
    jsonschema.validate(to_json(report), schema)


@needs_tflm
@needs_shared
def test_vww_reaches_its_bound():
    report = api.plan(SHARED / "models" / "vww_96_int8.tflite").report
    assert (report.before.head, report.after.head) == (73_728, 55_296)
    assert report.after.measured_head == 55_296 and report.verified


@needs_tflm
@pytest.mark.parametrize("name", RUNNABLE)
def test_corners_are_planned_and_proved(name):
    """Equal on every runtime that runs the original; predicted head = real head; never worse."""
    report = api.plan(MODELS[name].make()).report
    assert report.verified
    assert report.after.head <= report.before.head
    status = {c.runtime: c.status for c in report.checks}
    assert (status["LiteRT"] == "equal") == MODELS[name].runs_on_litert
    assert (status["TFLM"] == "equal") == MODELS[name].runs_on_tflm
    if MODELS[name].runs_on_tflm:
        assert report.before.measured_head == report.before.head
        assert report.after.measured_head == report.after.head


def test_same_input_and_seed_give_the_same_bytes(cnn):
    options = api.PlanOptions(verify=None)
    assert api.plan(cnn, options=options).data == api.plan(cnn, options=options).data


def test_planning_again_changes_nothing(cnn):
    options = api.PlanOptions(verify=None)
    once = api.plan(cnn, options=options)
    twice = api.plan(once.data, options=options)
    assert twice.data == once.data
    assert twice.report.before.head == once.report.after.head
    assert any("already carried" in note for note in twice.report.notes)


def test_names_and_signatures_survive():
    before = read_model(MODELS["several_signatures"].make())
    planned = api.plan(write_model(before), options=api.PlanOptions(verify=None))
    after = read_model(planned.data)
    for a, b in zip(before.signatures, after.signatures, strict=True):
        assert (a.key, [n for n, _ in a.inputs]) == (b.key, [n for n, _ in b.inputs])
        assert [t.name for _, t in a.outputs] == [t.name for _, t in b.outputs]
    assert {t.name for t in after.tensors()} == {t.name for t in before.tensors()}


def test_the_plan_lists_every_tensor_of_every_graph():
    planned = api.plan(MODELS["while_in_if"].make(), options=api.PlanOptions(verify=None))
    model = read_model(planned.data)
    (entry,) = [m for m in model.metadata if m.name == PLAN_METADATA]
    words = entry.buffer.data.view("<i4")
    tensors = list(model.tensors())
    assert list(words[:3]) == [1, len(model.graphs), len(tensors)]
    assert len(words) == 3 + len(tensors)
    offsets = carried_plan(model)
    for tensor, word in zip(tensors, words[3:], strict=True):
        assert (word == -1) == (id(tensor) not in offsets)
        assert word % 16 == 0 or word == -1
        if tensor.is_constant or tensor.is_variable:
            assert word == -1


@needs_tflm
def test_a_corrupting_plan_is_never_written(cnn, tmp_path, monkeypatch):
    """All tensors at offset 0: LiteRT does not care, real TFLM computes something else."""
    monkeypatch.setattr(api, "validate", lambda problem, plan: [])
    original = place.Place.apply

    def corrupt(self, model):
        return original(place.Place(dict.fromkeys(self.offsets, 0)), model)

    monkeypatch.setattr(place.Place, "apply", corrupt)
    target = tmp_path / "out.tflite"
    with pytest.raises(OutputsDifferError, match=r"on TFLM: .*first at operator \d+"):
        api.plan(cnn, target)
    assert list(tmp_path.iterdir()) == []


def test_the_validator_stands_before_the_runtimes(cnn, tmp_path, monkeypatch):
    original = place.Place.apply

    def corrupt(self, model):
        return original(place.Place(dict.fromkeys(self.offsets, 0)), model)

    monkeypatch.setattr(place.Place, "apply", corrupt)
    with pytest.raises(AssertionError, match="share bytes"):
        api.plan(cnn, tmp_path / "out.tflite")
    assert list(tmp_path.iterdir()) == []


def test_ethos_u_is_refused():
    model = read_model(MODELS["custom_operator"].make())
    for code in model.codes:
        code.custom = "ethos-u" if code.custom else code.custom
    with pytest.raises(ModelError, match="Vela"):
        api.plan(write_model(model))


def test_unproved_is_not_written(tmp_path):
    data = MODELS["custom_operator"].make()
    with pytest.raises(ModelError, match="--no-verify"):
        api.plan(data, tmp_path / "out.tflite")
    assert list(tmp_path.iterdir()) == []
    report = api.plan(data, tmp_path / "out.tflite", api.PlanOptions(verify=None)).report
    assert not report.verified and (tmp_path / "out.tflite").exists()


def test_an_existing_file_is_not_replaced_by_accident(cnn, tmp_path):
    target = tmp_path / "out.tflite"
    target.write_bytes(b"precious")
    with pytest.raises(UsageError, match="--force"):
        api.plan(cnn, target)
    assert target.read_bytes() == b"precious"


def test_budget(cnn):
    def fits(budget: int) -> bool:
        options = api.PlanOptions(budget=budget, verify=None)
        return api.plan(cnn, options=options).report.within_budget

    assert fits(78_336) and not fits(78_335)


@pytest.mark.parametrize("order", ["file", "rpo", "beam", "exact", "best"])
def test_every_order_is_never_worse_than_the_file(cnn, order):
    options = api.PlanOptions(api.SearchOptions(order=order), verify=None)
    report = api.plan(cnn, options=options).report
    assert report.after.head <= report.before.head


def test_choices_are_checked():
    with pytest.raises(UsageError, match="order"):
        api.SearchOptions(order="sideways")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="allocator"):
        api.SearchOptions(allocator="wishful")
