"""Networks made of inverted bottlenecks or depthwise separable blocks, and a keyword spotter.

Each docstring names the source and the published counts that the shapes are checked with
(`zoo.make` prints and asserts them). Knows layers; must not know quantisation or files.
"""

import keras
from keras import layers

from zoo.common import (
    IMAGENET,
    channel_slice,
    classify,
    conv_bn,
    depthwise_bn,
    divisible,
    inverted_bottleneck,
)
from zoo.registry import zoo_model

# --- MobileNetV1 ------------------------------------------------------------------------------

# (filters, strides) of each depthwise separable block. Howard et al. 2017, table 1.
MOBILENET_V1 = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2),
    *((512, 1),) * 5,
    (1024, 2), (1024, 1),
)  # fmt: skip


def mobilenet_v1_body(image, alpha: float):
    """The thirteen separable blocks of MobileNetV1 at width `alpha`, without a classifier."""
    x = conv_bn(image, int(32 * alpha), 3, 2, act="relu6")
    for filters, strides in MOBILENET_V1:
        x = depthwise_bn(x, 3, strides, act="relu6")
        x = conv_bn(x, int(filters * alpha), 1, act="relu6")
    return x


@zoo_model(parameters=0.47e6, macs=14e6, tolerance=0.04, at={"size": 128, "classes": IMAGENET})
def mobilenet_v1_025_96(size: int = 96, classes: int = 2) -> keras.Model:
    """MobileNetV1, Howard et al. 2017, width 0.25 at 96x96: visual wake words, MLPerf Tiny.

    Checked at 128x128 with 1000 classes: 0.47 M parameters, 14 M MACs (TensorFlow-Slim's table).
    """
    image = keras.Input((size, size, 3))
    return keras.Model(
        image, classify(mobilenet_v1_body(image, 0.25), classes), name="mobilenet_v1"
    )


# --- MobileNetV2 ------------------------------------------------------------------------------


@zoo_model(parameters=3.47e6, macs=300e6)
def mobilenet_v2_100_224() -> keras.Model:
    """MobileNetV2, Sandler et al. 2018, width 1.0 at 224x224 (Keras's own).

    Checked: 3.47 M parameters, 300 M MACs (TensorFlow-Slim's table).
    """
    return keras.applications.MobileNetV2((224, 224, 3), alpha=1.0, weights=None)


@zoo_model(parameters=1.66e6, macs=30e6, tolerance=0.04, at={"size": 160})
def mobilenet_v2_035_144(size: int = 144) -> keras.Model:
    """MobileNetV2, width 0.35 at 144x144: the size microcontroller papers compare on.

    Checked at 160x160: 1.66 M parameters, 30 M MACs (TensorFlow-Slim's table).
    """
    return keras.applications.MobileNetV2((size, size, 3), alpha=0.35, weights=None)


@zoo_model(parameters=1.66e6, macs=11e6, tolerance=0.09)
def mobilenet_v2_035_96() -> keras.Model:
    """MobileNetV2, width 0.35 at 96x96.

    Checked: 1.66 M parameters, 11 M MACs (TensorFlow-Slim's table, in whole millions; 11.9 M
    here, of which the classifier is 1.3 M).
    """
    return keras.applications.MobileNetV2((96, 96, 3), alpha=0.35, weights=None)


@zoo_model()
def mobilenet_v2_030_80() -> keras.Model:
    """MobileNetV2, width 0.30 at 80x80, the network of public comparisons of MCU runtimes.

    No counts are published; the arena is: 155 KiB in all on stock TFLM.
    """
    return keras.applications.MobileNetV2((80, 80, 3), alpha=0.30, weights=None)


# --- MCUNet -----------------------------------------------------------------------------------

# Stages of mcunet-in3 (the ImageNet model for 320 KiB SRAM, 1 MiB flash), Lin et al. 2020:
# filters, strides of the first block, expansion and kernel of each block.
MCUNET_IN3 = (
    (16, 2, (3, 5, 5, 4), (7, 3, 7, 5)),
    (24, 2, (5, 5, 5), (5, 5, 5)),
    (40, 2, (5, 6, 4), (3, 7, 5)),
    (48, 1, (5, 5, 5), (5, 7, 3)),
    (96, 2, (6, 5, 4), (3, 7, 3)),
    (160, 1, (5,), (7,)),
)

# Ours, in the manner of figure 9 of Lin et al. 2021: small kernels first, large ones late.
MCUNET_LIKE = (
    (24, 2, (6, 3), (3, 3)),
    (40, 2, (4, 3, 3), (5, 3, 7)),
    (80, 2, (4, 3, 4), (5, 7, 3)),
    (96, 1, (4, 3, 4), (3, 7, 5)),
    (160, 2, (6, 4, 3), (5, 3, 7)),
    (240, 1, (6,), (3,)),
)


def _mcunet_body(image, stages, stem: int, first: int, excite_from: int):
    """Stem, a separable block, the stages; squeeze-excite from stage `excite_from` on."""
    x = conv_bn(image, stem, 3, 2, act="relu6")
    x = inverted_bottleneck(x, first, 3, 1, stem)
    for stage, (filters, stage_strides, expansions, kernels) in enumerate(stages):
        for block, (expansion, kernel) in enumerate(zip(expansions, kernels, strict=True)):
            channels = x.shape[-1]
            hidden = divisible(channels * expansion)
            squeezed = divisible(hidden / 4) if stage >= excite_from else 0
            strides = 1 if block else stage_strides
            x = inverted_bottleneck(x, filters, kernel, strides, hidden, squeezed=squeezed)
    return x


@zoo_model(parameters=0.74e6, macs=81.8e6, tolerance=0.01)
def mcunet_in3_176() -> keras.Model:
    """MCUNet-in3, Lin et al. 2020, at 176x176: inverted bottlenecks with 3, 5 and 7 wide kernels.

    Checked: 0.74 M parameters, 81.8 M MACs (the model list of the authors' repository).
    """
    image = keras.Input((176, 176, 3))
    x = _mcunet_body(image, MCUNET_IN3, 16, 8, excite_from=len(MCUNET_IN3))
    return keras.Model(image, classify(x, IMAGENET), name="mcunet_in3")


@zoo_model()
def mcunet_like_se_224() -> keras.Model:
    """MCUNetV2-like with squeeze-excite, at 224x224; the blocks (`MCUNET_LIKE`) are ours.

    The released MCUNetV2-SE-Large has no public list of blocks. As there, 96 channels at
    112x112 make the peak. Squeeze-excite (to a quarter of the hidden channels) from stage 2 on.
    """
    image = keras.Input((224, 224, 3))
    x = _mcunet_body(image, MCUNET_LIKE, 32, 16, excite_from=1)
    return keras.Model(image, classify(x, IMAGENET), name="mcunet_like_se")


# --- MnasNet, FBNet ---------------------------------------------------------------------------

# Expansion, kernel, filters, blocks, strides, squeeze-excite. Tan et al. 2019, figure 7 (a).
MNASNET_A1 = (
    (6, 3, 24, 2, 2, False),
    (3, 5, 40, 3, 2, True),
    (6, 3, 80, 4, 2, False),
    (6, 3, 112, 2, 1, True),
    (6, 5, 160, 3, 2, True),
    (6, 3, 320, 1, 1, False),
)


@zoo_model(parameters=3.9e6, macs=315.2e6)
def mnasnet_a1() -> keras.Model:
    """MnasNet-A1, Tan et al. 2019, at 224x224; squeeze-excite to a quarter of a block's input.

    Checked: 3.9 M parameters, 315.2 M MACs (the authors' repository).
    """
    image = keras.Input((224, 224, 3))
    x = inverted_bottleneck(conv_bn(image, 32, 3, 2), 16, 3, 1, 32, act="relu")
    for expansion, kernel, filters, blocks, first_strides, excite in MNASNET_A1:
        for block in range(blocks):
            channels = x.shape[-1]
            squeezed = channels // 4 if excite else 0
            strides = 1 if block else first_strides
            hidden = channels * expansion
            x = inverted_bottleneck(
                x, filters, kernel, strides, hidden, act="relu", squeezed=squeezed
            )
    return keras.Model(image, classify(conv_bn(x, 1280, 1), IMAGENET), name="mnasnet_a1")


# Filters, strides and the blocks of each stage as (kernel, expansion, groups); None is a skip.
# Wu et al. 2019, figure 4; the same list is in the authors' repository.
FBNET_A = (
    (16, 1, (None,)),
    (24, 2, ((3, 3, 1), (3, 1, 1), None, None)),
    (32, 2, ((5, 6, 1), (3, 3, 1), (5, 1, 1), (3, 3, 1))),
    (64, 2, ((5, 6, 1), (5, 3, 1), (5, 1, 2), (5, 6, 1))),
    (112, 1, ((3, 6, 1), (5, 1, 2), (5, 1, 1), (3, 1, 2))),
    (184, 2, ((5, 6, 1), (5, 6, 1), (5, 3, 1), (5, 6, 1))),
    (352, 1, ((5, 6, 1),)),
)


def _grouped_pointwise(x, filters: int, groups: int, act: str | None):
    """1x1 convolution in groups: slices, one convolution each, concatenation."""
    if groups == 1:
        return conv_bn(x, filters, 1, act=act)
    size = x.shape[-1] // groups
    slices = [channel_slice(x, group * size, size) for group in range(groups)]
    return layers.Concatenate()([conv_bn(y, filters // groups, 1, act=act) for y in slices])


def _shuffle(x, groups: int):
    """Interleave the channels of the groups (ShuffleNet's shuffle)."""
    height, width, channels = x.shape[1:]
    x = layers.Reshape((height * width, groups, channels // groups))(x)
    return layers.Reshape((height, width, channels))(layers.Permute((1, 3, 2))(x))


def _fbnet_block(x, filters: int, strides: int, kernel: int, expansion: int, groups: int):
    channels = x.shape[-1]
    y = _grouped_pointwise(x, channels * expansion, groups, "relu")
    y = _shuffle(y, groups) if groups > 1 else y
    y = _grouped_pointwise(depthwise_bn(y, kernel, strides), filters, groups, None)
    return layers.Add()([x, y]) if strides == 1 and channels == filters else y


@zoo_model(parameters=4.3e6, macs=249e6, tolerance=0.05)
def fbnet_a() -> keras.Model:
    """FBNet-A, Wu et al. 2019, at 224x224; grouped 1x1 convolutions as SLICE and CONCATENATION.

    Checked: 4.3 M parameters, 249 M MACs (the paper's table 2; 239 M here).
    """
    image = keras.Input((224, 224, 3))
    x = conv_bn(image, 16, 3, 2)
    for filters, first_strides, blocks in FBNET_A:
        for position, block in enumerate(blocks):
            if block is not None:
                x = _fbnet_block(x, filters, 1 if position else first_strides, *block)
    return keras.Model(image, classify(conv_bn(x, 1504, 1), IMAGENET), name="fbnet_a")


# --- DS-CNN -----------------------------------------------------------------------------------


@zoo_model(macs=2.7e6)
def ds_cnn() -> keras.Model:
    """DS-CNN-S, Zhang et al. 2017, keyword spotting of 12 words from 49x10 MFCC features.

    The variant of MLPerf Tiny. Checked: 5.4 M operations, that is 2.7 M MACs (the paper's table).
    """
    features = keras.Input((49, 10, 1))
    x = layers.Conv2D(64, (10, 4), 2, padding="same", use_bias=False)(features)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    for _ in range(4):
        x = conv_bn(depthwise_bn(x, 3), 64, 1)
    return keras.Model(features, classify(x, 12), name="ds_cnn")
