"""A search space of networks of inverted bottlenecks whose kernels, expansions, depths, widths and
resolutions vary, as in MCUNetV2 (Lin et al. 2021, section 3.3).

    genes (2, 0, 1, 4, ...) --decode--> Member --chain--> Chain          a network of the space
                                           `-- largest: the weights of all others are parts of its

Genes are indices into choices. The first selects the resolution. Then each stage has one for its
width, one for its depth, and for each block one for the kernel and one for the expansion. Genes of
blocks beyond the depth have no effect, and are 0 in canonical genes. It must not know memory or
weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tflm_planner.codesign.chains.chain import Chain
from tflm_planner.codesign.chains.families import ChainBuilder, divisible

Genes = tuple[int, ...]
_WIDTH_STEP = 4
"""Numbers of channels are multiples of this."""


@dataclass(frozen=True)
class StageShape:
    """channels: channels of the stage's results at full width. stride: the stride of its first
    block."""

    channels: int
    stride: int


@dataclass(frozen=True)
class SearchSpace:
    """What is fixed and what varies. All choices are in ascending order. Raises ValueError if the
    weights of a network of the space are not a part of the largest one's."""

    channels: int
    """Channels of the images."""
    classes: int
    """Number of classes."""
    stem: int
    """Channels of the first convolution."""
    stages: tuple[StageShape, ...]
    """The stages, in order."""
    resolutions: tuple[int, ...]
    """Choices for the rows (and columns) of the images."""
    widths: tuple[float, ...] = (0.5, 0.75, 1.0)
    """Choices for the factor of a stage's channels."""
    depths: tuple[int, ...] = (1, 2, 3)
    """Choices for the number of blocks of a stage."""
    kernels: tuple[int, ...] = (3, 5, 7)
    """Choices for the rows (and columns) of a block's depthwise window."""
    expansions: tuple[int, ...] = (2, 3, 4)
    """Choices for the factor by which a block widens its channels; above 1, since a block that does
    not has one layer less."""

    def __post_init__(self) -> None:
        if min(self.expansions) <= 1:
            raise ValueError("expansions must be above 1")
        before = self.stem
        for number, stage in enumerate(self.stages, 1):
            channels = divisible(stage.channels * self.widths[-1], _WIDTH_STEP)
            if stage.stride == 1 and channels == before:
                raise ValueError(
                    f"stage {number} has stride 1 and as many channels ({channels}) as what is "
                    "before it: give it a stride or other channels, or that stage more blocks"
                )  # a skip would go into the stage, whose channels are sorted by themselves
            before = channels

    @property
    def choices(self) -> tuple[int, ...]:
        """How many choices each gene has."""
        block = (len(self.kernels), len(self.expansions))
        stage = (len(self.widths), len(self.depths), *block * self.depths[-1])
        return (len(self.resolutions), *stage * len(self.stages))

    @property
    def largest(self) -> Genes:
        """The genes of the largest network, of which all others are parts."""
        return tuple(n - 1 for n in self.choices)

    @property
    def smallest(self) -> Genes:
        """The genes with the smallest choice everywhere."""
        return (0,) * len(self.choices)

    def decode(self, genes: Genes) -> Member:
        """The network that genes describe."""
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
        """The genes with those that have no effect set to 0. Equal networks then have equal genes,
        unless two width factors round to the same channels."""
        kept = list(genes)
        size = 2 + 2 * self.depths[-1]
        for stage in range(len(self.stages)):
            first = 1 + stage * size
            depth = self.depths[genes[first + 1]]
            for place in range(first + 2 + 2 * depth, first + size):
                kept[place] = 0
        return tuple(kept)

    def random(self, random: np.random.Generator) -> Genes:
        """Random genes, each drawn independently."""
        return self.canonical(tuple(int(random.integers(n)) for n in self.choices))

    def mutate(self, genes: Genes, rate: float, random: np.random.Generator) -> Genes:
        """The genes with each redrawn with probability `rate`."""
        drawn = (
            int(random.integers(n)) if random.random() < rate else gene
            for gene, n in zip(genes, self.choices, strict=True)
        )
        return self.canonical(tuple(drawn))

    def cross(self, one: Genes, other: Genes, random: np.random.Generator) -> Genes:
        """Genes of which each comes from one of the two parents at random."""
        pairs = zip(one, other, strict=True)
        return self.canonical(tuple(pair[int(random.integers(2))] for pair in pairs))


@dataclass(frozen=True)
class StageChoice:
    """The choices for one stage. channels: channels of its results. blocks: (kernel, expansion) of
    each block."""

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
        grown = ChainBuilder(self.space.channels)
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
        """For each layer, the index of the layer that it takes its weights from in the largest
        network of the space."""
        return tuple(self._places())

    def _places(self) -> Iterator[int]:
        yield 0  # the stem
        first = 1
        for stage in self.stages:
            yield from range(first, first + 3 * len(stage.blocks))
            first += 3 * self.space.depths[-1]
        yield from (first, first + 1, first + 2)  # mean, dense, softmax
