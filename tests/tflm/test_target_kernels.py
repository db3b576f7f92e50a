"""A machine remembers contracts by the form of operators: always what `contract` says now."""

from __future__ import annotations

import pytest

from tests.models.generator import random_model
from tflm_planner.model.edit import set_option
from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.model.serde import read_model
from tflm_planner.tflm.kernels.contracts import input_overlap_contract
from tflm_planner.tflm.kernels.libraries.reference import REFERENCE
from tflm_planner.tflm.target_kernels import TargetKernels, kernels_of
from tflm_planner.tflm.targets import load_target

TARGETS = ["x86-64/reference", "cortex-m4/cmsis-nn", "cortex-m55/cmsis-nn", "cortex-m/any"]


def input_overlaps(on: TargetKernels, op: Op) -> list[tuple[Tensor, Tensor, int, int]]:
    return [(t.operand, t.result, t.low, t.high) for t in on.input_overlaps_of(op)]


def fresh(on: TargetKernels, op: Op) -> list[tuple[Tensor, Tensor, int, int]]:
    found = input_overlap_contract(op, *on.builds, REFERENCE)
    return [(t.operand, t.result, t.low, t.high) for t in found]


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_remembered_is_what_the_contract_says(target: str) -> None:
    on = kernels_of(load_target(target))
    some = 0
    for seed in range(40):
        model: Model = read_model(random_model(seed))
        for op in model.ops():
            for _ in range(2):
                assert input_overlaps(on, op) == fresh(on, op)
            some += len(input_overlaps(on, op))
    assert some > 20


@pytest.mark.parametrize("target", TARGETS)
def test_an_operator_that_was_changed_is_asked_for_again(target: str) -> None:
    on, changed = kernels_of(load_target(target)), 0
    for seed in range(20):
        for op in read_model(random_model(seed)).ops():
            if op.kind in ("CONV_2D", "DEPTHWISE_CONV_2D"):
                before = input_overlaps(on, op)
                set_option(op, "dilation_h_factor", op.options.dilation[0] + 1)
                assert input_overlaps(on, op) == fresh(on, op)
                changed += input_overlaps(on, op) != before
    assert changed
