"""A network as a chain: what a designer varies, without weights and without TensorFlow.

    input --> Layer --> Layer --> Layer --> ...        a layer may add what lies `skip` layers back:
               |                    ^
               +------- skip -------+                  at another shape through a 1x1 convolution

It counts multiplications, parameters and the bytes that must live together; `build` makes the
model. It must not know families, and nothing of targets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["conv", "pool", "mean", "flatten", "dense", "softmax"]
Activation = Literal["none", "relu", "relu6"]
Shape = tuple[int, int, int]
"""Height, width and channels of one image."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer. kernel: rows and columns of a convolution's window. channels_in, channels_out: of
    a convolution, or the lengths of a dense layer. groups: of a convolution; as many as channels
    make it a depthwise one. activation: of its result, behind the sum where there is a skip.
    skip: how many layers, this one included, the added value goes around; 0: none is added."""

    kind: Kind
    kernel: tuple[int, int] = (1, 1)
    stride: int = 1
    channels_in: int = 0
    channels_out: int = 0
    groups: int = 1
    activation: Activation = "none"
    skip: int = 0

    @property
    def is_depthwise(self) -> bool:
        """Whether each channel has a window of its own."""
        return self.kind == "conv" and self.groups > 1 and self.groups == self.channels_in


@dataclass(frozen=True, slots=True)
class Chain:
    """A network. dense_scales: how the converter quantises the weights of dense layers: one scale
    a row, as it does today, or one in all, as it did when the models of MLPerf Tiny were made."""

    name: str
    image: Shape
    layers: tuple[Layer, ...]
    dense_scales: Literal["rows", "one"] = "rows"


@dataclass(frozen=True, slots=True)
class Step:
    """A layer with the shapes that it has in its chain. source: of what a skip adds, if one ends
    here, before it is brought to the shape of the result."""

    layer: Layer
    shape_in: Shape
    shape_out: Shape
    source: Shape | None = None

    @property
    def is_projected(self) -> bool:
        """Whether what the skip adds is brought to the result's shape by a convolution."""
        return self.source is not None and self.source != self.shape_out


def steps(chain: Chain) -> tuple[Step, ...]:
    """The layers with their shapes. Raises ValueError where widths do not follow each other."""
    found: list[Step] = []
    shape = chain.image
    for place, layer in enumerate(chain.layers):
        if layer.channels_in not in (0, shape[2]):
            raise ValueError(
                f"{chain.name}: layer {place} takes {layer.channels_in} channels, gets {shape[2]}"
            )
        after = _result(layer, shape)
        source = found[place + 1 - layer.skip].shape_in if layer.skip > 1 else None
        source = shape if layer.skip == 1 else source
        found.append(Step(layer, shape, after, source))
        shape = after
    return tuple(found)


def _result(layer: Layer, shape: Shape) -> Shape:
    height, width, channels = shape
    if layer.kind == "conv":
        return -(-height // layer.stride), -(-width // layer.stride), layer.channels_out
    if layer.kind in ("pool", "mean"):
        return 1, 1, channels
    if layer.kind == "dense":
        return 1, 1, layer.channels_out
    return shape


@dataclass(frozen=True, slots=True)
class Size:
    """macs: multiplications of one inference. parameters: weights and biases. parameter_bytes: of
    them in a file of int8, whose biases have four bytes."""

    macs: int
    parameters: int
    parameter_bytes: int


def size_of(chain: Chain) -> Size:
    """What the network costs in computing and in flash."""
    macs = weights = biases = 0
    for layer, shape in _products(chain):
        one = math.prod(layer.kernel) * (layer.channels_in // layer.groups) * layer.channels_out
        macs += one * shape[0] * shape[1]
        weights += one
        biases += layer.channels_out
    return Size(macs, weights + biases, weights + 4 * biases)


def projection(step: Step) -> Layer:
    """The 1x1 convolution that brings what a skip adds to the shape of the result."""
    assert step.source is not None, "no skip ends here"
    stride = -(-step.source[0] // step.shape_out[0])
    return Layer("conv", (1, 1), stride, step.source[2], step.shape_out[2])


def _products(chain: Chain) -> Iterator[tuple[Layer, Shape]]:
    """All convolutions and dense layers, projections included, and the shapes of their results."""
    for step in steps(chain):
        if step.layer.kind in ("conv", "dense"):
            yield step.layer, step.shape_out
        if step.is_projected:
            yield projection(step), step.shape_out


@dataclass(frozen=True, slots=True)
class Floors:
    """Bytes that no head is below. stock: where a result never shares memory with an operand.
    plan: in any order, where it may share all of it. tiles: where no operator need be whole, so
    that only the image must be."""

    stock: int
    plan: int
    tiles: int


def floors_of(chain: Chain) -> Floors:
    """Floors from the fattest operator alone: no plan is made."""
    found = steps(chain)
    stock, plan = 0, 0
    for place, step in enumerate(found):
        before, after = math.prod(step.shape_in), math.prod(step.shape_out)
        kept, is_read_again = _kept(found, place)
        both, either = before + after, max(before, after)
        stock = max(stock, kept + (before if step.layer.kind == "flatten" else both))
        plan = max(plan, kept + (both if is_read_again else either))
        if step.source is not None:  # the sum may lie where an operand was
            stock, plan = max(stock, 3 * after), max(plan, 2 * after)
    return Floors(stock, plan, math.prod(chain.image))


def _kept(found: Sequence[Step], place: int) -> tuple[int, bool]:
    """Bytes that skips around a layer keep while it runs, its own operand apart; and whether they
    keep that, so that it cannot be written over. A skip through a convolution keeps the smaller of
    what it reads and what it makes, since either may be there."""
    kept, is_read_again = 0, False
    for end in range(place, len(found)):
        step = found[end]
        first = end + 1 - step.layer.skip
        if step.source is None or first > place:
            continue
        if first == place:
            is_read_again |= not step.is_projected
        elif step.is_projected:
            kept += min(math.prod(step.source), math.prod(step.shape_out))
        else:
            kept += math.prod(step.source)
    return kept, is_read_again
