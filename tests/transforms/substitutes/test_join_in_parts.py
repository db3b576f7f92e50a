"""CONCATENATION of more operands than TFLM takes, made in parts: equal on both runtimes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tests.transforms.substitutes.cleaning import cleaned, kinds_but_reshapes
from tflm_planner.model.ir import Tensor
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.tflm.refusals import MOST_JOINED
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.substitutes.join_in_parts import parts_of
from tflm_planner.verification import VerifyOptions, verify
from tflm_planner.verification.terms import prove_by_terms

JOIN = "CONCATENATION"


def joined(
    operands: int,
    *,
    axis: int = -1,
    dtype: str = "int8",
    scale: float = 0.1,
    swapped: bool = False,
    **fields: Any,
) -> bytes:
    """LEAKY_RELUs of an input with slopes of their own, and a constant, joined. scale: of the
    result. swapped: the first two change places."""
    net = Net()
    graph, shape = net.graph(), [1, 3, 2]
    quantised: dict[str, Any] = {} if dtype == "float32" else {"scale": 0.1}
    x, parts = graph.input("x", (1, 3, 2), dtype, **quantised), list[int]()
    for i in range(operands):
        if i == 2:
            values = np.arange(6).reshape(1, 3, 2)
            parts.append(graph.constant("c", values, dtype, **quantised))
        else:
            parts.append(graph.tensor(f"t{i}", shape, dtype, **quantised))
            graph.op("LEAKY_RELU", [x], [parts[-1]], "LeakyReluOptions", alpha=0.9 / (i + 1))
    shape[axis] *= operands
    y = graph.tensor("y", shape, dtype, **({"scale": scale} if quantised else {}))
    order = [parts[1], parts[0], *parts[2:]] if swapped else parts
    graph.op(JOIN, order, [y], "ConcatenationOptions", axis=axis, **fields)
    graph.outputs(y)
    return net.finish()


def joins(data: bytes) -> list[str]:
    return [kind for kind in kinds_but_reshapes(data) if kind == JOIN]


@needs_tflm
@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
@pytest.mark.parametrize(("operands", "axis", "made"), [(11, -1, 2), (16, 1, 2), (23, 2, 3)])
def test_many_operands_are_joined_in_parts(operands: int, axis: int, made: int, dtype: str) -> None:
    data = joined(operands, axis=axis, dtype=dtype)
    assert JOIN in " ".join(api.arena(data).cannot_run)
    result = cleaned(data)
    assert len(joins(result)) == made and not api.arena(result).cannot_run
    assert prove_by_terms(read_model(data), read_model(result)).status == "equal"
    checks = verify(data, result, VerifyOptions(inputs=5)).checks
    assert [c.status for c in checks] == ["equal", "equal"], checks
    report = api.plan(data).report
    assert report.verified and "of more than 10 operands" in " ".join(report.notes)


def test_terms_tell_the_order_of_operands() -> None:
    data, other = joined(12), joined(12, swapped=True)
    assert prove_by_terms(read_model(data), read_model(cleaned(other))).status == "different"


def test_more_than_a_hundred_are_joined_in_three_steps() -> None:
    """CONCATENATIONs of CONCATENATIONs of CONCATENATIONs."""
    data = joined(123)
    result = cleaned(data)
    assert all(len(op.inputs) <= MOST_JOINED for op in read_model(result).ops() if op.kind == JOIN)
    assert prove_by_terms(read_model(data), read_model(result)).status == "equal"


@pytest.mark.parametrize(
    "data",
    [
        joined(10),
        joined(12, scale=0.2),  # numbers change as they are joined
        joined(12, fusedActivationFunction=1),
    ],
)
def test_others_stay(data: bytes) -> None:
    assert len(joins(cleaned(data))) == 1


@pytest.mark.parametrize("change", ["shape", "axis", "variable"])
def test_damaged_ones_stay(change: str) -> None:
    model = read_model(joined(12))
    (op,) = (op for op in model.ops() if op.kind == JOIN)
    if change == "shape":
        op.inputs[4].shape = (1, 2, 3)  # pyright: ignore[reportOptionalMemberAccess]
    elif change == "axis":
        op.outputs[0].shape = (1, 3, 23)
    else:
        op.outputs[0].is_variable = True
    run(model, Normalize())
    assert len([op for op in model.ops() if op.kind == JOIN]) == 1


@pytest.mark.parametrize(
    ("operands", "sizes"),
    [
        (11, [2, *[1] * 9]),
        (19, [10, *[1] * 9]),
        (20, [10, 2, *[1] * 8]),
        (100, [10] * 10),
        (101, [*[10] * 10, 1]),
    ],
)
def test_few_are_joined_first(operands: int, sizes: list[int]) -> None:
    tensors: list[Tensor] = [*read_model(joined(3)).main.tensors[:1]] * operands
    assert [len(part) for part in parts_of(tensors)] == sizes
