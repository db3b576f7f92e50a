"""Explains the message of a runtime that does not run a model: which operator it is, with which
types, and what to do; and whether it tells of the model at all. It must not run models."""

from __future__ import annotations

import re

from tflm_planner.model.ir import Model, Op
from tflm_planner.tflm.remedies import remedy_of

_NAMED_OPERATOR = re.compile(
    r"op code ([A-Z0-9_]+)|opcode '([A-Z0-9_]+)' version|node ([A-Z0-9_]+) \(number (\d+)\b",
    re.IGNORECASE,
)
_OF_THIS_MACHINE = ("MemoryError", "SIGKILL", "no answer within", "damages its own memory")
"""What is said where memory is short, where time is, and of a fault when the runtime ends, after it
gave all outputs."""
_OTHER_REMEDY = "build the model without it, or leave it to the application"


def explain(model: Model, why: str) -> str:
    """A runtime's message `why`, completed with the operator that it names, its types, and what to
    do. It is unchanged if it names no operator of the model."""
    op = _operator_in(model, why)
    if op is None:
        return why
    types = ", ".join(dict.fromkeys(t.type_name for t in (*op.operands(), *op.outputs)))
    reason = "it has no kernel" if _lacks_kernel(why) else why
    return f"{op.label} of {types}: {reason}; {remedy_of(op) or _OTHER_REMEDY}"


def is_of_this_machine(why: str) -> bool:
    """Whether a runtime's message `why` tells of this machine, not of the model: memory or time
    that it lacks, or a kernel that is not registered here, which firmware may do."""
    return _lacks_kernel(why) or any(words in why for words in _OF_THIS_MACHINE)


def _lacks_kernel(why: str) -> bool:
    return "registration" in why or "opcode" in why


def _operator_in(model: Model, why: str) -> Op | None:
    match = _NAMED_OPERATOR.search(why)
    if match is None:
        return None
    kind = next(word for word in match.groups() if word).upper()
    if match[4] is not None:
        place = int(match[4])
        named = model.main.ops[place : place + 1]
        if named and named[0].kind == kind:
            return named[0]
    return next((op for op in model.ops() if op.kind == kind), None)
