"""Networks whose output is a map: detection, segmentation, pose, text.

They keep early feature maps alive until a decoder needs them again. Each docstring names the
source and the published counts that the shapes are checked with. Knows layers; must not know
quantisation or files. Output layers are called predictions, predictions_1, ...
"""

import keras
from keras import layers

from zoo.common import conv_bn, inverted_bottleneck
from zoo.mobile import mobilenet_v1_body
from zoo.registry import zoo_model


def _heads(features, widths: tuple[int, ...], activation: str | None = None) -> list:
    """One 1x1 convolution per entry of `widths`, all on the same features."""
    return [
        layers.Conv2D(width, 1, activation=activation, name=_head_name(index))(features)
        for index, width in enumerate(widths)
    ]


def _resize(x, factor: int, interpolation: str = "nearest"):
    """Enlarge by one RESIZE operator; Keras's UpSampling2D repeats pixels with TILE instead."""
    height, width = x.shape[1:3]
    return layers.Resizing(height * factor, width * factor, interpolation=interpolation)(x)


def _head_name(index: int) -> str:
    return f"predictions_{index}" if index else "predictions"


# --- YOLOv5n ----------------------------------------------------------------------------------


def _conv_silu(x, filters: int, kernel: int = 1, strides: int = 1):
    return conv_bn(x, filters, kernel, strides, act="silu")


def _c3(x, filters: int, repeats: int, shortcut: bool = True):
    """YOLOv5's C3: half of the channels through bottlenecks, half past them."""
    deep, past = _conv_silu(x, filters // 2), _conv_silu(x, filters // 2)
    for _ in range(repeats):
        y = _conv_silu(_conv_silu(deep, filters // 2), filters // 2, 3)
        deep = layers.Add()([deep, y]) if shortcut else y
    return _conv_silu(layers.Concatenate()([deep, past]), filters)


def _sppf(x, filters: int):
    """Three max poolings in a row, all concatenated."""
    pooled = [_conv_silu(x, filters // 2)]
    for _ in range(3):
        pooled.append(layers.MaxPooling2D(5, 1, padding="same")(pooled[-1]))
    return _conv_silu(layers.Concatenate()(pooled), filters)


def _yolov5n_backbone(image) -> list:
    """Feature maps at strides 8, 16 and 32."""
    x = _conv_silu(image, 16, 6, 2)
    features = []
    for filters, repeats in ((32, 1), (64, 2), (128, 3), (256, 1)):
        x = _c3(_conv_silu(x, filters, 3, 2), filters, repeats)
        features.append(x)
    return [*features[1:3], _sppf(x, 256)]


@zoo_model(parameters=1_872_157, macs=2.25e9, tolerance=0.02, at={"size": 640})
def yolov5n(size: int = 320) -> keras.Model:
    """YOLOv5n v6, Jocher et al. 2022, at 320x320: backbone, neck, three raw maps of 80 classes.

    Box decoding and suppression of doubles stay outside. Checked at 640x640: 1,872,157
    parameters (before BatchNorm is folded), 4.5 GFLOPs = 2.25 G MACs (the authors' table).
    """
    image = keras.Input((size, size, 3))
    fine, middle, coarse = _yolov5n_backbone(image)
    top = _conv_silu(coarse, 128)
    x = layers.Concatenate()([_resize(top, 2), middle])
    side = _conv_silu(_c3(x, 128, 1, shortcut=False), 64)
    x = layers.Concatenate()([_resize(side, 2), fine])
    maps = [_c3(x, 64, 1, shortcut=False)]
    x = layers.Concatenate()([_conv_silu(maps[0], 64, 3, 2), side])
    maps.append(_c3(x, 128, 1, shortcut=False))
    x = layers.Concatenate()([_conv_silu(maps[1], 128, 3, 2), top])
    maps.append(_c3(x, 256, 1, shortcut=False))
    outputs = [layers.Conv2D(255, 1, name=_head_name(i))(y) for i, y in enumerate(maps)]
    return keras.Model(image, outputs, name="yolov5n")


# --- DeepLabv3 --------------------------------------------------------------------------------

# Expansion, filters, blocks, strides, dilation at output stride 16. Sandler et al. 2018, table 2.
DEEPLAB_STAGES = (
    (1, 16, 1, 1, 1),
    (6, 24, 2, 2, 1),
    (6, 32, 3, 2, 1),
    (6, 64, 4, 2, 1),
    (6, 96, 3, 1, 1),
    (6, 160, 3, 1, 2),
    (6, 320, 1, 1, 2),
)


def _deeplab_backbone(image):
    x = conv_bn(image, 32, 3, 2, act="relu6")
    for expansion, filters, blocks, first_strides, dilation in DEEPLAB_STAGES:
        for block in range(blocks):
            strides = 1 if block else first_strides
            hidden = x.shape[-1] * expansion
            x = inverted_bottleneck(x, filters, 3, strides, hidden, dilation=dilation)
    return x


@zoo_model(parameters=2.11e6, macs=2.75e9, tolerance=0.03, at={"size": 513})
def deeplabv3_mobilenet_v2(size: int = 257, classes: int = 21) -> keras.Model:
    """DeepLabv3 on MobileNetV2, Sandler et al. 2018 section 6.3, at 257x257, output stride 16.

    The variant without atrous pyramid: a 1x1 branch and an image-level branch. Checked at
    513x513: 2.11 M parameters, 2.75 G MACs (the paper's table 7).
    """
    image = keras.Input((size, size, 3))
    x = _deeplab_backbone(image)
    whole = layers.GlobalAveragePooling2D(keepdims=True)(x)
    whole = conv_bn(whole, 256, 1)
    whole = _resize(whole, x.shape[1], "bilinear")
    x = conv_bn(layers.Concatenate()([whole, conv_bn(x, 256, 1)]), 256, 1)
    x = layers.Conv2D(classes, 1, name="predictions")(x)
    x = layers.Resizing(size, size, interpolation="bilinear")(x)
    return keras.Model(image, x, name="deeplabv3")


# --- PoseNet ----------------------------------------------------------------------------------


@zoo_model(parameters=3.33e6, tolerance=0.03)
def posenet(size: int = 257) -> keras.Model:
    """PoseNet on MobileNetV1 1.0, Papandreou et al. 2018, at 257x257, output stride 32.

    Heat maps, offsets and two displacement maps of 17 key points, as in TensorFlow's hosted
    model. Checked: 3.33 M parameters (4.24 M of MobileNetV1 1.0 in TensorFlow-Slim's table,
    less its 1.03 M of classifier, plus 0.12 M of heads).
    """
    image = keras.Input((size, size, 3))
    return keras.Model(
        image, _heads(mobilenet_v1_body(image, 1.0), (17, 34, 32, 32)), name="posenet"
    )


# --- EAST -------------------------------------------------------------------------------------

EAST_TAPS = ("conv5_block3_out", "conv4_block6_out", "conv3_block4_out", "conv2_block3_out")


@zoo_model()
def east_like(size: int = 320) -> keras.Model:
    """Text detection in the manner of EAST, Zhou et al. 2017, on ResNet-50, at 320x320.

    The paper's feature-merging branch (128, 64, 32 channels) and outputs (score, four
    distances, angle); its backbone is PVANet, ours the ResNet-50 of the common reimplementation,
    for which no counts are published.
    """
    image = keras.Input((size, size, 3))
    body = keras.applications.ResNet50(include_top=False, weights=None, input_tensor=image)
    features = [body.get_layer(name).output for name in EAST_TAPS]
    x = features[0]
    for filters, feature in zip((128, 64, 32), features[1:], strict=True):
        up = _resize(x, 2, "bilinear")
        x = conv_bn(layers.Concatenate()([up, feature]), filters, 1)
        x = conv_bn(x, filters, 3)
    x = conv_bn(x, 32, 3)
    return keras.Model(image, _heads(x, (1, 4, 1), activation="sigmoid"), name="east_like")
