"""With which scales TFLM aborts, on either side of the limit, by the wheel."""

from __future__ import annotations

from typing import Any

import pytest

import tflm_planner as tp
from tests.conftest import needs_tflm
from tests.models.build import Net
from tests.tflm.test_arena import measured
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.report.text.arena import render_arena
from tflm_planner.tflm.refusals import cannot_run
from tflm_planner.tflm.targets import load_target

BOARD = load_target("nano33ble")
LIMIT = 2.0**-26
FINEST = 6 / 2.0**31
"""The scale of which 2^31 make up the limit of RELU6."""
ABOVE_0, UP_TO_1, UP_TO_6 = ({"fusedActivationFunction": number} for number in (1, 2, 3))


def of_scales(
    kind: str, operands: list[float], result: float | None, dtype: str = "int8", **options: Any
) -> bytes:
    """One operator on quantised values of these scales; None: the result is of bool."""
    net = Net()
    graph = net.graph()
    inputs = [graph.input(f"x{i}", (1, 4), dtype, scale=s) for i, s in enumerate(operands)]
    if kind == "CUMSUM":
        inputs.append(graph.constant("axis", 1))
    if result is None:
        y = graph.tensor("y", (1, 4), "bool")
    else:
        zero = {"SOFTMAX": -128, "LOG_SOFTMAX": 127}.get(kind, 0) if dtype == "int8" else 0
        y = graph.tensor("y", (1, 4), dtype, scale=result, zero=zero)
    named = {
        "SOFTMAX": "SoftmaxOptions", "ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions",
        "ADD_N": "AddNOptions", "CUMSUM": "CumsumOptions", "LOG_SOFTMAX": "LogSoftmaxOptions",
    }  # fmt: skip
    graph.op(kind, inputs, [y], named.get(kind), **options)
    graph.outputs(y)
    return net.finish()


AT_THE_LIMIT = {
    "softmax": of_scales("SOFTMAX", [LIMIT], 1 / 256, beta=1.0),
    "softmax of half the beta": of_scales("SOFTMAX", [2 * LIMIT], 1 / 256, beta=0.5),
    "log softmax": of_scales("LOG_SOFTMAX", [LIMIT], 16 / 256),
    "sum": of_scales("ADD", [2.0**19, 1.0], 1.0),
    "sum of int16": of_scales("ADD", [1.0, 2.0**14], 1.0, "int16"),
    "difference": of_scales("SUB", [2.0**19, 1.0], 1.0),
    "difference of int16": of_scales("SUB", [1.0, 2.0**14], 1.0, "int16"),
    "sum of several": of_scales("ADD_N", [2.0**19] * 3, 1.0),
    "running sum": of_scales("CUMSUM", [2.0**19], 1.0),
    "equal": of_scales("EQUAL", [0.5, 1.0], None),
    "greater": of_scales("GREATER", [1.0, 0.5], None),
    "softmax of nothing": of_scales("SOFTMAX", [0.0], 1 / 256, beta=1.0),
    "sum up to 6": of_scales("ADD", [FINEST] * 2, FINEST * 0.99, **UP_TO_6),
    "product up to 1": of_scales("MUL", [1.0, 1.0], FINEST / 6.1, **UP_TO_1),
    "product up to 6": of_scales(
        "MUL", [1.0] * 2, FINEST * 0.99, "int16", fusedActivationFunction=3
    ),
    "equal to nothing": of_scales("EQUAL", [0.5, 0.0], None),
}
JUST_WITHIN = {
    "softmax": of_scales("SOFTMAX", [LIMIT * (1 + 2**-23)], 1 / 256, beta=1.0),
    "softmax of half the beta": of_scales("SOFTMAX", [2.01 * LIMIT], 1 / 256, beta=0.5),
    "log softmax": of_scales("LOG_SOFTMAX", [1.01 * LIMIT], 16 / 256),
    "sum": of_scales("ADD", [2.0**19 - 1, 1.0], 1.0),
    "sum of int16": of_scales("ADD", [1.0, 2.0**14 - 1], 1.0, "int16"),
    "difference": of_scales("SUB", [2.0**19 - 1, 1.0], 1.0),
    "difference of int16": of_scales("SUB", [1.0, 2.0**14 - 1], 1.0, "int16"),
    "sum of several": of_scales("ADD_N", [2.0**19 - 1] * 3, 1.0),
    "running sum": of_scales("CUMSUM", [2.0**19 - 1], 1.0),
    "equal": of_scales("EQUAL", [0.5, 0.99], None),
    "greater": of_scales("GREATER", [0.99, 0.5], None),
    "sum up to 6": of_scales("ADD", [FINEST] * 2, FINEST * 1.01, **UP_TO_6),
    "sum above 0": of_scales("ADD", [FINEST] * 2, FINEST / 50, **ABOVE_0),
    "product up to 1": of_scales("MUL", [1.0, 1.0], FINEST / 5.9, **UP_TO_1),
    "product up to 6": of_scales(
        "MUL", [1.0] * 2, FINEST * 1.01, "int16", fusedActivationFunction=3
    ),
    "softmax of int16": of_scales("SOFTMAX", [1e-9], 1 / 32768, "int16", beta=1.0),
}


@needs_tflm
@pytest.mark.parametrize("name", AT_THE_LIMIT)
def test_tflm_ends_the_program_at_the_limit(name: str) -> None:
    assert measured(AT_THE_LIMIT[name], 1 << 14) is None
    (reason,) = cannot_run(read_model(AT_THE_LIMIT[name]), BOARD)
    assert "TFLM aborts where" in reason or "TFLM refuses a limit" in reason


@needs_tflm
@pytest.mark.parametrize("name", JUST_WITHIN)
def test_tflm_runs_what_is_just_within(name: str) -> None:
    assert cannot_run(read_model(JUST_WITHIN[name]), BOARD) == []
    assert measured(JUST_WITHIN[name], 1 << 14) is not None


@needs_tflm
def test_what_is_told_of_a_network_that_was_not_trained() -> None:
    """Its logits are all but zero, so that SOFTMAX gets a scale that LiteRT's own kernel takes."""
    data = of_scales("SOFTMAX", [7.8e-9], 1 / 256, beta=1.0)
    shown = render_arena("m", api.arena(data, BOARD), BOARD)
    assert "CANNOT RUN" in shown and "whose scale is 7.8e-09" in shown
    with pytest.raises(tp.ModelError, match="weights that were not trained"):
        tp.plan(data)
    with pytest.raises(tp.ModelError, match=r"TFLM: SOFTMAX 'y'.*whose scale is 7\.8e-09"):
        tp.plan(data, tile=tp.Tile(portable=True))
