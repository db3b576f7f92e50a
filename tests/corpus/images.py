"""Classifiers of images, as their tutorials and papers write them, in small.

TensorFlow is imported where a network is made, so that the names alone cost nothing.
"""

from __future__ import annotations

from typing import Any

from tests.corpus.blocks import conv, depthwise, head, image, keras, layers, squeeze
from tests.corpus.registry import network

# --- how a model ends ------------------------------------------------------------------------


@network()
def flatten() -> Any:
    """The six layers of every first tutorial."""
    x = inputs = image()
    for width in (8, 16):
        x = layers().Conv2D(width, 3, activation="relu")(x)
        x = layers().MaxPooling2D()(x)
    return keras().Model(inputs, layers().Dense(5)(layers().Flatten()(x)))


@network("function")
def flatten_fixed_batch() -> Any:
    x = inputs = image(batch=1)
    x = layers().Conv2D(8, 3, activation="relu")(x)
    return keras().Model(inputs, layers().Dense(5, activation="softmax")(layers().Flatten()(x)))


@network()
def reshape_free_batch() -> Any:
    x = inputs = image()
    x = layers().Conv2D(8, 3, strides=2, padding="same", activation="relu")(x)
    return keras().Model(inputs, layers().Dense(4)(layers().Reshape((8 * 8 * 8,))(x)))


@network()
def reshape_unknown_size() -> Any:
    x = inputs = image()
    x = layers().Conv2D(8, 3, strides=2, padding="same", activation="relu")(x)
    x = layers().Dense(6)(layers().Reshape((-1, 8))(x))
    return keras().Model(inputs, layers().Flatten()(x))


@network()
def global_average() -> Any:
    x = inputs = image()
    x = conv(conv(x, 8), 16, strides=2)
    return keras().Model(inputs, layers().Dense(5)(layers().GlobalAveragePooling2D()(x)))


@network()
def global_average_kept() -> Any:
    x = inputs = image()
    x = layers().GlobalAveragePooling2D(keepdims=True)(conv(x, 8))
    x = layers().Conv2D(5, 1)(x)
    return keras().Model(inputs, layers().Softmax()(layers().Flatten()(x)))


@network()
def global_max() -> Any:
    x = inputs = image()
    return keras().Model(inputs, layers().Dense(5)(layers().GlobalMaxPooling2D()(conv(x, 8))))


@network()
def fully_convolutional() -> Any:
    x = inputs = image()
    x = layers().AveragePooling2D(16)(conv(x, 8))
    return keras().Model(inputs, layers().Conv2D(5, 1, activation="softmax")(x))


@network("function")
def argmax_output() -> Any:
    import tensorflow as tf

    x = inputs = image()
    x = head(conv(x, 8))
    return keras().Model(inputs, layers().Lambda(lambda t: tf.argmax(t, axis=-1))(x))


@network()
def top_k_output() -> Any:
    """TOPK_V2, which TFLM has not."""
    x = inputs = image()
    return keras().Model(inputs, keras().ops.top_k(head(conv(x, 8)), 2))


# --- how it is written -----------------------------------------------------------------------


@network()
def sequential() -> Any:
    k = layers()
    return keras().Sequential(
        [
            keras().Input((16, 16, 3)),
            k.Rescaling(1 / 127.5, offset=-1),
            k.Conv2D(8, 3, padding="same", activation="relu"),
            k.MaxPooling2D(),
            k.Dropout(0.2),
            k.Flatten(),
            k.Dense(16, activation="relu"),
            k.Dense(5, activation="softmax"),
        ]
    )


@network("function")
def sequential_function() -> Any:
    return sequential()


def _subclassed() -> Any:
    k = layers()

    class Small(keras().Model):
        def __init__(self) -> None:
            super().__init__()
            self.first = k.Conv2D(8, 3, padding="same", activation="relu")
            self.second = k.Conv2D(8, 3, padding="same")
            self.norm = k.BatchNormalization()
            self.flat, self.last = k.Flatten(), k.Dense(5)

        def call(self, x: Any) -> Any:
            x = self.first(x)
            x = keras().ops.relu(x + self.norm(self.second(x)))
            return self.last(self.flat(x))

    return Small()


@network()
def subclassed_exported() -> Any:
    """A free batch, as `model.export` writes it."""
    model = _subclassed()
    model(keras().ops.zeros((1, 8, 8, 3)))
    model.shape_in = (8, 8, 3)
    return model


@network("function")
def subclassed_function() -> Any:
    model = _subclassed()
    model(keras().ops.zeros((1, 8, 8, 3)))
    model.shape_in = (8, 8, 3)
    return model


# --- families --------------------------------------------------------------------------------


@network()
def lenet() -> Any:
    x = inputs = image(size=20, channels=1)
    for width in (4, 8):
        x = layers().Conv2D(width, 5, activation="tanh")(x)
        x = layers().AveragePooling2D(2)(x)
    x = layers().Dense(12, activation="tanh")(layers().Flatten()(x))
    return keras().Model(inputs, layers().Dense(5, activation="softmax")(x))


@network()
def vgg() -> Any:
    x = inputs = image(size=32)
    for width in (8, 8, 16):
        x = layers().MaxPooling2D()(conv(conv(x, width), width))
    return keras().Model(inputs, head(x))


@network()
def resnet() -> Any:
    x = inputs = image(size=32)
    x = conv(x, 8)
    for width, strides in ((8, 1), (16, 2)):
        y = conv(conv(x, width, strides=strides), width, activation=None)
        x = layers().Conv2D(width, 1, strides=strides)(x) if strides > 1 else x
        x = layers().ReLU()(layers().Add()([x, y]))
    return keras().Model(inputs, head(x))


@network()
def resnet_before_activation() -> Any:
    x = inputs = image()
    x = layers().Conv2D(8, 3, padding="same")(x)
    for _ in range(2):
        y = layers().ReLU()(layers().BatchNormalization()(x))
        x = layers().Add()([x, layers().Conv2D(8, 3, padding="same")(y)])
    return keras().Model(inputs, head(x))


@network()
def resnet_padded() -> Any:
    """As the applications of Keras: ZeroPadding2D before strided convolutions."""
    x = inputs = image(size=32)
    x = layers().ZeroPadding2D(3)(x)
    x = layers().ReLU()(layers().BatchNormalization()(layers().Conv2D(8, 7, strides=2)(x)))
    x = layers().MaxPooling2D(3, strides=2)(layers().ZeroPadding2D(1)(x))
    return keras().Model(inputs, head(conv(x, 8)))


@network()
def mobilenet_v1() -> Any:
    x = inputs = image(size=32)
    x = conv(x, 8, strides=2)
    for width, strides in ((16, 1), (24, 2), (24, 1)):
        x = conv(depthwise(x, strides=strides), width, kernel=1)
    return keras().Model(inputs, head(x))


def _inverted(x: Any, wide: int, narrow: int, strides: int = 1, activation: str = "relu6") -> Any:
    y = depthwise(conv(x, wide, kernel=1, activation=activation), strides, activation=activation)
    y = conv(y, narrow, kernel=1, activation=None)
    return layers().Add()([x, y]) if strides == 1 and x.shape[-1] == narrow else y


@network()
def mobilenet_v2() -> Any:
    x = inputs = image(size=32)
    x = conv(x, 8, strides=2, activation="relu6")
    x = _inverted(_inverted(x, 24, 8), 24, 12, 2)
    return keras().Model(inputs, head(_inverted(x, 36, 12)))


@network()
def mobilenet_v3() -> Any:
    """Hard swish, and squeeze and excitation with hard sigmoid."""
    x = inputs = image(size=32)
    x = conv(x, 8, strides=2, activation="hard_silu")
    x = squeeze(_inverted(x, 24, 8, activation="hard_silu"), "hard_sigmoid")
    return keras().Model(inputs, head(conv(x, 16, activation="hard_silu")))


@network()
def efficientnet() -> Any:
    x = inputs = image(size=32)
    x = conv(x, 8, strides=2, activation="silu")
    y = depthwise(conv(x, 24, kernel=1, activation="silu"), activation="silu")
    y = conv(squeeze(y, "sigmoid"), 8, kernel=1, activation=None)
    return keras().Model(inputs, head(layers().Add()([x, y])))


@network()
def squeeze_and_excite() -> Any:
    x = inputs = image()
    return keras().Model(inputs, head(squeeze(conv(x, 8), "sigmoid")))


@network()
def channel_and_spatial_attention() -> Any:
    """CBAM."""
    ops, x = keras().ops, image()
    inputs, x = x, conv(x, 8)
    dense = layers().Dense(8)
    pooled = layers().GlobalAveragePooling2D()(x), layers().GlobalMaxPooling2D()(x)
    weights = layers().Activation("sigmoid")(layers().Add()([dense(p) for p in pooled]))
    x = layers().Multiply()([x, layers().Reshape((1, 1, 8))(weights)])
    over = [ops.mean(x, axis=-1, keepdims=True), ops.max(x, axis=-1, keepdims=True)]
    mask = layers().Conv2D(1, 7, padding="same", activation="sigmoid")(layers().Concatenate()(over))
    return keras().Model(inputs, head(layers().Multiply()([x, mask])))


@network()
def densenet() -> Any:
    x = inputs = image()
    x = conv(x, 8)
    for _ in range(3):
        x = layers().Concatenate()([x, conv(conv(x, 16, kernel=1), 4)])
    return keras().Model(inputs, head(layers().AveragePooling2D(2)(conv(x, 8, kernel=1))))


@network()
def inception() -> Any:
    x = inputs = image()
    x = conv(x, 8)
    branches = [conv(x, 4, kernel=k) for k in (1, 3, 5)]
    branches.append(conv(layers().MaxPooling2D(3, 1, padding="same")(x), 4, kernel=1))
    return keras().Model(inputs, head(layers().Concatenate()(branches)))


@network()
def inception_factorised() -> Any:
    x = inputs = image()
    y = conv(conv(conv(x, 8, kernel=1), 8, kernel=(1, 5)), 8, kernel=(5, 1))
    return keras().Model(inputs, head(layers().Concatenate()([y, conv(x, 4)])))


@network()
def squeezenet() -> Any:
    x = inputs = image(size=24)
    for _ in range(2):
        s = layers().Conv2D(4, 1, activation="relu")(x)
        parts = [layers().Conv2D(8, k, padding="same", activation="relu")(s) for k in (1, 3)]
        x = layers().MaxPooling2D(3, 2)(layers().Concatenate()(parts))
    x = layers().Conv2D(5, 1, activation="relu")(layers().Dropout(0.5)(x))
    return keras().Model(inputs, layers().Softmax()(layers().GlobalAveragePooling2D()(x)))


@network()
def shufflenet() -> Any:
    """Grouped convolutions, and their channels shuffled in five dimensions."""
    x = inputs = image()
    x = conv(x, 8)
    x = layers().Conv2D(8, 1, groups=2)(x)
    x = layers().Permute((1, 2, 4, 3))(layers().Reshape((16, 16, 2, 4))(x))
    x = depthwise(layers().Reshape((16, 16, 8))(x), activation=None)
    return keras().Model(inputs, head(layers().Conv2D(8, 1, groups=2)(x)))


@network()
def shufflenet_v2() -> Any:
    """Half of the channels passes by."""
    ops, x = keras().ops, image()
    inputs, x = x, conv(x, 8)
    left, right = ops.split(x, 2, axis=-1)
    right = conv(depthwise(conv(right, 4, kernel=1)), 4, kernel=1)
    return keras().Model(inputs, head(layers().Concatenate()([left, right])))


@network()
def resnext() -> Any:
    x = inputs = image()
    x = conv(x, 8)
    y = layers().Conv2D(8, 3, padding="same", groups=4, activation="relu")(x)
    return keras().Model(inputs, head(layers().Add()([x, layers().Conv2D(8, 1)(y)])))


@network()
def depth_multiplier() -> Any:
    x = inputs = image()
    x = layers().DepthwiseConv2D(3, depth_multiplier=3, padding="same", activation="relu")(x)
    return keras().Model(inputs, head(conv(x, 8, kernel=1)))


@network()
def depth_multiplier_of_one_channel() -> Any:
    """micro_speech."""
    x = inputs = image(size=20, channels=1, batch=1)
    x = layers().DepthwiseConv2D((10, 8), strides=2, depth_multiplier=8, padding="same")(x)
    return keras().Model(
        inputs, layers().Dense(4, activation="softmax")(layers().Flatten()(layers().ReLU()(x)))
    )


@network()
def separable() -> Any:
    x = inputs = image()
    for width in (8, 12):
        x = layers().SeparableConv2D(width, 3, padding="same", activation="relu")(x)
    return keras().Model(inputs, head(x))


@network()
def convnext() -> Any:
    """A large depthwise kernel, LayerNormalization, GELU."""
    x = inputs = image()
    x = layers().Conv2D(8, 4, strides=4)(x)
    y = layers().DepthwiseConv2D(7, padding="same")(x)
    y = layers().Dense(16, activation="gelu")(layers().LayerNormalization()(y))
    return keras().Model(inputs, head(layers().Add()([x, layers().Dense(8)(y)])))


@network()
def cross_stage_partial() -> Any:
    ops, x = keras().ops, image()
    inputs, x = x, conv(x, 8)
    a, b = ops.split(x, 2, axis=3)
    b = layers().Add()([b, conv(b, 4)])
    return keras().Model(inputs, head(conv(layers().Concatenate()([a, b]), 8, kernel=1)))
