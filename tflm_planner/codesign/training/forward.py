"""Computes a chain in Keras: the same function as `evaluate`, but differentiable.

    Numbers of a pass  (`PassNumbers`)     weights, normalisations, and a hook on values
    chain, images --forward--> scores      logits, before the softmax

Numbers are requested by name: "3.kernel" for layer 3, "3.after" for its normalisation. So the same
code serves training, fine-tuning with rounded numbers, and a part of a larger network. It must not
know where numbers come from.
"""

from __future__ import annotations

from typing import Protocol

from tflm_planner.codesign.chains.chain import Chain, Layer, Step, projection, steps
from tflm_planner.codesign.chains.reshaping import SkipOperator, reshaping
from tflm_planner.codesign.framework import FrameworkTensor, keras
from tflm_planner.codesign.networks.evaluate import padding, padding_of_window


class PassNumbers(Protocol):
    """The numbers of one pass through a network."""

    def get(self, name: str) -> FrameworkTensor | None:
        """The weights of this name; None if there are none."""
        ...

    def norm(self, name: str, x: FrameworkTensor) -> tuple[FrameworkTensor, FrameworkTensor] | None:
        """Factor and addend for each channel of `x`; None if there is no normalisation of this
        name."""
        ...

    def seen(self, x: FrameworkTensor) -> FrameworkTensor:
        """A hook that is called with each value that `build` would make, in the same order. The
        returned tensor replaces the value."""
        ...


def forward(chain: Chain, numbers: PassNumbers, images: FrameworkTensor) -> FrameworkTensor:
    """Scores of images (number, rows, columns, channels): (number, classes), or of cells (number,
    rows of cells, columns, classes) if the chain ends in a convolution."""
    values = [numbers.seen(images)]
    for place, step in enumerate(steps(chain)):
        if step.layer.kind == "softmax":
            break
        source = values[place + 1 - step.layer.skip] if step.source is not None else None
        values.append(_Layer(place, step, numbers).run(values[-1], source))
    return values[-1]


class _Layer:
    """One layer of a pass."""

    def __init__(self, place: int, step: Step, numbers: PassNumbers) -> None:
        self._step, self._layer, self._numbers = step, step.layer, numbers
        self._prefix = f"{place}."
        self._ops = keras().ops

    def run(self, x: FrameworkTensor, source: FrameworkTensor | None) -> FrameworkTensor:
        """The layer's result, with its skip joined."""
        layer, step, seen = self._layer, self._step, self._numbers.seen
        activates = source is None or step.is_late or layer.join == "concat"
        y = self._alone(x)
        if activates and layer.kind != "join":  # which computes nothing
            y = self._activate(y)
        y = seen(y) if layer.kind in ("conv", "dense", "norm") else y
        if source is None:
            return y
        if step.is_late:
            return seen(y + self._late(source))
        if step.is_projected:
            source = self._projected(source)
            source = seen(self._activate(source) if layer.join == "concat" else source)
        if layer.join == "concat":
            return seen(self._ops.concatenate((source, y), 3))
        return seen(self._activate(y + source))

    def _alone(self, x: FrameworkTensor) -> FrameworkTensor:
        """The layer's result before its activation, and before a skip is joined."""
        ops, layer = self._ops, self._layer
        if layer.kind == "conv":
            return self._conv(x)
        if layer.kind == "dense":
            flat = ops.reshape(x, (-1, layer.channels_in))
            return flat @ self._get("kernel") + self._get("bias")
        if layer.kind == "norm":
            norm = self._numbers.norm(f"{self._prefix}after", x)
            assert norm is not None, "a layer of the kind norm has one"
            return self._numbers.seen(x * norm[0]) + norm[1]
        return self._without_weights(x)

    def _without_weights(self, x: FrameworkTensor) -> FrameworkTensor:
        ops, layer = self._ops, self._layer
        if layer.kind in ("pool", "mean"):
            return ops.mean(x, (1, 2), keepdims=True)
        if layer.kind == "flatten":
            return ops.reshape(x, (-1, self._step.made[2]))
        if layer.kind == "max_pool":
            return ops.max_pool(x, layer.kernel, layer.stride, "same")
        if layer.kind == "average_pool":
            return ops.average_pool(x, layer.kernel, layer.stride, "same")
        if layer.kind == "upsample":
            return ops.repeat(ops.repeat(x, layer.stride, 1), layer.stride, 2)
        assert layer.kind == "join", "the softmax is left out"
        return x

    def _conv(self, x: FrameworkTensor) -> FrameworkTensor:
        layer = self._layer
        padded = self._padded(x, layer)
        before = self._numbers.norm(f"{self._prefix}before", x)
        y = self._product(padded if before is None else _scaled(padded, before), layer, "kernel")
        bias = self._numbers.get(f"{self._prefix}bias")
        y = y if bias is None else y + bias
        y = self._normed("after", y)
        number = 0
        while self._numbers.get(f"{self._prefix}parallel{number}.kernel") is not None:
            name = f"parallel{number}"
            window = (1, 1)
            ins, outs = layer.channels_in, layer.channels_out
            beside = Layer("conv", window, layer.stride, ins, outs, layer.groups)
            centred = _centred(padded, layer, self._step)
            y = y + self._normed(name, self._product(centred, beside, f"{name}.kernel"))
            number += 1
        return y

    def _product(self, padded: FrameworkTensor, layer: Layer, name: str) -> FrameworkTensor:
        """Convolve a padded image."""
        ops, kernel = self._ops, self._get(name)
        if layer.is_depthwise:
            each = layer.channels_out // layer.channels_in
            turned = ops.reshape(kernel, (*kernel.shape[:2], layer.channels_in, each))
            return ops.depthwise_conv(padded, turned, layer.stride)
        if layer.groups == 1:
            return ops.conv(padded, kernel, layer.stride)
        images, kernels = (ops.split(x, layer.groups, 3) for x in (padded, kernel))
        parts = zip(images, kernels, strict=True)
        return ops.concatenate([ops.conv(x, k, layer.stride) for x, k in parts], 3)

    def _projected(self, source: FrameworkTensor) -> FrameworkTensor:
        around = projection(self._step)
        y = self._product(self._padded(source, around), around, "projection.kernel")
        bias = self._numbers.get(f"{self._prefix}projection.bias")
        return self._normed("projection", y if bias is None else y + bias)

    def _late(self, x: FrameworkTensor) -> FrameworkTensor:
        """The summand of a late skip."""
        for part in reshaping(self._step):
            x = self._part(part, x)
            if part.is_scaled:
                x = self._normed("skip", x)
            if part.layer is not None:  # PAD keeps the range of its operand
                x = self._numbers.seen(x)
        return x

    def _part(self, part: SkipOperator, x: FrameworkTensor) -> FrameworkTensor:
        ops, width = self._ops, part.shape[2]
        if part.kind == "window":
            assert part.layer is not None, "a window has one"
            layer = part.layer
            if layer.kernel == (1, 1) and layer.stride == 1:
                return x
            area = layer.kernel[0] * layer.kernel[1]
            padded = self._padded(x, layer)
            return area * ops.average_pool(padded, layer.kernel, layer.stride)
        missing = -x.shape[3] % width
        x = ops.pad(x, ((0, 0), (0, 0), (0, 0), (0, missing)))
        shape = (-1, *part.shape[:2], (x.shape[3]) // width, width)
        return ops.sum(ops.reshape(x, shape), 3)

    def _normed(self, role: str, x: FrameworkTensor) -> FrameworkTensor:
        norm = self._numbers.norm(f"{self._prefix}{role}", x)
        return x if norm is None else _scaled(x, norm)

    def _padded(self, x: FrameworkTensor, layer: Layer) -> FrameworkTensor:
        sides = [padding(x.shape[axis + 1], layer.kernel[axis], layer.stride) for axis in range(2)]
        if not any(low or high for low, high in sides):
            return x
        return self._ops.pad(x, ((0, 0), *sides, (0, 0)))

    def _activate(self, x: FrameworkTensor) -> FrameworkTensor:
        if self._layer.activation == "none":
            return x
        ops = self._ops
        return ops.relu(x) if self._layer.activation == "relu" else ops.relu6(x)

    def _get(self, name: str) -> FrameworkTensor:
        value = self._numbers.get(f"{self._prefix}{name}")
        assert value is not None, f"a layer has no {name}"
        return value


def _scaled(x: FrameworkTensor, norm: tuple[FrameworkTensor, FrameworkTensor]) -> FrameworkTensor:
    scale, shift = norm
    return x * scale + shift


def _centred(padded: FrameworkTensor, layer: Layer, step: Step) -> FrameworkTensor:
    """The part of a padded image that a window of one pixel reads if it is centred in the layer's
    window."""
    rows, columns = (padding_of_window(layer.kernel[axis], 1) for axis in range(2))
    height = padded.shape[1] - layer.kernel[0] + 1
    width = padded.shape[2] - layer.kernel[1] + 1
    return padded[:, rows : rows + height, columns : columns + width]
