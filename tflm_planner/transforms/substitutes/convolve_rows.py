"""Writes FULLY_CONNECTED as a convolution of one pixel where the target's kernel does not take the
scales of its weights (`tflm/channel_scales`).

    (1, 64) --FULLY_CONNECTED 64 to 10, ten scales--> (1, 10)
    (1, 64) --RESHAPE--> (1, 1, 1, 64) --CONV_2D 10 x 1 x 1 x 64--> (1, 1, 1, 10) --RESHAPE-->

Each row becomes a row of the image. Both compute the same sums, and scale each channel alike; every
TFLM takes a scale for each channel of a convolution. This module must not know memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tflm_planner.model.draft import Draft
from tflm_planner.model.edit import resize
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.model.options import VALID_PADDING
from tflm_planner.model.quantization import Quantization
from tflm_planner.model.schema import type_names
from tflm_planner.ops.roles import PRODUCTS, ROWS_BY_MATRIX
from tflm_planner.support.deferred import defer
from tflm_planner.support.words import count
from tflm_planner.tflm.channel_scales import has_channel_scales
from tflm_planner.transforms.substitutes.each import replace_each

if TYPE_CHECKING:
    import numpy as np
else:
    np = defer("numpy")

_WEIGHTS = ("int8", "int4")
_BIAS = {"int8": "int32", "int16": "int64"}
"""Type of the data -> type of the bias."""


def convolve_rows(model: Model, unwanted: Callable[[Op], bool]) -> list[str]:
    """Replace those FULLY_CONNECTED with several scales that are not wanted; returns a note if
    there were any."""

    def replace(model: Model, graph: Graph, op: Op) -> bool:
        return has_channel_scales(op) and unwanted(op) and _replace(model, graph, op)

    replaced = replace_each(model, replace)
    if not replaced:
        return []
    operators = count(replaced, ROWS_BY_MATRIX, ROWS_BY_MATRIX)
    note = f"{operators} with a scale for each channel written as CONV_2D"
    return [f"{note}: the target's TFLM takes one scale for all"]


def _replace(model: Model, graph: Graph, op: Op) -> bool:
    """Write one as a convolution; False where its tensors rule that out."""
    roles = PRODUCTS[ROWS_BY_MATRIX]
    data, weights, result = op.inputs[roles.data], op.inputs[roles.weights], op.outputs[0]
    shape = None if weights is None else weights.shape
    if data is None or weights is None or shape is None or not _is_plain(op, data, weights):
        return False
    channels, depth = shape
    rows = data.elements // depth
    if rows * depth != data.elements or result.elements != rows * channels:
        return False
    draft = Draft(model, graph)
    image = draft.tensor(data, f"{data.name}/image", (1, rows, 1, depth))
    convolved = draft.tensor(result, f"{result.name}/image", (1, rows, 1, channels))
    filters = draft.same(weights)
    resize(filters, (channels, 1, 1, depth))
    given = op.inputs[roles.bias] if len(op.inputs) > roles.bias else None
    if given is not None and not _is_wide(given, data, channels):
        return False
    if given is None and _sum_type(op) not in ("", _BIAS[data.type_name]):
        return False
    bias = _zeros(draft, data, weights) if given is None else given
    draft.reshape(data, image)
    draft.op(
        "CONV_2D", [image, filters, bias], [convolved],
        padding=VALID_PADDING, stride_h=1, stride_w=1, dilation_h_factor=1, dilation_w_factor=1,
        fused_activation_function=op.options.activation,
        quantized_bias_type=op.options.bias_type,
    )  # fmt: skip
    draft.reshape(convolved, result)
    draft.commit([op])
    return True


def _is_plain(op: Op, data: Tensor, weights: Tensor) -> bool:
    """Whether the weights are a constant matrix of integers, with a scale for each of its rows."""
    if len(weights.shape or ()) != 2 or 0 in (weights.shape or ()) or not weights.is_constant:
        return False
    if data.type_name not in _BIAS or weights.type_name not in _WEIGHTS or len(op.outputs) != 1:
        return False
    own = weights.quantization
    if own.axis != 0 or any(own.zero_points) or len(own.scales) != (weights.shape or (0,))[0]:
        return False
    return not op.options.has_shuffled_weights


def _is_wide(bias: Tensor, data: Tensor, channels: int) -> bool:
    """Whether it has a number for each channel, of the type that every TFLM reads."""
    return bias.elements == channels and bias.type_name == _BIAS[data.type_name]


def _sum_type(op: Op) -> str:
    """The type in which a sum without a bias is asked to be made; empty if none is asked for."""
    asked = op.options.bias_type
    return type_names().get(asked, "?") if asked else ""


def _zeros(draft: Draft, data: Tensor, weights: Tensor) -> Tensor:
    """A bias of zeros: LiteRT's convolutions need one."""
    type_name, own = _BIAS[data.type_name], data.quantization.single
    step = 1.0 if own is None else own[0]
    scales = Quantization.of([step * scale for scale in weights.quantization.scales])
    values = np.zeros(len(scales.scales), np.dtype(type_name).newbyteorder("<"))
    return draft.constant(f"{weights.name}/bias", values, type_name, quantization=scales)
