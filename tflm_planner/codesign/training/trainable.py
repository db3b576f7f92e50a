"""A chain with variables that can be trained and turned into a `Network`.

    chain, norms --Trainable--> variables --scores--> loss      normalised by the batch's moments
                                  |  moving means, variances   used by inference
                                  `--network--> Network        to be folded, built, rounded

A folded network can be trained, too (`of_network`). It has no normalisations, and its values and
weights may be rounded as in int8, so that training adapts to the rounding.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from tflm_planner.codesign.chains.chain import Chain
from tflm_planner.codesign.framework import (
    FrameworkTensor,
    array_of,
    fake_quantized,
    keras,
    without_gradients,
)
from tflm_planner.codesign.networks.ranges import LEAST_RANGE, ValueRange
from tflm_planner.codesign.networks.weights import (
    Array,
    Branch,
    LayerWeights,
    Network,
    Norm,
    Norms,
    draw,
)
from tflm_planner.codesign.training.forward import forward
from tflm_planner.codesign.training.images import Images

EPSILON = 1e-3
"""Added to variances, as Keras does."""


class Trainable:
    """A chain with variables. numbers: all variables that inference needs, by name. trained: those
    of them that gradients change. rounding: ranges of the values, if values and weights are to be
    rounded as in int8; else None."""

    def __init__(self, chain: Chain, numbers: Mapping[str, Array], fixed: Collection[str]) -> None:
        self.chain = chain
        self.rounding: tuple[ValueRange, ...] | None = None
        self.numbers: dict[str, Any] = {
            name: keras().Variable(values.astype(np.float32), name=name.replace(".", "_"))
            for name, values in numbers.items()
        }
        self.trained: dict[str, Any] = {
            name: variable for name, variable in self.numbers.items() if not _is_fixed(name, fixed)
        }

    def scores(
        self, images: FrameworkTensor, *, training: bool
    ) -> tuple[FrameworkTensor, dict[str, FrameworkTensor]]:
        """Scores of images, and in training the batch's mean and variance at each normalisation."""
        passing = _Pass(self, training=training)
        return forward(self.chain, passing, images), passing.moments

    def predict(self, images: Images, batch: int = 256) -> Array:
        """Scores of many images, as in inference."""
        ops = keras().ops
        with without_gradients():
            parts = [
                self.scores(ops.convert_to_tensor(images[k : k + batch]), training=False)[0]
                for k in range(0, len(images), batch)
            ]
            return np.concatenate([array_of(part) for part in parts])

    def accuracy(self, images: Images, labels: Array) -> float:
        """The share of labels, of images or of cells, whose class has the largest score."""
        return float((self.predict(images).argmax(axis=-1) == labels).mean())

    def state(self) -> dict[str, Array]:
        """The values of all variables, by name."""
        return {name: array_of(variable) for name, variable in self.numbers.items()}

    def load(self, state: Mapping[str, Array]) -> None:
        """Set all variables to these values."""
        for name, variable in self.numbers.items():
            variable.assign(state[name])

    def network(self) -> Network:
        """The chain with its numbers as a network."""
        state = self.state()
        weights = (_layer_weights(state, place) for place in range(len(self.chain.layers)))
        return Network(self.chain, tuple(weights))


def untrained(chain: Chain, seed: int, norms: Norms = "after") -> Trainable:
    """The chain with weights from a seed, and normalisations that initially change nothing."""
    drawn = draw(chain, seed, norms)
    numbers: dict[str, Array] = {}
    fixed: set[str] = set()
    for place, (layer, weights) in enumerate(zip(chain.layers, drawn.weights, strict=True)):
        _add_layer(numbers, place, weights, has_bias=norms == "before" or layer.kind == "dense")
        for number, branch in enumerate(weights.parallel):
            is_identity = np.array_equal(branch.kernel, branch.kernel.astype(bool))
            if is_identity:
                fixed.add(f"{place}.parallel{number}.kernel")
    return Trainable(chain, numbers, fixed)


def of_network(network: Network) -> Trainable:
    """A folded network, to be trained further in its folded form."""
    assert network.is_folded, "what is folded has nothing to normalise"
    numbers: dict[str, Array] = {}
    for place, weights in enumerate(network.weights):
        if weights.kernel.size:
            numbers[f"{place}.kernel"], numbers[f"{place}.bias"] = weights.kernel, weights.bias
        if weights.projection is not None:
            names = f"{place}.projection.kernel", f"{place}.projection.bias"
            numbers.update(zip(names, weights.projection, strict=True))
        for role, norm in (("after", weights.after), ("skip", weights.skip)):
            if norm is not None:
                numbers[f"{place}.{role}.scale"] = norm.scale
                numbers[f"{place}.{role}.shift"] = norm.shift
    return Trainable(network.chain, numbers, ())


def _add_layer(
    numbers: dict[str, Array], place: int, weights: LayerWeights, *, has_bias: bool
) -> None:
    """Add the initial numbers of a layer by name. has_bias: whether it has biases, which are 0 at
    first; a layer that is normalised afterwards needs none."""
    if weights.kernel.size:
        numbers[f"{place}.kernel"] = weights.kernel
        if has_bias:
            numbers[f"{place}.bias"] = np.zeros(weights.bias.shape)
    if weights.before is not None:
        _add_norm(numbers, f"{place}.before", len(weights.before.scale))
    if weights.after is not None:
        _add_norm(numbers, f"{place}.after", len(weights.after.scale))
    if weights.skip is not None:
        _add_norm(numbers, f"{place}.skip", len(weights.skip.scale))
    if weights.projection is not None:
        numbers[f"{place}.projection.kernel"] = weights.projection[0]
        _add_norm(numbers, f"{place}.projection", len(weights.projection[1]))
    for number, branch in enumerate(weights.parallel):
        numbers[f"{place}.parallel{number}.kernel"] = branch.kernel
        _add_norm(numbers, f"{place}.parallel{number}", branch.kernel.shape[3])


def _add_norm(numbers: dict[str, Array], name: str, width: int) -> None:
    numbers[f"{name}.gamma"], numbers[f"{name}.beta"] = np.ones(width), np.zeros(width)
    numbers[f"{name}.mean"], numbers[f"{name}.variance"] = np.zeros(width), np.ones(width)


def _is_fixed(name: str, fixed: Collection[str]) -> bool:
    return name in fixed or name.endswith((".mean", ".variance"))


class _Pass:
    """The numbers of one pass (see `PassNumbers`). moments: the batch's mean and variance at each
    normalisation."""

    def __init__(self, of: Trainable, *, training: bool) -> None:
        self._numbers, self._training = of.numbers, training
        self._ranges: Sequence[ValueRange] | None = of.rounding
        self._seen = 0
        self.moments: dict[str, FrameworkTensor] = {}

    def get(self, name: str) -> FrameworkTensor | None:
        """See `PassNumbers`."""
        value = self._numbers.get(name)
        if value is None or self._ranges is None or not name.endswith("kernel"):
            return value
        return rounded_weights(value)

    def norm(self, name: str, x: FrameworkTensor) -> tuple[FrameworkTensor, FrameworkTensor] | None:
        """See `PassNumbers`."""
        if f"{name}.scale" in self._numbers:  # the network is folded
            scale, shift = self._numbers[f"{name}.scale"], self._numbers[f"{name}.shift"]
            if self._ranges is not None and name.endswith(".after"):  # a layer of the kind norm
                return rounded_factors(scale), rounded_factors(shift)
            return scale, shift  # those of a skip fold into a kernel that int8 holds exactly
        if f"{name}.gamma" not in self._numbers:
            return None
        ops = keras().ops
        mean, variance = self._numbers[f"{name}.mean"], self._numbers[f"{name}.variance"]
        if self._training:
            mean, variance = ops.moments(x, tuple(range(len(x.shape) - 1)))
            self.moments[f"{name}.mean"], self.moments[f"{name}.variance"] = mean, variance
        scale = self._numbers[f"{name}.gamma"] * ops.rsqrt(variance + EPSILON)
        return scale, self._numbers[f"{name}.beta"] - mean * scale

    def seen(self, x: FrameworkTensor) -> FrameworkTensor:
        """See `PassNumbers`."""
        if self._ranges is None:
            return x
        found = self._ranges[self._seen]
        self._seen += 1
        low = (-128 - found.zero_point) * found.scale
        high = (127 - found.zero_point) * found.scale
        return fake_quantized(x, low, high)


def rounded_weights(kernel: FrameworkTensor) -> FrameworkTensor:
    """A kernel rounded as in int8, with a scale for each output channel. The gradient ignores the
    rounding."""
    ops = keras().ops
    axes = tuple(range(len(kernel.shape) - 1))
    scale = ops.maximum(ops.max(ops.abs(ops.stop_gradient(kernel)), axes), LEAST_RANGE) / 127
    rounded = ops.round(kernel / scale) * scale
    return kernel + ops.stop_gradient(rounded - kernel)


def rounded_factors(values: FrameworkTensor) -> FrameworkTensor:
    """The factors or addends of a norm layer rounded as in int8, with one scale and a zero point.
    The gradient ignores the rounding."""
    ops = keras().ops
    found = ops.stop_gradient(values)
    low, high = (ops.minimum(ops.min(found), 0.0), ops.maximum(ops.max(found), 0.0))
    scale = ops.maximum(high - low, LEAST_RANGE) / 255
    zero_point = ops.round(-128 - low / scale)
    steps = ops.clip(ops.round(found / scale) + zero_point, -128.0, 127.0)
    return values + ops.stop_gradient((steps - zero_point) * scale - found)


def _layer_weights(state: Mapping[str, Array], place: int) -> LayerWeights:
    """The numbers of a layer, with moving means and variances turned into factors and addends."""
    name = f"{place}."
    nothing: Array = np.zeros(0)
    kernel: Array = state.get(f"{name}kernel", nothing).astype(np.float64)
    no_bias: Array = np.zeros(kernel.shape[-1] if kernel.ndim > 1 else 0)
    parallel: list[Branch] = []
    while f"{name}parallel{len(parallel)}.kernel" in state:
        beside = f"{name}parallel{len(parallel)}"
        norm = _norm(state, beside)
        assert norm is not None, "a branch is normalised"
        parallel.append(Branch(state[f"{beside}.kernel"].astype(np.float64), norm))
    return LayerWeights(
        kernel=kernel,
        bias=state.get(f"{name}bias", no_bias).astype(np.float64),
        before=_norm(state, f"{name}before"),
        after=_norm(state, f"{name}after"),
        skip=_norm(state, f"{name}skip"),
        projection=_projection(state, f"{name}projection"),
        parallel=tuple(parallel),
    )


def _norm(state: Mapping[str, Array], name: str) -> Norm | None:
    if f"{name}.scale" in state:
        return Norm(*(state[f"{name}.{k}"].astype(np.float64) for k in ("scale", "shift")))
    if f"{name}.gamma" not in state:
        return None
    gamma, beta, mean, variance = (
        state[f"{name}.{k}"].astype(np.float64) for k in ("gamma", "beta", "mean", "variance")
    )
    scale = gamma / np.sqrt(variance + EPSILON)
    return Norm(scale, beta - mean * scale)


def _projection(state: Mapping[str, Array], name: str) -> tuple[Array, Array] | None:
    """Kernel and bias of a projection, with its normalisation folded into them; None if there is
    none."""
    if f"{name}.kernel" not in state:
        return None
    kernel: Array = state[f"{name}.kernel"].astype(np.float64)
    no_bias: Array = np.zeros(int(kernel.shape[-1]))
    bias = state.get(f"{name}.bias", no_bias).astype(np.float64)
    norm = _norm(state, name)
    return (kernel, bias) if norm is None else (kernel * norm.scale, bias * norm.scale + norm.shift)
