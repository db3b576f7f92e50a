"""What the rules for sums of products share: factors, and the keys that mix each channel."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflm_planner.model.ir import Op
from tflm_planner.model.schema import type_names
from tflm_planner.ops.roles import SUMMED_AS_ASKED
from tflm_planner.ops.terms import mixing
from tflm_planner.ops.terms.calls import OpCall
from tflm_planner.ops.terms.field import LANES
from tflm_planner.ops.terms.mixing import Words
from tflm_planner.ops.terms.parameters import is_float, options, quantisation

GEOMETRY = (
    "padding", "stride_h", "stride_w", "dilation_h_factor", "dilation_w_factor",
    "depth_multiplier", "keep_num_dims", "asymmetric_quantize_inputs",
)  # fmt: skip
"""Options that keys leave out. Some decide which elements are summed up, so that the sums already
depend on them; the others have no effect for integers."""


def _rescaling(op: Op, scales: tuple[float, ...]) -> str:
    """How kernels make one integer factor from the scales. FULLY_CONNECTED with one scale for all
    channels first rounds the product of two scales to 24 bits, which no other kernel does."""
    return "of a product" if op.kind == "FULLY_CONNECTED" and len(scales) == 1 else "of a channel"


def _bias_type(call: OpCall, data: int, bias: int) -> str | None:
    """The type of the bias, which is that of the sums. Integers without a bias are summed as with
    one of zeros: of int32, or for data of int16 of int64, unless the options ask for int32
    (fully_connected.cc and conv.cc of tflite-micro 90b983c)."""
    if call.has(bias):
        return call.tensor(bias).type_name
    asks = call.op.kind in SUMMED_AS_ASKED  # the others always take int64
    asked = type_names().get(call.op.options.bias_type) if asks else None
    default = {"int8": "int32", "int16": "int32" if asked == "int32" else "int64"}
    return default.get(call.tensor(data).type_name)


def factors(call: OpCall, operand: int, last: int) -> npt.NDArray[Any]:
    """The known weights of a sum as factors. Integer weights are small integers, minus their zero
    point. Float weights are field elements (with a first axis of lanes) that also depend on the
    place in the sum, since the order of float sums matters.

    `last`: 3 for filters (Co, .., Ci), whose sums run over all axes but the first; 2 for depthwise
    filters (1, Kh, Kw, Co), whose sums run over all axes but the last."""
    return call.remember("factors", lambda: _factors(call, operand, last))


def _factors(call: OpCall, operand: int, last: int) -> npt.NDArray[Any]:
    weights, tensor = call.values(operand).data, call.tensor(operand)
    if not is_float(tensor):
        return weights.astype(np.int32) - tensor.quantization.zero_point
    shape = weights.shape
    inner = np.arange(int(np.prod(shape[1:] if last == 3 else shape[:-1])), dtype=np.int64)
    places = inner.reshape(1, *shape[1:]) if last == 3 else inner.reshape(*shape[:-1], 1)
    words = mixing.keys(mixing.key("weight"), weights, np.broadcast_to(places, shape))
    return call.mixer.elements(words).reshape(LANES, *shape)


def channel_keys(call: OpCall, data: int, weights: int, bias: int) -> Words | None:
    """The keys that turn each channel's sum into a result: made from the quantization of data,
    weights and result, the bias and the activation. None if weights or bias are not known, or if
    zero points differ by channel. data, weights, bias: indices of the operands."""
    return call.remember("keys", lambda: _channel_keys(call, data, weights, bias))


def _channel_keys(call: OpCall, data: int, weights: int, bias: int) -> Words | None:
    filters, result = call.tensor(weights), call.result
    scales, points = filters.quantization.scales, filters.quantization.zero_points
    channels = (result.shape or (0,))[-1]
    if not call.values(weights).known or len(set(points)) > 1 or len(scales) not in (
        0, 1, channels
    ):  # fmt: skip
        return None
    shifts = np.zeros(channels, np.int64)
    if call.has(bias):
        values = call.values(bias)
        if not values.known or values.size != channels:
            return None
        shifts = np.broadcast_to(values.data.reshape(-1), channels)
    base = mixing.key(
        "sum", quantisation(call.tensor(data)), filters.type_name, quantisation(result),
        _bias_type(call, data, bias), _rescaling(call.op, scales),
        options(call.op, *GEOMETRY),
    )  # fmt: skip
    wide = np.broadcast_to(np.array(scales or (0.0,)), channels)
    return mixing.keys(base, np.ascontiguousarray(wide), np.ascontiguousarray(shifts))
