"""What every operator that TFLM registers allocates in the arena, besides its tensors and scratch.

    parse    builtin parameters      packed at their own alignment
    Init     OpData                  rounded up to 16
    Prepare  further persistent      rounded up to 16
             TfLiteTensor structs    temporary, on top of the head

The order of allocations was read from the Init and Prepare functions of tflite-micro 90b983c,
tensorflow/lite/micro/kernels. This module must not know addresses.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflm_planner.model.ir import Model, Op
from tflm_planner.support.units import align_up
from tflm_planner.tflm.kernels import custom_ops, library_of
from tflm_planner.tflm.kernels.libraries.reference.operators import OPERATORS as BUILTINS
from tflm_planner.tflm.kernels.prepare import PersistentAllocation, PrepareStep
from tflm_planner.tflm.target import Target
from tflm_planner.tflm.versions import has_operator

OPERATORS = BUILTINS.keys() | custom_ops.REGISTERED
"""Every operator that TFLM registers."""


def lacks_operators(model: Model) -> bool:
    """Whether a model has operators that TFLM lacks."""
    return any(op.kind not in OPERATORS for op in model.ops())


@dataclass(frozen=True, slots=True)
class OperatorAllocations:
    """One operator's allocations, in order.

    builtin: size and alignment of the builtin parameters, or None. init: bytes of each allocation
    of Init. prepare: the steps of Prepare; a tensor that is fetched twice appears twice. known:
    False for an operator without an entry, or whose parameters cannot be read; its figures are then
    an upper bound of what most operators need.
    """

    builtin: tuple[int, int] | None
    init: tuple[int, ...]
    prepare: tuple[PrepareStep, ...]
    known: bool = True

    @property
    def kept(self) -> int:
        """Bytes that stay allocated, rounded up as TFLM does; those of tensors are not included."""
        sizes = (step.size for step in self.prepare if isinstance(step, PersistentAllocation))
        return sum(map(align_up, (*self.init, *sizes))) + (self.builtin[0] if self.builtin else 0)


def operator_allocations(op: Op, target: Target) -> OperatorAllocations:
    """What `op` allocates on `target`."""
    if not has_entry(op):
        return _guess(op)
    if op.kind in custom_ops.REGISTERED:
        pointer = target.pointer
        return OperatorAllocations(
            None, custom_ops.init(op, pointer), custom_ops.prepare(op, pointer)
        )
    library = library_of(target)
    op_data, parameters = library.op_data_bytes(op, target), BUILTINS[op.kind].parameters
    return OperatorAllocations(
        parameters and (parameters.size_on(target), parameters.alignment_on(target)),
        (op_data,) if op_data else (),
        library.prepare_steps(op, target),
    )


def has_entry(op: Op) -> bool:
    """Whether the operator's allocations are known: TFLM registers it, and its parameters can be
    read."""
    return op.kind in OPERATORS and custom_ops.readable(op)


def lacks(kind: str, target: Target) -> bool:
    """Whether TFLM registers operators of this kind today, but not in the target's version."""
    return not has_operator(kind, target)


def _guess(op: Op) -> OperatorAllocations:
    """A generous guess: OpData of 512 bytes, a dozen words per channel, every tensor fetched
    twice."""
    tensors = [*op.operands(), *op.outputs]
    channels = max((t.shape[-1] for t in tensors if t.shape), default=0)
    return OperatorAllocations(
        (64, 8), (512,), (PersistentAllocation(12 * 4 * channels), *2 * tensors), known=False
    )
