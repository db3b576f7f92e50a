"""Families of networks as chains that vary in resolution, width and depth.

Widths are rounded as Keras's own networks round them, so that a variant has the operators of the
network that `keras.applications` or the family's paper gives at the same width. It must not know
boards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tflm_planner.codesign.chains.chain import Activation, Chain, Layer, Shape
from tflm_planner.codesign.chains.residuals import plain

_SIDES = (48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224)
_WIDTHS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.75, 0.85, 1.0, 1.25, 1.4)
_IMAGENET = 1000


@dataclass(frozen=True, slots=True)
class Family:
    """A family of networks. make: (resolution, width, depth, classes) -> chain. resolutions,
    widths, depths: what is tried by default. classes: the default, which is that of the usual data
    set. about: which network it is, and by whom."""

    make: Callable[[int, float, int, int], Chain]
    resolutions: tuple[int, ...]
    widths: tuple[float, ...]
    depths: tuple[int, ...]
    classes: int
    about: str


def divisible(width: float, divisor: int = 8) -> int:
    """Round a number of channels as Keras does: to a multiple of `divisor`, but never down by more
    than a tenth."""
    rounded = max(divisor, int(width + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * width else rounded


class ChainBuilder:
    """Collects the layers of a chain. Each new layer reads the channels of the one before it."""

    def __init__(self, channels: int) -> None:
        self.layers: list[Layer] = []
        self.channels = channels

    def conv(
        self,
        out: int,
        kernel: tuple[int, int] = (1, 1),
        stride: int = 1,
        activation: Activation = "none",
        skip: int = 0,
    ) -> None:
        """Append a convolution over all channels."""
        layer = Layer(
            kind="conv",
            kernel=kernel,
            stride=stride,
            channels_in=self.channels,
            channels_out=out,
            groups=1,
            activation=activation,
            skip=skip,
        )
        self.layers.append(layer)
        self.channels = out

    def depthwise(self, kernel: int, stride: int, activation: Activation) -> None:
        """Append a depthwise convolution."""
        width = self.channels
        window = (kernel, kernel)
        self.layers.append(
            Layer(
                kind="conv",
                kernel=window,
                stride=stride,
                channels_in=width,
                channels_out=width,
                groups=width,
                activation=activation,
            )
        )

    def bottleneck(
        self, hidden: int, out: int, kernel: int, stride: int, activation: Activation
    ) -> None:
        """Append an inverted bottleneck: widening 1x1, depthwise, and narrowing 1x1 convolution,
        with a skip if the shape stays the same. The widening one is left out if the input has
        `hidden` channels already."""
        is_same, widens = stride == 1 and out == self.channels, hidden != self.channels
        if widens:
            self.conv(hidden, activation=activation)
        self.depthwise(kernel, stride, activation)
        self.conv(out, skip=(2 + widens) * is_same)

    def classify(self, classes: int, *, pools: bool = False) -> None:
        """Append a classifier: mean over the image, dense layer, softmax. pools: use an average
        pool and a reshape instead of the mean."""
        head = ("pool", "flatten") if pools else ("mean",)
        self.layers += [Layer(kind) for kind in head]
        self.layers.append(Layer("dense", channels_in=self.channels, channels_out=classes))
        self.layers.append(Layer("softmax"))


def _chain(name: str, image: Shape, grown: ChainBuilder) -> Chain:
    return Chain(name, image, tuple(grown.layers))


# (filters, stride) of each separable block. Howard et al. 2017, table 1.
_V1 = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2),
       (1024, 1))  # fmt: skip


def _mobilenet_v1(side: int, width: float, _: int, classes: int) -> Chain:
    grown = ChainBuilder(3)
    grown.conv(max(1, int(32 * width)), (3, 3), 2, "relu")
    for filters, stride in _V1:
        grown.depthwise(3, stride, "relu")
        grown.conv(max(1, int(filters * width)), activation="relu")
    grown.classify(classes, pools=True)
    return _chain(f"mobilenet_v1_{width:g}_{side}", (side, side, 3), grown)


# (expansion, filters, blocks, first stride). Sandler et al. 2018, table 2.
_V2 = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
       (6, 320, 1, 1))  # fmt: skip


def _mobilenet_v2(side: int, width: float, _: int, classes: int) -> Chain:
    grown = ChainBuilder(3)
    grown.conv(divisible(32 * width), (3, 3), 2, "relu6")
    for expansion, filters, blocks, first in _V2:
        for block in range(blocks):
            hidden = grown.channels * expansion
            out = divisible(int(filters * width))
            grown.bottleneck(hidden, out, 3, 1 if block else first, "relu6")
    grown.conv(divisible(1280 * max(width, 1.0)), activation="relu6")
    grown.classify(classes)
    return _chain(f"mobilenet_v2_{width:g}_{side}", (side, side, 3), grown)


# (expansion, filters, stride), as Keras has them. Howard et al. 2019, table 2. None: not widened.
_V3_SMALL = ((None, 16, 2), (72 / 16, 24, 2), (88 / 24, 24, 1), (4, 40, 2), (6, 40, 1), (6, 40, 1),
             (3, 48, 1), (3, 48, 1), (6, 96, 2), (6, 96, 1), (6, 96, 1))  # fmt: skip


def _mobilenet_v3_small(side: int, width: float, _: int, classes: int) -> Chain:
    grown = ChainBuilder(3)
    grown.conv(16, (3, 3), 2, "relu")
    for expansion, filters, stride in _V3_SMALL:
        wide = grown.channels if expansion is None else divisible(grown.channels * expansion)
        grown.bottleneck(wide, divisible(filters * width), 3, stride, "relu")
    grown.conv(divisible(grown.channels * 6), activation="relu")
    grown.layers.append(Layer("mean"))
    grown.conv(divisible(1024 * width) if width > 1 else 1024, activation="relu")
    grown.conv(classes)
    grown.layers += [Layer("flatten"), Layer("softmax")]
    return _chain(f"mobilenet_v3_small_{width:g}_{side}", (side, side, 3), grown)


# (filters, first stride, expansions, kernels) of mcunet-in3. Lin et al. 2020.
_MCUNET = (
    (16, 2, (3, 5, 5, 4), (7, 3, 7, 5)),
    (24, 2, (5, 5, 5), (5, 5, 5)),
    (40, 2, (5, 6, 4), (3, 7, 5)),
    (48, 1, (5, 5, 5), (5, 7, 3)),
    (96, 2, (6, 5, 4), (3, 7, 3)),
    (160, 1, (5,), (7,)),
)


def _mcunet_like(side: int, width: float, _: int, classes: int) -> Chain:
    grown = ChainBuilder(3)
    grown.conv(divisible(16 * width), (3, 3), 2, "relu6")
    grown.bottleneck(grown.channels, divisible(8 * width), 3, 1, "relu6")
    for filters, first, expansions, kernels in _MCUNET:
        for block, (expansion, kernel) in enumerate(zip(expansions, kernels, strict=True)):
            hidden = divisible(grown.channels * expansion)
            stride = 1 if block else first
            grown.bottleneck(hidden, divisible(filters * width), kernel, stride, "relu6")
    grown.classify(classes)
    return _chain(f"mcunet_like_{width:g}_{side}", (side, side, 3), grown)


def _ds_cnn(frames: int, width: float, depth: int, classes: int) -> Chain:
    grown, channels = ChainBuilder(1), divisible(64 * width, 4)
    grown.conv(channels, (10, 4), 2, "relu")
    for _ in range(depth):
        grown.depthwise(3, 1, "relu")
        grown.conv(channels, activation="relu")
    grown.classify(classes, pools=True)
    return _chain(f"ds_cnn_{width:g}_{frames}x10_d{depth}", (frames, 10, 1), grown)


def _resnet(side: int, width: float, depth: int, classes: int) -> Chain:
    blocks, rest = divmod(depth - 2, 6)
    if rest or not blocks:
        raise ValueError(f"a small ResNet has 8, 14, 20, ... layers (6 n + 2), not {depth}")
    grown = ChainBuilder(3)
    grown.conv(divisible(16 * width), (3, 3), 1, "relu")
    for stage in range(3):
        out = divisible(16 * width) << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            grown.conv(out, (3, 3), stride, "relu")
            grown.conv(out, (3, 3), activation="relu", skip=2)
    grown.classify(classes, pools=True)
    return _chain(f"resnet{depth}_{width:g}_{side}", (side, side, 3), grown)


_RESNET_SIDES = (16, 24, 32, 40, 48, 56, 64, 80, 96, 128)
_RESNET_WIDTHS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
_NONE = (0,)
"""The depths of a family whose depth does not vary."""

FAMILIES: dict[str, Family] = {
    "mobilenet_v1": Family(
        _mobilenet_v1, _SIDES, _WIDTHS, _NONE, 2,
        "MobileNetV1 (Howard 2017) as MLPerf Tiny has it for visual wake words",
    ),
    "mobilenet_v2": Family(
        _mobilenet_v2, _SIDES, _WIDTHS, _NONE, _IMAGENET, "MobileNetV2 (Sandler 2018) as in Keras"
    ),
    "mobilenet_v3_small": Family(
        _mobilenet_v3_small, _SIDES, _WIDTHS, _NONE, _IMAGENET,
        "MobileNetV3-small in Keras's minimalistic form: no squeeze-excite, no hard-swish, 3x3",
    ),
    "mcunet_like": Family(
        _mcunet_like, _SIDES, _WIDTHS, _NONE, _IMAGENET,
        "the blocks of mcunet-in3 (Lin 2020), all widths scaled alike",
    ),
    "ds_cnn": Family(
        _ds_cnn, (25, 49, 65, 98), (0.5, 0.75, 1.0, 1.5, 2.0, 172 / 64, 276 / 64), (3, 4, 5), 12,
        "DS-CNN (Zhang 2017) for keywords; resolution: frames of 10 features",
    ),
    "resnet8": Family(
        _resnet, _RESNET_SIDES, _RESNET_WIDTHS, (8,), 10, "ResNet8 as MLPerf Tiny has it"
    ),
    "resnet20": Family(
        _resnet, _RESNET_SIDES, _RESNET_WIDTHS, (8, 14, 20), 10,
        "ResNets for small images (He 2016), 8 to 20 layers",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Grid:
    """Which variants of a family to make. An empty tuple, or None for classes, stands for the
    family's default. plain: whether skips are removed (`residuals`)."""

    resolutions: tuple[int, ...] = ()
    widths: tuple[float, ...] = ()
    depths: tuple[int, ...] = ()
    classes: int | None = None
    plain: bool = False


def check_depths(family: Family, depths: Sequence[int]) -> None:
    """Raise ValueError if the family has not these depths."""
    if depths and family.depths == _NONE:
        raise ValueError("its depth does not vary")
    for depth in depths:
        family.make(family.resolutions[0], 1.0, depth, family.classes)


def has_skips(family: Family) -> bool:
    """Whether networks of the family have skips."""
    chain = family.make(family.resolutions[0], 1.0, family.depths[0], family.classes)
    return any(layer.skip for layer in chain.layers)


def variants(family: Family, grid: Grid) -> Iterator[tuple[int, float, int, Chain]]:
    """Yield (resolution, width, depth, chain) for all variants of a family."""
    classes = grid.classes or family.classes
    for depth in grid.depths or family.depths:
        for resolution in grid.resolutions or family.resolutions:
            for width in grid.widths or family.widths:
                chain = family.make(resolution, width, depth, classes)
                yield resolution, width, depth, plain(chain) if grid.plain else chain
