"""TFLM's reference kernels: the answer to every question that another library leaves open."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.ops.roles import ROWS_BY_MATRIX
from tflm_planner.ops.window import Window
from tflm_planner.tflm.kernels import custom_ops
from tflm_planner.tflm.kernels.access_order import ELEMENTWISE, AccessOrder
from tflm_planner.tflm.kernels.base import KernelBuild, KernelLibrary
from tflm_planner.tflm.kernels.data_movement import movements_of
from tflm_planner.tflm.kernels.libraries.reference.operators import OPERATORS
from tflm_planner.tflm.kernels.movement import Movement
from tflm_planner.tflm.kernels.operator_memory import OperatorMemory
from tflm_planner.tflm.kernels.prepare import Keeps
from tflm_planner.tflm.kernels.row_movements import READ_AGAIN, row_movement
from tflm_planner.tflm.target import Target
from tflm_planner.tflm.versions import Behaviour


@dataclass(frozen=True, slots=True)
class ReferenceBuild(KernelBuild):
    """The reference kernels are the same on every core."""

    def access_orders(self, op: Op, window: Window) -> tuple[AccessOrder, ...] | None:
        """Element by element, for every operator."""
        return (ELEMENTWISE,)

    def movements_of(self, op: Op) -> Sequence[Movement]:
        """PAD goes element by element, all else as `data_movement` and `row_movements` draw it."""
        if op.kind in READ_AGAIN:
            movement = row_movement(op)
            return () if movement is None else (movement,)
        return movements_of(op, pads_by_rows=False)


REFERENCE = ReferenceBuild("reference")
_NOTHING = OperatorMemory()


class ReferenceKernels(KernelLibrary):
    """TFLM's own kernels."""

    name = "reference"
    channel_scales: ClassVar[Mapping[str, Behaviour]] = {
        "int8": "scales_of_channels_int8", "int16": "scales_of_channels_int16",
    }  # fmt: skip

    narrow_biases: ClassVar[Mapping[str, Behaviour | None]] = {
        "CONV_2D": None, ROWS_BY_MATRIX: "int32_bias_of_rows",
    }  # fmt: skip

    def memory_of(self, kind: str, target: Target) -> OperatorMemory:
        """What an operator of a kind takes in the arena. Other libraries fall back on this for
        kinds that they do not serve."""
        return OPERATORS.get(kind, _NOTHING)

    def op_data_bytes(self, op: Op, target: Target) -> int:
        """Depends on operator, pointer width and whether the kernels can decompress."""
        return self.memory_of(op.kind, target).op_data_bytes(target)

    def op_data_key(self, op: Op, target: Target) -> Hashable | None:
        """Empty: OpData contains quantisation only."""
        return ()

    def persistent_allocations(self, op: Op, target: Target) -> list[int]:
        """Multipliers, tables, copies of shapes."""
        return self.memory_of(op.kind, target).persistent_allocations(op, target)

    def temp_tensors(self, op: Op, target: Target) -> list[Tensor]:
        """The same on every core."""
        return self.memory_of(op.kind, target).temp_tensors(op)

    def kept_after_last_fetch(self, op: Op) -> Keeps | None:
        """From a table by kind of operator."""
        return OPERATORS.get(op.kind, _NOTHING).keeps

    def scratch_requests(self, op: Op, target: Target) -> tuple[int, ...]:
        """The same on every core, except for the width of pointers."""
        memory = self.memory_of(op.kind, target)
        return memory.scratch_requests(op, target) or custom_ops.scratch_requests(
            op, target.pointer
        )

    def builds(self, target: Target) -> tuple[KernelBuild, ...]:
        """The one build of the reference kernels."""
        return (REFERENCE,)

    def all_builds(self) -> tuple[KernelBuild, ...]:
        """The one build of the reference kernels, whatever the target."""
        return (REFERENCE,)

    def variants(self, target: Target) -> tuple[Target, ...]:
        """The target alone."""
        return (target,)

    def fault_of(self, op: Op, target: Target) -> str | None:
        """No fault is known."""
        return None

    def computes_single_row(self, op: Op, width: int, out: int, pad: int) -> bool:
        """True: they compute an image of one row correctly at every width."""
        return True

    def latency_profiles(self, target: Target) -> tuple[str, ...]:
        """The profile that was measured on a Cortex-M4."""
        return ("m4-ref",)


LIBRARIES = (ReferenceKernels(),)
