"""`--io int8`: the application converts inputs and outputs, is told how, and the numbers are those
of the original."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tflm_planner as tp
from tests.conftest import needs_tflm
from tests.fuzz.shell import call
from tests.models import unsigned
from tests.models.small import type_chain
from tests.verification.terms.proofs import changed
from tests.verification.test_equality import with_another_weight
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.support.errors import UsageError


def planned(data: bytes, **options) -> api.PlanResult:
    return api.plan(data, None, api.PlanOptions(verify=api.VerifyOptions(inputs=4), **options))


@needs_tflm
def test_a_network_between_floats_is_planned_and_proved_as_integers() -> None:
    data = type_chain("float32", "int8", "int8", "float32")
    kept, converted = planned(data), planned(data, io="int8")
    assert kept.report.converted == ()
    assert converted.report.verified
    assert converted.report.after.arena.arena < kept.report.after.arena.arena
    graph = read_model(converted.data).main
    assert [t.type_name for t in (*graph.inputs, *graph.outputs)] == ["int8", "int8"]
    first, last = converted.report.converted
    assert (first.side, first.name, first.was) == ("input", "x0", "float32")
    assert (last.side, last.name, last.was) == ("output", "x3", "float32")
    assert str(first) in converted.report.notes


@needs_tflm
def test_bytes_of_a_camera_are_shifted_only() -> None:
    result = planned(unsigned.ds_cnn(), io="int8")
    assert result.report.verified
    assert [end.shift for end in result.report.converted] == [-128, -128]


@needs_tflm
def test_a_model_without_conversions_says_so(cnn: bytes) -> None:
    report = planned(cnn, io="int8").report
    assert report.converted == ()
    assert any(note.startswith("--io int8 changed nothing") for note in report.notes)


def test_other_words_are_refused() -> None:
    with pytest.raises(UsageError, match="choose from keep, int8"):
        api.PlanOptions(io="float")  # type: ignore[arg-type]


@pytest.mark.slow
@needs_tflm
def test_what_is_pasted_knows_the_scales(tmp_path: Path) -> None:
    source, out = tmp_path / "net.tflite", tmp_path / "out.tflite"
    source.write_bytes(type_chain("float32", "int8", "int8", "float32"))
    report = tmp_path / "report.json"
    options = ["--io", "int8", "--search", "none", "--report", str(report)]
    assert call([str(source), str(out), *options]).returncode == 0
    document = json.loads(report.read_text())
    assert [end["type"] for end in document["io"]] == ["int8", "int8"]
    assert call(["verify", str(source), str(out)]).returncode == 0
    assert call(["export", str(out), str(tmp_path / "src")]).returncode == 0
    header = (tmp_path / "src" / "out_model_data.h").read_text()
    assert "constexpr float kOutInput0Scale = 0.0500000007f;" in header
    assert "constexpr int kOutOutput0ZeroPoint = 0;" in header


@needs_tflm
def test_models_with_other_ends_are_compared_from_floats_to_integers() -> None:
    """Either end may have other types."""
    floats = type_chain("float32", "int8", "int8", "float32")
    bare, half = planned(floats, io="int8").data, type_chain("int8", "int8", "int8", "float32")
    for a, b in ((floats, bare), (floats, half), (half, bare), (bare, bare)):
        assert tp.verify(a, b, inputs=2).proved
    for a, b, what in ((bare, floats, "inputs"), (bare, half, "outputs"), (half, floats, "inputs")):
        with pytest.raises(tp.ModelError, match=f"different {what}.*the other way round"):
            tp.verify(a, b)
    with pytest.raises(tp.ModelError) as refused:
        tp.verify(floats, unsigned.ds_cnn())
    assert "the other way round" not in str(refused.value)


@needs_tflm
def test_between_other_ends_a_weight_that_differs_is_found() -> None:
    bytes_of_camera = unsigned.ds_cnn()
    bare = planned(bytes_of_camera, io="int8").data
    other = tp.verify(bytes_of_camera, changed(bare, with_another_weight), inputs=2)
    assert other.terms.status == "different" and other.refuted
    assert other.terms.culprit is not None and other.terms.culprit.kind == "CONV_2D"


@needs_tflm
def test_the_ladder_gives_the_figure_that_it_reaches() -> None:
    data = type_chain("float32", "int8", "int8", "float32")
    report = planned(data, tiles=api.TilePermission(workers=1)).report
    (rung,) = [rung for rung in report.ladder if rung.kind == "int8 ends"]
    assert rung.arena == planned(data, io="int8").report.after.arena.arena


@needs_tflm
def test_the_ladder_leaves_out_figures_that_are_no_lower() -> None:
    """And where the rungs above change the ends, the same plan says nothing of lean firmware."""
    data = type_chain("float32", "int8", "int8", "float32")
    kept = planned(data).report
    found = {rung.kind: rung for rung in kept.ladder}
    assert (found["int8 ends"].arena or 0) < kept.after.arena.arena
    assert found["lean"].arena is None and "--io int8" in found["lean"].command
    dropped = planned(data, io="int8").report
    for rung in dropped.ladder:
        assert rung.taken or not rung.at_most or (rung.arena or 0) < dropped.after.arena.arena
