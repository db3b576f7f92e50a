"""What every operator that TFLM registers costs in the arena besides its tensors.

    parse    builtin parameters      packed at their own alignment
    Init     OpData                  rounded up to 16
    Prepare  further persistent      rounded up to 16
             TfLiteTensor structs    temporary, on top of the head

The order of allocations was read from the Init and Prepare functions of tflite-micro 90b983c,
tensorflow/lite/micro/kernels. This module must not know addresses.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflm_planner.ir import Op
from tflm_planner.tflm import custom_ops
from tflm_planner.tflm.fetches import steps
from tflm_planner.tflm.history import has_operator
from tflm_planner.tflm.opdata import BUILTINS, builtin, opdata
from tflm_planner.tflm.prepare import Piece, Step
from tflm_planner.tflm.targets import Target
from tflm_planner.units import align_up

KNOWN = BUILTINS | custom_ops.REGISTERED
"""Every operator with an entry."""


@dataclass(frozen=True, slots=True)
class Cost:
    """One operator's allocations, in order.

    builtin: size and alignment of the builtin parameters, None without. init: bytes of each
    allocation of Init. prepare: the steps of Prepare; a tensor that is fetched twice is there
    twice. known: False for an operator without an entry, or whose parameters cannot be read; its
    figures are then an upper bound of what usual operators need.
    """

    builtin: tuple[int, int] | None
    init: tuple[int, ...]
    prepare: tuple[Step, ...]
    known: bool = True

    @property
    def kept(self) -> int:
        """Bytes that stay, rounded up as TFLM does; without the tensors' own."""
        pieces = (step.size for step in self.prepare if isinstance(step, Piece))
        return sum(map(align_up, (*self.init, *pieces))) + (self.builtin[0] if self.builtin else 0)


def cost(op: Op, target: Target) -> Cost:
    """What `op` allocates on `target`."""
    if op.kind not in KNOWN or not custom_ops.readable(op):
        return _unknown(op)
    if op.kind in custom_ops.REGISTERED:
        pointer = target.pointer
        return Cost(None, custom_ops.init(op, pointer), custom_ops.prepare(op, pointer))
    data = opdata(op, target)
    return Cost(builtin(op, target), (data,) if data else (), steps(op, target))


def lacks(kind: str, target: Target) -> bool:
    """Whether TFLM registers operators of a kind today, but not in the target's version."""
    return not has_operator(kind, target)


def _unknown(op: Op) -> Cost:
    """A generous guess: OpData of 512 bytes, a dozen words a channel, every tensor fetched
    twice."""
    tensors = [*op.operands(), *op.outputs]
    channels = max((t.shape[-1] for t in tensors if t.shape), default=0)
    return Cost((64, 8), (512,), (Piece(12 * 4 * channels), *2 * tensors), known=False)
