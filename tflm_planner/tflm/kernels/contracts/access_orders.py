"""In which order each library's kernels read and write: the facts behind the contracts.

Read from tensorflow/tflite-micro 90b983c (reference kernels, and which CMSIS-NN function it
calls), ARM-software/CMSIS-NN 99f736a and the Arduino library of 2023 (CMSIS-NN of August 2022).
All loops over output pixels run in raster order; an `Order` says what happens between two
writes. The closed bounds (`rules`) and the replay (`replay`) both start here.

    for unit (batch, or output row):             restart
      for pass over output channels:             passes   (None: one pass)
        for group of output pixels:              pixels
          [read the group's whole window]        chunk None: all reads before all writes
          for chunk of output channels:          chunk
            read the window; write the chunk
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.ops.window import Window


class KernelBuild(Enum):
    """A kernel library in one of its builds; they order reads and writes differently.

    CMSIS_NN is the build for cores with the DSP extension (M4, M7, M33), CMSIS_NN_PLAIN that for
    cores without (M0, M3), CMSIS_NN_MVE that for Helium (M55, M85); CMSIS_NN_2022 is what the
    Arduino library of 2023 holds. UNKNOWN stands for every library nobody has read.
    """

    REFERENCE = "reference"
    CMSIS_NN = "cmsis-nn"
    CMSIS_NN_PLAIN = "cmsis-nn-plain"
    CMSIS_NN_MVE = "cmsis-nn-mve"
    CMSIS_NN_2022 = "cmsis-nn-2022"
    UNKNOWN = "unknown"


STUDIED = tuple(library for library in KernelBuild if library is not KernelBuild.UNKNOWN)
"""The libraries whose kernels were read; a plan for any target keeps the contracts of all."""


class Restart(Enum):
    """Where the grouping of output pixels starts anew."""

    NEVER = 0
    BATCH = 1
    ROW = 2


@dataclass(frozen=True, slots=True)
class AccessOrder:
    """How a kernel interleaves reads and writes; see the loops at the head of this module.

    kernel: its name, for messages. pixels: output pixels computed together. chunk: output
    channels written together after their inputs were read; None when the window of the whole
    group is read first. passes: output channels of a pass, where passes are the outer loop.
    tail_chunk: chunk of pixels left over by groups of four, which MVE computes one by one.
    loose_tail: channels that are left over by chunks are computed one by one.
    edges: pixels at the left and right edge of a row are computed apart (the MVE 1 x n kernel).
    accumulates: the first pixel of the window is copied to the output, and the rest of the
    window is read only after that.
    """

    kernel: str
    pixels: int = 1
    chunk: int | None = 1
    passes: int | None = None
    restart: Restart = Restart.BATCH
    tail_chunk: int | None = None
    loose_tail: bool = False
    edges: bool = False
    accumulates: bool = False


ELEMENTWISE = AccessOrder("reference kernel")
"""The reference kernels: per output element the whole window is read, then it is written. Finer
than any other pixel by pixel order, so safe for those too."""

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
_ROW_MVE = replace(_MATRIX_MVE, kernel="arm_convolve_1_x_n_s8 (MVE)", edges=True)
_DEPTHWISE_3X3 = AccessOrder("arm_depthwise_conv_3x3_s8", chunk=4, loose_tail=True)
_DEPTHWISE_4 = AccessOrder("arm_depthwise_conv_s8, multiplier of 4", chunk=4)
_DEPTHWISE_PIXEL = AccessOrder("arm_depthwise_conv_opt", chunk=None)
_DEPTHWISE_MVE = AccessOrder("arm_depthwise_conv_opt (MVE)", pixels=4, chunk=None, passes=124)
_MAX_POOL = AccessOrder("arm_max_pool", chunk=None, accumulates=True)
_AVERAGE_PIXEL = AccessOrder("arm_avgpool", chunk=None)
_AVERAGE_MVE = AccessOrder("arm_avgpool (MVE)", chunk=16)


def access_orders(op: Op, window: Window, library: KernelBuild) -> tuple[AccessOrder, ...] | None:
    """The orders that the kernel of `op` in `library` may follow (more than one where the
    compiler decides); None when its order is unknown or not of this kind."""
    if library is KernelBuild.UNKNOWN:
        return None
    if library is KernelBuild.REFERENCE or window.element == 4:  # float: reference in all libraries
        return (ELEMENTWISE,)
    if library is KernelBuild.CMSIS_NN_2022 and window.element != 1:
        return None
    if op.kind == "CONV_2D":
        return _convolution(window, library, _bits(op.inputs[1], library))
    if op.kind == "DEPTHWISE_CONV_2D":
        return _depthwise(window, library, _bits(op.inputs[1], library))
    return (_pool(op, window, library),)


def _bits(features: Tensor | None, library: KernelBuild) -> int:
    """Bits of a weight as the kernel sees it; the library of 2022 unpacks int4 first."""
    packed = features is not None and features.type_name == "int4"
    return 4 if packed and library is not KernelBuild.CMSIS_NN_2022 else 8


def _convolution(window: Window, library: KernelBuild, bits: int) -> tuple[AccessOrder, ...] | None:
    """arm_convolve_wrapper_s8, _s4 and _s16."""
    mve = library is KernelBuild.CMSIS_NN_MVE
    columns = _COLUMNS_4 if mve else _COLUMNS_2
    if window.groups > 1:
        return _grouped(window, library, bits, columns)
    if window.element == 2:
        return (columns,)
    plain = window.dilation == (1, 1)
    if window.kernel == (1, 1) and plain and window.pad == (0, 0):
        return _pointwise(window, library) if bits == 8 else None
    flat = window.input[0] == 1 and window.kernel[0] == 1 and window.dilation[1] == 1
    if mve and flat and window.stride[1] * window.channels[0] % 4 == 0:
        return _one_by_n(window, columns) if bits == 8 else None
    return (columns,)


def _one_by_n(window: Window, columns: AccessOrder) -> tuple[AccessOrder, ...]:
    """arm_convolve_1_x_n_s8 with MVE, which leaves narrow rows to arm_convolve_s8."""
    return (columns if sum(edge_pixels(window)) > window.output[1] else _ROW_MVE,)


def edge_pixels(window: Window) -> tuple[int, int]:
    """How many output pixels the MVE 1 x n kernel computes apart at the left and the right."""
    pad, stride = window.pad[1], window.stride[1]
    total = (window.output[1] - 1) * stride + window.kernel[1] - window.input[1]
    return -(-pad // stride), -(-(pad + total % 2) // stride)


def _grouped(
    window: Window, library: KernelBuild, bits: int, columns: AccessOrder
) -> tuple[AccessOrder, ...] | None:
    """arm_convolve_s8 runs group after group; the int16, int4 and old kernels know no groups."""
    if window.element != 1 or bits != 8 or library is KernelBuild.CMSIS_NN_2022:
        return None
    return (replace(columns, passes=window.channels[1] // window.groups),)


def _pointwise(window: Window, library: KernelBuild) -> tuple[AccessOrder, ...]:
    """1x1: matrix products straight from the input, which non-MVE code reads once for every
    pair of output channels."""
    stepping = window.stride != (1, 1)
    if library is KernelBuild.CMSIS_NN_MVE:
        return (_MATRIX_ROWS_MVE if stepping else _MATRIX_MVE,)
    if library is KernelBuild.CMSIS_NN_2022 and stepping:
        return (_COLUMNS_2,)
    return (_MATRIX_ROWS if stepping else _MATRIX,)


def _depthwise(window: Window, library: KernelBuild, bits: int) -> tuple[AccessOrder, ...] | None:
    """arm_depthwise_conv_wrapper_s8 and _s4; TFLM calls arm_depthwise_conv_s16 itself."""
    if window.element == 2:
        return (ELEMENTWISE,)
    mve = library is KernelBuild.CMSIS_NN_MVE
    simple = window.dilation == (1, 1) and window.batch == 1
    multiplier = window.channels[1] // window.channels[0]
    if multiplier == 1 and simple:
        small = window.kernel == (3, 3) and max(window.pad) <= 1
        if mve:
            found = _DEPTHWISE_MVE
        elif small and bits == 8:
            found = _DEPTHWISE_3X3
        elif library is KernelBuild.CMSIS_NN_PLAIN and bits == 8:
            found = ELEMENTWISE
        else:
            found = _DEPTHWISE_PIXEL
    else:
        found = _DEPTHWISE_4 if multiplier % 4 == 0 and simple and bits == 8 else ELEMENTWISE
    if mve and bits == 8 and window.channels[0] == 1 and window.channels[1] > 1:
        # One input channel: MVE turns it into a convolution, from a number of output channels
        # on that depends on the compiler.
        as_convolution = _convolution(replace(window, groups=1), library, bits)
        return None if as_convolution is None else (found, *as_convolution)
    return (found,)


def _pool(op: Op, window: Window, library: KernelBuild) -> AccessOrder:
    if op.kind == "MAX_POOL_2D":
        return _MAX_POOL
    if library is KernelBuild.CMSIS_NN_MVE:
        return replace(_AVERAGE_MVE, chunk=16 // window.element)
    return ELEMENTWISE if library is KernelBuild.CMSIS_NN_PLAIN else _AVERAGE_PIXEL
