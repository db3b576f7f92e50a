"""Networks at whose peak lies what operators need beside their operands and results: scratch that
grows with output channels, or weights that a DEQUANTIZE makes of a constant."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tests.models.build import Graph, Net
from tests.models.registry import noise

_SCALE, _WEIGHT_SCALE = 0.1, 0.01


def _weights(graph: Graph, shape: tuple[int, ...], name: str, kind: str) -> int:
    if kind == "int4":
        halves = noise(shape, -7, 7).reshape(-1) & 15
        data = (halves[::2] | halves[1::2] << 4).astype(np.uint8)
        return graph.tensor(name, shape, "int4", data=data, scale=_WEIGHT_SCALE)
    return graph.constant(name, noise(shape), kind, scale=_WEIGHT_SCALE)


def _dense(
    graph: Graph, x: int, units: tuple[int, int], name: str, kind: str, is_float: bool
) -> int:
    """A fully connected layer, its weights of a kind; of floats by a DEQUANTIZE of the weights."""
    inputs, outputs = units
    quantised = {} if is_float else {"scale": _SCALE}
    result = graph.tensor(name, (1, outputs), "float32" if is_float else "int8", **quantised)
    weights = _weights(graph, (outputs, inputs), f"{name}/stored", kind)
    shift = noise((outputs,), -900, 900)
    if is_float:
        wide = graph.tensor(f"{name}/weights", (outputs, inputs), "float32")
        graph.op("DEQUANTIZE", [weights], [wide], "DequantizeOptions")
        weights, bias = wide, graph.constant(f"{name}/bias", shift / 100, "float32")
    else:
        bias = graph.constant(f"{name}/bias", shift, scale=_SCALE * _WEIGHT_SCALE)
    relu = {"fusedActivationFunction": 1}
    graph.op(
        "FULLY_CONNECTED", [x, weights, bias], [result], "FullyConnectedOptions", version=4, **relu
    )
    return result


def dense(units: tuple[int, ...], weights: str = "int8", *, is_float: bool = False) -> bytes:
    """Fully connected layers, int8 with weights of a type, or float with weights stored as it."""
    net = Net()
    graph = net.graph()
    kind, quantised = ("float32", {}) if is_float else ("int8", {"scale": _SCALE})
    x = graph.input("x", (1, units[0]), kind, **quantised)
    for i, pair in enumerate(pairwise(units)):
        x = _dense(graph, x, pair, f"dense{i}", weights, is_float)
    graph.outputs(x)
    return net.finish()


def bottleneck(side: int = 4, narrow: int = 64, wide: int = 256) -> bytes:
    """1x1 to many channels, 5x5 depthwise, 1x1 back: late in a network images are small, and the
    depthwise kernel of Cortex-M4 copies a window of all channels."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, side, side, narrow), scale=_SCALE)
    x = _convolution(graph, x, (side, narrow, wide), "expanded")
    x = _convolution(graph, x, (side, wide, wide), "depthwise", kernel=5)
    graph.outputs(_convolution(graph, x, (side, wide, narrow), "projected"))
    return net.finish()


def _convolution(
    graph: Graph, x: int, sizes: tuple[int, int, int], name: str, *, kernel: int = 1
) -> int:
    """A 1x1 convolution, or a depthwise one of a larger kernel."""
    side, inputs, outputs = sizes
    scales = np.full(outputs, _WEIGHT_SCALE)
    is_depthwise = kernel > 1
    shape = (1, kernel, kernel, outputs) if is_depthwise else (outputs, 1, 1, inputs)
    axis = 3 if is_depthwise else 0
    weights = graph.constant(f"{name}/weights", noise(shape), "int8", scale=scales, axis=axis)
    shift = noise((outputs,), -900, 900)
    bias = graph.constant(f"{name}/bias", shift, scale=_SCALE * scales)
    result = graph.tensor(name, (1, side, side, outputs), scale=_SCALE)
    options = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    if is_depthwise:
        more = {**options, "depthMultiplier": 1}
        given = [x, weights, bias]
        graph.op("DEPTHWISE_CONV_2D", given, [result], "DepthwiseConv2DOptions", version=3, **more)
    else:
        graph.op("CONV_2D", [x, weights, bias], [result], "Conv2DOptions", version=3, **options)
    return result


def upsampled(side: int = 8, inputs: int = 32, outputs: int = 16) -> bytes:
    """A transposed convolution of stride 2, whose kernel reverses the filter in scratch."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, side, side, inputs), scale=_SCALE)
    shape = (1, 2 * side, 2 * side, outputs)
    scales = np.full(outputs, _WEIGHT_SCALE)
    weights = graph.constant("weights", noise((outputs, 3, 3, inputs)), "int8", scale=scales)
    result = graph.tensor("result", shape, scale=_SCALE)
    given = [graph.constant("size", shape), weights, x]
    strides = {"padding": 0, "strideH": 2, "strideW": 2}
    graph.op("TRANSPOSE_CONV", given, [result], "TransposeConvOptions", **strides)
    graph.outputs(result)
    return net.finish()
