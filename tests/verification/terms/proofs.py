"""What the tests of terms share: models read and proved, plans forged, tensors in an arena."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.models.build import Net
from tflm_planner.model.ir import Model, Tensor
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.ops.terms.mixing import Mixer
from tflm_planner.ops.terms.values import Symbols
from tflm_planner.pipeline import api
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.transforms.attach_plan import AttachPlan, carried_plan
from tflm_planner.transforms.base import run
from tflm_planner.verification.terms import TermsProof, prove_by_terms
from tflm_planner.verification.terms.layout import layout_of
from tflm_planner.verification.terms.memory import ArenaStore

HOST = api.kernels_of(api.load_target("x86-64/wheel"))
"""This machine's TFLM, which can be asked whether a plan works."""


def proof(original: bytes, result: bytes, kernels: TargetKernels | None = None) -> TermsProof:
    """The result against the original: by itself, or in its arena."""
    return prove_by_terms(read_model(original), read_model(result, dialect=True), kernels)


def arena(*tensors: tuple[str, int, int]) -> tuple[ArenaStore, list[Tensor], Symbols]:
    """A store whose tensors (type, number of elements, offset) lie where they are put."""
    net = Net()
    graph = net.graph()
    for i, (dtype, count, _) in enumerate(tensors):
        graph.outputs(*graph.table.outputs, graph.input(f"t{i}", (count,), dtype))
    model = read_model(net.finish())
    inputs = model.main.inputs
    run(model, AttachPlan({t: at for t, (_, _, at) in zip(inputs, tensors, strict=True)}))
    symbols = Symbols(mixer := Mixer())
    return ArenaStore(layout_of(model, HOST), mixer, symbols), list(inputs), symbols


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
