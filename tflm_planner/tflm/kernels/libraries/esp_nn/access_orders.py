"""In which order ESP-NN's kernels read and write, as far as their sources leave no doubt.

    generic C    element by element, as the reference kernels: sums of a window, then one store
                 (depthwise: four windows, then four stores)
    S3           convolutions likewise, or with more of what they read before they store; depthwise
                 ones that copy the whole input, or the rows of what is written next, into scratch
                 first. Others (3x3 without padding, pools) go group by group of channels, where
                 nothing was looked for
    P4           nothing

A kernel that reads a window earlier than the reference does, and stores in the same order, is safe
wherever the reference is; so all that is known is one order. Other types, dilated windows and
operators that ESP-NN does not replace go to the reference kernels on every chip. Read from
espressif/esp-nn and from esp-tflite-micro 99f49e1, kernels/esp_nn. This module must not know how
far a result may lie from its operand (`contracts`).
"""

from __future__ import annotations

from dataclasses import dataclass

from tflm_planner.model.ir import Op
from tflm_planner.ops.window import CONVOLUTIONS, Window
from tflm_planner.tflm.kernels.access_order import ELEMENTWISE, AccessOrder
from tflm_planner.tflm.kernels.base import KernelBuild
from tflm_planner.tflm.kernels.data_movement import Movement
from tflm_planner.tflm.kernels.libraries.esp_nn.releases import (
    ODD_DEPTHS_UNCOPIED,
    S3_COUNTS_ALIGNED_COPIES,
    Release,
)
from tflm_planner.tflm.kernels.libraries.esp_nn.scratch import ConvShape, geometry_of
from tflm_planner.tflm.kernels.libraries.reference import REFERENCE
from tflm_planner.tflm.kernels.operands import element_type
from tflm_planner.tflm.target import Extension


@dataclass(frozen=True, slots=True)
class EspNnBuild(KernelBuild):
    """A release of ESP-NN on a chip with vector instructions."""

    extension: Extension
    release: Release

    def access_orders(self, op: Op, window: Window) -> tuple[AccessOrder, ...] | None:
        """As the reference where its kernel runs, or one that reads no later; None elsewhere."""
        by_reference = window.element != 1 or element_type(op, 1) == "int4"
        if by_reference or (not window.undilated and op.kind in CONVOLUTIONS):
            return (ELEMENTWISE,)
        geometry = geometry_of(op)
        if self.extension != "pie-s3" or geometry is None:
            return None
        is_safe = _depthwise_reads_ahead if window.depthwise else _convolution_reads_no_later
        if not geometry.depthwise and window.groups > 1:
            return None
        return (ELEMENTWISE,) if is_safe(geometry, self.release) else None

    def movement_of(self, op: Op) -> Movement | None:
        """PAD, GATHER and the like are the reference kernels' on every chip."""
        return REFERENCE.movement_of(op)


def _convolution_reads_no_later(g: ConvShape, release: Release) -> bool:
    """Whether a kernel reads no later than the reference, and stores in its order or later.

    The general one computes channel after channel of a pixel, from vectors of the whole window; it
    stores a byte at a time, and what vectors hold beyond a row meets weights of zero. 1x1: eight
    pixels are read before the first of their results is stored, the rest go one by one. Only the
    fallback for other depths (1.2.3) reads channels that fill no vector after it has stored; before
    it, the input was copied to fill vectors.
    """
    return not g.pointwise or g.depth % 8 == 0 or release < ODD_DEPTHS_UNCOPIED


def _depthwise_reads_ahead(g: ConvShape, release: Release) -> bool:
    """Whether all of the input, or the rows of a row of the result, is in scratch before a
    store."""
    is_early = release < S3_COUNTS_ALIGNED_COPIES
    if g.multiplier != 1 or (g.depth % 8 and g.depth <= 3):
        return g.multiplier % 4 == 0 or not is_early  # as int16, or by the generic C kernel
    if g.depth % 8 or g.kernel != (3, 3):
        return not is_early
    if g.depth % 16 == 0 and g.pad == (0, 0):
        return any(g.beyond)
    return True
