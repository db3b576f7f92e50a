"""Turns the form in which a network is trained into the one that runs, with the same function.

    normalisations  into kernel and bias of their convolution; also those before it, since
                    padding is normalised with the image
    branches        into the kernel: a smaller window is padded with zeros
    late skips      of linear convolutions into the kernel; for others, factors and addends into
                    the operator that reshapes the skip

Sums are regrouped, so results are equal up to rounding. It must not know how models are written.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tflm_planner.codesign.chains.chain import Chain, Layer, Step, steps
from tflm_planner.codesign.networks.evaluate import padding, padding_of_window
from tflm_planner.codesign.networks.weights import (
    Array,
    LayerWeights,
    Network,
    groups_kernel,
    identity_kernel,
)


def fold(network: Network) -> Network:
    """The folded network, with one kernel and one bias for each convolution."""
    weights: list[LayerWeights] = []
    for step, trained in zip(steps(network.chain), network.weights, strict=True):
        folded = trained
        if step.layer.kind == "conv":
            folded = _without_norms(step.layer, trained)
            if _is_swallowed(step):
                folded = _swallow_skip(step, folded)
        weights.append(folded)
    return Network(running(network.chain), tuple(weights))


def running(chain: Chain) -> Chain:
    """The chain of the folded network, in which kernels include branches and, if they are those of
    linear convolutions, late skips."""
    return replace(chain, layers=tuple(_running(step) for step in steps(chain)))


def _running(step: Step) -> Layer:
    """A layer of the folded network. A strided window of one pixel grows to the stride, since its
    skip sums over all pixels of the stride."""
    layer = replace(step.layer, branches="none")
    if not _is_swallowed(step):
        return layer
    grows = layer.kernel == (1, 1) and layer.stride > 1
    kernel = (layer.stride,) * 2 if grows else layer.kernel
    return replace(layer, kernel=kernel, skip=0, join="sum")


def _without_norms(layer: Layer, weights: LayerWeights) -> LayerWeights:
    """The weights with normalisations and branches folded into kernel and bias."""
    kernel, bias = weights.kernel, weights.bias
    if weights.before is not None:
        scale, shift = (_per_group(v, layer) for v in (weights.before.scale, weights.before.shift))
        bias = bias + (kernel * shift).sum(axis=(0, 1, 2))
        kernel = kernel * scale
    if weights.after is not None:
        bias = bias * weights.after.scale + weights.after.shift
        kernel = kernel * weights.after.scale
    for branch in weights.parallel:
        kernel = kernel + _inside(branch.kernel * branch.norm.scale, layer)
        bias = bias + branch.norm.shift
    return replace(weights, kernel=kernel, bias=bias, before=None, after=None, parallel=())


def _per_group(values: Array, layer: Layer) -> Array:
    """Arrange values of input channels by the output channels that read them: (input channels of a
    group, output channels)."""
    inside = layer.channels_in // layer.groups
    of_group = values.reshape(layer.groups, inside)
    return of_group.repeat(layer.channels_out // layer.groups, axis=0).T


def _inside(kernel: Array, layer: Layer) -> Array:
    """A smaller kernel, centred in the layer's window and padded with zeros."""
    sides = [
        (low, layer.kernel[axis] - kernel.shape[axis] - low)
        for axis in range(2)
        for low in [padding_of_window(layer.kernel[axis], kernel.shape[axis])]
    ]
    return np.pad(kernel, (*sides, (0, 0), (0, 0)))


def _is_swallowed(step: Step) -> bool:
    """Whether the skip that ends here is folded into the kernel."""
    layer = step.layer
    whole = layer.groups == 1 or layer.is_depthwise
    whole &= layer.kind == "conv"
    return step.is_late and layer.skip == 1 and layer.activation == "none" and whole


def _swallow_skip(step: Step, weights: LayerWeights) -> LayerWeights:
    """The weights of a linear convolution with its skip folded into the kernel."""
    layer, norm = step.layer, weights.skip
    if layer.is_depthwise:
        around = identity_kernel(layer)
    else:
        around = groups_kernel(layer.channels_in, layer.channels_out)
    kernel, bias = weights.kernel, weights.bias
    if norm is not None:
        around, bias = around * norm.scale, bias + norm.shift
    if layer.stride == 1:
        around = _inside(around, layer)  # else it is broadcast over the window
    kernel = _grow_kernel(step, kernel) + around
    return replace(weights, kernel=kernel, bias=bias, skip=None)


def _grow_kernel(step: Step, kernel: Array) -> Array:
    """The kernel, padded with zeros to the window that `running` gives it."""
    rows, columns = _running(step).kernel
    if kernel.shape[:2] == (rows, columns):
        return kernel
    first = [padding(step.shape_in[axis], size, step.layer.stride)[0]
             for axis, size in enumerate((rows, columns))]  # fmt: skip
    window = np.zeros((rows, columns, *kernel.shape[2:]))
    window[first[0], first[1]] = kernel[0, 0]
    return window
