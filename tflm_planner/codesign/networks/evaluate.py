"""Computes a network in numpy. This is the reference that every exact transform must match.

It implements each kind of layer as simply as possible and shares nothing with `build` and `folding`
but the chain, so that it can check them. It is slow.
"""

from __future__ import annotations

import numpy as np

from tflm_planner.codesign.chains.chain import Layer, Step, projection, steps
from tflm_planner.codesign.networks.weights import Array, LayerWeights, Network, Norm


def evaluate(network: Network, images: Array) -> Array:
    """The outputs for images (number, rows, columns, channels)."""
    values = [images]
    for place, step in enumerate(steps(network.chain)):
        source = values[place + 1 - step.layer.skip] if step.source is not None else None
        values.append(_step(step, network.weights[place], values[-1], source))
    return values[-1]


def _step(step: Step, weights: LayerWeights, x: Array, source: Array | None) -> Array:
    layer = step.layer
    if layer.kind == "join":
        y = x
    else:
        y = _alone(step, weights, x)
        y = y if layer.join == "sum" and source is not None else _activate(y, layer.activation)
    if source is None:
        return y
    if step.is_late:
        return y + _late(step, weights, source)
    if step.is_projected:
        assert weights.projection is not None, "a projected skip has weights"
        around = projection(step)
        source = _conv(_pad(source, around), *weights.projection, around)
    if layer.join == "sum":
        return _activate(source + y, layer.activation)
    source = _activate(source, layer.activation) if step.is_projected else source
    return np.concatenate([source, y], axis=3)


def _alone(step: Step, weights: LayerWeights, x: Array) -> Array:
    """The result of a layer before its activation, and before a skip is joined."""
    layer = step.layer
    if layer.kind == "conv":
        padded = _pad(x, layer)
        y = _conv(_scale(padded, weights.before), weights.kernel, weights.bias, layer)
        y = _scale(y, weights.after)
        for branch in weights.parallel:
            window = branch.kernel.shape[:2]
            beside = Layer("conv", window, layer.stride, layer.channels_in, layer.channels_out,
                           layer.groups)  # fmt: skip
            centred = _centre(padded, layer, beside)
            y = y + _scale(_conv(centred, branch.kernel, np.zeros(1), beside), branch.norm)
        return y
    if layer.kind == "dense":
        return x.reshape(len(x), -1) @ weights.kernel + weights.bias
    if layer.kind == "norm":
        return _scale(x, weights.after)
    return _without_weights(layer, x)


def _without_weights(layer: Layer, x: Array) -> Array:
    if layer.kind == "max_pool":
        return _windows(_pad(x, layer, -np.inf), layer).max(axis=(3, 4))
    if layer.kind == "average_pool":
        counts = _windows(_pad(np.ones_like(x), layer), layer).sum(axis=(3, 4))
        return _windows(_pad(x, layer), layer).sum(axis=(3, 4)) / counts
    if layer.kind == "upsample":
        return x.repeat(layer.stride, axis=1).repeat(layer.stride, axis=2)
    if layer.kind in ("pool", "mean"):
        return x.mean(axis=(1, 2), keepdims=True)
    if layer.kind == "flatten":
        return x.reshape(len(x), -1)
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _late(step: Step, weights: LayerWeights, source: Array) -> Array:
    """The summand of a late skip: sums over windows of the strided layers, channels of zeros up to
    a multiple of the width, and sums over groups of that width."""
    for layer in step.path:
        if layer.stride > 1:
            side = (layer.stride, layer.stride) if layer.kernel == (1, 1) else layer.kernel
            window = Layer("conv", side, layer.stride)
            source = _windows(_pad(source, window), window).sum(axis=(3, 4))
    width = step.shape_out[2]
    missing = -source.shape[3] % width
    source = np.pad(source, ((0, 0), (0, 0), (0, 0), (0, missing)))
    groups = source.reshape(*source.shape[:3], -1, width).sum(axis=3)
    return _scale(groups, weights.skip)


def padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Pixels that SAME padding adds before and after the image along one axis."""
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


def _pad(x: Array, layer: Layer, value: float = 0.0) -> Array:
    sides = [padding(x.shape[axis + 1], layer.kernel[axis], layer.stride) for axis in range(2)]
    return np.pad(x, ((0, 0), *sides, (0, 0)), constant_values=value)


def _centre(padded: Array, layer: Layer, beside: Layer) -> Array:
    """The part of a padded image that a smaller window reads if it is centred in the layer's
    window."""
    rows, columns = (
        padding_of_window(layer.kernel[axis], beside.kernel[axis]) for axis in range(2)
    )
    bottom, right = (
        layer.kernel[0] - beside.kernel[0] - rows, layer.kernel[1] - beside.kernel[1] - columns
    )  # fmt: skip
    return padded[:, rows : padded.shape[1] - bottom, columns : padded.shape[2] - right]


def padding_of_window(large: int, small: int) -> int:
    """Offset of a smaller window that is centred in a larger one."""
    return (large - small) // 2


def _windows(padded: Array, layer: Layer) -> Array:
    """All windows of padded images: (number, rows, columns, window rows, window columns,
    channels)."""
    windows = np.lib.stride_tricks.sliding_window_view(padded, layer.kernel, axis=(1, 2))
    return windows[:, :: layer.stride, :: layer.stride].transpose(0, 1, 2, 4, 5, 3)


def _conv(padded: Array, kernel: Array, bias: Array, layer: Layer) -> Array:
    windows = _windows(padded, layer)
    groups = np.split(windows, layer.groups, axis=5)
    kernels = np.split(kernel, layer.groups, axis=3)
    parts = [np.tensordot(w, k, 3) for w, k in zip(groups, kernels, strict=True)]
    return np.concatenate(parts, axis=3) + bias


def _scale(x: Array, norm: Norm | None) -> Array:
    return x if norm is None else x * norm.scale + norm.shift


def _activate(x: Array, activation: str) -> Array:
    if activation == "none":
        return x
    return np.clip(x, 0, 6 if activation == "relu6" else None)
