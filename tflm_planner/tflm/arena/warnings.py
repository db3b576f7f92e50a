"""What to know beside the figures of an arena: why they are an upper bound, or a model cannot run.

It must not know bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflm_planner.model.ir import ETHOS_U, Op
from tflm_planner.tflm.kernels import library_of
from tflm_planner.tflm.kernels.custom_ops import crashing_factor
from tflm_planner.tflm.kernels.known_faults import known_faults
from tflm_planner.tflm.kernels.operator_allocations import OperatorAllocations, is_missing
from tflm_planner.tflm.liveness import Timeline
from tflm_planner.tflm.target import Target
from tflm_planner.tflm.versions import day_of

_CRASHES = "TFLM crashes on a transform whose length has factors other than 2, 3 and 5"


def arena_warnings(
    ops: Sequence[Op], costs: Sequence[OperatorAllocations], target: Target
) -> Iterator[str]:
    """Warnings about operators on a target, each with what it costs."""
    for label in sorted({op.label for op, c in zip(ops, costs, strict=True) if not c.known}):
        yield (
            f"{label}: no entry for this operator, or its parameters cannot be read; its share "
            "of the tail and its scratch are assumed: a word for each element it touches"
        )
    for op in ops:
        if (factor := crashing_factor(op)) is not None:
            yield f"{op.label}: {_CRASHES}; this one has {factor}"
    yield from known_faults(ops, target)
    for label in sorted({op.label for op in ops if is_missing(op, target)}):
        yield f"{label}: TFLM of {day_of(target)} has no such operator: it fails there"
    if any(op.kind == ETHOS_U for op in ops):
        yield (
            "ethos-u: the NPU driver is taken to have its own memory outside the arena, as "
            "Arm's does; what the NPU itself uses of the arena are tensors of the model"
        )
    if not library_of(target).is_exact:
        yield (
            f"kernel library {target.kernels!r}: scratch and tail are the largest of the "
            "reference kernels and CMSIS-NN; other libraries may need more"
        )


def wild_scratch(
    ops: Sequence[Op], requests: Sequence[Sequence[int]], line: Timeline
) -> Iterator[str]:
    """Warnings about scratch that TFLM never places. requests: bytes asked for by each operator."""
    for op, asked in zip(ops, requests, strict=True):
        if asked and id(op) not in line.scopes:
            yield (
                f"{op.label} is in a sub-graph that nothing calls and requests scratch: TFLM "
                "writes to a wild address; drop the sub-graph"
            )
