"""Operators that read or write something that is not among their tensors."""

from __future__ import annotations

from tflm_planner.ops.spec import OpSpec, register

register(
    OpSpec(has_state=True),
    "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE", "CALL",
    "HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE",
    "RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL", "MULTINOMIAL",
)  # fmt: skip
