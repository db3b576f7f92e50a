"""Networks of cells: NASNet-A, DARTS, and one in the manner of FPNAS.

A cell joins many short branches, so the order of operators decides the peak. Each docstring
names the source and the published counts that the shapes are checked with. Knows layers; must
not know quantisation or files.
"""

from functools import partial

import keras
from keras import layers

from zoo.common import (
    IMAGENET,
    channel_slice,
    classify,
    conv_bn,
    depthwise_bn,
    factorised_reduce,
    relu_conv_bn,
    separable,
)
from zoo.registry import zoo_model

# --- NASNet-A ---------------------------------------------------------------------------------

# Nodes of a cell: two (operation, input) pairs each, which are added. Inputs: "h" the previous
# cell, "p" the one before it, 0.. an earlier node. Zoph et al. 2018, figure 4.
NASNET_NORMAL = (
    (("sep5", "h"), ("sep3", "p")),
    (("sep5", "p"), ("sep3", "p")),
    (("avg3", "h"), ("none", "p")),
    (("avg3", "p"), ("avg3", "p")),
    (("sep3", "h"), ("none", "h")),
)
NASNET_REDUCE = (
    (("sep5", "h"), ("sep7", "p")),
    (("max3", "h"), ("sep7", "p")),
    (("avg3", "h"), ("sep5", "p")),
    (("none", 1), ("avg3", 0)),
    (("sep3", 0), ("max3", "h")),
)


def _nasnet_edge(kind: str, x, filters: int, strides: int):
    if kind == "none":
        return x
    if kind == "avg3":
        return layers.AveragePooling2D(3, strides, padding="same")(x)
    if kind == "max3":
        return layers.MaxPooling2D(3, strides, padding="same")(x)
    kernel = int(kind[-1])
    return separable(separable(x, filters, kernel, strides), filters, kernel)


def _nasnet_cell(older, newer, filters: int, reduce: bool):
    same_size = older.shape[1] == newer.shape[1]
    states = {
        "p": relu_conv_bn(older, filters) if same_size else factorised_reduce(older, filters),
        "h": relu_conv_bn(newer, filters),
    }
    for node, edges in enumerate(NASNET_REDUCE if reduce else NASNET_NORMAL):
        branches = [
            _nasnet_edge(kind, states[source], filters, 2 if reduce and source in "ph" else 1)
            if isinstance(source, str)
            else _nasnet_edge(kind, states[source], filters, 1)
            for kind, source in edges
        ]
        states[node] = layers.Add()(branches)
    if reduce:
        return layers.Concatenate()([states[node] for node in (1, 2, 3, 4)])
    return layers.Concatenate()([states["p"], *(states[node] for node in range(5))])


# Resolutions beside 224 of `nasnet_mobile_96`, ...: MOTES's figure 8 (b).
NASNET_RESOLUTIONS = (96, 128, 160, 192, 256, 288)


@zoo_model(parameters=5.3e6, macs=564e6)
def nasnet_mobile(resolution: int = 224) -> keras.Model:
    """NASNet-A (4 @ 1056), Zoph et al. 2018, at 224x224 (Keras's own).

    Checked: 5.3 M parameters, 564 M MACs (the paper's table 3).
    """
    return keras.applications.NASNetMobile(input_shape=(resolution, resolution, 3), weights=None)


for _resolution in NASNET_RESOLUTIONS:
    zoo_model(name=f"nasnet_mobile_{_resolution}", parameters=5.3e6, variant=True)(
        partial(nasnet_mobile, _resolution)
    )


@zoo_model(parameters=3.3e6)
def nasnet_cifar(cells: int = 6, filters: int = 32) -> keras.Model:
    """NASNet-A (6 @ 768), Zoph et al. 2018, for CIFAR-10 at 32x32.

    Checked: 3.3 M parameters (the paper's table 1).
    """
    image = keras.Input((32, 32, 3))
    older = newer = conv_bn(image, 3 * filters, 3, act=None)
    for stage in range(3):
        width = filters << stage
        if stage:
            older, newer = newer, _nasnet_cell(older, newer, width, reduce=True)
        for _ in range(cells):
            older, newer = newer, _nasnet_cell(older, newer, width, reduce=False)
    return keras.Model(image, classify(layers.ReLU()(newer), 10), name="nasnet_cifar")


# --- DARTS ------------------------------------------------------------------------------------

# Genotype DARTS_V2 of Liu et al. 2019: two (operation, input) pairs per intermediate node.
# Inputs 0 and 1 are the two previous cells; the nodes are 2, 3, 4, 5, and all are concatenated.
DARTS_NORMAL = (
    (("sep", 0), ("sep", 1)),
    (("sep", 0), ("sep", 1)),
    (("sep", 1), ("skip", 0)),
    (("skip", 0), ("dil", 2)),
)
DARTS_REDUCE = (
    (("max", 0), ("max", 1)),
    (("skip", 2), ("max", 1)),
    (("max", 0), ("skip", 2)),
    (("skip", 2), ("max", 1)),
)


def _darts_edge(kind: str, x, filters: int, strides: int):
    if kind == "sep":
        return separable(separable(x, filters, 3, strides), filters, 3)
    if kind == "dil":
        return separable(x, filters, 3, strides, dilation=2)
    if kind == "max":
        return layers.MaxPooling2D(3, strides, padding="same")(x)
    return x if strides == 1 else factorised_reduce(x, filters)


def _darts_cell(older, newer, filters: int, reduce: bool):
    align = relu_conv_bn if older.shape[1] == newer.shape[1] else factorised_reduce
    states = [align(older, filters), relu_conv_bn(newer, filters)]
    for edges in DARTS_REDUCE if reduce else DARTS_NORMAL:
        strides = [2 if reduce and source < 2 else 1 for _, source in edges]
        branches = [
            _darts_edge(kind, states[source], filters, stride)
            for (kind, source), stride in zip(edges, strides, strict=True)
        ]
        states.append(layers.Add()(branches))
    return layers.Concatenate()(states[2:])


def _darts_body(older, newer, cells: int, filters: int):
    for cell in range(cells):
        reduce = cell in (cells // 3, 2 * cells // 3)
        filters *= 2 if reduce else 1
        older, newer = newer, _darts_cell(older, newer, filters, reduce)
    return newer


def _darts_small(size: int, cells: int, filters: int) -> keras.Model:
    image = keras.Input((size, size, 3))
    stem = conv_bn(image, 3 * filters, 3, act=None)
    return keras.Model(image, classify(_darts_body(stem, stem, cells, filters), 10), name="darts")


@zoo_model()
def darts() -> keras.Model:
    """DARTS_V2 cells, Liu et al. 2019: 8 cells, 16 initial channels, 64x64 input, 10 classes.

    A size of ours, for microcontrollers; `darts_cifar` and `darts_imagenet` are the published.
    """
    return _darts_small(64, 8, 16)


@zoo_model(parameters=3.3e6)
def darts_cifar() -> keras.Model:
    """DARTS_V2, Liu et al. 2019, for CIFAR-10: 20 cells, 36 initial channels, 32x32.

    Checked: 3.3 M parameters (the paper's table 1). No auxiliary classifier.
    """
    return _darts_small(32, 20, 36)


@zoo_model(parameters=4.7e6, macs=574e6, tolerance=0.08)
def darts_imagenet() -> keras.Model:
    """DARTS_V2, Liu et al. 2019, for ImageNet: 14 cells, 48 initial channels, 224x224.

    Checked: 4.7 M parameters, 574 M MACs (the paper's table 3). No auxiliary classifier. We
    count 530 M, 8 % less, though parameters agree; how the paper counted is not said.
    """
    cells, filters = 14, 48
    image = keras.Input((224, 224, 3))
    older = conv_bn(conv_bn(image, filters // 2, 3, 2), filters, 3, 2, act=None)
    newer = relu_conv_bn(older, filters, 3, 2)
    return keras.Model(
        image, classify(_darts_body(older, newer, cells, filters), IMAGENET), name="darts"
    )


# --- FPNAS-like -------------------------------------------------------------------------------

# Filters, strides and expansion of the first cell, number of cells. Ours; see `fpnas_like`.
FPNAS_LIKE = (
    (24, 2, 6, 2),
    (40, 2, 4, 3),
    (80, 2, 4, 3),
    (96, 1, 4, 3),
    (192, 2, 4, 3),
    (320, 1, 4, 1),
)
FPNAS_KERNELS = (3, 5, 7)


def _fpnas_cell(x, filters: int, strides: int, expansion: int):
    """Expand; slice into parts, a depthwise convolution each; concatenate; project; add."""
    channels = x.shape[-1]
    hidden = conv_bn(x, channels * expansion, 1, act="relu6")
    share = channels * expansion // len(FPNAS_KERNELS)
    starts = [share * part for part in range(len(FPNAS_KERNELS))]
    sizes = [share] * (len(starts) - 1) + [channels * expansion - starts[-1]]
    parts = [
        depthwise_bn(channel_slice(hidden, start, size), kernel, strides, act="relu6")
        for start, size, kernel in zip(starts, sizes, FPNAS_KERNELS, strict=True)
    ]
    y = conv_bn(layers.Concatenate()(parts), filters, 1, act=None)
    if strides > 1:
        return y
    short = x if channels == filters else conv_bn(x, filters, 1, act=None)
    return layers.Add()([short, y])


@zoo_model()
def fpnas_like() -> keras.Model:
    """A network in the manner of FPNAS, Cui et al. 2019, at 224x224, under 300 M MACs.

    Assumed, because the searched network is not listed in numbers: cells are inverted
    bottlenecks whose hidden channels are sliced, convolved with kernels of 3, 5 and 7, and
    concatenated, then added to the input; widths and depths are those of `FPNAS_LIKE`.
    """
    image = keras.Input((224, 224, 3))
    x = conv_bn(conv_bn(image, 32, 3, 2, act="relu6"), 16, 1, act=None)
    for filters, strides, expansion in _fpnas_cells():
        x = _fpnas_cell(x, filters, strides, expansion)
    return keras.Model(
        image, classify(conv_bn(x, 1280, 1, act="relu6"), IMAGENET), name="fpnas_like"
    )


def _fpnas_cells() -> list[tuple[int, int, int]]:
    """Filters, strides and expansion of each cell of `fpnas_like`."""
    return [
        (filters, 1 if cell else first_strides, expansion)
        for filters, first_strides, expansion, cells in FPNAS_LIKE
        for cell in range(cells)
    ]


def fpnas_cell(number: int) -> keras.Model:
    """One cell of `fpnas_like`, counted from 1, on an input of the shape that it has there, with a
    classifier of ten classes behind it: MOTES's figure 9 (a)."""
    side, channels = 112, 16
    cells = _fpnas_cells()
    for filters, strides, _ in cells[: number - 1]:
        side, channels = side // strides, filters
    image = keras.Input((side, side, channels))
    cell = classify(_fpnas_cell(image, *cells[number - 1]), 10)
    return keras.Model(image, cell, name=f"fpnas_cell_{number}")


for _number in range(1, len(_fpnas_cells()) + 1):
    zoo_model(name=f"fpnas_cell_{_number}", variant=True)(partial(fpnas_cell, _number))
