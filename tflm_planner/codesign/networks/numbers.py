"""Sources of the types of a model's values and of the numbers of its parameters.

    NoNumbers        none: the values are counted, and the model is not written
    DrawnInt8        from a seed: memory does not depend on them
    GivenFloats      those of a folded network
    CalibratedInt8   those of a folded network, rounded to the ranges that its values had

It must not know the order of operators; it relies only on ranges and zero points coming in the
order in which values are requested.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from tflm_planner.codesign.chains.chain import Chain
from tflm_planner.codesign.networks.ranges import LEAST_RANGE, ValueRange
from tflm_planner.codesign.networks.weights import Array, LayerWeights, Network, groups_kernel
from tflm_planner.model.ir import Tensor
from tflm_planner.model.new_model import NewModel

SCALE = 0.05
"""The scale of all values with drawn numbers."""
_ZERO = {"none": 0, "relu": -128, "relu6": -128}


@dataclass(frozen=True)
class LayerPart:
    """A part of a layer that may have weights: the layer itself, the projection of its skip, or an
    operator that reshapes a late skip (`reshaping.SkipOperator`). is_scaled: whether that operator
    also multiplies each channel by a factor and adds an addend."""

    kind: Literal["conv", "dense", "projection", "window", "zeros", "groups"]
    is_scaled: bool = False


@dataclass(frozen=True)
class PartWeights:
    """The weights and biases of one part of layer `place`. shape: of the weights, in the order of
    TFLite. axis: that of the output channels."""

    place: int
    part: LayerPart
    shape: tuple[int, ...]
    axis: int


class Numbers(Protocol):
    """A source of types of values and numbers of parameters."""

    def value(self, model: NewModel, shape: tuple[int, ...], activation: str) -> Tensor:
        """Add a value that follows an activation."""
        ...

    def weights(self, model: NewModel, x: Tensor, of: PartWeights) -> list[Tensor]:
        """Add weights and biases of the part of a layer that reads `x`."""
        ...

    def factors(self, model: NewModel, place: int, width: int) -> tuple[Tensor, Tensor]:
        """Add the factor and the addend of each channel of a norm layer."""
        ...

    def probabilities(self, model: NewModel, width: int) -> Tensor:
        """Add the result of a softmax."""
        ...


class NoNumbers:
    """Values without types that count, and no parameters, for a model that is not written."""

    def value(self, model: NewModel, shape: tuple[int, ...], activation: str) -> Tensor:
        """See `Numbers`."""
        return model.add_float_value(shape)

    def weights(self, model: NewModel, x: Tensor, of: PartWeights) -> list[Tensor]:
        """See `Numbers`."""
        return []

    def factors(self, model: NewModel, place: int, width: int) -> tuple[Tensor, Tensor]:
        """See `Numbers`."""
        return model.add_float_value((width,)), model.add_float_value((width,))

    def probabilities(self, model: NewModel, width: int) -> Tensor:
        """See `Numbers`."""
        return model.add_float_value((1, width))


def drawn_zero_point(activation: str) -> int:
    """The zero point of a value with drawn numbers that no concatenation connects to others."""
    return _ZERO[activation]


class DrawnInt8:
    """Numbers drawn from a seed, with plausible quantization. zero_points: of the values, in the
    order in which they are requested."""

    def __init__(self, chain: Chain, zero_points: Sequence[int]) -> None:
        self._zero_points: Iterator[int] = iter(zero_points)
        self._random = np.random.default_rng(0)
        self._dense_axis = 0 if chain.dense_scales == "rows" else None

    def value(self, model: NewModel, shape: tuple[int, ...], activation: str) -> Tensor:
        """See `Numbers`."""
        return model.add_value(shape, SCALE, next(self._zero_points))

    def weights(self, model: NewModel, x: Tensor, of: PartWeights) -> list[Tensor]:
        """See `Numbers`."""
        axis = self._dense_axis if of.part.kind == "dense" else of.axis
        weights = self._random.integers(-127, 128, of.shape, dtype=np.int8)
        out = of.shape[of.axis]
        fan_in = weights.size // out
        scales: Array = np.full(1 if axis is None else out, 1 / (73 * fan_in**0.5))
        biases = self._random.integers(-999, 1000, out, dtype=np.int32)
        return [
            model.add_parameters(weights, scales, axis or 0),
            model.add_parameters(biases, scales * SCALE),
        ]

    def factors(self, model: NewModel, place: int, width: int) -> tuple[Tensor, Tensor]:
        """See `Numbers`."""
        arrays = (self._random.integers(-127, 128, width, dtype=np.int8) for _ in range(2))
        first, second = (model.add_parameters(values, np.array([0.01])) for values in arrays)
        return first, second

    def probabilities(self, model: NewModel, width: int) -> Tensor:
        """See `Numbers`."""
        return model.add_value((1, width), 1 / 256, -128)  # TFLM requires this of SOFTMAX


class GivenFloats:
    """The numbers of a network as floats."""

    def __init__(self, network: Network) -> None:
        self._weights = network.weights

    def value(self, model: NewModel, shape: tuple[int, ...], activation: str) -> Tensor:
        """See `Numbers`."""
        return model.add_float_value(shape)

    def weights(self, model: NewModel, x: Tensor, of: PartWeights) -> list[Tensor]:
        """See `Numbers`."""
        arrays = _weights_in_order(self._weights[of.place], of)
        return [model.add_parameters(values.astype(np.float32)) for values in arrays]

    def factors(self, model: NewModel, place: int, width: int) -> tuple[Tensor, Tensor]:
        """See `Numbers`."""
        norm = self._weights[place].after
        assert norm is not None, "a layer of the kind norm has one"
        scale, shift = (
            model.add_parameters(v.astype(np.float32)) for v in (norm.scale, norm.shift)
        )
        return scale, shift

    def probabilities(self, model: NewModel, width: int) -> Tensor:
        """See `Numbers`."""
        return model.add_float_value((1, width))


def _weights_of_part(weights: LayerWeights, of: PartWeights) -> tuple[Array, Array]:
    """Weights (rows, columns, in, out; or in, out) and biases of a part of a layer."""
    part, shape = of.part, of.shape
    if part.kind in ("conv", "dense"):
        return weights.kernel, weights.bias
    if part.kind == "projection":
        assert weights.projection is not None, "a projected skip has weights"
        return weights.projection
    out = shape[of.axis]
    norm = weights.skip if part.is_scaled else None
    scale = np.ones(out) if norm is None else norm.scale
    shift = np.zeros(out) if norm is None else norm.shift
    if part.kind == "window":
        return np.ones((*shape[1:3], 1, 1)) * scale, shift
    return groups_kernel(shape[3], out) * scale, shift


def _weights_in_order(weights: LayerWeights, of: PartWeights) -> tuple[Array, Array]:
    """Weights in the order and shape of TFLite, and biases, of a part of a layer."""
    kernel, bias = _weights_of_part(weights, of)
    order = (2, 0, 1, 3) if of.axis == 3 else (3, 0, 1, 2)
    kernel = kernel.T if of.part.kind == "dense" else kernel.transpose(order)
    return kernel.reshape(of.shape), bias


class CalibratedInt8:
    """The quantized numbers of a network: values by their ranges, weights by a scale for each
    channel, biases by the product of both scales. ranges: in the order in which values are
    requested."""

    def __init__(self, network: Network, ranges: Sequence[ValueRange]) -> None:
        self._weights = network.weights
        self._dense_axis = 0 if network.chain.dense_scales == "rows" else None
        self._ranges: Iterator[ValueRange] = iter(ranges)

    def value(self, model: NewModel, shape: tuple[int, ...], activation: str) -> Tensor:
        """See `Numbers`."""
        found = next(self._ranges)
        return model.add_value(shape, found.scale, found.zero_point)

    def weights(self, model: NewModel, x: Tensor, of: PartWeights) -> list[Tensor]:
        """See `Numbers`."""
        kernel, bias = _weights_in_order(self._weights[of.place], of)
        axis = self._dense_axis if of.part.kind == "dense" else of.axis
        scales = weight_scales(kernel, axis)
        along = [1] * kernel.ndim
        along[axis or 0] = len(scales)
        rounded = np.clip(np.rint(kernel / scales.reshape(along)), -127, 127).astype(np.int8)
        assert x.quantization.scale is not None, "every value has a scale"
        bias_scales = scales * x.quantization.scale
        limits = np.iinfo(np.int32)
        biases = np.clip(np.rint(bias / bias_scales), limits.min, limits.max).astype(np.int32)
        return [
            model.add_parameters(rounded, scales, axis or 0),
            model.add_parameters(biases, bias_scales),
        ]

    def factors(self, model: NewModel, place: int, width: int) -> tuple[Tensor, Tensor]:
        """See `Numbers`. Each has a single scale and a zero point, as MUL and ADD need."""
        norm = self._weights[place].after
        assert norm is not None, "a layer of the kind norm has one"
        scale, shift = (_rounded_factors(model, v) for v in (norm.scale, norm.shift))
        return scale, shift

    def probabilities(self, model: NewModel, width: int) -> Tensor:
        """See `Numbers`."""
        return model.add_value((1, width), 1 / 256, -128)


def _rounded_factors(model: NewModel, values: Array) -> Tensor:
    found = ValueRange(min(0.0, float(values.min())), max(0.0, float(values.max())))
    rounded = np.rint(values / found.scale) + found.zero_point
    int8 = np.clip(rounded, -128, 127).astype(np.int8)
    return model.add_parameters(int8, np.array([found.scale]), zero_point=found.zero_point)


def weight_scales(kernel: Array, axis: int | None) -> Array:
    """The scales of int8 weights: one for each index along `axis`, or a single one if `axis` is
    None."""
    if axis is None:
        most = np.abs(kernel).max(keepdims=True).reshape(1)
    else:
        most = np.abs(kernel).max(axis=tuple(a for a in range(kernel.ndim) if a != axis))
    return np.maximum(most, LEAST_RANGE) / 127
