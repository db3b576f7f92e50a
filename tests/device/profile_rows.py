"""Rows of a profile database as a board would fill it."""

from __future__ import annotations

from tests.conftest import CNN
from tflm_planner.cost import case_of, latency_of
from tflm_planner.cost.case import Case, canonical
from tflm_planner.device.profiling.database import (
    BoardRow,
    LatencyRow,
    operator_text,
)
from tflm_planner.model.ir import Op
from tflm_planner.model.serde import read_model
from tflm_planner.tflm.targets import load_target

BOARD = BoardRow("b", "Cortex-M4", "cmsis-nn", "current", "1", "cortex-m4/cmsis-nn", 64_000_000, False)  # noqa: E501  # fmt: skip
M4 = load_target("cortex-m4/cmsis-nn")


def form(op: Op) -> Case:
    return canonical(case_of(op))


def row(operator: str, ns: float = 5.0, at: str = "2026-01-01") -> LatencyRow:
    return LatencyRow(operator, ns, ns, 0.0, 3, at)


def cnn_rows(ns_per_instruction: float = 100.0) -> dict[Case, LatencyRow]:
    """Latencies that are instructions times a factor."""
    model = read_model(CNN.read_bytes())
    return {
        form(cost.op): row(
            operator_text(form(cost.op)), cost.each.instructions * ns_per_instruction
        )
        for cost in latency_of(model, M4).by_op
    }
