"""A super-network, which holds the weights of all networks of a space, and its training.

    largest network --train--> channels sorted --train with parts--> accuracy of any member
                                                                     without training it

A member consists of the first channels of each layer, the middle of each window, and the first
blocks of each stage (Cai et al. 2020; Lin et al. 2021, appendix B). Its normalisations have their
own means and variances, which are estimated on some images before the member is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tflm_planner.codesign.chains.chain import Chain
from tflm_planner.codesign.framework import (
    FrameworkTensor,
    array_of,
    gradients,
    keras,
    without_gradients,
)
from tflm_planner.codesign.joint.space import Genes, SearchSpace
from tflm_planner.codesign.networks.weights import Array
from tflm_planner.codesign.training.data_set import DataSet
from tflm_planner.codesign.training.forward import forward
from tflm_planner.codesign.training.images import resize
from tflm_planner.codesign.training.loop import (
    Recipe,
    batches,
    batches_done,
    descend,
    learning_rate,
    mean_cross_entropy,
    train,
    zero_momenta,
)
from tflm_planner.codesign.training.trainable import (
    EPSILON,
    Trainable,
    untrained,
)
from tflm_planner.support.progress import Progress, Seldom, silent

ESTIMATION = 256
"""Number of images from which means and variances of a member are estimated."""
_LARGEST = Recipe(epochs=4, shift=1)
_ELASTIC = Recipe(epochs=4, rate=0.05, shift=1)


@dataclass(frozen=True)
class SuperNetworkRecipe:
    """How to train a super-network. largest: how the largest network is trained first. elastic: how
    it is then trained together with its parts. parts: how many random members each step of this has
    in addition to the largest and the smallest."""

    largest: Recipe = _LARGEST
    elastic: Recipe = _ELASTIC
    parts: int = 2


class SuperNetwork:
    """The largest network of a space, with all its parts. images: means and variances of members
    are estimated on the first `ESTIMATION` of them, which must therefore be of all classes: data
    sets are sorted by class, so shuffle them."""

    def __init__(self, space: SearchSpace, images: Array, seed: int = 0) -> None:
        self.space = space
        self._images = images[:ESTIMATION]
        largest = space.decode(space.largest).chain()
        self.whole = untrained(largest, seed)
        self._by_side: dict[int, Array] = {}

    def scores(
        self, genes: Genes, images: FrameworkTensor
    ) -> tuple[FrameworkTensor, dict[str, FrameworkTensor]]:
        """Scores of a member, normalised by the batch, and the batch's mean and variance at each
        normalisation. images: in the member's resolution."""
        part = _Part(self, genes, None)
        return forward(part.chain, part, images), part.moments

    def statistics(self, genes: Genes) -> dict[str, Array]:
        """Estimated means and variances of a member's normalisations, by their names in its
        chain."""
        side = self.space.decode(genes).resolution
        if side not in self._by_side:
            self._by_side[side] = resize(self._images, side)
        ops = keras().ops
        with without_gradients():
            _, moments = self.scores(genes, ops.convert_to_tensor(self._by_side[side]))
        return {name: array_of(value) for name, value in moments.items()}

    def accuracy(self, genes: Genes, images: Array, labels: Array) -> float:
        """The accuracy of a member on images of any size."""
        part = _Part(self, genes, self.statistics(genes))
        small = resize(images, self.space.decode(genes).resolution)
        ops = keras().ops
        with without_gradients():
            scores = forward(part.chain, part, ops.convert_to_tensor(small))
        return float((array_of(scores).argmax(axis=1) == labels).mean())

    def member(self, genes: Genes) -> Trainable:
        """A member with a copy of its weights, to be trained further."""
        part = _Part(self, genes, None)
        statistics = self.statistics(genes)
        numbers: dict[str, Array] = {}
        for name in part.names():
            kind = name.rpartition(".")[2]
            if kind in ("mean", "variance"):
                numbers[name] = statistics[name]
            else:
                numbers[name] = array_of(part.slice(name))
        return Trainable(part.chain, numbers, ())

    def sort_channels(self) -> None:
        """Sort the channels of each layer by the sums of absolute weights of their filters, largest
        first, and permute their consumers accordingly. The function of the largest network stays
        the same."""
        self.whole.load(_sorted(self.space, self.whole.state()))


def train_super_network(
    network: SuperNetwork, data: DataSet, recipe: SuperNetworkRecipe, say: Progress = silent
) -> None:
    """Train the largest network, sort its channels, then train it with its parts. say: as in
    `train`."""
    side = network.space.resolutions[-1]
    whole = replace(
        data, images=resize(data.images, side), test_images=resize(data.test_images, side)
    )
    train(network.whole, whole, recipe.largest, say=lambda words: say(f"largest, {words}"))
    network.sort_channels()
    random = np.random.default_rng(recipe.elastic.seed)
    momenta = zero_momenta(network.whole)
    for epoch in range(recipe.elastic.epochs):
        losses: list[float] = []
        seldom = Seldom(lambda words: say(f"with parts, {words}"))
        for number, (images, targets) in enumerate(batches(data, recipe.elastic, epoch)):
            rate = learning_rate(recipe.elastic, len(data.images), epoch, number)
            drawn = [network.space.random(random) for _ in range(recipe.parts)]
            members = [network.space.largest, network.space.smallest, *drawn]
            losses.append(_step(network, members, images, targets, rate, recipe.elastic, momenta))
            seldom.say(batches_done(recipe.elastic, epoch, len(data.images), losses))
        say(f"with parts, epoch {epoch + 1} of {recipe.elastic.epochs}: loss {np.mean(losses):.3f}")


def _step(
    network: SuperNetwork,
    members: Sequence[Genes],
    images: Array,
    targets: Array,
    rate: float,
    recipe: Recipe,
    momenta: dict[str, Any],
) -> float:
    """Make one step with the mean gradient of several members. Returns the mean loss."""
    ops, trained = keras().ops, network.whole.trained
    total = 0.0
    sums: dict[str, Any] = {}
    for genes in members:
        small = ops.convert_to_tensor(resize(images, network.space.decode(genes).resolution))

        def loss(genes: Genes = genes, small: FrameworkTensor = small) -> FrameworkTensor:
            scores, _ = network.scores(genes, small)
            return mean_cross_entropy(ops.convert_to_tensor(targets), scores)

        value, found = gradients(loss, list(trained.values()))
        for name, gradient in zip(trained, found, strict=True):
            if gradient is not None:  # None for variables that the member lacks
                dense = ops.convert_to_tensor(gradient) / len(members)
                sums[name] = dense if name not in sums else sums[name] + dense
        total += float(value) / len(members)
    descend(network.whole, momenta, sums, recipe, rate)
    return total


class _Part:
    """The numbers of a member (see `PassNumbers`), as slices of those of the largest network.
    statistics: means and variances of its normalisations; None to use those of the batch."""

    def __init__(
        self, network: SuperNetwork, genes: Genes, statistics: dict[str, Array] | None
    ) -> None:
        member = network.space.decode(genes)
        self.chain: Chain = member.chain()
        self.moments: dict[str, FrameworkTensor] = {}
        self._places, self._numbers = member.places(), network.whole.numbers
        self._statistics = statistics

    def names(self) -> Iterator[str]:
        """The names of all numbers that the member has."""
        by_place: dict[str, list[str]] = {}
        for name in self._numbers:
            place, _, role = name.partition(".")
            by_place.setdefault(place, []).append(role)
        for place, of_whole in enumerate(self._places):
            yield from (f"{place}.{role}" for role in by_place.get(str(of_whole), ()))

    def slice(self, name: str) -> FrameworkTensor:
        """The member's slice of a variable of the largest network, by its name in the member."""
        place, _, role = name.partition(".")
        value = self._numbers[f"{self._places[int(place)]}.{role}"]
        layer = self.chain.layers[int(place)]
        if role != "kernel":
            return value[: layer.channels_out]
        if layer.kind == "dense":
            return value[: layer.channels_in, : layer.channels_out]
        rows, columns = ((value.shape[a] - layer.kernel[a]) // 2 for a in range(2))
        return value[
            rows : rows + layer.kernel[0],
            columns : columns + layer.kernel[1],
            : layer.channels_in // layer.groups,
            : layer.channels_out,
        ]

    def get(self, name: str) -> FrameworkTensor | None:
        """See `PassNumbers`."""
        place, _, role = name.partition(".")
        has = f"{self._places[int(place)]}.{role}" in self._numbers
        return self.slice(name) if has else None

    def norm(self, name: str, x: FrameworkTensor) -> tuple[FrameworkTensor, FrameworkTensor] | None:
        """See `PassNumbers`."""
        gamma = self.get(f"{name}.gamma")
        if gamma is None:
            return None
        ops = keras().ops
        if self._statistics is None:
            mean, variance = ops.moments(x, tuple(range(len(x.shape) - 1)))
            self.moments[f"{name}.mean"], self.moments[f"{name}.variance"] = mean, variance
        else:
            mean, variance = (
                ops.convert_to_tensor(self._statistics[f"{name}.{kind}"])
                for kind in ("mean", "variance")
            )
        scale = gamma * ops.rsqrt(variance + EPSILON)
        return scale, self.slice(f"{name}.beta") - mean * scale

    def seen(self, x: FrameworkTensor) -> FrameworkTensor:
        """See `PassNumbers`."""
        return x


_OF_RESULTS = ("after.gamma", "after.beta", "after.mean", "after.variance")


def _sorted(space: SearchSpace, state: dict[str, Array]) -> dict[str, Array]:
    """See `SuperNetwork.sort_channels`."""
    state = {name: values.copy() for name, values in state.items()}
    place, deepest = 1, space.depths[-1]
    order: Array = np.arange(space.stem)
    for _ in space.stages:
        firsts = [place + 3 * block for block in range(deepest)]
        for first in firsts:  # the wide channels inside a block
            order = _descending([state[f"{first}.kernel"]])
            _permute_results(state, first, order)
            _permute_results(state, first + 1, order)
            state[f"{first + 2}.kernel"] = state[f"{first + 2}.kernel"][:, :, order]
        order = _descending([state[f"{first + 2}.kernel"] for first in firsts])
        for first in firsts:  # the channels that skips connect between blocks
            _permute_results(state, first + 2, order)
        place += 3 * deepest
        for reader in (*firsts[1:], place):
            name = f"{reader}.kernel"
            if name in state:
                state[name] = state[name][:, :, order]
    dense = f"{place + 1}.kernel"
    state[dense] = state[dense][order]
    return state


def _descending(kernels: Sequence[Array]) -> Array:
    """The order of channels by the sums of absolute weights of their filters, largest first."""
    sums = sum(np.abs(kernel).sum(axis=(0, 1, 2)) for kernel in kernels)
    return np.argsort(-np.asarray(sums), kind="stable")


def _permute_results(state: dict[str, Array], place: int, order: Array) -> None:
    state[f"{place}.kernel"] = state[f"{place}.kernel"][..., order]
    for role in _OF_RESULTS:
        state[f"{place}.{role}"] = state[f"{place}.{role}"][order]
