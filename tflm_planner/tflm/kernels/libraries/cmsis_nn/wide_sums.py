"""Sums of int16 convolutions that CMSIS-NN adds up in 32 bits for some pixels only.

    arm_convolve_s16, without MVE (Cortex-M0 to M33), with an int64 bias:

    pixels   |0 1|2 3|4 5|6|        two at a time: products beyond the first 512 of a sum are added
                                    in 64 bits
                                    one that is left over: all of its products in 32 bits

A sum that exceeds 32 bits is right for a pixel of a pair and wraps around for the last pixel of an
image with an odd number of them. So the bits of a pixel depend on which pixels are computed with
it, and neither the reference kernels nor a proof show it. Observed on an emulated Cortex-M4; read
from CMSIS-NN 4ab83cc. With MVE the pixels left over are added up as the others are, and so are all
pixels with an int32 bias or none, always in 32 bits. This module must not know tiles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.ops.window import window_of
from tflm_planner.support.deferred import defer
from tflm_planner.tflm.kernels.operands import element_type

if TYPE_CHECKING:
    import numpy as np
else:
    np = defer("numpy")

_ADDED_IN_32_BITS = 512
"""MAX_COL_COUNT: so many products of 16 by 8 bits fit into 32 bits."""
_MOST = (1 << 31) - 1
_LARGEST_VALUE = 1 << 15


def adds_pixels_alike(op: Op) -> bool:
    """Whether each pixel of the result of `op` has the same bits, whichever other pixels are
    computed with it, for every input."""
    if op.kind != "CONV_2D" or element_type(op) != "int16":
        return True
    bias = op.inputs[2] if len(op.inputs) > 2 else None
    weights = op.inputs[1]
    if bias is None or bias.type_name != "int64" or weights is None or window_of(op) is None:
        return True
    products = weights.elements // max((weights.shape or (0,))[0], 1)
    if products <= _ADDED_IN_32_BITS:
        return True
    return _largest_sum_of_weights(weights) * _LARGEST_VALUE <= _MOST


def _largest_sum_of_weights(weights: Tensor) -> int:
    """The largest sum of absolute weights of one output channel; an upper bound if they cannot be
    read."""
    data = weights.buffer.data
    if data is None or weights.type_name != "int8" or data.nbytes < weights.nbytes:
        return 128 * weights.elements
    values = data[: weights.nbytes].view(np.int8).reshape((weights.shape or (1,))[0], -1)
    return int(np.abs(values.astype(np.int64)).sum(axis=1).max(initial=0))
