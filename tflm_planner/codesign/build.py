"""Makes an int8 model of a chain: the operators that TensorFlow's converter writes for it.

Weights are drawn from a seed and quantisation is plausible; no figure of memory depends on either.
It needs no TensorFlow, and must not know targets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflm_planner.codesign.chain import Chain, Layer, Shape, Step, projection, steps
from tflm_planner.model.ir import Tensor
from tflm_planner.model.new_model import NewModel

_SCALE = 0.05
_ZERO = {"none": 0, "relu": -128, "relu6": -128}
_ACTIVATIONS = {"none": 0, "relu": 1, "relu6": 3}
_SAME, _VALID = 0, 1


def build(chain: Chain) -> bytes:
    """The file of the chain as a model of int8."""
    return _Build(chain).file()


class _Build:
    """A model that grows layer by layer."""

    def __init__(self, chain: Chain) -> None:
        self._chain, self._new = chain, NewModel()
        self._random = np.random.default_rng(0)

    def file(self) -> bytes:
        """See `build`."""
        image = self._value(self._chain.image, "none")
        values = [image]  # what goes into each layer
        for place, step in enumerate(steps(self._chain)):
            source = values[place + 1 - step.layer.skip] if step.source is not None else None
            values.append(self._layer(step, values[-1], source))
        return self._new.write([image], values[-1:])

    def _layer(self, step: Step, x: Tensor, source: Tensor | None) -> Tensor:
        layer, shape = step.layer, step.shape_out
        if layer.kind == "conv" and source is None:
            return self._conv(layer, x, shape, layer.activation)
        if layer.kind == "conv" and source is not None:
            y = self._conv(layer, x, shape, "none")
            if step.is_projected:
                source = self._conv(projection(step), source, shape, "none")
            total = self._value(shape, layer.activation)
            fused = {"fusedActivationFunction": _ACTIVATIONS[layer.activation]}
            self._new.add_op_with("ADD", [source, y], total, "AddOptions", **fused)
            return total
        if layer.kind == "dense":
            return self._dense(layer, x)
        return self._without_weights(step, x)

    def _conv(self, layer: Layer, x: Tensor, shape: Shape, activation: str) -> Tensor:
        out, (rows, columns) = layer.channels_out, layer.kernel
        options: dict[str, Any] = {
            "padding": _SAME,
            "strideH": layer.stride,
            "strideW": layer.stride,
            "dilationHFactor": 1,
            "dilationWFactor": 1,
            "fusedActivationFunction": _ACTIVATIONS[activation],
        }
        y = self._value(shape, activation)
        if layer.is_depthwise:
            operands = self._parameters((1, rows, columns, out), 3)
            table = "DepthwiseConv2DOptions"
            options["depthMultiplier"] = 1
            self._new.add_op_with("DEPTHWISE_CONV_2D", [x, *operands], y, table, **options)
        else:
            operands = self._parameters((out, rows, columns, layer.channels_in // layer.groups), 0)
            self._new.add_op_with("CONV_2D", [x, *operands], y, "Conv2DOptions", **options)
        return y

    def _dense(self, layer: Layer, x: Tensor) -> Tensor:
        shape = (layer.channels_out, layer.channels_in)
        operands = self._parameters(shape, 0 if self._chain.dense_scales == "rows" else None)
        y = self._new.add_value((1, layer.channels_out), _SCALE, 0)
        self._new.add_op_with("FULLY_CONNECTED", [x, *operands], y, "FullyConnectedOptions")
        return y

    def _without_weights(self, step: Step, x: Tensor) -> Tensor:
        height, width, channels = step.shape_in
        kind, new = step.layer.kind, self._new
        if kind == "pool":
            y = self._like(x, (1, 1, 1, channels))
            window = {"filterHeight": height, "filterWidth": width}
            strides = {"strideH": height, "strideW": width, "padding": _VALID}
            new.add_op_with("AVERAGE_POOL_2D", [x], y, "Pool2DOptions", **window, **strides)
        elif kind == "mean":
            keeps = self._keeps_image(step)
            y = self._like(x, (1, 1, 1, channels) if keeps else (1, channels))
            axes = new.add_parameters(np.array([1, 2], np.int32))
            new.add_op_with("MEAN", [x, axes], y, "ReducerOptions", keepDims=keeps)
        elif kind == "flatten":
            y = self._like(x, (1, channels))
            shape = new.add_parameters(np.array([-1, channels], np.int32))
            new.add_op_with("RESHAPE", [x, shape], y, "ReshapeOptions")
        else:
            y = new.add_value((1, channels), 1 / 256, -128)  # as TFLM demands it of SOFTMAX
            new.add_op_with("SOFTMAX", [x], y, "SoftmaxOptions", beta=1.0)
        return y

    def _keeps_image(self, mean: Step) -> bool:
        """Whether a convolution follows the mean, which needs an image of one pixel."""
        following = self._chain.layers[self._chain.layers.index(mean.layer) + 1]
        return following.kind == "conv"

    def _value(self, shape: Shape, activation: str) -> Tensor:
        return self._new.add_value((1, *shape), _SCALE, _ZERO[activation])

    def _like(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        """A value of the quantisation of `x`, as pools and reshapes hand it on."""
        return self._new.add_value(shape, _SCALE, int(x.quantization.zeroPoint[0]))

    def _parameters(self, shape: tuple[int, ...], axis: int | None) -> list[Tensor]:
        """Weights with scales along an axis (None: one in all), and biases."""
        weights = self._random.integers(-127, 128, shape, dtype=np.int8)
        out = shape[axis or 0]
        fan_in = weights.size // out
        scales: npt.NDArray[Any] = np.full(1 if axis is None else out, 1 / (73 * fan_in**0.5))
        biases = self._random.integers(-999, 1000, out, dtype=np.int32)
        return [
            self._new.add_parameters(weights, scales, axis or 0),
            self._new.add_parameters(biases, scales * _SCALE),
        ]
