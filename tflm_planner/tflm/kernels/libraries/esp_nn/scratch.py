"""Scratch of the ESP-NN kernels: what their *_scratch_size functions return.

    generic C   ESP32, S2, C3, C6, H2: nothing for convolutions
    S3          copies of the filter and of the padded input, so that vectors are aligned
    P4          as the S3 before 1.2.3, then by path: sums of the filter, one window, or tiles

Prepare passes only the padding above and at the left, and no dilation: the padding below and at the
right is computed again from the result's size. `benchmarks/esp_nn_sizes.py` compares the figures
with the library's own functions. This module must not know where scratch is placed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.model.options import VALID_PADDING
from tflm_planner.ops.window import CONVOLUTIONS, low_paddings
from tflm_planner.support.units import align_up
from tflm_planner.tflm.kernels.libraries.esp_nn.releases import (
    P4_HAS_OWN_PATHS,
    S3_COUNTS_ALIGNED_COPIES,
    S3_PADS_BY_NEED,
    WIDER_MARGIN,
    WIDER_S16_MARGIN,
    Release,
)
from tflm_planner.tflm.kernels.operands import dimension, element_type
from tflm_planner.tflm.target import Extension, Target

_LANES = 16
_PADDED_LIMIT = 40 * 1024
"""Largest padded input that a depthwise convolution of the S3 copies whole; larger ones are copied
in rows."""
_S16_LIMIT = 48 * 1024
"""The same limit for copies as int16."""
_P4_CACHE = 32768
"""Bytes of the P4's first-level cache that a tile may take."""
IntPair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ConvShape:
    """The parameters that Prepare passes to ESP-NN; pairs are (height, width). depth: input
    channels. channels: output channels. multiplier: output channels per input channel, for
    depthwise convolutions."""

    image: IntPair
    output: IntPair
    kernel: IntPair
    stride: IntPair
    pad: IntPair
    depth: int
    channels: int
    multiplier: int = 1
    depthwise: bool = False

    @property
    def pointwise(self) -> bool:
        """Whether it is 1x1 without padding and with stride 1."""
        return self.kernel == (1, 1) and self.pad == (0, 0) and self.stride == (1, 1)

    @property
    def pixels(self) -> int:
        """Number of pixels of the image."""
        return self.image[0] * self.image[1]

    @property
    def taps(self) -> int:
        """Number of pixels of the filter."""
        return self.kernel[0] * self.kernel[1]

    @property
    def beyond(self) -> IntPair:
        """The rows below and columns to the right of the image that ESP-NN assumes the windows to
        reach: often more than they do."""
        reach = [
            out * step + kernel - 1 - size
            for out, step, kernel, size in zip(
                self.output, self.stride, self.kernel, self.image, strict=True
            )
        ]
        return reach[0], reach[1]

    @property
    def trailing(self) -> IntPair:
        """The rows below and columns to the right of the image that the windows really reach."""
        reach = [
            (out - 1) * step + kernel - pad - size
            for out, step, kernel, pad, size in zip(
                self.output, self.stride, self.kernel, self.pad, self.image, strict=True
            )
        ]
        return max(reach[0], 0), max(reach[1], 0)

    def elements_with(self, margins: IntPair, channels: int) -> int:
        """Number of elements of the image with `margins` additional rows and columns."""
        return (self.image[0] + margins[0]) * (self.image[1] + margins[1]) * channels


def own_scratch_requests(op: Op, target: Target, release: Release) -> tuple[int, ...]:
    """Bytes of each request behind those of the reference kernel.

    The operator has operands and results, and its parameters can be read.
    """
    width = softmax_width(op)
    geometry = geometry_of(op) if width is None else None
    size = _softmax(op, width) if width is not None else _size(op, target, release, geometry)
    return (size,) if size else ()


def part_scratch_requests(
    op: Op, target: Target, release: Release, axis: int, size: int
) -> tuple[int, ...] | None:
    """`own_scratch_requests` for a part of a convolution with `size` elements of the result along
    an axis; None for other operators."""
    geometry = geometry_of(op)
    if geometry is None or element_type(op, 1) == "int4":
        return None
    return (_size(op, target, release, _part_of(geometry, axis, size)),)


def _size(op: Op, target: Target, release: Release, geometry: ConvShape | None) -> int:
    if geometry is None or element_type(op) != "int8":
        return 0
    size_of = _SIZES.get((target.extension, geometry.depthwise))
    return 0 if size_of is None else max(size_of(geometry, release), 0)


def _part_of(g: ConvShape, axis: int, size: int) -> ConvShape:
    """A convolution that computes only `size` channels, rows or columns, with the same padding."""
    if axis == 0:
        return g
    if axis == 3:
        depth = size // g.multiplier if g.depthwise and g.multiplier else g.depth
        return replace(g, channels=size, depth=depth)
    along = axis - 1
    image, output = list(g.image), list(g.output)
    image[along] = min(image[along], (size - 1) * g.stride[along] + g.kernel[along])
    output[along] = min(size, output[along])
    return replace(g, image=(image[0], image[1]), output=(output[0], output[1]))


def _softmax(op: Op, width: int) -> int:
    """Four bytes for each element along the second dimension, even if it is not the last one."""
    data, result = op.operands()[0], op.outputs[0]
    return 4 * width if data.type_name == result.type_name == "int8" else 0


def softmax_width(op: Op) -> int | None:
    """What Prepare of SOFTMAX takes for the length of a row; None for other operators.

    It is the second dimension. Of a tensor of one dimension Prepare reads what follows in the
    file; the tensor's length is assumed then.
    """
    if op.kind != "SOFTMAX":
        return None
    data = op.operands()[0]
    return dimension(data, 1 if len(data.shape or ()) > 1 else 0)


def geometry_of(op: Op) -> ConvShape | None:
    """The geometry of a convolution; None for other operators or other ranks."""
    if op.kind not in CONVOLUTIONS:
        return None
    data, weights, result, options = op.inputs[0], op.inputs[1], op.outputs[0], op.options
    shapes = [_shape_of_rank_4(t) for t in (data, weights, result)]
    if not all(map(any, shapes)) or weights is None:
        return None
    (_, *image, depth), (_, *kernel, _), (_, *output, channels) = shapes
    stride, is_valid = options.stride, options.padding == VALID_PADDING
    return ConvShape(
        (image[0], image[1]), (output[0], output[1]), (kernel[0], kernel[1]), stride,
        low_paddings(image, kernel, stride, options.dilation, is_valid),
        depth, channels, options.depth_multiplier, depthwise=op.kind == "DEPTHWISE_CONV_2D",
    )  # fmt: skip


def _shape_of_rank_4(tensor: Tensor | None) -> tuple[int, ...]:
    shape = () if tensor is None else tensor.shape or ()
    return tuple(shape) if len(shape) == 4 else (0, 0, 0, 0)


def s3_convolution(g: ConvShape, release: Release) -> int:
    """esp_nn_get_conv_scratch_size_esp32s3."""
    margin = 64 if release >= WIDER_MARGIN else 32
    if g.pointwise:
        return _pointwise(g) + margin
    if release >= S3_COUNTS_ALIGNED_COPIES and copies_windows(g):
        window = align_up(g.taps * g.depth, _LANES)
        return 4 * g.channels + _LANES + g.channels * window + _LANES + window + margin
    filters = g.taps * align_up(g.depth, _LANES) * g.channels + margin + 4 * g.channels
    if release < S3_COUNTS_ALIGNED_COPIES:
        return filters + _padded_input(g)
    filters += align_up(g.kernel[1] * g.depth, _LANES) * g.kernel[0] * g.channels
    if release >= S3_PADS_BY_NEED:
        margins = g.pad[0] + g.trailing[0], g.pad[1] + g.trailing[1]
        return filters + (g.elements_with(margins, g.depth) if any(margins) else 0)
    beyond = max(g.beyond[0], 0), max(g.beyond[1], 0)
    again = g.elements_with(beyond, g.depth) if any(beyond) else 0
    return filters + _padded_input(g) + again


def copies_windows(g: ConvShape) -> bool:
    """Whether a row of the window is shorter than a vector, but the whole window is not: the S3
    then copies window by window."""
    return g.kernel[1] * g.depth < _LANES <= g.taps * g.depth


def _pointwise(g: ConvShape) -> int:
    """A copy of the filter, one of the input if its channels do not fill vectors, and eight
    pixels."""
    depth = align_up(g.depth, 8)
    return (
        depth * g.channels
        + (g.pixels * depth if g.depth % 8 else 0)
        + (16 * depth if g.pixels >= 8 else 0)
    )


def _padded_input(g: ConvShape) -> int:
    """Elements of the input with its padding above and left added on both sides; 0 without
    padding."""
    return g.elements_with((2 * g.pad[0], 2 * g.pad[1]), g.depth) if any(g.pad) else 0


def s3_depthwise(g: ConvShape, release: Release) -> int:
    """esp_nn_get_depthwise_conv_scratch_size_esp32s3."""
    is_early = release < S3_COUNTS_ALIGNED_COPIES
    filters = g.taps * g.depth * g.multiplier
    margin = 32 if release >= WIDER_S16_MARGIN else 16
    as_s16 = 2 * (filters + g.pixels * g.depth) + margin
    if g.multiplier == 1 and g.depth % 8 == 0 and (g.kernel == (3, 3) or not is_early):
        if g.kernel != (3, 3):
            rows = 2 * g.image[1] * g.kernel[0] * g.depth
            return as_s16 if as_s16 - margin <= _S16_LIMIT else 2 * filters + rows + margin
        if g.depth % _LANES == 0:
            return filters + _s3_padded_input(g, whole=is_early) + _LANES
        return _s3_wide_3x3(g) if g.depth >= 12 and not is_early else as_s16
    if g.multiplier == 1 and g.depth > 3 and not is_early:
        return _s3_stages(g)
    return as_s16 if g.multiplier % 4 == 0 else 32


def _s3_padded_input(g: ConvShape, *, whole: bool) -> int:
    """The padded input of a 3x3 depthwise convolution, or three rows of it."""
    margins = (2 * g.pad[0], 2 * g.pad[1]) if any(g.pad) else g.beyond
    if not any(margins):
        return 0
    size = g.elements_with(margins, g.depth)
    if whole or size <= _PADDED_LIMIT:
        return size
    return (g.image[1] + margins[1]) * g.kernel[0] * g.depth


def _s3_wide_3x3(g: ConvShape) -> int:
    """Filter, padded input and result, with channels rounded up to whole vectors."""
    depth = align_up(g.depth, _LANES)
    margins = 2 * g.pad[0] + max(g.beyond[0], 0), 2 * g.pad[1] + max(g.beyond[1], 0)
    return 9 * depth + g.elements_with(margins, depth) + g.output[0] * g.output[1] * depth + 64


def _s3_stages(g: ConvShape) -> int:
    """Filter, input (both as int16), result, biases, shifts and multipliers, one after the other,
    with channels rounded up to 8."""
    depth = align_up(g.depth, 8)
    end = align_up(2 * g.taps * depth, _LANES)
    end = align_up(end + 2 * g.pixels * depth, _LANES)
    end = align_up(end + g.output[0] * g.output[1] * depth, _LANES)
    return end + 12 * depth + _LANES


def p4_convolution(g: ConvShape, release: Release) -> int:
    """esp_nn_get_conv_scratch_size_esp32p4."""
    sums = 4 * g.channels
    if g.pointwise:
        narrow = release >= P4_HAS_OWN_PATHS and g.depth < _LANES
        return sums + _LANES * g.channels + 32 + 32 if narrow else _pointwise(g) + 32
    filters = g.taps * align_up(g.depth, _LANES) * g.channels
    if release < P4_HAS_OWN_PATHS:
        return _padded_input(g) + filters + 32 + sums
    padded = any(g.pad)
    if not padded and g.kernel[1] * g.depth >= _LANES:
        return filters + 32 + sums
    if g.taps * g.depth >= _LANES:
        return sums + g.taps * g.depth + 32
    if not padded:
        depth = _p4_tile_depth(g)
        return sums + g.taps * depth * g.channels + g.pixels * depth + 32
    padded_input = _padded_input(g)
    return (_p4_tile(g) if padded_input + sums > _P4_CACHE else padded_input + filters) + 32 + sums


def _p4_tile_depth(g: ConvShape) -> int:
    """Number of channels with which a row of the window fills a vector."""
    return align_up(-(-_LANES // g.kernel[1]), _LANES)


def _p4_tile(g: ConvShape) -> int:
    """A filter and as many padded rows of the input as fit in the cache."""
    depth, filters = g.depth, 0
    if g.kernel[1] * g.depth < _LANES:
        depth = _p4_tile_depth(g)
        filters = g.taps * depth * g.channels
    row = (g.image[1] + 2 * g.pad[1]) * depth
    spare = _P4_CACHE - 4 * g.channels - filters - g.kernel[0] * row
    rows = min(spare // (g.stride[0] * row) + 1, g.output[0]) if spare >= 0 else 1
    return ((rows - 1) * g.stride[0] + g.kernel[0] + 2 * g.pad[0]) * row + filters


_SIZES: dict[tuple[Extension, bool], Callable[[ConvShape, Release], int]] = {
    ("pie-s3", False): s3_convolution,
    ("pie-s3", True): s3_depthwise,
    ("pie-p4", False): p4_convolution,
}
"""By the chip that asks for scratch, and whether the convolution is depthwise."""
INDEX_BYTES = {**dict.fromkeys(CONVOLUTIONS, 4), "SOFTMAX": 8}
"""Bytes that the index of a scratch buffer adds to OpData; that of SOFTMAX, which has doubles, is
padded to a multiple of eight."""
