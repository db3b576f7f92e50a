"""The order in which ESP-NN's kernels read and write, as far as their sources leave no doubt.

    generic C    element by element, like the reference kernels: sums of a window, then one store
                 (depthwise: four windows, then four stores)
    S3           convolutions likewise, or reading more before each store; those depthwise ones
                 that first copy the whole input, or the rows for the next stores, into scratch.
                 Others (3x3 without padding, pools) go group by group of channels; their order
                 was not examined
    P4           none

A kernel that reads a window earlier than the reference does, and stores in the same order, is safe
wherever the reference is; so one order describes all kernels that are known. Other types, dilated
windows and operators that ESP-NN does not replace use the reference kernels on every chip. Read
from espressif/esp-nn and from esp-tflite-micro 99f49e1, kernels/esp_nn. This module must not know
how far a result may lie from its operand (`contracts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflm_planner.model.ir import Op
from tflm_planner.ops.roles import ROWS_BY_MATRIX
from tflm_planner.ops.window import CONVOLUTIONS, Window
from tflm_planner.tflm.kernels.access_order import ELEMENTWISE, AccessOrder
from tflm_planner.tflm.kernels.base import KernelBuild
from tflm_planner.tflm.kernels.data_movement import BETWEEN_TYPES, ELEMENT_BY_ELEMENT
from tflm_planner.tflm.kernels.libraries.esp_nn.releases import (
    ODD_DEPTHS_UNCOPIED,
    S3_COUNTS_ALIGNED_COPIES,
    Release,
)
from tflm_planner.tflm.kernels.libraries.esp_nn.scratch import ConvShape, geometry_of
from tflm_planner.tflm.kernels.libraries.reference import REFERENCE
from tflm_planner.tflm.kernels.movement import Movement
from tflm_planner.tflm.kernels.operands import element_type
from tflm_planner.tflm.target import Extension

_UNREAD = ELEMENT_BY_ELEMENT - BETWEEN_TYPES | {ROWS_BY_MATRIX}
"""Kinds that some release computes with vectors in an order that was not examined."""


@dataclass(frozen=True, slots=True)
class EspNnBuild(KernelBuild):
    """A release of ESP-NN on a chip with vector instructions."""

    extension: Extension
    release: Release

    def access_orders(self, op: Op, window: Window) -> tuple[AccessOrder, ...] | None:
        """The order of the reference kernel if that runs, or another that reads no later; otherwise
        None."""
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

    def movements_of(self, op: Op) -> Sequence[Movement]:
        """PAD, GATHER, CONCATENATION, resized images and the like are the reference kernels' on
        every chip. The vectors of ADD, MUL and FULLY_CONNECTED were not examined, nor those of what
        later releases add."""
        return () if op.kind in _UNREAD else REFERENCE.movements_of(op)


def _convolution_reads_no_later(g: ConvShape, release: Release) -> bool:
    """Whether a kernel reads no later than the reference, and stores in its order or later.

    The general kernel computes channel after channel of a pixel, from vectors of the whole window;
    it stores one byte at a time, and elements of a vector beyond a row are multiplied by zero
    weights. 1x1: eight pixels are read before the first of their results is stored, the rest one by
    one. Only the fallback for other depths (1.2.3) reads, after a store, channels that do not fill
    a vector; before that release, the input was copied so that it fills vectors.
    """
    return not g.pointwise or g.depth % 8 == 0 or release < ODD_DEPTHS_UNCOPIED


def _depthwise_reads_ahead(g: ConvShape, release: Release) -> bool:
    """Whether the whole input, or the rows for one row of the result, is copied to scratch before
    any store."""
    is_early = release < S3_COUNTS_ALIGNED_COPIES
    if g.multiplier != 1 or (g.depth % 8 and g.depth <= 3):
        return g.multiplier % 4 == 0 or not is_early  # int16 copies, or the generic C kernel
    if g.depth % 8 or g.kernel != (3, 3):
        return not is_early
    if g.depth % 16 == 0 and g.pad == (0, 0):
        return any(g.beyond)
    return True
