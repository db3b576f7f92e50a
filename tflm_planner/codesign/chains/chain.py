"""A network as a chain of layers, without weights and without TensorFlow.

    input --> Layer --> Layer --> Layer --> ...        a skip may start `skip` layers back
               |                    ^
               +------- skip -------+                  and is joined as `Join` says

`sizes` counts what a chain costs, `build` makes the model. It must not know families, and nothing
of targets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

LayerKind = Literal[
    "conv", "norm", "max_pool", "average_pool", "upsample", "join",
    "pool", "mean", "flatten", "dense", "softmax",
]  # fmt: skip
"""norm: multiplies each channel by a factor and adds an addend, where that cannot be folded into a
convolution. upsample: repeats each pixel `stride` times along both axes. join: computes nothing,
but a skip ends here. pool, mean: average over the whole image."""
Activation = Literal["none", "relu", "relu6"]
Join = Literal["sum", "concat", "late sum", "scaled late sum"]
"""How a skip joins the result of the layer at which it ends. sum: added before the activation; a
skip of another shape goes through a 1x1 convolution. concat: the skip's channels are concatenated
before those of the layer. late sum: added after the activation; a skip of another shape is reshaped
without weights (`reshaping`). scaled late sum: a late sum whose skip is multiplied by a factor and
shifted by an addend for each channel."""
Branches = Literal["none", "identity", "repvgg"]
"""Parallel branches of a convolution, which only training has: they fold into its kernel. identity:
a normalised copy of its operand, if channels and image size stay the same. repvgg: also a
normalised 1x1 convolution (Ding et al. 2021)."""
Shape = tuple[int, int, int]
"""Height, width and channels of one image."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer. kernel: rows and columns of its window. channels_in, channels_out: channels of a
    convolution, or lengths of a dense layer; of a flatten, the channels of the image and the length
    of the row that it becomes (0: the image is a single pixel). groups: groups of a convolution; if
    there are as many as channels, it is depthwise. activation: applied to the result, after a sum
    (but before a late sum). skip: how many layers, including this one, the skip that ends here goes
    around; 0 if no skip ends here. join: how the skip is joined. branch: for a concatenation,
    output channels of a 1x1 convolution on the skip (with the same activation); 0 for none.
    branches: parallel branches that a convolution has in training."""

    kind: LayerKind
    kernel: tuple[int, int] = (1, 1)
    stride: int = 1
    channels_in: int = 0
    channels_out: int = 0
    groups: int = 1
    activation: Activation = "none"
    skip: int = 0
    join: Join = "sum"
    branch: int = 0
    branches: Branches = "none"

    @property
    def is_depthwise(self) -> bool:
        """Whether each channel has a window of its own."""
        return self.kind == "conv" and self.groups > 1 and self.groups == self.channels_in

    @property
    def weights(self) -> int:
        """The number of weights of a convolution or dense layer, without biases and without those
        of a projection on its skip; 0 for other layers."""
        if self.kind not in ("conv", "dense"):
            return 0
        return math.prod(self.kernel) * (self.channels_in // self.groups) * self.channels_out


@dataclass(frozen=True, slots=True)
class Chain:
    """A network. dense_scales: how the converter quantises the weights of dense layers: one scale
    for each row, as it does today, or a single scale, as it did when the models of MLPerf Tiny were
    made."""

    name: str
    image: Shape
    layers: tuple[Layer, ...]
    dense_scales: Literal["rows", "one"] = "rows"


@dataclass(frozen=True, slots=True)
class Step:
    """A layer with its shapes in the chain. shape_out: the shape of its result, including a skip
    that is joined to it. source: the shape at which the skip that ends here starts; None without a
    skip. path: the layers that the skip goes around."""

    layer: Layer
    shape_in: Shape
    shape_out: Shape
    source: Shape | None = None
    path: tuple[Layer, ...] = ()

    @property
    def made(self) -> Shape:
        """The shape of the layer's result before a skip is joined."""
        height, width, channels = self.shape_out
        if self.source is not None and self.layer.join == "concat":
            channels -= self.layer.branch or self.source[2]
        return height, width, channels

    @property
    def is_projected(self) -> bool:
        """Whether the skip goes through a 1x1 convolution."""
        if self.source is None or self.is_late:
            return False
        if self.layer.join == "concat":
            return self.layer.branch > 0
        return self.source != self.shape_out

    @property
    def is_late(self) -> bool:
        """Whether the skip is added after the activation."""
        return self.source is not None and self.layer.join in ("late sum", "scaled late sum")


def steps(chain: Chain) -> tuple[Step, ...]:
    """The layers with their shapes. Raises ValueError if channels or images of connected layers do
    not match."""
    steps_so_far: list[Step] = []
    shapes = [chain.image]  # the operand of each layer
    for place, layer in enumerate(chain.layers):
        shape = shapes[-1]
        if layer.channels_in not in (0, shape[2]):
            raise ValueError(
                f"{chain.name}: layer {place} takes {layer.channels_in} channels, gets {shape[2]}"
            )
        if layer.skip > place + 1:
            raise ValueError(f"{chain.name}: the skip of layer {place} starts before the image")
        after = _result(layer, shape)
        source = shapes[place + 1 - layer.skip] if layer.skip else None
        if source is not None and layer.join == "concat":
            if source[:2] != after[:2]:
                raise ValueError(f"{chain.name}: layer {place} joins images of different sizes")
            after = (*after[:2], after[2] + (layer.branch or source[2]))
        if source is not None and layer.join == "sum":
            stride = -(-source[0] // after[0])  # of its 1x1 convolution, if it has one
            if tuple(-(-size // stride) for size in source[:2]) != after[:2]:
                raise ValueError(f"{chain.name}: layer {place} adds images of different sizes")
        path = chain.layers[place + 1 - layer.skip : place + 1] if layer.skip else ()
        steps_so_far.append(Step(layer, shape, after, source, path))
        shapes.append(after)
    return tuple(steps_so_far)


def _result(layer: Layer, shape: Shape) -> Shape:
    height, width, channels = shape
    if layer.kind == "upsample":
        return height * layer.stride, width * layer.stride, channels
    if layer.kind in ("max_pool", "average_pool"):
        return -(-height // layer.stride), -(-width // layer.stride), channels
    if layer.kind == "conv":
        return -(-height // layer.stride), -(-width // layer.stride), layer.channels_out
    if layer.kind in ("pool", "mean"):
        return 1, 1, channels
    if layer.kind == "flatten":
        return 1, 1, height * width * channels
    if layer.kind == "dense":
        return 1, 1, layer.channels_out
    return shape


def projection(step: Step) -> Layer:
    """The 1x1 convolution on a projected skip."""
    assert step.source is not None, "no skip ends here"
    if step.layer.join == "concat":
        activation = step.layer.activation
        return Layer("conv", (1, 1), 1, step.source[2], step.layer.branch, activation=activation)
    stride = -(-step.source[0] // step.shape_out[0])
    return Layer("conv", (1, 1), stride, step.source[2], step.shape_out[2])


def depthwise(kernel: tuple[int, int], stride: int, width: int) -> Layer:
    """A depthwise convolution."""
    return Layer("conv", kernel, stride, width, width, width)
