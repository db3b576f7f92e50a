"""Makes a model of a chain, with the operators that TensorFlow's converter writes for it.

    chain   --build-->        int8, weights drawn from a seed: memory does not depend on them
    network --build_floats--> float, with the weights of a folded network
            --build_int8----> int8, with these weights and with given ranges of its values

A first pass without numbers finds the values that concatenations connect (`ranges`). It needs no
TensorFlow, and must not know targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tflm_planner.codesign.chains.chain import Chain, Layer, Shape, Step, projection, steps
from tflm_planner.codesign.chains.reshaping import SkipOperator, reshaping
from tflm_planner.codesign.networks.numbers import (
    CalibratedInt8,
    DrawnInt8,
    GivenFloats,
    LayerPart,
    NoNumbers,
    Numbers,
    PartWeights,
    drawn_zero_point,
)
from tflm_planner.codesign.networks.ranges import ValueRange, ValueSets, common_ranges
from tflm_planner.codesign.networks.weights import Network
from tflm_planner.model.ir import Tensor
from tflm_planner.model.new_model import NewModel
from tflm_planner.model.options import SAME_PADDING, VALID_PADDING

_ACTIVATIONS = {"none": 0, "relu": 1, "relu6": 3}


def build(chain: Chain) -> bytes:
    """The file of the chain as an int8 model with drawn weights."""
    return build_traced(chain)[0]


def build_traced(chain: Chain) -> tuple[bytes, tuple[int, ...]]:
    """As `build`, and for each operator of the file the index of its layer."""
    building = _Build(chain, DrawnInt8(chain, _drawn_zero_points(chain)))
    return building.file(), tuple(building.layer_of_op)


def build_floats(network: Network) -> bytes:
    """The file of a folded network as a float model. Raises ValueError if the network is not folded
    (`folding.fold`)."""
    return build_floats_traced(network)[0]


def build_floats_traced(network: Network) -> tuple[bytes, tuple[str, ...]]:
    """As `build_floats`, and the names of the tensors whose ranges `build_int8` needs."""
    _check_folded(network)
    building = _Build(network.chain, GivenFloats(network))
    return building.file(), tuple(building.value_names)


def build_int8(network: Network, ranges: Sequence[ValueRange]) -> bytes:
    """The file of a folded network as an int8 model that is quantized with these ranges of its
    values. Values that concatenations connect get the union of their ranges. Raises ValueError if
    the network is not folded, or if there are more or fewer ranges than values."""
    _check_folded(network)
    common = common_ranges(ranges, value_sets(network.chain))
    return _Build(network.chain, CalibratedInt8(network, common)).file()


def value_sets(chain: Chain) -> tuple[int, ...]:
    """For each value whose range `build_int8` needs, the name of the set of values that need the
    same range, because concatenations connect them."""
    return _first_pass(chain).sets.names()


def _drawn_zero_points(chain: Chain) -> list[int]:
    """The zero points of drawn values: by their activations, and equal where concatenations connect
    values."""
    first = _first_pass(chain)
    sets, common = first.sets.names(), dict[int, int]()
    for name, activation in zip(sets, first.activations, strict=True):
        zero_point = drawn_zero_point(activation)
        common[name] = max(common.get(name, zero_point), zero_point)
    return [common[name] for name in sets]


def _first_pass(chain: Chain) -> _Build:
    """The chain built without numbers."""
    building = _Build(chain, NoNumbers())
    building.run()
    return building


def _check_folded(network: Network) -> None:
    if not network.is_folded:
        raise ValueError(f"{network.chain.name} has normalisations or branches left: fold it first")


class _Build:
    """Builds a model layer by layer."""

    def __init__(self, chain: Chain, numbers: Numbers) -> None:
        self._chain, self._new, self._numbers = chain, NewModel(), numbers
        self._place = 0
        self._value_of: dict[str, int] = {}  # tensors of one range
        self.layer_of_op: list[int] = []
        self.value_names: list[str] = []
        self.activations: list[str] = []
        self.sets = ValueSets()

    def file(self) -> bytes:
        """Build all layers and return the file."""
        image, result = self.run()
        return self._new.write([image], [result])

    def run(self) -> tuple[Tensor, Tensor]:
        """Build all layers. Returns the image and the result."""
        image = self._value(self._chain.image, "none")
        values = [image]  # the input of each layer
        for place, step in enumerate(steps(self._chain)):
            self._place = place
            source = values[place + 1 - step.layer.skip] if step.source is not None else None
            values.append(self._layer(step, values[-1], source))
        return image, values[-1]

    def _layer(self, step: Step, x: Tensor, source: Tensor | None) -> Tensor:
        layer = step.layer
        if source is None:
            return self._alone(step, x, layer.activation)
        if layer.join == "concat":
            y = self._alone(step, x, layer.activation)
            return self._concatenate(step, y, source)
        if step.is_late:
            y = self._alone(step, x, layer.activation)
            return self._sum(step, [y, self._reshape(step, source)], "none")
        y = self._alone(step, x, "none")
        if step.is_projected:
            source = self._conv(
                projection(step), source, step.made, "none", LayerPart("projection")
            )
        return self._sum(step, [source, y], layer.activation)

    def _alone(self, step: Step, x: Tensor, activation: str) -> Tensor:
        """The result of a layer before a skip is joined."""
        if step.layer.kind == "conv":
            return self._conv(step.layer, x, step.made, activation, LayerPart("conv"))
        if step.layer.kind == "dense":
            return self._dense(step.layer, x, activation)
        if step.layer.kind == "join":
            return x
        if step.layer.kind == "norm":
            return self._norm(step, x, activation)
        return self._without_weights(step, x)

    def _sum(self, step: Step, terms: list[Tensor], activation: str) -> Tensor:
        total = self._value(step.shape_out, activation)
        fused = {"fused_activation_function": _ACTIVATIONS[activation]}
        self._op("ADD", terms, total, "AddOptions", **fused)
        return total

    def _concatenate(self, step: Step, y: Tensor, source: Tensor) -> Tensor:
        layer = step.layer
        if step.is_projected:
            shape = (*step.made[:2], layer.branch)
            source = self._conv(
                projection(step), source, shape, layer.activation, LayerPart("projection")
            )
        whole = self._value(step.shape_out, layer.activation)
        self.sets.connect(self._value_of[tensor.name] for tensor in (source, y, whole))
        self._op("CONCATENATION", [source, y], whole, "ConcatenationOptions", axis=3)
        return whole

    def _reshape(self, step: Step, x: Tensor) -> Tensor:
        """The summand of a late skip."""
        width = 0 if step.source is None else step.source[2]
        for part in reshaping(step):
            x = self._part(part, width, x)
            width = part.shape[2]
        return x

    def _part(self, part: SkipOperator, width: int, x: Tensor) -> Tensor:
        """Add one operator of a reshaping. width: channels of `x`."""
        if part.layer is not None:
            reshaped = LayerPart(part.kind, part.is_scaled)
            return self._conv(part.layer, x, part.shape, "none", reshaped)
        y = self._like(x, (1, *part.shape))
        padding = [[0, 0], [0, 0], [0, 0], [0, part.shape[2] - width]]
        pads = self._new.add_parameters(np.array(padding, np.int32))
        self._op("PAD", [x, pads], y, "PadOptions")
        return y

    def _conv(
        self, layer: Layer, x: Tensor, shape: Shape, activation: str, part: LayerPart
    ) -> Tensor:
        out, (rows, columns) = layer.channels_out, layer.kernel
        options: dict[str, Any] = {
            "padding": SAME_PADDING,
            "stride_h": layer.stride,
            "stride_w": layer.stride,
            "dilation_h_factor": 1,
            "dilation_w_factor": 1,
            "fused_activation_function": _ACTIVATIONS[activation],
        }
        y = self._value(shape, activation)
        if layer.is_depthwise or part.kind == "window":
            operands = self._weights(x, part, (1, rows, columns, out), 3)
            table = "DepthwiseConv2DOptions"
            options["depth_multiplier"] = out // layer.channels_in
            self._op("DEPTHWISE_CONV_2D", [x, *operands], y, table, **options)
        else:
            inside = layer.channels_in // layer.groups
            operands = self._weights(x, part, (out, rows, columns, inside), 0)
            self._op("CONV_2D", [x, *operands], y, "Conv2DOptions", **options)
        return y

    def _dense(self, layer: Layer, x: Tensor, activation: str) -> Tensor:
        operands = self._weights(x, LayerPart("dense"), (layer.channels_out, layer.channels_in), 0)
        y = self._named_value((1, layer.channels_out), activation)
        fused = {"fused_activation_function": _ACTIVATIONS[activation]}
        self._op("FULLY_CONNECTED", [x, *operands], y, "FullyConnectedOptions", **fused)
        return y

    def _norm(self, step: Step, x: Tensor, activation: str) -> Tensor:
        scale, shift = self._numbers.factors(self._new, self._place, step.shape_in[2])
        product, total = self._value(step.made, "none"), self._value(step.made, activation)
        self._op("MUL", [x, scale], product, "MulOptions")
        fused = {"fused_activation_function": _ACTIVATIONS[activation]}
        self._op("ADD", [product, shift], total, "AddOptions", **fused)
        return total

    def _without_weights(self, step: Step, x: Tensor) -> Tensor:
        height, width, channels = step.shape_in
        kind, model = step.layer.kind, self._new
        if kind in ("max_pool", "average_pool"):
            return self._pool(step, x)
        if kind == "upsample":
            y = self._like(x, (1, *step.made))
            size = model.add_parameters(np.array(step.made[:2], np.int32))
            options = "ResizeNearestNeighborOptions"
            self._op("RESIZE_NEAREST_NEIGHBOR", [x, size], y, options)
        elif kind == "pool":
            y = self._like(x, (1, 1, 1, channels))
            window = {"filter_height": height, "filter_width": width}
            strides = {"stride_h": height, "stride_w": width, "padding": VALID_PADDING}
            self._op("AVERAGE_POOL_2D", [x], y, "Pool2DOptions", **window, **strides)
        elif kind == "mean":
            keeps = self._keeps_image()
            y = self._like(x, (1, 1, 1, channels) if keeps else (1, channels))
            axes = model.add_parameters(np.array([1, 2], np.int32))
            self._op("MEAN", [x, axes], y, "ReducerOptions", keep_dims=keeps)
        elif kind == "flatten":
            length = step.made[2]
            y = self._like(x, (1, length))
            shape = model.add_parameters(np.array([-1, length], np.int32))
            self._op("RESHAPE", [x, shape], y, "ReshapeOptions")
        else:
            y = self._numbers.probabilities(model, channels)
            self._op("SOFTMAX", [x], y, "SoftmaxOptions", beta=1.0)
        return y

    def _pool(self, step: Step, x: Tensor) -> Tensor:
        layer, y = step.layer, self._like(x, (1, *step.made))
        kind = "MAX_POOL_2D" if layer.kind == "max_pool" else "AVERAGE_POOL_2D"
        window = {"filter_height": layer.kernel[0], "filter_width": layer.kernel[1]}
        strides = {"stride_h": layer.stride, "stride_w": layer.stride, "padding": SAME_PADDING}
        self._op(kind, [x], y, "Pool2DOptions", **window, **strides)
        return y

    def _keeps_image(self) -> bool:
        """Whether a convolution follows the mean, which needs an image of one pixel."""
        following = self._chain.layers[self._place + 1 : self._place + 2]
        return any(layer.kind == "conv" for layer in following)

    def _op(
        self, kind: str, inputs: list[Tensor], output: Tensor, *options: str, **fields: Any
    ) -> None:
        self._new.add_op_with(kind, inputs, output, *options, **fields)
        self.layer_of_op.append(self._place)

    def _value(self, shape: Shape, activation: str) -> Tensor:
        return self._named_value((1, *shape), activation)

    def _named_value(self, shape: tuple[int, ...], activation: str) -> Tensor:
        value = self._numbers.value(self._new, shape, activation)
        self._value_of[value.name] = self.sets.add()
        self.value_names.append(value.name)
        self.activations.append(activation)
        return value

    def _like(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        """A new value with the quantization of `x`, as pools and reshapes have."""
        if x.quantization.single is None:
            y = self._new.add_float_value(shape)
        else:
            y = self._new.add_value(shape, *x.quantization.single)
        self._value_of[y.name] = self._value_of[x.name]
        return y

    def _weights(
        self, x: Tensor, part: LayerPart, shape: tuple[int, ...], axis: int
    ) -> list[Tensor]:
        return self._numbers.weights(self._new, x, PartWeights(self._place, part, shape, axis))
