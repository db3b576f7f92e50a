"""Operators that slide a window over height and width: convolutions and pools.

    input  H x W x Ci                      output  H' x W' x Co
    +--+--+--+--+--+                       +--+--+--+
    |##|##|##|  |  |   3 x 3, stride 1     |# |  |  |     output pixel (y, x) reads the input
    |##|##|##|  |  |   ----------------->  +--+--+--+     pixels (y*stride - pad + k*dilation, ..)
    |##|##|##|  |  |                                      that lie inside the image
    +--+--+--+--+--+

It knows what TFLM computes from an operator's options; it must not know kernels or memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.model.number_formats import same_values
from tflm_planner.model.options import SAME_PADDING, VALID_PADDING
from tflm_planner.ops.hybrid import is_hybrid

CONVOLUTIONS = "CONV_2D", "DEPTHWISE_CONV_2D"
POOLS = "AVERAGE_POOL_2D", "MAX_POOL_2D"
ROWS, COLUMNS, CHANNELS = 1, 2, 3
"""Axes of an image tensor."""
_KNOWN = 1 << 14
"""Largest number of cached windows; tilings have few different ones."""
_ELEMENT = {"int8": 1, "int16": 2, "float32": 4}


@dataclass(frozen=True, slots=True)
class WindowGeometry:
    """How a window slides over images; all pairs are (height, width).

    channels: of input and output. pad: rows above and columns left of the image; the padding below
    and to the right follows from the sizes. An operator may have a geometry that TFLM does not run:
    see `Window`.
    """

    batch: int
    input: tuple[int, int]
    output: tuple[int, int]
    channels: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pad: tuple[int, int]

    @property
    def undilated(self) -> bool:
        """Whether the dilation is 1 in both directions."""
        return self.dilation == (1, 1)


@dataclass(frozen=True, slots=True)
class Window(WindowGeometry):
    """A sliding window that TFLM runs.

    Channels are divided into `groups`: outputs of a group depend only on the inputs of that group
    (1 group for a plain convolution, Ci groups for depthwise convolutions and pools). element:
    bytes of an element of input and output.
    """

    groups: int
    element: int

    @property
    def input_bytes(self) -> int:
        """Bytes of the input tensor."""
        return self.batch * self.input[0] * self.input[1] * self.channels[0] * self.element

    @property
    def output_bytes(self) -> int:
        """Bytes of the output tensor."""
        return self.batch * self.output[0] * self.output[1] * self.channels[1] * self.element

    @property
    def depthwise(self) -> bool:
        """Whether each input channel is its own group."""
        return self.groups == self.channels[0]


@lru_cache(maxsize=_KNOWN)
def low_padding(size: int, kernel: int, stride: int, dilation: int, valid: bool) -> int:
    """Padding rows before the first row, as TFLM's ComputePaddingHeightWidth computes them."""
    reach = (kernel - 1) * dilation + 1
    covered = size + stride - (reach if valid else 1)
    steps = covered // stride if stride > 0 else 0
    return max((steps - 1) * stride + reach - size, 0) // 2


def low_paddings(
    image: Sequence[int],
    kernel: Sequence[int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    valid: bool,
) -> tuple[int, int]:
    """Padding rows above and columns left of an image. Only the first two values of `image` and
    `kernel` are read."""
    return (
        low_padding(image[0], kernel[0], stride[0], dilation[0], valid),
        low_padding(image[1], kernel[1], stride[1], dilation[1], valid),
    )


def window_of(op: Op) -> Window | None:
    """The window of CONV_2D, DEPTHWISE_CONV_2D, AVERAGE_POOL_2D or MAX_POOL_2D.

    None for other operators and for forms that TFLM's kernels do not run as such: dynamic filters
    or biases, ranks other than 4, different types of input and output, hybrid operators, and an
    output that is larger than what TFLM computes (a smaller one, cut off at the bottom or right, is
    allowed).
    """
    data = op.inputs[0] if op.inputs else None
    if data is None or data.is_constant:
        return None
    has_constants = all(t is None or t.is_constant for t in op.inputs[1:])
    return sliding_window(op) if has_constants else None


def sliding_window(op: Op) -> Window | None:
    """As `window_of`, but the image may also be a constant, and filter and bias need not be."""
    reader = _READERS.get(op.kind)
    if reader is None or op.options.is_absent or len(op.outputs) != 1 or not op.inputs:
        return None
    if is_hybrid(op):
        return None
    data, result = op.inputs[0], op.outputs[0]
    if data is None or data is result or data.type != result.type:
        return None
    if len(data.shape or ()) != 4 or len(result.shape or ()) != 4 or not data.nbytes:
        return None
    return reader(op, data, result) if data.type_name in _ELEMENT else None


def in_rows(op: Op) -> bool:
    """Whether `op` is a 1x1 convolution over images of one row with a stride in height, which has
    no effect on one row. `transforms.spelling` writes such convolutions."""
    window = window_of(op) if op.kind == "CONV_2D" else None
    if window is None or window.groups != 1 or window.input != window.output:
        return False
    return window.kernel == (1, 1) and window.input[0] == 1 and window.stride[0] > 1


def reads_one_pixel(window: Window) -> bool:
    """Whether each pixel of the result is computed from one pixel, and none is cut off."""
    sizes = zip(window.input, window.stride, window.output, strict=True)
    whole = all(out == -(-size // stride) for size, stride, out in sizes)
    return whole and window.kernel == (1, 1) and window.pad == (0, 0)


def picked_stride(op: Op) -> tuple[int, int] | None:
    """The stride of a pool whose window is one pixel: it copies pixels. None for other operators,
    and for floating-point numbers, of which pools change the sign of a zero or infinities."""
    window = sliding_window(op) if op.kind in POOLS else None
    if window is None or not reads_one_pixel(window) or op.options.activation:
        return None
    data, (result,) = op.operands()[0], op.outputs
    copies = data.type_name in ("int8", "int16") and same_values(data, result)
    return window.stride if copies else None


def _convolution(op: Op, data: Tensor, result: Tensor) -> Window | None:
    """CONV_2D: filter (Co, Kh, Kw, Ci / groups)."""
    shape = _filter_shape(op)
    channels = _channels(data, result)
    if shape is None or shape[0] != channels[1] or shape[3] < 1 or channels[0] % shape[3]:
        return None
    groups = channels[0] // shape[3]
    if channels[1] % groups:
        return None
    return _window(op, data, result, (shape[1], shape[2]), groups)


def _depthwise(op: Op, data: Tensor, result: Tensor) -> Window | None:
    """DEPTHWISE_CONV_2D: filter (1, Kh, Kw, Co), Co = Ci * multiplier."""
    shape = _filter_shape(op)
    channels = _channels(data, result)
    if shape is None or shape[0] != 1 or shape[3] != channels[1]:
        return None
    if channels[1] != channels[0] * op.options.depth_multiplier:
        return None
    return _window(op, data, result, (shape[1], shape[2]), channels[0])


def _pool(op: Op, data: Tensor, result: Tensor) -> Window | None:
    channels = _channels(data, result)
    if channels[0] != channels[1]:
        return None
    return _window(op, data, result, op.options.pool_size, channels[0])


_READERS = {
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _depthwise,
    **dict.fromkeys(POOLS, _pool),
}
WINDOWS = frozenset(_READERS)
"""The kinds for which `window_of` may return a window."""


def _filter_shape(op: Op) -> tuple[int, ...] | None:
    shape = op.inputs[1].shape if len(op.inputs) > 1 and op.inputs[1] is not None else None
    return shape if shape is not None and len(shape) == 4 else None


def _channels(data: Tensor, result: Tensor) -> tuple[int, int]:
    return (data.shape or (0,))[-1], (result.shape or (0,))[-1]


def _window(
    op: Op, data: Tensor, result: Tensor, kernel: tuple[int, int], groups: int
) -> Window | None:
    options = op.options
    return _geometry(
        data.shape or (0, 0, 0, 0), result.shape or (0, 0, 0, 0), kernel, options.stride,
        options.dilation, options.padding, groups, _ELEMENT[data.type_name],
    )  # fmt: skip


@lru_cache(maxsize=_KNOWN)
def _geometry(
    data: tuple[int, ...],
    result: tuple[int, ...],
    kernel: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    padding: int,
    groups: int,
    element: int,
) -> Window | None:
    """The window of these sizes; None for a geometry that TFLM does not run."""
    batch, height, width, _ = data
    result_batch, *output, _ = result
    if batch != result_batch or min(*kernel, *stride, *dilation) < 1:
        return None
    for axis, size in enumerate((height, width)):
        reach = (kernel[axis] - 1) * dilation[axis] + 1
        covered = size if padding == SAME_PADDING else size - reach + 1
        computed = -(-covered // stride[axis])
        if padding not in (SAME_PADDING, VALID_PADDING) or not 1 <= output[axis] <= computed:
            return None
    return Window(
        batch=batch,
        input=(height, width),
        output=(output[0], output[1]),
        channels=(data[-1], result[-1]),
        kernel=kernel,
        stride=stride,
        dilation=dilation,
        pad=low_paddings((height, width), kernel, stride, dilation, padding == VALID_PADDING),
        groups=groups,
        element=element,
    )
