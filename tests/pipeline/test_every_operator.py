"""Every operator that TFLM registers, whether a runtime here has it or not: figures are given, and
nothing is called verified that did not run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conftest import needs_tflm
from tests.models.handmade import MODELS as HANDMADE
from tests.tflm.custom_models import MODELS
from tests.tflm.registered import BUILTIN, CUSTOM
from tflm_planner.model.ir import ETHOS_U
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.report.text.report import render_report
from tflm_planner.support.errors import ModelError

ALL: dict[str, Callable[[], bytes]] = {
    **MODELS,
    **{name: made.make for name, made in HANDMADE.items() if made.runs_on_tflm},
}
REACHED = ("equal", "cannot run original", "not available")


def one_of_each() -> dict[str, bytes]:
    """Operator -> the first model of it."""
    found: dict[str, bytes] = {}
    for make in ALL.values():
        data = make()
        for op in read_model(data).ops():
            found.setdefault(op.kind, data)
    return found


KINDS = one_of_each()


def test_there_is_a_model_of_every_operator() -> None:
    assert {*BUILTIN.split(), *CUSTOM.split()} <= {*KINDS}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_arena_and_inspect_know_it(kind: str) -> None:
    data = KINDS[kind]
    assert api.arena(data).arena == api.inspect(data).arena.arena > 0
    if kind == ETHOS_U:  # Vela's own offsets are in it
        with pytest.raises(ModelError, match="compiled for an Ethos-U"):
            api.plan(data)
        return
    assert api.plan(data, None, api.PlanOptions(verify=None)).report.verified is False


@needs_tflm
@pytest.mark.parametrize("kind", sorted({*KINDS} - {ETHOS_U}))
@pytest.mark.mostly_slow(fast=4)
def test_verified_means_that_a_runtime_ran_it(kind: str) -> None:
    data = KINDS[kind]
    try:
        report = api.plan(data, None, api.PlanOptions(verify=api.VerifyOptions(inputs=2))).report
    except ModelError as refused:
        assert "--no-verify" in str(refused)
        return
    ran = [c for c in report.checks if c.status == "equal"]
    assert report.verified is bool(ran) and all(c.inputs > 0 for c in ran)
    assert {c.status for c in report.checks} <= {*REACHED}
    said = " ".join(render_report(report).split())
    for check in report.checks:
        assert check.runtime in said
        assert check.status == "equal" or check.detail.split()[0] in said
