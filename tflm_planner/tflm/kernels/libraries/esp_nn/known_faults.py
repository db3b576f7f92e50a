"""What ESP-NN computes wrongly, or where it writes beyond its scratch, planned or not.

Read in the sources of the releases; none was observed on a board here. The issues are those of
espressif/esp-nn:

    depthwise 3x3, 16 channels     only padding of (0, 0) and (1, 1) has a path that fits its
    or a multiple                  scratch; any other writes beyond it (issue 30)
    depthwise, 4 n results per     before 1.2.0 the margin that aligns int16 copies of filter and
    input channel                  image is used in elements, but requested in bytes
    3x3 windows with SAME, strided the S3 pads as many rows on both sides as before the first row:
                                   if a window reaches further below or to the right, it reads
                                   what follows in memory (issue 31)
    SOFTMAX, 3 dimensions or more  scratch is requested for the second dimension, and written for
                                   the last one
    grouped CONV_2D                esp-tflite-micro 99f49e1 asserts that there is one group; without
                                   assertions it takes the channels of the input to be those of the
                                   filter, so that no kernel knows of groups. Both were observed
                                   under emulation
    FULLY_CONNECTED of several     vectors are loaded from addresses rounded down to eight (issue
    rows                           34): the second row is wrong unless the length is a multiple

Planning changes none of these. Not in this list is FULLY_CONNECTED with a scale for each channel
(issue 22): every release here has kernels for it (since 1.1.1), but esp-tflite-micro did not call
them up to 1.3.3; 1.3.4 does. This module must not know plans.
"""

from __future__ import annotations

from tflm_planner.model.ir import Op
from tflm_planner.ops.window import window_of
from tflm_planner.support.units import align_up
from tflm_planner.tflm.kernels.libraries.esp_nn.releases import (
    FC_TAKES_ANY_ADDRESS,
    S3_COUNTS_ALIGNED_COPIES,
    S3_PADS_BY_NEED,
    WIDER_S16_MARGIN,
    Release,
    spell,
)
from tflm_planner.tflm.kernels.libraries.esp_nn.scratch import (
    ConvShape,
    copies_windows,
    geometry_of,
    softmax_width,
)
from tflm_planner.tflm.kernels.operands import dimension, element_type
from tflm_planner.tflm.target import Target

_GROUPS = (
    "esp-tflite-micro takes the input of a convolution to have as many channels as its filter: "
    "CONV_2D in groups ends a program that is built with assertions, which is ESP-IDF's default, "
    "and gives other sums without them, planned or not; make a convolution of each group"
)
_FC_LANES = 8
"""Number of values that FULLY_CONNECTED of the S3 loads at once: its 16-bit kernel, which is used
for every input that does not start at a multiple of 16."""
_ELSEWHERE = "planned or not; another padding, a later release, or CONFIG_NN_ANSI_C is right"


def fault_of(op: Op, target: Target, release: Release) -> str | None:
    """Why ESP-NN computes `op` wrongly on the target, and what to do; None if it is right as far as
    is known."""
    if element_type(op) != "int8" or element_type(op, 1) == "int4":
        return None
    if (width := softmax_width(op)) is not None:
        return _softmax_fault(op, width, release)
    if op.kind == "FULLY_CONNECTED" and target.extension == "pie-s3":
        mended = release >= FC_TAKES_ANY_ADDRESS
        return None if mended else _fully_connected_fault(op, release)
    geometry, window = geometry_of(op), window_of(op)
    if geometry is None or window is None or not window.undilated:
        return None
    if not geometry.depthwise and window.groups > 1:
        return _GROUPS
    if target.extension != "pie-s3":
        return None
    if geometry.depthwise:
        return _depthwise_fault(geometry, release)
    return _convolution_fault(geometry, release)


def groups_fault_of(op: Op) -> str | None:
    """Why `op`, a grouped convolution, is wrong in every release; None for other operators, and for
    those that the reference kernel computes."""
    geometry, window = geometry_of(op), window_of(op)
    if geometry is None or geometry.depthwise or window is None:
        return None
    if window.groups == 1 or not window.undilated:
        return None
    by_reference = element_type(op) != "int8" or element_type(op, 1) == "int4"
    return None if by_reference else _GROUPS


def _softmax_fault(op: Op, width: int, release: Release) -> str | None:
    data = op.operands()[0]
    if op.outputs[0].type_name != "int8" or dimension(data, -1) <= width:
        return None
    return (
        f"ESP-NN {spell(release)} asks for scratch by the second dimension and writes it by the "
        "last one, which is larger: it overwrites what lies behind; reshape it to two dimensions"
    )


def _fully_connected_fault(op: Op, release: Release) -> str | None:
    """Rows shorter than a vector are summed element by element. Longer ones are read from an
    address rounded down to a multiple of eight, or from the vector before it."""
    weights, result = op.inputs[1], op.outputs[0]
    length = 0 if weights is None else dimension(weights, -1)
    is_one_row = result.elements == dimension(result, -1)
    if is_one_row or length < _FC_LANES or length % _FC_LANES == 0:
        return None
    return (
        f"ESP-NN {spell(release)} sums rows that do not start at a multiple of {_FC_LANES} bytes "
        "wrong on the ESP32-S3 (esp-nn issue 34, mended in 1.2.6), planned or not; make their "
        f"length a multiple of {_FC_LANES}"
    )


def _depthwise_fault(g: ConvShape, release: Release) -> str | None:
    beyond = _beyond_s16_scratch(g) if release < WIDER_S16_MARGIN else 0
    if beyond > 0:
        return (
            f"ESP-NN {spell(release)} writes {beyond} bytes beyond the scratch that it asks for "
            f"where a depthwise convolution has {g.multiplier} results for an input channel, "
            "planned or not; 1.2.0 and later, or CONFIG_NN_ANSI_C, are right"
        )
    narrow = g.multiplier == 1 and g.depth % 16 == 0 and g.kernel == (3, 3)
    if not narrow or g.pad in ((0, 0), (1, 1)):
        return None
    return (
        f"ESP-NN {spell(release)} writes beyond the scratch that it asks for where a 3x3 "
        f"depthwise convolution is padded on one axis only (esp-nn issue 30), {_ELSEWHERE}"
    )


def _beyond_s16_scratch(g: ConvShape) -> int:
    """Number of bytes beyond its scratch that a depthwise convolution writes before 1.2.0: it
    aligns copies by up to 16 elements of two bytes, but requests 16 bytes. A buffer's size is
    rounded up."""
    if g.multiplier % 4:
        return 0
    filters = g.taps * g.depth * g.multiplier
    copies = 2 * (filters + g.pixels * g.depth)
    return copies + 2 * (16 - filters % 16) - align_up(copies + 16)


def _convolution_fault(g: ConvShape, release: Release) -> str | None:
    """The general kernel pads as many rows on both sides as before the first row, whatever the
    windows need; without any before it, it pads below and at the right from 1.2.1 on."""
    pads_end = release >= S3_COUNTS_ALIGNED_COPIES
    if g.pointwise or (pads_end and (copies_windows(g) or not any(g.pad))):
        return None
    has_more = [end > pad for end, pad in zip(g.trailing, g.pad, strict=True)]
    if release >= S3_PADS_BY_NEED or not any(has_more):
        return None
    return (
        f"ESP-NN {spell(release)} pads as much below and at the right as above and at the left, "
        "where this one needs more: its last row or column is wrong (esp-nn issue 31), "
        f"{_ELSEWHERE}"
    )
