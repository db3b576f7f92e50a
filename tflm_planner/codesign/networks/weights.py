"""A network is a chain with weights, in the form in which it is trained or in the form that runs.

    trained:  pad --> before --> kernel, bias --> after --+--> activation --+-->
                |                                         |                 |
                +--> parallel kernels, each with a norm --+  reshaped skip, its norm (late sums)

`folding.fold` turns this into one kernel and one bias for each layer. A normalisation is given as
its factor and addend in inference. It must not know how models are written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tflm_planner.codesign.chains.chain import Chain, Layer, Step, projection, steps

Array = npt.NDArray[Any]
_NOTHING = np.zeros(0)


@dataclass(frozen=True)
class Norm:
    """A normalisation: for each channel the factor gamma / sigma, and the addend beta - mean *
    gamma / sigma."""

    scale: Array
    shift: Array


@dataclass(frozen=True)
class Branch:
    """A convolution parallel to that of a layer. Its results are added before the activation.
    kernel: (rows, columns, in, out), with a window no larger than the layer's."""

    kernel: Array
    norm: Norm


@dataclass(frozen=True)
class LayerWeights:
    """The numbers of one layer. kernel: (rows, columns, input channels of a group, output
    channels); for a dense layer (in, out). before: normalisation of the convolution's padded
    operand; padding is included because only then can it be folded exactly. after: normalisation of
    the convolution's result, or the factors of a norm layer. skip: normalisation of a scaled late
    sum. projection: kernel and bias of the convolution on the skip. parallel: branches that only
    training has."""

    kernel: Array = field(default_factory=lambda: _NOTHING)
    bias: Array = field(default_factory=lambda: _NOTHING)
    before: Norm | None = None
    after: Norm | None = None
    skip: Norm | None = None
    projection: tuple[Array, Array] | None = None
    parallel: tuple[Branch, ...] = ()


@dataclass(frozen=True)
class Network:
    """A chain with the numbers of each layer."""

    chain: Chain
    weights: tuple[LayerWeights, ...]

    @property
    def is_folded(self) -> bool:
        """Whether no normalisation or branch is left that only training needs."""
        return not any(
            w.before or w.parallel or (w.after and layer.kind != "norm")
            for layer, w in zip(self.chain.layers, self.weights, strict=True)
        )


Norms = Literal["before", "after"]
"""Whether each convolution is normalised before or after it. Layers of the kind norm are normalised
as well, and stay."""


def draw(chain: Chain, seed: int = 0, norms: Norms | Literal["none"] = "none") -> Network:
    """The chain with weights from a seed, scaled by fan-in, in the form in which it is trained.
    Factors and addends of normalisations are random, as if trained."""
    random = np.random.default_rng(seed)
    return Network(chain, tuple(_draw_layer(random, step, norms) for step in steps(chain)))


def _draw_layer(random: np.random.Generator, step: Step, norms: str) -> LayerWeights:
    layer = step.layer
    if layer.kind == "dense":
        kernel = _kernel(random, (layer.channels_in, layer.channels_out), layer.channels_in)
        return LayerWeights(kernel, random.normal(size=layer.channels_out) * 0.1)
    skip = _norm(random, step.shape_out[2]) if layer.join == "scaled late sum" else None
    skip = skip if step.is_late else None
    around = _draw_conv(random, projection(step)) if step.is_projected else None
    if layer.kind == "norm":
        after = _norm(random, step.shape_in[2])
        return LayerWeights(after=after, skip=skip, projection=around)
    if layer.kind != "conv":
        return LayerWeights(skip=skip, projection=around)
    kernel, bias = _draw_conv(random, layer)
    return LayerWeights(
        kernel=kernel,
        bias=bias,
        before=_norm(random, layer.channels_in) if norms == "before" else None,
        after=_norm(random, layer.channels_out) if norms == "after" else None,
        skip=skip,
        projection=around,
        parallel=_branches(random, layer),
    )


def _branches(random: np.random.Generator, layer: Layer) -> tuple[Branch, ...]:
    branches: list[Branch] = []
    out = layer.channels_out
    if layer.branches != "none" and layer.channels_in == out and layer.stride == 1:
        branches.append(Branch(identity_kernel(layer), _norm(random, out)))
    if layer.branches == "repvgg":
        inside = layer.channels_in // layer.groups
        kernel = _kernel(random, (1, 1, inside, out), inside)
        branches.append(Branch(kernel, _norm(random, out)))
    return tuple(branches)


def _draw_conv(random: np.random.Generator, layer: Layer) -> tuple[Array, Array]:
    shape = (*layer.kernel, layer.channels_in // layer.groups, layer.channels_out)
    fan_in = int(np.prod(shape[:3]))
    return _kernel(random, shape, fan_in), random.normal(size=layer.channels_out) * 0.1


def _kernel(random: np.random.Generator, shape: tuple[int, ...], fan_in: int) -> Array:
    return random.normal(size=shape) * (2 / fan_in) ** 0.5


def _norm(random: np.random.Generator, width: int) -> Norm:
    return Norm(random.uniform(0.5, 1.2, width), random.normal(size=width) * 0.3)


def identity_kernel(layer: Layer) -> Array:
    """The 1x1 kernel, with the layer's groups, that copies each channel."""
    inside, out = layer.channels_in // layer.groups, layer.channels_out
    kernel = np.zeros((1, 1, inside, out))
    kernel[0, 0, np.arange(out) % inside, np.arange(out)] = 1
    return kernel


def groups_kernel(width: int, out: int) -> Array:
    """The 1x1 kernel that adds input channel i to output channel i modulo `out`. If there are more
    output than input channels, the further ones are 0."""
    kernel = np.zeros((1, 1, width, out))
    kernel[0, 0, np.arange(width), np.arange(width) % out] = 1
    return kernel
