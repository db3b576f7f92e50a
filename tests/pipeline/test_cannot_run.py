"""A model that the target's TFLM cannot run is said to be one first: no "smallest that works", no
"fits", no "verified"."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.conftest import CASE_FILES, needs_tflm
from tests.models.build import Net
from tests.models.handmade import MODELS as HANDMADE
from tests.models.small import joined_uint8, one_operator
from tests.tflm.test_what_cannot_run import with_second_signature
from tests.transforms.row_loops import chain
from tflm_planner import stream_input
from tflm_planner.cli.app import app
from tflm_planner.device.cpp.export import export
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.pipeline.stream_input.render import (
    render_header,
    render_streamed,
    streamed_to_json,
)
from tflm_planner.report.csv_document import to_csv
from tflm_planner.report.html import to_html
from tflm_planner.report.json.document import to_json
from tflm_planner.report.text.arena import render_arena
from tflm_planner.report.text.report import render_report
from tflm_planner.support.errors import ModelError
from tflm_planner.tflm.refusals import cannot_run
from tflm_planner.tflm.targets import load_target
from tflm_planner.tflm.versions import with_tflm

BOARD = load_target("nano33ble")
_STRIDES = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
CLAIMS = ("smallest that works", "fits", "verified     yes", "constexpr")


def hybrid(float_convolutions: int = 0) -> bytes:
    """Float activations, int8 weights: what dynamic range quantisation writes. Some convolutions
    before it have float weights."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 8, 8, 2), "float32")
    for i in range(float_convolutions):
        before, x = x, graph.tensor(f"y{i}", (1, 8, 8, 2), "float32")
        kernel = graph.constant(f"w{i}", np.ones((2, 3, 3, 2)), "float32")
        graph.op("CONV_2D", [before, kernel], [x], "Conv2DOptions", **_STRIDES)
    weights = graph.constant("w", np.ones((4, 1, 1, 2)), "int8", scale=np.full(4, 0.01))
    bias = graph.constant("b", np.zeros(4), "float32")
    y = graph.tensor("conv", (1, 8, 8, 4), "float32")
    graph.op("CONV_2D", [x, weights, bias], [y], "Conv2DOptions", **_STRIDES)
    graph.outputs(y)
    return net.finish()


CASES = [(hybrid, "CONV_2D of float32 and int8"), (joined_uint8, "CONCATENATION of uint8")]


@pytest.mark.parametrize("make, reason", CASES)
def test_arena_and_inspect_say_it_first(make, reason, tmp_path) -> None:
    (tmp_path / "m.tflite").write_bytes(make())
    call = CliRunner().invoke
    for verb in ("arena", "inspect"):
        arguments = [verb, str(tmp_path / "m.tflite"), "--target", "nano33ble"]
        said = call(app, arguments)
        lines = said.output.splitlines()
        assert said.exit_code == 0 and lines[1].startswith("  CANNOT RUN")
        text = " ".join(said.output.split())
        assert reason in text and "full integer quantisation" in text
        assert not any(claim in said.output for claim in CLAIMS)
        (found,) = json.loads(call(app, [*arguments, "--json"]).output)["cannot_run"]
        assert reason in found


@pytest.mark.parametrize("make, reason", CASES)
@pytest.mark.mostly_slow(fast=3)
def test_plan_refuses_it_before_the_search(make, reason, tmp_path) -> None:
    steps: list[str] = []
    for tiles in (None, api.TilePermission()):
        with pytest.raises(ModelError, match=f"cannot run the model: .*{reason}") as refused:
            options = api.PlanOptions(tiles=tiles)
            api.plan(make(), tmp_path / "out.tflite", options, steps.append)
        assert refused.value.exit_code == 5 and "--no-verify" in str(refused.value)
    with pytest.raises(ModelError, match=reason) as refused:
        api.stream_input(make())
    assert "--no-verify splits it" in str(refused.value) and "--portable" not in str(refused.value)
    assert list(tmp_path.iterdir()) == [] and steps == []


def of_seven_axes() -> bytes:
    """A float RELU, which the wheel seems to run."""
    net = Net()
    graph = net.graph()
    shape = (1, 1, 1, 1, 1, 2, 3)
    x, y = graph.input("x", shape, "float32"), graph.tensor("y", shape, "float32")
    graph.op("RELU", [x], [y])
    graph.outputs(y)
    return net.finish()


@pytest.mark.parametrize(
    "make, reason",
    [(of_seven_axes, "RELU of 7 axes"), (with_second_signature, "kernel requests scratch")],
)
def test_all_commands_agree_on_it(make, reason, tmp_path) -> None:
    (tmp_path / "m.tflite").write_bytes(make())
    for verb, exit_code in (
        (["plan", "--search", "none"], 5),
        (["check"], 5),
        (["arena"], 0),
        (["export", str(tmp_path / "sources")], 5),
        (["compare"], 0),
        (["batch", "--out", str(tmp_path / "planned")], 5),
    ):
        name, *more = verb
        target = [] if name == "compare" else ["--target", "nano33ble"]
        if name == "batch":
            target = ["--options", "--target nano33ble --search none"]
        said = CliRunner().invoke(app, [name, str(tmp_path / "m.tflite"), *more, *target])
        assert said.exit_code == exit_code, (name, said.output)
        assert reason in " ".join(said.output.split()), name
        assert not any(claim in said.output for claim in CLAIMS), name


def test_what_is_planned_all_the_same_is_not_called_verified() -> None:
    report = api.plan(hybrid(), None, api.PlanOptions(verify=None)).report
    assert not report.verified and report.cannot_run
    lines = render_report(report).splitlines()
    assert lines[0].startswith("CANNOT RUN")
    page = to_html(report)
    assert page.index("TFLM cannot run it") < page.index("Tensors and scratch over time")
    assert to_json(report)["cannot_run"] == list(report.cannot_run)


def test_a_table_for_programs_says_it_and_no_sources_are_written() -> None:
    report = api.plan(hybrid(), None, api.PlanOptions(verify=None)).report
    rows = list(csv.DictReader(io.StringIO(to_csv(report))))
    assert rows[0]["side"] == "cannot run" and "CONV_2D of float32 and int8" in rows[0]["name"]
    assert rows[1]["side"] == "before" and None not in rows[0]
    with pytest.raises(ModelError, match="cannot run the model: CONV_2D"):
        export(hybrid(), "model", BOARD)


def test_a_streamed_pair_that_cannot_run_says_it_first() -> None:
    model = hybrid(float_convolutions=2)
    pair = stream_input(model, target="nano33ble", tile=None, verify=False)
    assert len(pair.cannot_run) == 1 and CASES[0][1] in pair.cannot_run[0]
    result = api.stream_input(model, options=api.StreamOptions(verify=None))
    assert next(render_streamed(result.pair, result.before, None)).startswith("  CANNOT RUN")
    document = streamed_to_json(result.pair, result.before, BOARD, None)
    assert document["cannot_run"] == list(pair.cannot_run) and not document["verified"]
    assert CASES[0][1] in render_header(result.pair, "hybrid", BOARD)


def test_a_streamed_pair_says_how_far_its_bytes_can_be_trusted() -> None:
    known, unknown = (
        stream_input(chain((3, 1, 4), (3, 1, 4)), target=target, tile=None, verify=False)
        for target in ("nano33ble", "cortex-m4/unknown")
    )
    assert (known.bound, known.uncertainties, known.cannot_run) == ("exact", (), ())
    assert unknown.bound == "at least" and unknown.uncertainties


@needs_tflm
def test_what_litert_alone_proves_is_not_called_verified() -> None:
    """LiteRT runs hybrid models, a board does not."""
    tiles = api.TilePermission(dialect=False)
    result = api.plan(hybrid(), None, api.PlanOptions(tiles=tiles))
    assert {c.runtime: c.status for c in result.report.checks}["LiteRT"] == "equal"
    assert not result.report.verified
    said = " ".join(render_report(result.report).split())
    assert "verified NO: the target's TFLM cannot run the model (equal on LiteRT)" in said


def test_older_tflm_without_the_operator_is_one_of_them() -> None:
    from tests.tflm.custom_models import MODELS
    from tests.tflm.operator_models import MODELS as OPERATORS

    data = {**OPERATORS, **MODELS}["batch_matmul_int8_00"]()
    old = with_tflm(BOARD, "2023-03")
    (reason,) = api.arena(data, old).cannot_run
    assert "TFLM of 2023-03-01 has no BATCH_MATMUL (since 2023-09-06)" in reason
    assert "CANNOT RUN" in render_arena("m", api.arena(data, old), old)
    assert api.arena(data, BOARD).cannot_run == ()


def test_operators_that_tflm_does_not_know_are_not_judged() -> None:
    for data in (one_operator("SIGN"), one_operator("CUSTOM", "Mystery")):
        found = api.arena(data, BOARD)
        assert found.cannot_run == ()
        shown = render_arena("m", found, BOARD)
        assert "CANNOT RUN" not in shown and "about" in shown


REFUSED = {
    "dynamic_range", "data_behind_the_flatbuffer", "external_buffers", "large_custom_options"
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(HANDMADE))
@pytest.mark.mostly_slow(fast=6)
def test_no_corner_that_tflm_runs_is_refused(name) -> None:
    """And of those that it does not, what types tell, and where their data lie."""
    refused = cannot_run(read_model(HANDMADE[name].make()), BOARD)
    assert bool(refused) is (name in REFUSED or name.startswith("sparse"))
    assert not (refused and HANDMADE[name].runs_on_tflm)


@pytest.mark.parametrize("path", sorted(CASE_FILES.glob("*.tflite")), ids=lambda p: p.stem)
def test_cases(path) -> None:
    hybrid_one = path.stem.startswith("f02")
    assert bool(api.arena(path, BOARD).cannot_run) is hybrid_one
