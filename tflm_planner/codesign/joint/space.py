"""A space of networks: inverted bottlenecks of elastic kernels, expansions, depths, widths and
resolutions, as MCUNetV2 searches them (Lin et al. 2021, section 3.3).

    genes (2, 0, 1, 4, ...) --decode--> Member --chain--> Chain          a network of the space
                                           `-- largest, whose weights all others are parts of

Genes are indices into choices: of the resolution; then for each stage of its width and its depth,
and for each block of its kernel and its expansion. Those of blocks beyond the depth say nothing,
and are zero in canonical genes. It must not know memory or weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tflm_planner.codesign.chains.chain import Chain
from tflm_planner.codesign.chains.families import Growing, divisible

Genes = tuple[int, ...]
_WIDTH_STEP = 4
"""Channels are multiples of it."""


@dataclass(frozen=True)
class StageShape:
    """channels: of its results at full width. stride: of its first block."""

    channels: int
    stride: int


@dataclass(frozen=True)
class SearchSpace:
    """What may vary; all choices ascend."""

    channels: int
    """Of the images."""
    classes: int
    """Of the images."""
    stem: int
    """Channels of the first convolution."""
    stages: tuple[StageShape, ...]
    """Of blocks, in their order."""
    resolutions: tuple[int, ...]
    """Rows and columns of the images."""
    widths: tuple[float, ...] = (0.5, 0.75, 1.0)
    """Factors of a stage's channels."""
    depths: tuple[int, ...] = (1, 2, 3)
    """Blocks of a stage."""
    kernels: tuple[int, ...] = (3, 5, 7)
    """Rows and columns of a block's window."""
    expansions: tuple[int, ...] = (2, 3, 4)
    """Factors of its channels inside."""

    @property
    def choices(self) -> tuple[int, ...]:
        """How many choices each gene has."""
        block = (len(self.kernels), len(self.expansions))
        stage = (len(self.widths), len(self.depths), *block * self.depths[-1])
        return (len(self.resolutions), *stage * len(self.stages))

    @property
    def largest(self) -> Genes:
        """The network that all others are parts of."""
        return tuple(n - 1 for n in self.choices)

    @property
    def smallest(self) -> Genes:
        """The least of everything."""
        return (0,) * len(self.choices)

    def decode(self, genes: Genes) -> Member:
        """What genes mean."""
        numbers = iter(genes)
        resolution = self.resolutions[next(numbers)]
        stages: list[StageChoice] = []
        for shape in self.stages:
            width = divisible(shape.channels * self.widths[next(numbers)], _WIDTH_STEP)
            depth = self.depths[next(numbers)]
            pairs = [(next(numbers), next(numbers)) for _ in range(self.depths[-1])]
            blocks = tuple((self.kernels[k], self.expansions[e]) for k, e in pairs[:depth])
            stages.append(StageChoice(width, shape.stride, blocks))
        return Member(self, resolution, tuple(stages))

    def canonical(self, genes: Genes) -> Genes:
        """The genes with those that say nothing zero: equal for equal networks, but where two
        factors of a width are rounded to the same channels."""
        kept = list(genes)
        size = 2 + 2 * self.depths[-1]
        for stage in range(len(self.stages)):
            first = 1 + stage * size
            depth = self.depths[genes[first + 1]]
            for place in range(first + 2 + 2 * depth, first + size):
                kept[place] = 0
        return tuple(kept)

    def random(self, random: np.random.Generator) -> Genes:
        """Any network, each gene by itself."""
        return self.canonical(tuple(int(random.integers(n)) for n in self.choices))

    def mutate(self, genes: Genes, rate: float, random: np.random.Generator) -> Genes:
        """Genes of which each is drawn anew with the probability `rate`."""
        drawn = (
            int(random.integers(n)) if random.random() < rate else gene
            for gene, n in zip(genes, self.choices, strict=True)
        )
        return self.canonical(tuple(drawn))

    def cross(self, one: Genes, other: Genes, random: np.random.Generator) -> Genes:
        """Each gene from either."""
        pairs = zip(one, other, strict=True)
        return self.canonical(tuple(pair[int(random.integers(2))] for pair in pairs))


@dataclass(frozen=True)
class StageChoice:
    """channels: of its results. blocks: (kernel, expansion) of each."""

    channels: int
    stride: int
    blocks: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Member:
    """A network of the space."""

    space: SearchSpace
    resolution: int
    stages: tuple[StageChoice, ...]

    def chain(self) -> Chain:
        """The network as a chain."""
        grown = Growing(self.space.channels)
        grown.conv(self.space.stem, (3, 3), 1, "relu6")
        for stage in self.stages:
            for block, (kernel, expansion) in enumerate(stage.blocks):
                hidden = grown.channels * expansion
                stride = 1 if block else stage.stride
                grown.bottleneck(hidden, stage.channels, kernel, stride, "relu6")
        grown.classify(self.space.classes)
        image = (self.resolution, self.resolution, self.space.channels)
        return Chain("member", image, tuple(grown.layers))

    def places(self) -> tuple[int, ...]:
        """For each layer the layer of the largest network that it is a part of."""
        return tuple(self._places())

    def _places(self) -> Iterator[int]:
        yield 0  # the stem
        first = 1
        for stage in self.stages:
            yield from range(first, first + 3 * len(stage.blocks))
            first += 3 * self.space.depths[-1]
        yield from (first, first + 1, first + 2)  # mean, dense, softmax
