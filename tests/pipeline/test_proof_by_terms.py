"""The proof for every input, where plans are made: beside the runtimes, and in every report."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.conftest import needs_tflm
from tests.models.handmade_flow import repeated_conv
from tests.models.registry import IMAGE, relu, start
from tests.models.small import Chain, bottleneck, one_operator, small_network
from tests.transforms.row_loops import chain
from tests.verification.terms.proofs import forged
from tflm_planner.cli.app import app
from tflm_planner.pipeline import api
from tflm_planner.pipeline import prove as proving
from tflm_planner.pipeline.planning.model_planner import ModelPlanner
from tflm_planner.pipeline.stream_input.render import render_streamed, streamed_to_json
from tflm_planner.report.json.document import to_json
from tflm_planner.report.text.report import render_report
from tflm_planner.support.errors import ModelError, OutputsDifferError
from tflm_planner.verification import compare as comparing
from tflm_planner.verification.terms import TermsProof
from tflm_planner.verification.verdict import CheckStatus, RuntimeCheck, Verdict

pytestmark = needs_tflm


def test_a_plan_is_equal_for_every_input_and_says_with_which_error() -> None:
    report = api.plan(small_network(1)).report
    assert report.terms is not None and report.terms.status == "equal" and report.verified
    assert "proved       equal for every input (chance of error < 2^-1" in render_report(report)
    document = to_json(report)["proof"]
    assert document["status"] == "equal" and document["error_log2"] < -100
    assert to_json(api.plan(small_network(1), None, api.PlanOptions(verify=None)).report)[
        "proof"
    ] is None  # fmt: skip


def seen_equal(*_: object) -> Verdict:
    """The verdict of runtimes that see no difference."""
    return Verdict((RuntimeCheck("TFLM", "equal", 2, outputs_vary=True, detail=""),))


def ended(*_: object) -> Verdict:
    """A runtime that ends its process."""
    raise ModelError("a test ended the runtime")


@pytest.mark.parametrize("compare", [seen_equal, ended])
def test_a_plan_that_loses_a_byte_is_not_written(
    compare: Callable[..., Verdict], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the runtimes say."""
    plan = ModelPlanner.plan

    def spoilt(self, original, model, prove):
        def prove_worse(planned):
            data = forged(planned.data, lambda m, at: dict.fromkeys(at, 0))
            return prove(replace(planned, data=data))

        return plan(self, original, model, prove_worse)

    monkeypatch.setattr(ModelPlanner, "plan", spoilt)
    monkeypatch.setattr(proving, "compare_with_twin", compare)
    with pytest.raises(OutputsDifferError, match=r"as its terms show: output 0 .* operator \d"):
        api.plan(small_network(1), tmp_path / "out.tflite")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(("asked", "compared"), [(8, 2), (9, 9)])
def test_beside_the_proof_a_large_model_runs_on_fewer_inputs(
    asked: int, compared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless more inputs than usual were asked for."""
    monkeypatch.setattr(comparing, "MACS_BESIDE_TERMS", 1)
    options = api.PlanOptions(verify=api.VerifyOptions(inputs=asked))
    report = api.plan(small_network(1), None, options).report
    assert {check.inputs for check in report.checks} == {compared}


def test_without_the_proof_it_runs_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = TermsProof("not run", detail="a test")
    monkeypatch.setattr(comparing, "MACS_BESIDE_TERMS", 1)
    monkeypatch.setattr(proving, "prove_by_terms", lambda *_: unknown)
    report = api.plan(small_network(1)).report
    assert report.terms == unknown
    assert {check.inputs for check in report.checks} == {8}


@pytest.mark.parametrize(("status", "asked"), [("equal", 9), ("different", 8)])
def test_it_is_compared_once_where_that_is_all_or_shows_a_difference(
    status: CheckStatus, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though terms are not run: a second comparison might not see what the first saw."""
    times: list[int] = []

    def compare(*_: object) -> Verdict:
        times.append(1)
        return Verdict((RuntimeCheck("TFLM", status, 2, outputs_vary=True, detail=""),))

    monkeypatch.setattr(comparing, "MACS_BESIDE_TERMS", 1)
    monkeypatch.setattr(proving, "prove_by_terms", lambda *_: TermsProof("not run"))
    monkeypatch.setattr(proving, "compare_with_twin", compare)
    options = api.PlanOptions(verify=api.VerifyOptions(inputs=asked))
    with suppress(OutputsDifferError):
        api.plan(small_network(1), None, options)
        assert status == "equal"
    assert times == [1]


def test_what_no_runtime_runs_is_proved_by_terms_alone() -> None:
    result = api.plan(one_operator("CUSTOM", "Mystery"))
    assert result.report.verified
    said = render_report(result.report)
    assert "yes, by the proof alone: no runtime here compared the two models" in said


@pytest.mark.slow
def test_shares_of_sums_are_not_proved_for_every_input(tmp_path: Path) -> None:
    source, out = tmp_path / "in.tflite", tmp_path / "out.tflite"
    source.write_bytes(bottleneck())
    split = ["--split", "1-3:sum=3", "--allow-inexact", "--time-limit", "2", "--inputs", "3"]
    done = CliRunner().invoke(app, ["plan", str(source), str(out), *split])
    assert done.exit_code == 0 and "proved       not for every input: a sum is split" in done.output


@pytest.mark.parametrize("given", [False, True])
def test_loops_of_the_model_itself(given: bool) -> None:
    """Where an input decides how often they turn, nothing is said of every input."""
    net, graph, x = start()
    counter = graph.input("n", (1,), "int32") if given else graph.constant("n", [1])
    graph.outputs(relu(graph, repeated_conv(net, graph, counter, relu(graph, x, IMAGE), 3), IMAGE))
    report = api.plan(net.finish()).report
    assert report.terms is not None and report.verified
    assert report.terms.status == ("not run" if given else "equal")
    assert ("the inputs decide how often" in render_report(report)) is given


def test_a_pair_is_equal_for_every_input_and_says_so() -> None:
    data = chain((3, 1, 8), (3, 2, 8), size=16)
    made = api.stream_input(data, options=api.StreamOptions(verify=api.VerifyOptions(inputs=2)))
    assert made.terms is not None and made.terms.status == "equal"
    said = "\n".join(render_streamed(made.pair, made.before, made.verdict, None, made.terms))
    assert "proved       equal for every input (chance of error < 2^-1" in said


def test_what_ends_a_runtime_is_told_where_terms_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proving, "compare_with_twin", ended)
    with pytest.raises(ModelError, match="a test ended the runtime"):
        api.plan(small_network(1))


def test_an_error_of_the_proof_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though another thread computes it."""
    monkeypatch.setattr(proving, "prove_by_terms", lambda *_: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        api.plan(small_network(1))


@pytest.mark.parametrize("compare", [seen_equal, ended])
def test_a_pair_whose_terms_differ_is_not_written(
    compare: Callable[..., Verdict], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the runtimes say."""
    real = proving.prove_pair_by_terms

    def late(original, halves, kernels):
        strips = replace(halves.strips, delay=halves.strips.delay - 1)
        return real(original, replace(halves, strips=strips), kernels)

    monkeypatch.setattr(proving, "prove_pair_by_terms", late)
    monkeypatch.setattr(proving, "verify_pair", compare)
    paths = tmp_path / "front.tflite", tmp_path / "back.tflite"
    with pytest.raises(OutputsDifferError, match=r"the split model .* as its terms show: output 0"):
        api.stream_input(
            chain((3, 1, 8), (3, 2, 8), (1, 1, 16), size=24),
            paths,
            api.StreamOptions(end=1, verify=api.VerifyOptions(inputs=2)),
        )
    assert not [*tmp_path.iterdir()]


def test_a_pair_that_no_runtime_runs_is_proved_by_terms_alone() -> None:
    image = Chain((1, 16, 5, 3))
    image.conv(8, 3)
    image.conv(4, 3)
    y = image.tensor(image.shape)
    image.graph.custom("Mystery", [image.x], [y], b"")
    data = image.finish(y)
    made = api.stream_input(data, None, api.StreamOptions(end=0))
    said = "\n".join(render_streamed(made.pair, made.before, made.verdict, None, made.terms))
    assert "yes, by the proof alone: no runtime here compared the pair with the model" in said
    target = api.MemoryOptions().kernels.target
    document = streamed_to_json(made.pair, 0, target, made.verdict, None, made.terms)
    assert document["verified"] and document["proof"]["status"] == "equal"
