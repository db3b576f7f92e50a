"""Images of one row that CMSIS-NN computes wrongly, so that tiles avoid such rows.

    arm_convolve_1_x_n_s8 (MVE: Cortex-M55, M85), for 1 x n kernels on images of height 1:

    row      |p p a b c d e f g p|      windows at the left and right edge are computed from
    left      [p p a b c]               copies of the row's ends with padding beside them, all
    right               [e f g p]       others from the row itself

It computes the number of windows at the edges, and of columns to copy, from the padding on both
sides. That is right for stride 1, but not always for larger strides (padding of different widths,
columns that no window reads). Some combinations it refuses at run time. An image of several rows
goes to another kernel, which is right. A 1x1 kernel comes here too if it is dilated in height
alone. Read from CMSIS-NN 99f736a. This module must not know tiles.
"""

from __future__ import annotations

from functools import lru_cache

from tflm_planner.model.ir import Op
from tflm_planner.ops.window import CONVOLUTIONS, window_of


def computes_single_row(op: Op, width: int, out: int, pad: int) -> bool:
    """Whether `op` computes the right bits on an image of one row: `width` columns, with `pad`
    columns of padding before them, and `out` results."""
    window = window_of(op)
    if window is None or op.kind not in CONVOLUTIONS or window.element != 1:
        return True
    kernel, stride, channels = window.kernel, window.stride[1], window.channels[0]
    if kernel[0] != 1 or window.dilation[1] != 1 or stride * channels % 4:
        return True
    if kernel == (1, 1) and window.undilated and pad == 0:  # by the kernels for 1x1
        return True
    if window.groups > 1:  # depthwise, or groups: not by this kernel
        return True
    weights = op.inputs[1]
    return _is_right(width, out, kernel[1], stride, pad,
                     weights is not None and weights.type_name == "int8")  # fmt: skip


@lru_cache(maxsize=4096)
def _is_right(width: int, out: int, kernel: int, stride: int, pad: int, falls_back: bool) -> bool:
    """Follow the kernel window by window. `falls_back`: whether it passes narrow rows on to the
    general kernel (for int4 it refuses them)."""
    total = (out - 1) * stride + kernel - width
    uneven = abs(total) % 2 * (1 if total > 0 else -1)  # C rounds towards zero
    if 2 * pad + uneven != total:
        return False
    left = max(1, (pad + stride - 1) // stride) if pad else 0
    right = max(1, int((pad + uneven + stride - 1) / stride)) if pad + uneven else 0
    middle = max(out - left - right, 0)
    if left + middle + right != out:
        return falls_back
    if stride * left < pad:
        return False
    begin = stride * (left + middle) - pad
    copied, after = kernel - 1, right if uneven else pad
    return (
        all(r * stride <= pad and r * stride - pad + kernel <= width for r in range(left))
        and all(r * stride - pad + kernel <= width for r in range(left, left + middle))
        and all(j * stride + kernel <= copied + after for j in range(right))
        # The copy contains the row's columns, followed by padding.
        and all(
            (j * stride + k < copied) == (begin + j * stride + k < width)
            for j in range(right)
            for k in range(kernel)
        )
    )
