"""Two models are compared for every input, not only on the inputs that happened to be tried."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import tflm_planner as tp
from tests.conftest import needs_tflm
from tests.models.small import bottleneck
from tests.verification.terms.proofs import changed
from tflm_planner.cli.app import app
from tflm_planner.model.ir import Model
from tflm_planner.pipeline import api
from tflm_planner.report.text.equality import render_equality
from tflm_planner.verification import Equality, Verdict
from tflm_planner.verification.terms import TermsProof
from tflm_planner.verification.verdict import (
    CLOSE,
    DIFFERENT,
    EQUAL,
    NOT_AVAILABLE,
    CheckStatus,
    RuntimeCheck,
)

CNN = Path(__file__).parents[1] / "models" / "cnn_int8.tflite"


def with_another_weight(model: Model) -> None:
    """One weight of the first convolution is one larger."""
    weights = next(op for op in model.main.ops if op.kind == "CONV_2D").inputs[1]
    assert weights is not None and weights.buffer.data is not None
    numbers = np.array(weights.buffer.data)
    numbers[5] += 1
    weights.buffer.data = numbers


@needs_tflm
@pytest.mark.slow
def test_what_is_equal_on_the_inputs_that_were_tried_is_not_therefore_proved(tmp_path) -> None:
    other = tmp_path / "other.tflite"
    other.write_bytes(changed(CNN.read_bytes(), with_another_weight))
    found = tp.verify(CNN, other, inputs=1)
    assert not found.proved and found.refuted and not found.equal
    assert found.terms.culprit is not None and found.terms.culprit.kind == "CONV_2D"
    done = CliRunner().invoke(app, ["verify", str(CNN), str(other), "--inputs", "1"])
    assert done.exit_code == 4
    assert "NOT PROVED: as terms" in done.output or "DIFFERENT" in done.output
    done = CliRunner().invoke(app, ["verify", str(CNN), str(other), "--inputs", "1", "--json"])
    document = json.loads(done.stdout)
    assert not document["equal"] and not document["proved"]
    assert document["proof"]["status"] == "different"


@needs_tflm
def test_a_planned_model_is_proved_in_its_arena(tmp_path) -> None:
    planned = api.plan(bottleneck(), None, api.PlanOptions(verify=None)).data
    found = api.check_equal(bottleneck(), planned, api.VerifyOptions(inputs=2))
    assert found.proved and found.equal and not found.refuted
    assert found.terms.error_log2 is not None and found.terms.error_log2 < -100
    (tmp_path / "a.tflite").write_bytes(bottleneck())
    (tmp_path / "b.tflite").write_bytes(planned)
    files = [str(tmp_path / name) for name in ("a.tflite", "b.tflite")]
    done = CliRunner().invoke(app, ["verify", *files, "--inputs", "2"])
    assert done.exit_code == 0 and "EQUAL for every input, and the same bits on" in done.output


SAID: list[tuple[CheckStatus, str, str, bool, bool]] = [
    (EQUAL, "equal", "EQUAL for every input, and the same bits on TFLM (8 inputs)", True, True),
    (EQUAL, "not run", "EQUAL: the same bits on TFLM (8 inputs)", True, False),
    (EQUAL, "different", "NOT PROVED: as terms the models differ, though not on", False, False),
    (DIFFERENT, "equal", "DIFFERENT", False, False),
    (NOT_AVAILABLE, "equal", "EQUAL for every input\n", True, True),
    (NOT_AVAILABLE, "not run", "NOT COMPARED", False, False),
    (NOT_AVAILABLE, "different", "NOT PROVED: as terms the models differ\n", False, False),
    (CLOSE, "not run", "CLOSE", False, False),
]


@pytest.mark.parametrize("status, terms, conclusion, equal, proved", SAID)
def test_what_is_concluded(
    status: CheckStatus, terms: str, conclusion: str, equal: bool, proved: bool
) -> None:
    check = RuntimeCheck("TFLM", status, 8, True, "")
    error = -110.0 if terms == "equal" else None
    found = Equality(Verdict((check,)), TermsProof(terms, error))  # type: ignore[arg-type]
    assert (found.equal, found.proved) == (equal, proved)
    arena = api.arena(bottleneck())
    said = render_equality(found, (arena, arena), api.load_target("nano33ble"))
    assert conclusion in said.split("the same\n")[1]
