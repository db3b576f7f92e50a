"""What is remembered of operators by their form is what each of them would be told."""

from __future__ import annotations

import numpy as np
import pytest

from tests.models.generator import random_model
from tests.tflm.operator_models import MODELS
from tflm_planner.cost import case_of, cost_of, cost_of_case
from tflm_planner.model.edit import resize, set_option
from tflm_planner.model.ir import Op
from tflm_planner.model.serde import read_model
from tflm_planner.tflm.kernels.forms import operator_form
from tflm_planner.tflm.kernels.scratch import scratch_model, scratch_requests
from tflm_planner.tflm.targets import load_target

TARGETS = "cortex-m4/cmsis-nn", "cortex-m55/cmsis-nn", "x86-64/reference", "esp32s3/esp-nn"


def operators() -> list[Op]:
    """Every operator that TFLM registers, and those of random models."""
    files = [make() for make in MODELS.values()]
    files += [random_model(np.random.default_rng(seed)) for seed in range(12)]
    return [op for data in files for op in read_model(data).ops()]


@pytest.mark.parametrize("name", TARGETS)
def test_scratch_and_cost_are_those_of_the_operator(name: str) -> None:
    target = load_target(name)
    scratch_of = scratch_model(target)
    for op in operators():
        assert scratch_of(op) == scratch_requests(op, target), op
        assert cost_of(op, target) == cost_of_case(case_of(op), target), op
        copied = case_of(op), target, op.kind in ("RESHAPE", "SQUEEZE", "EXPAND_DIMS")
        if op.kind != "DYNAMIC_UPDATE_SLICE":
            assert cost_of(op, target, in_place=True) == cost_of_case(*copied), op


def test_operators_of_one_form_are_equal_to_kernels() -> None:
    """Forms that are equal have equal cases, but for scales, and equal scratch."""
    seen: dict[object, tuple[object, object]] = {}
    target = load_target("cortex-m4/cmsis-nn")
    for op in operators():
        scales = tuple(len(t.quantization.scales) for t in (*op.operands(), *op.outputs))
        facts = case_of(op), scratch_requests(op, target)
        assert seen.setdefault((operator_form(op), scales), facts) == facts, op
    assert len({case for case, _ in seen.values()}) > 100


def test_an_operator_that_is_changed_has_another_form(cnn: bytes) -> None:
    conv = next(op for op in read_model(cnn).main.ops if op.kind == "CONV_2D")
    forms = [operator_form(conv)]
    set_option(conv, "stride_h", 3)
    forms.append(operator_form(conv))
    batch, *rest = conv.outputs[0].shape or ()
    resize(conv.outputs[0], (batch + 1, *rest))
    forms.append(operator_form(conv))
    conv.inputs[2] = None
    forms.append(operator_form(conv))
    assert len(set(forms)) == 4
