"""What the tests of terms share: models read and proved, and plans forged."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tflm_planner.model.ir import Model, Tensor
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline import api
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.transforms.attach_plan import AttachPlan, carried_plan
from tflm_planner.transforms.base import run
from tflm_planner.verification.terms import TermsProof, prove_by_terms

HOST = api.kernels_of(api.load_target("x86-64/wheel"))
"""This machine's TFLM, which can be asked whether a plan works."""


def proof(original: bytes, result: bytes, kernels: TargetKernels | None = None) -> TermsProof:
    """The result against the original: by itself, or in its arena."""
    return prove_by_terms(read_model(original), read_model(result, dialect=True), kernels)


def changed(data: bytes, change: Callable[[Model], object]) -> bytes:
    """The model with a change made to it."""
    model = read_model(data)
    change(model)
    return write_model(model)


def forged(data: bytes, move: Callable[[Model, dict[Tensor, int]], Mapping[Tensor, int]]) -> bytes:
    """The file with offsets of its plan moved."""
    model = read_model(data, dialect=True)
    offsets = carried_plan(model)
    assert offsets is not None
    run(model, AttachPlan(move(model, offsets)))
    return write_model(model)
