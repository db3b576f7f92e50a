"""The networks of the paper on late skips (Mendis et al. 2024, DERO), and small ones like them.

They are chains with a fixed image size; `families` has networks that vary. It must not know what is
done with them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tflm_planner.codesign.chains.chain import Chain, Layer, Shape
from tflm_planner.codesign.chains.families import FAMILIES, ChainBuilder


def resnet34() -> Chain:
    """He et al. 2016, at 224x224."""
    grown = _stem(224)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            grown.conv(64 << stage, (3, 3), stride, "relu")
            grown.conv(64 << stage, (3, 3), activation="relu", skip=2)
    grown.classify(1000)
    return Chain("resnet34", (224, 224, 3), tuple(grown.layers))


def resnet50() -> Chain:
    """He et al. 2016, at 224x224, with strides in the 3x3 convolutions."""
    grown = _stem(224)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            grown.conv(64 << stage, activation="relu")
            grown.conv(64 << stage, (3, 3), stride, "relu")
            grown.conv(256 << stage, activation="relu", skip=3)
    grown.classify(1000)
    return Chain("resnet50", (224, 224, 3), tuple(grown.layers))


def densenet121() -> Chain:
    """Huang et al. 2017, at 224x224."""
    grown = _stem(224)
    _dense_blocks(grown, (6, 12, 24, 16), 32)
    grown.classify(1000)
    return Chain("densenet121", (224, 224, 3), tuple(grown.layers))


def densenet_mini() -> Chain:
    """A DenseNet of three blocks of four layers for 64x64."""
    return small_densenet("densenet_mini", (64, 64, 3), (4, 4, 4), 16, 10)


def small_densenet(
    name: str, image: Shape, sizes: tuple[int, ...], growth: int, classes: int
) -> Chain:
    """A DenseNet for small images: its first convolution keeps their size. sizes: how many layers
    each block has. growth: channels that each of them adds."""
    grown = ChainBuilder(image[2])
    grown.conv(2 * growth, (3, 3), activation="relu")
    _dense_blocks(grown, sizes, growth)
    grown.classify(classes)
    return Chain(name, image, tuple(grown.layers))


def yolo_like() -> Chain:
    """The backbone of YOLOv5n for 256x256 without its last pools, and one of its heads. It has
    blocks of two concatenated branches, and a value that is upsampled and concatenated with an
    earlier one. ReLU replaces SiLU."""
    grown = ChainBuilder(3)
    grown.conv(16, (6, 6), 2, "relu")
    lengths: list[int] = []
    for out, blocks in ((32, 1), (64, 2), (128, 3), (256, 1)):
        grown.conv(out, (3, 3), 2, "relu")
        _c3(grown, out, blocks, adds=True)
        lengths.append(len(grown.layers))
    grown.conv(128, activation="relu")
    grown.layers.append(Layer("upsample", stride=2))
    skip = len(grown.layers) + 1 - lengths[2]
    grown.layers.append(Layer("join", skip=skip, join="concat"))
    grown.channels += 128
    _c3(grown, 128, 1, adds=False)
    grown.conv(255)
    return Chain("yolo_like", (256, 256, 3), tuple(grown.layers))


def _of_family(family: str, side: int, depth: int = 0) -> Chain:
    return FAMILIES[family].make(side, 1.0, depth, FAMILIES[family].classes)


NETWORKS: dict[str, Callable[[], Chain]] = {
    "resnet8": lambda: replace(_of_family("resnet8", 32, 8), name="resnet8"),
    "resnet20": lambda: replace(_of_family("resnet20", 64, 20), name="resnet20"),
    "mcunet_like": lambda: replace(_of_family("mcunet_like", 176), name="mcunet_like"),
    "densenet_mini": densenet_mini,
    "yolo_like": yolo_like,
    "resnet34": resnet34,
    "resnet50": resnet50,
    "densenet121": densenet121,
}


def _stem(side: int) -> ChainBuilder:
    """The first convolution and pool of networks for ImageNet."""
    assert side % 4 == 0, "two strides"
    grown = ChainBuilder(3)
    grown.conv(64, (7, 7), 2, "relu")
    grown.layers.append(Layer("max_pool", (3, 3), 2))
    return grown


def _dense_blocks(grown: ChainBuilder, sizes: tuple[int, ...], growth: int) -> None:
    """Append dense blocks, each of whose layers concatenates its operand and its result. A
    transition follows each block but the last."""
    for block, size in enumerate(sizes):
        for _ in range(size):
            width = grown.channels
            grown.layers.append(Layer("norm", activation="relu"))
            grown.conv(4 * growth, activation="relu")
            grown.conv(growth, (3, 3))
            grown.layers[-1] = replace(grown.layers[-1], skip=3, join="concat")
            grown.channels += width
        grown.layers.append(Layer("norm", activation="relu"))
        if block + 1 < len(sizes):
            grown.conv(grown.channels // 2)
            grown.layers.append(Layer("average_pool", (2, 2), 2))


def _c3(grown: ChainBuilder, out: int, blocks: int, *, adds: bool) -> None:
    """Append a C3 block: a branch of bottlenecks and a branch of one 1x1 convolution, concatenated,
    then a 1x1 convolution. adds: whether the bottlenecks have skips."""
    half, start = out // 2, len(grown.layers)
    grown.conv(half, activation="relu")
    for _ in range(blocks):
        grown.conv(half, activation="relu")
        grown.conv(half, (3, 3), activation="relu")
        if adds:
            grown.layers[-1] = replace(grown.layers[-1], skip=2, join="late sum")
    skip = len(grown.layers) + 1 - start
    grown.layers.append(Layer("join", activation="relu", skip=skip, join="concat", branch=half))
    grown.channels = 2 * half
    grown.conv(out, activation="relu")
