"""Classifiers of standard convolutions: ResNet, DenseNet, GoogLeNet, SqueezeNet, a small CNN.

Each docstring names the source and the published counts that the shapes are checked with.
Knows layers; must not know quantisation or files.
"""

import keras
from keras import layers

from zoo.common import IMAGENET, classify, conv_bn
from zoo.registry import zoo_model

# --- ResNet, DenseNet -------------------------------------------------------------------------


def _basic_block(x, filters: int, strides: int):
    y = conv_bn(conv_bn(x, filters, 3, strides), filters, 3, act=None)
    same_shape = strides == 1 and x.shape[-1] == filters
    short = x if same_shape else conv_bn(x, filters, 1, strides, act=None)
    return layers.ReLU()(layers.Add()([short, y]))


@zoo_model(parameters=21.8e6, macs=3.6e9)
def resnet34() -> keras.Model:
    """ResNet-34, He et al. 2016, at 224x224, projection shortcuts where shapes change.

    Checked: 21.8 M parameters (torchvision), 3.6 G MACs (the paper's table 1).
    """
    image = keras.Input((224, 224, 3))
    x = layers.MaxPooling2D(3, 2, padding="same")(conv_bn(image, 64, 7, 2))
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            x = _basic_block(x, 64 << stage, 2 if stage and not block else 1)
    return keras.Model(image, classify(x, IMAGENET), name="resnet34")


@zoo_model(parameters=25.6e6, macs=3.8e9)
def resnet50() -> keras.Model:
    """ResNet-50, He et al. 2016, at 224x224 (Keras's own: strides in the first 1x1).

    Checked: 25.6 M parameters (Keras's table), 3.8 G MACs (the paper's table 1).
    """
    return keras.applications.ResNet50(weights=None)


@zoo_model(parameters=7.98e6, macs=2.87e9)
def densenet121() -> keras.Model:
    """DenseNet-121, Huang et al. 2017, at 224x224 (Keras's own).

    Checked: 7.98 M parameters, 2.87 G MACs (torchvision's table, and common counters).
    """
    return keras.applications.DenseNet121(weights=None)


# --- GoogLeNet --------------------------------------------------------------------------------

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
            conv_bn(x, one, 1),
            conv_bn(conv_bn(x, three_in, 1), three, 3),
            conv_bn(conv_bn(x, five_in, 1), five, 5),
            conv_bn(layers.MaxPooling2D(3, 1, padding="same")(x), pool, 1),
        ]
    )


@zoo_model(parameters=6.8e6, macs=1.5e9, tolerance=0.06)
def inception_v1() -> keras.Model:
    """GoogLeNet, Szegedy et al. 2015, at 224x224; BatchNorm in place of response norm.

    Checked: 6.8 M parameters, 1.5 G MACs (the sums of the paper's table 1, which is rounded).
    """
    image = keras.Input((224, 224, 3))
    x = conv_bn(image, 64, 7, strides=2)
    x = layers.MaxPooling2D(3, 2, padding="same")(x)
    x = conv_bn(conv_bn(x, 64, 1), 192, 3)
    x = layers.MaxPooling2D(3, 2, padding="same")(x)
    for filters in INCEPTION:
        pooled = filters is None
        x = layers.MaxPooling2D(3, 2, padding="same")(x) if pooled else _inception(x, filters)
    return keras.Model(image, classify(x, IMAGENET), name="inception_v1")


# --- SqueezeNet -------------------------------------------------------------------------------

# Squeeze and expand filters of the fire modules; None stands for a max pooling.
SQUEEZENET_11 = (
    None, (16, 64), (16, 64), None, (32, 128), (32, 128), None,
    (48, 192), (48, 192), (64, 256), (64, 256),
)  # fmt: skip


def _conv_relu(x, filters: int, kernel: int, **options):
    return layers.Conv2D(
        filters, kernel, activation="relu", kernel_initializer="he_normal", **options
    )(x)


def _fire(x, squeezed: int, expanded: int):
    x = _conv_relu(x, squeezed, 1)
    wide = _conv_relu(x, expanded, 3, padding="same")
    return layers.Concatenate()([_conv_relu(x, expanded, 1), wide])


@zoo_model(parameters=1_235_496, macs=0.35e9, tolerance=0.005)
def squeezenet_11() -> keras.Model:
    """SqueezeNet 1.1, Iandola et al. 2016 and the authors' repository, at 224x224.

    Checked: 1,235,496 parameters, 0.35 G MACs (torchvision's table).
    """
    image = keras.Input((224, 224, 3))
    x = _conv_relu(image, 64, 3, strides=2)
    for fire in SQUEEZENET_11:
        x = layers.MaxPooling2D(3, 2)(x) if fire is None else _fire(x, *fire)
    x = layers.Conv2D(IMAGENET, 1, activation="relu", name="predictions")(x)
    x = layers.Softmax()(layers.GlobalAveragePooling2D()(x))
    return keras.Model(image, x, name="squeezenet")


# --- A user's model ---------------------------------------------------------------------------


@zoo_model(name="issue_2513_float", parameters=81_507, tolerance=0, quantised=False)
@zoo_model(name="issue_2513", parameters=81_507, tolerance=0)
def issue_2513() -> keras.Model:
    """The small CNN of tflite-micro issue #2513, "Optimizing the memory usage of a model".

    Checked: 81,507 parameters, which are the 318.39 KB of float weights the issue reports. Its
    arena there: 1,472,624 bytes (float).
    """
    image = keras.Input((125, 90, 1))
    x = layers.MaxPooling2D(4)(_conv_relu(image, 32, 3))
    x = layers.MaxPooling2D(4)(_conv_relu(x, 32, 3))
    x = layers.Dense(64, activation="relu")(layers.Flatten()(x))
    x = layers.Dense(3, name="predictions")(layers.Dropout(0.5)(x))
    return keras.Model(image, layers.Softmax()(x), name="issue_2513")
