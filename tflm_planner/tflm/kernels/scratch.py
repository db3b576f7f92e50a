"""Scratch that a target's kernels request from the arena, in the order in which they request it.

Every kernel library has its rules (`KernelLibrary.scratch_requests`). This module adds what holds
for all of them: operators without operands, and operators that nobody knows. This module must not
know where scratch is placed.
"""

from __future__ import annotations

from collections.abc import Callable

from tflm_planner.model.ir import Op
from tflm_planner.tflm.kernels import custom_ops, library_of
from tflm_planner.tflm.kernels.base import KernelLibrary
from tflm_planner.tflm.kernels.operator_allocations import has_entry
from tflm_planner.tflm.kernels.reference import scratch as reference
from tflm_planner.tflm.target import Target

ScratchModel = Callable[[Op], tuple[int, ...]]
"""Bytes of each scratch request of an operator, in order."""


def scratch_model(target: Target) -> ScratchModel:
    """The scratch of a target's kernels."""
    library = library_of(target)
    return lambda op: _requests(op, library, target)


def scratch_requests(op: Op, target: Target) -> tuple[int, ...]:
    """Scratch requests of one operator, empty ones included."""
    return _requests(op, library_of(target), target)


def _requests(op: Op, library: KernelLibrary, target: Target) -> tuple[int, ...]:
    if not op.outputs or not op.operands():
        return ()
    return library.scratch_requests(op, target) if has_entry(op) else (assumed_scratch(op),)


def reference_scratch(op: Op, *, pointer: int = 8) -> tuple[int, ...]:
    """Scratch of TFLM's reference kernels; empty for operators that request none."""
    if not op.outputs or not op.operands() or not custom_ops.readable(op):
        return ()
    return reference.scratch_requests(op, pointer)


def assumed_scratch(op: Op) -> int:
    """Bytes of scratch taken for an operator without an entry: a word for each element of its
    operands and results. Nothing bounds what a kernel may ask for; those of TFLM that need
    buffers for their whole tensors (accumulators, unpacked or transposed filters) stay below
    this."""
    return sum(4 * t.elements for t in (*op.operands(), *op.outputs))
