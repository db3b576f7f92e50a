"""Reads a model with its weights: as a network that can be computed, trained and built again.

    float weights  as they are         int8 weights   scale * (number - zero point)

Only a chain that computes what the model does gets its weights. It must not know how chains are
found (`chain_of_model`).
"""

from __future__ import annotations

import numpy as np

from tflm_planner.codesign.networks.chain_of_model import chain_of
from tflm_planner.codesign.networks.model_parts import ModelPart, refuse
from tflm_planner.codesign.networks.weights import Array, LayerWeights, Network, Norm
from tflm_planner.model.ir import Model, Tensor
from tflm_planner.ops.terms.values import InexpressibleError, constant
from tflm_planner.support.errors import ModelError


def network_of(model: Model, name: str) -> Network:
    """The network of a model, folded as it is. name: for its chain. Raises ModelError for a model
    that no chain holds, or none that computes the same."""
    found = chain_of(model, name)
    if not found.is_exact:
        raise ModelError(
            f"as a chain {name} computes something else, where its weights mean nothing: "
            f"{'; '.join(found.notes)}"
        )
    weights = [_weights(part, around) for part, around in found.parts]
    return Network(found.chain, tuple(weights))


def _weights(part: ModelPart | None, around: ModelPart | None) -> LayerWeights:
    """The numbers of a layer, and of the convolution on its skip."""
    projection = None if around is None else _product(around)
    if part is None or not part.constants:
        return LayerWeights(projection=projection)
    if part.layer.kind == "norm":
        scale, shift = (_numbers(part, t).reshape(-1) for t in part.constants)
        return LayerWeights(after=Norm(scale, shift), projection=projection)
    kernel, bias = _product(part)
    return LayerWeights(kernel, bias, projection=projection)


def _product(part: ModelPart) -> tuple[Array, Array]:
    """Kernel and bias of a convolution or dense layer, in the order of `LayerWeights`."""
    layer = part.layer
    kernel, *biases = (_numbers(part, t) for t in part.constants)
    bias = biases[0] if biases else np.zeros(layer.channels_out)
    if layer.kind == "dense":
        return kernel.T, bias
    if kernel.shape == (1, *layer.kernel, layer.channels_out):  # depthwise
        return kernel.transpose(1, 2, 0, 3), bias
    return kernel.transpose(1, 2, 3, 0), bias


def _numbers(part: ModelPart, tensor: Tensor) -> Array:
    """What the numbers of a constant stand for."""
    try:
        numbers = constant(tensor).astype(np.float64)
    except InexpressibleError as error:
        refuse(part.op, f"has weights that cannot be read: {error}")
    quantization = tensor.quantization
    if not quantization.scales:
        return numbers
    along = [1] * numbers.ndim
    if quantization.is_per_channel:
        along[quantization.axis] = -1
    scales = np.array(quantization.scales).reshape(along)
    zeros = np.array(quantization.zero_points or (0,))
    return scales * (numbers - zeros.reshape(along if zeros.size > 1 else [1] * numbers.ndim))
