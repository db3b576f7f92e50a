"""What an operator's Prepare does with memory, step by step.

    fetch a tensor         TfLiteTensor, quantisation, zero points: temporary, upward from the head
    TempBuffer             a buffer, temporary as well
    PersistentAllocation   downward from the tail

TFLM compares a fetch with the tail, but a persistent allocation only with the head: it may
overwrite what was fetched before. That is harmless if those bytes are not read again, and fails
otherwise:

    | TfLiteTensor           | TfLiteAffineQuantization  | zero points |
    | ...  dims | bytes type | scale  zero_point*  | axis| n  z0 z1 .. |
    `-- read when freed -----'-- read when freed --'                      of the last fetched

This module must not know addresses, nor any operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tflm_planner.model.ir import Tensor

Keeps = Literal["dims", "struct", "axis", "all"]
"""Which part of the last fetched tensor is still used after memory was allocated. For a quantised
tensor: its pointers up to `zero_point`, with "axis" also the axis. For any other: its TfLiteTensor
up to `dims` ("dims") or the whole of it ("struct"). "all": everything, including zero points."""


@dataclass(frozen=True, slots=True)
class PersistentAllocation:
    """An allocation of persistent memory: its bytes, and the fetches that it must not overwrite.

    used: number of the fetches so far that are still in use; all of them if None.
    """

    size: int
    keeps: Keeps = "all"
    used: int | None = None


@dataclass(frozen=True, slots=True)
class TempBuffer:
    """A temporary buffer (AllocateTempBuffer) of `size` bytes, aligned to 16, which is in use until
    Prepare ends. Counts as a fetch."""

    size: int


PrepareStep = PersistentAllocation | TempBuffer | Tensor
"""One step of an operator's Prepare. A tensor means that Prepare fetches this tensor."""


def scale_count_of(tensor: Tensor) -> int:
    """Number of scales that TFLM reads: 0 unless there are both scales and zero points."""
    quantization = tensor.quantization
    return len(quantization.scales) if quantization.zero_points else 0
