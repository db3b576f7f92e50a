"""Contracts against what real kernels did on emulated Cortex-M boards."""

import numpy as np
import pytest

from tests.models.build import Net
from tests.tflm import measured_overlaps
from tests.tflm.overlap_trials import (
    model_of,
    op_of,
)
from tflm_planner.model.ir import Op
from tflm_planner.ops import sharings
from tflm_planner.tflm.kernels.contracts import (
    exact_bound,
    input_overlap_contract,
    replays,
)


@pytest.mark.slow
def test_contracts_hold_on_real_cortex_m_kernels() -> None:
    checked = exact = 0
    for record in measured_overlaps.records():
        shape = measured_overlaps.SHAPES.get(record["op"])
        if shape is None:
            continue
        assert (shape.bytes_in, shape.bytes_out) == (record["n_in"], record["n_out"])
        library, op = measured_overlaps.TARGETS[record["target"]], op_of(model_of(shape))
        measured, where = record["min_safe_D"], f"{record['op']} on {record['target']}"
        allowed = exact_bound(op, library)
        if allowed is not None and allowed.step == 1:
            assert allowed.least >= measured, where
            exact += allowed.least == measured
        found = replays(op, op.operands()[0], library)
        if found:
            smallest = max(replay.smallest() for replay in found)
            one_input = shape.kind == "depthwise" and shape.ci == 1
            assert smallest == measured or (one_input and smallest >= measured), where
            for distance in record["safe_below"]:
                assert all(replay.safe(distance) for replay in found), (where, distance)
        checked += 1
    assert checked >= 125 and exact >= 76, "bounds ask for more than kernels need"


def test_other_operators_on_real_cortex_m_kernels() -> None:
    for record in measured_overlaps.records():
        if record["op"] == "add":
            op, library = _addition(), measured_overlaps.TARGETS[record["target"]]
            assert record["D0_safe"] and list(sharings(op))
            assert {t.low for t in input_overlap_contract(op, library)} == {record["min_safe_D"]}


def _addition() -> Op:
    net = Net()
    graph = net.graph()
    a, b = (graph.input(name, (1, 6, 6, 16), scale=0.1) for name in "ab")
    y = graph.tensor("y", (1, 6, 6, 16), scale=0.2)
    graph.op("ADD", [a, b], [y], "AddOptions")
    graph.outputs(y)
    return op_of(net.finish())


def test_random_inputs_reach_every_value() -> None:
    """The sweeps prove nothing with inputs that hide a lost byte."""
    from tests.tflm.overlap_trials import random_inputs

    values = random_inputs((1, 40, 40, 8), 1, 2)
    assert int(values[0].max()) - int(values[0].min()) == 255 and not np.array_equal(
        values[0], values[1]
    )
