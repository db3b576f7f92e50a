"""The order in which CMSIS-NN's kernels read and write, build by build.

Read from tensorflow/tflite-micro 90b983c (which CMSIS-NN function it calls), ARM-software/CMSIS-NN
99f736a and the Arduino library of 2023 (CMSIS-NN of August 2022). This module must not know how
far a result may lie from its operand (`contracts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tflm_planner.model.ir import Op
from tflm_planner.ops.roles import ROWS_BY_MATRIX
from tflm_planner.ops.window import Window
from tflm_planner.tflm.kernels.access_order import ELEMENTWISE, AccessOrder, Restart
from tflm_planner.tflm.kernels.base import KernelBuild
from tflm_planner.tflm.kernels.data_movement import movements_of
from tflm_planner.tflm.kernels.libraries.cmsis_nn.faulty_sums import fault_of_transposed
from tflm_planner.tflm.kernels.libraries.reference import REFERENCE
from tflm_planner.tflm.kernels.libraries.reference.persistent_allocations import runs_as_convolution
from tflm_planner.tflm.kernels.movement import Movement
from tflm_planner.tflm.kernels.operands import element_type
from tflm_planner.tflm.kernels.row_movements import READ_AGAIN, transposed_by_rows

_COLUMNS_2 = AccessOrder("arm_convolve", pixels=2, chunk=None)
_COLUMNS_4 = AccessOrder("arm_convolve (MVE)", pixels=4, chunk=None)
_MATRIX = AccessOrder(
    "arm_convolve_1x1_s8_fast", pixels=2, chunk=None, passes=2, restart=Restart.NEVER
)
_MATRIX_ROWS = replace(_MATRIX, kernel="arm_convolve_1x1_s8", restart=Restart.ROW)
_MATRIX_MVE = AccessOrder(
    "arm_convolve_1x1_s8_fast (MVE)", pixels=4, tail_chunk=4, restart=Restart.NEVER
)
_MATRIX_ROWS_MVE = replace(_MATRIX_MVE, kernel="arm_convolve_1x1_s8 (MVE)", restart=Restart.ROW)
_ROW_MVE = replace(_MATRIX_MVE, kernel="arm_convolve_1_x_n_s8 (MVE)")
_DEPTHWISE_3X3 = AccessOrder("arm_depthwise_conv_3x3_s8", chunk=4, loose_tail=True)
_DEPTHWISE_4 = AccessOrder("arm_depthwise_conv_s8, multiplier of 4", chunk=4)
_DEPTHWISE_PIXEL = AccessOrder("arm_depthwise_conv_opt", chunk=None)
_DEPTHWISE_MVE = AccessOrder("arm_depthwise_conv_opt (MVE)", pixels=4, chunk=None, passes=124)
_MAX_POOL = AccessOrder("arm_max_pool", chunk=None, accumulates=True)
_AVERAGE_PIXEL = AccessOrder("arm_avgpool", chunk=None)
_AVERAGE_MVE = AccessOrder("arm_avgpool (MVE)", chunk=16)


@dataclass(frozen=True, slots=True)
class CmsisNnBuild(KernelBuild):
    """One of the builds below; they read and write in different orders."""

    def access_orders(self, op: Op, window: Window) -> tuple[AccessOrder, ...] | None:
        """The orders of the function that TFLM calls; builds after 2022 read packed int4."""
        if window.element == 4:  # float: the reference kernel
            return (ELEMENTWISE,)
        if self == BUILD_2022 and window.element != 1:
            return None
        if op.kind == "CONV_2D":
            return _convolution(window, self, self._weight_bits(op))
        if op.kind == "DEPTHWISE_CONV_2D":
            return _depthwise(window, self, self._weight_bits(op))
        return (_pool(op, window, self),)

    def movements_of(self, op: Op) -> Sequence[Movement]:
        """int8 PAD is copied by rows (arm_pad_s8), all else as by the reference kernels: ADD and
        MUL (arm_elementwise_add_s8 and their like) read up to four elements before they write
        them."""
        if op.kind == "TRANSPOSE_CONV":
            by_rows = None if fault_of_transposed(op) else transposed_by_rows(op)
            return () if by_rows is None else (by_rows,)
        if op.kind == ROWS_BY_MATRIX and not self._multiplies_row_by_row(op):
            return ()
        if op.kind in READ_AGAIN:
            return REFERENCE.movements_of(op)
        return movements_of(op, pads_by_rows=element_type(op) == "int8")

    def _multiplies_row_by_row(self, op: Op) -> bool:
        """Whether FULLY_CONNECTED computes all results of a row (arm_nn_vec_mat_mult_t_s8: groups
        of results, each from the whole row) before it reads the next one."""
        if element_type(op) == "int8":
            return self == BUILD_2022 or not runs_as_convolution(op)
        return element_type(op) == "float32"  # the reference kernel

    def _weight_bits(self, op: Op) -> int:
        """Bits of a weight as the kernel sees it; the library of 2022 unpacks int4 first."""
        packed = element_type(op, 1) == "int4"
        return 4 if packed and self != BUILD_2022 else 8


PLAIN = CmsisNnBuild("cmsis-nn-plain")
"""For cores without vector instructions (Cortex-M0, M3)."""
DSP = CmsisNnBuild("cmsis-nn")
"""For cores with the DSP extension (Cortex-M4, M7, M33)."""
MVE = CmsisNnBuild("cmsis-nn-mve")
"""For Helium (Cortex-M55, M85)."""
BUILD_2022 = CmsisNnBuild("cmsis-nn-2022")
"""The kernels of the Arduino library of 2023, for cores with the DSP extension."""


def _convolution(window: Window, build: CmsisNnBuild, bits: int) -> tuple[AccessOrder, ...] | None:
    """arm_convolve_wrapper_s8, _s4 and _s16."""
    mve = build == MVE
    columns = _COLUMNS_4 if mve else _COLUMNS_2
    if window.groups > 1:
        return _grouped_orders(window, build, bits, columns)
    if window.element == 2:
        return (columns,)
    plain = window.dilation == (1, 1)
    if window.kernel == (1, 1) and plain and window.pad == (0, 0):
        return _pointwise(window, build) if bits == 8 else None
    flat = window.input[0] == 1 and window.kernel[0] == 1 and window.dilation[1] == 1
    if mve and flat and window.stride[1] * window.channels[0] % 4 == 0:
        return _one_by_n(window, columns) if bits == 8 else None
    return (columns,)


def _one_by_n(window: Window, columns: AccessOrder) -> tuple[AccessOrder, ...]:
    """arm_convolve_1_x_n_s8 with MVE, which passes narrow rows on to arm_convolve_s8."""
    edges = _edge_pixels(window)
    return (columns if sum(edges) > window.output[1] else replace(_ROW_MVE, edges=edges),)


def _edge_pixels(window: Window) -> tuple[int, int]:
    """Number of output pixels that the MVE 1 x n kernel computes separately at the left and at the
    right."""
    pad, stride = window.pad[1], window.stride[1]
    total = (window.output[1] - 1) * stride + window.kernel[1] - window.input[1]
    return -(-pad // stride), -(-(pad + total % 2) // stride)


def _grouped_orders(
    window: Window, build: CmsisNnBuild, bits: int, columns: AccessOrder
) -> tuple[AccessOrder, ...] | None:
    """arm_convolve_s8 runs group after group; the int16, int4 and 2022 kernels support no
    groups."""
    if window.element != 1 or bits != 8 or build == BUILD_2022:
        return None
    return (replace(columns, passes=window.channels[1] // window.groups),)


def _pointwise(window: Window, build: CmsisNnBuild) -> tuple[AccessOrder, ...]:
    """1x1: matrix products directly from the input, which non-MVE code reads once for every pair of
    output channels."""
    stepping = window.stride != (1, 1)
    if build == MVE:
        return (_MATRIX_ROWS_MVE if stepping else _MATRIX_MVE,)
    if build == BUILD_2022 and stepping:
        return (_COLUMNS_2,)
    return (_MATRIX_ROWS if stepping else _MATRIX,)


def _depthwise(window: Window, build: CmsisNnBuild, bits: int) -> tuple[AccessOrder, ...] | None:
    """arm_depthwise_conv_wrapper_s8 and _s4; TFLM calls arm_depthwise_conv_s16 itself."""
    if window.element == 2:
        return (ELEMENTWISE,)
    mve = build == MVE
    simple = window.dilation == (1, 1) and window.batch == 1
    multiplier = window.channels[1] // window.channels[0]
    if multiplier == 1 and simple:
        small = window.kernel == (3, 3) and max(window.pad) <= 1
        if mve:
            orders = _DEPTHWISE_MVE
        elif small and bits == 8:
            orders = _DEPTHWISE_3X3
        elif build == PLAIN and bits == 8:
            orders = ELEMENTWISE
        else:
            orders = _DEPTHWISE_PIXEL
    else:
        orders = _DEPTHWISE_4 if multiplier % 4 == 0 and simple and bits == 8 else ELEMENTWISE
    if mve and bits == 8 and window.channels[0] == 1 and window.channels[1] > 1:
        # One input channel: MVE runs it as a convolution if there are more output channels than
        # a limit that depends on the compiler.
        as_convolution = _convolution(replace(window, groups=1), build, bits)
        return None if as_convolution is None else (orders, *as_convolution)
    return (orders,)


def _pool(op: Op, window: Window, build: CmsisNnBuild) -> AccessOrder:
    if op.kind == "MAX_POOL_2D":
        return _MAX_POOL
    if build == MVE:
        return replace(_AVERAGE_MVE, chunk=16 // window.element)
    return ELEMENTWISE if build == PLAIN else _AVERAGE_PIXEL
