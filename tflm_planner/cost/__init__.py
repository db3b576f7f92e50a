"""Latency: instructions, multiplications and bytes of operators and models on a target.

    cost_of(op, target) -> Cost          latency_of(model, target) -> Latency
    cost_of_case(case, target) -> Cost   of an operator that need not exist, for example a tile

`case` says what a cost depends on, `families` and `moves` what kernels do, `profiles` how many
instructions that takes, and `model` adds up. `measured` replaces these by latencies that were
measured on a device. It must not know transforms.
"""

from tflm_planner.cost.case import Case, Operand, case_of
from tflm_planner.cost.measured import (
    HeldOut,
    Measured,
    Watch,
    measured_of,
    profile_notes,
    with_source,
)
from tflm_planner.cost.model import (
    Cost,
    Latency,
    OpCost,
    cost_of,
    cost_of_case,
    instructions_of,
    latency_of,
    profile_target,
)

__all__ = [
    "Case",
    "Cost",
    "HeldOut",
    "Latency",
    "Measured",
    "OpCost",
    "Operand",
    "Watch",
    "case_of",
    "cost_of",
    "cost_of_case",
    "instructions_of",
    "latency_of",
    "measured_of",
    "profile_notes",
    "profile_target",
    "with_source",
]
