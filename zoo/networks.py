"""The networks, as untrained Keras models. Each function is one model of the zoo.

Knows layers and connections; must not know quantisation or files. The cell-based and randomly
wired ones, which are the interesting ones for operator order, follow their papers closely
enough to have the same graph; sizes are reduced to the microcontroller class.
"""

import keras
import numpy as np
from keras import layers

CLASSES = 1000


def nasnet_mobile() -> keras.Model:
    """NASNet-A (4 @ 1056), Zoph et al. 2018, at 224x224."""
    return keras.applications.NASNetMobile(weights=None)


def densenet121() -> keras.Model:
    """DenseNet-121, Huang et al. 2017, at 224x224."""
    return keras.applications.DenseNet121(weights=None)


def mobilenet_v2_100_224() -> keras.Model:
    """MobileNetV2, Sandler et al. 2018, width 1.0 at 224x224."""
    return keras.applications.MobileNetV2((224, 224, 3), alpha=1.0, weights=None)


def mobilenet_v2_035_144() -> keras.Model:
    """MobileNetV2, width 0.35 at 144x144: the size microcontroller papers compare on."""
    return keras.applications.MobileNetV2((144, 144, 3), alpha=0.35, weights=None)


# --- building blocks ------------------------------------------------------------------------


def _conv_bn(x, filters: int, kernel: int, strides: int = 1, relu: bool = True):
    x = layers.Conv2D(filters, kernel, strides, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    return layers.ReLU()(x) if relu else x


def _relu_conv_bn(x, filters: int, strides: int = 1):
    return _conv_bn(layers.ReLU()(x), filters, 1, strides, relu=False)


def _separable(x, filters: int, kernel: int, strides: int = 1, dilation: int = 1):
    """ReLU, depthwise, pointwise, BatchNorm: the order of DARTS and of RandWire."""
    x = layers.ReLU()(x)
    x = layers.DepthwiseConv2D(
        kernel, strides, padding="same", dilation_rate=dilation, use_bias=False
    )(x)
    x = layers.Conv2D(filters, 1, use_bias=False)(x)
    return layers.BatchNormalization()(x)


def _classify(x, classes: int):
    x = layers.GlobalAveragePooling2D()(x)
    return layers.Dense(classes, activation="softmax", name="predictions")(x)


# --- GoogLeNet ------------------------------------------------------------------------------

# Filters of each inception module: 1x1; 3x3 reduce, 3x3; 5x5 reduce, 5x5; pool projection.
# None stands for a max pooling. Szegedy et al. 2015, table 1.
INCEPTION = (
    (64, 96, 128, 16, 32, 32),
    (128, 128, 192, 32, 96, 64),
    None,
    (192, 96, 208, 16, 48, 64),
    (160, 112, 224, 24, 64, 64),
    (128, 128, 256, 24, 64, 64),
    (112, 144, 288, 32, 64, 64),
    (256, 160, 320, 32, 128, 128),
    None,
    (256, 160, 320, 32, 128, 128),
    (384, 192, 384, 48, 128, 128),
)


def _inception(x, filters: tuple[int, ...]):
    one, three_in, three, five_in, five, pool = filters
    return layers.Concatenate()(
        [
            _conv_bn(x, one, 1),
            _conv_bn(_conv_bn(x, three_in, 1), three, 3),
            _conv_bn(_conv_bn(x, five_in, 1), five, 5),
            _conv_bn(layers.MaxPooling2D(3, 1, padding="same")(x), pool, 1),
        ]
    )


def inception_v1() -> keras.Model:
    """GoogLeNet, Szegedy et al. 2015, at 224x224; BatchNorm in place of response norm."""
    image = keras.Input((224, 224, 3))
    x = _conv_bn(image, 64, 7, strides=2)
    x = layers.MaxPooling2D(3, 2, padding="same")(x)
    x = _conv_bn(_conv_bn(x, 64, 1), 192, 3)
    x = layers.MaxPooling2D(3, 2, padding="same")(x)
    for filters in INCEPTION:
        pooled = filters is None
        x = layers.MaxPooling2D(3, 2, padding="same")(x) if pooled else _inception(x, filters)
    return keras.Model(image, _classify(x, CLASSES), name="inception_v1")


# --- DARTS ----------------------------------------------------------------------------------

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


def _factorised_reduce(x, filters: int):
    """Halve height and width with two offset 1x1 convolutions, so that no pixel is ignored."""
    x = layers.ReLU()(x)
    shifted = layers.Cropping2D(((1, 0), (1, 0)))(x)
    halves = [layers.Conv2D(filters // 2, 1, 2, use_bias=False)(y) for y in (x, shifted)]
    return layers.BatchNormalization()(layers.Concatenate()(halves))


def _darts_edge(kind: str, x, filters: int, strides: int):
    if kind == "sep":
        return _separable(_separable(x, filters, 3, strides), filters, 3)
    if kind == "dil":
        return _separable(x, filters, 3, strides, dilation=2)
    if kind == "max":
        return layers.MaxPooling2D(3, strides, padding="same")(x)
    return x if strides == 1 else _factorised_reduce(x, filters)


def _darts_cell(older, newer, filters: int, reduce: bool, after_reduction: bool):
    align = _factorised_reduce if after_reduction else _relu_conv_bn
    states = [align(older, filters), _relu_conv_bn(newer, filters)]
    for edges in DARTS_REDUCE if reduce else DARTS_NORMAL:
        strides = [2 if reduce and source < 2 else 1 for _, source in edges]
        branches = [
            _darts_edge(kind, states[source], filters, stride)
            for (kind, source), stride in zip(edges, strides, strict=True)
        ]
        states.append(layers.Add()(branches))
    return layers.Concatenate()(states[2:])


def darts() -> keras.Model:
    """DARTS_V2 cells, Liu et al. 2019: 8 cells, 16 initial channels, 64x64 input, 10 classes."""
    cells, filters = 8, 16
    image = keras.Input((64, 64, 3))
    stem = _conv_bn(image, 3 * filters, 3, relu=False)
    older, newer, after_reduction = stem, stem, False
    for cell in range(cells):
        reduce = cell in (cells // 3, 2 * cells // 3)
        filters *= 2 if reduce else 1
        older, newer = newer, _darts_cell(older, newer, filters, reduce, after_reduction)
        after_reduction = reduce
    return keras.Model(image, _classify(newer, 10), name="darts")


# --- RandWire -------------------------------------------------------------------------------


def watts_strogatz(rng: np.random.Generator, nodes: int, k: int, p: float) -> list[list[int]]:
    """Draw a Watts-Strogatz graph and return, for each node, its predecessors.

    Each node starts linked to its `k` nearest neighbours on a ring; going round k/2 times, each
    link is rewired with probability `p`. Links point from the lower to the higher number, which
    makes the graph acyclic (Xie et al. 2019, section 3.3).
    """
    links = {(v, (v + step) % nodes) for step in range(1, k // 2 + 1) for v in range(nodes)}
    linked = {tuple(sorted(link)) for link in links}
    for v, w in sorted(links, key=lambda link: ((link[1] - link[0]) % nodes, link[0])):
        if rng.random() < p:
            free = [u for u in range(nodes) if u != v and tuple(sorted((u, v))) not in linked]
            if free:
                linked.remove(tuple(sorted((v, w))))
                linked.add(tuple(sorted((v, int(rng.choice(free))))))
    return [sorted(a for a, b in linked if b == node) for node in range(nodes)]


def _random_stage(x, filters: int, predecessors: list[list[int]]):
    outputs = []
    for sources in predecessors:
        inputs = [outputs[source] for source in sources]
        total = layers.Add()(inputs) if len(inputs) > 1 else inputs[0] if inputs else x
        outputs.append(_separable(total, filters, 3, strides=1 if inputs else 2))
    used = {source for sources in predecessors for source in sources}
    ends = [outputs[node] for node in range(len(outputs)) if node not in used]
    return layers.Add()(ends) if len(ends) > 1 else ends[0]


def randwire() -> keras.Model:
    """Randomly wired WS(4, 0.75), Xie et al. 2019: 3 stages of 32 nodes, 96x96 input."""
    rng = np.random.default_rng(475)
    image = keras.Input((96, 96, 3))
    x = _conv_bn(image, 16, 3, strides=2, relu=False)
    for filters in (24, 48, 96):
        x = _random_stage(x, filters, watts_strogatz(rng, 32, 4, 0.75))
    x = _conv_bn(layers.ReLU()(x), 256, 1)
    return keras.Model(image, _classify(x, 100), name="randwire")


NETWORKS = {
    network.__name__: network
    for network in (
        mobilenet_v2_100_224,
        nasnet_mobile,
        densenet121,
        mobilenet_v2_035_144,
        darts,
        randwire,
        inception_v1,
    )
}
