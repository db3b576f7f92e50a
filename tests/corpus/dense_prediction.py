"""Models whose result is an image, boxes or several tensors, and odd pieces of preprocessing."""

from __future__ import annotations

from typing import Any

from tests.corpus.blocks import conv, depthwise, head, image, keras, layers
from tests.corpus.registry import network


@network()
def unet() -> Any:
    x = inputs = image()
    a = conv(x, 8)
    b = conv(layers().MaxPooling2D()(a), 12)
    c = conv(layers().MaxPooling2D()(b), 16)
    y = conv(layers().Concatenate()([layers().UpSampling2D()(c), b]), 12)
    y = conv(layers().Concatenate()([layers().UpSampling2D()(y), a]), 8)
    return keras().Model(inputs, layers().Conv2D(1, 1, activation="sigmoid")(y))


@network()
def unet_transposed() -> Any:
    """Conv2DTranspose with a free batch: its shape is computed."""
    x = inputs = image()
    a = conv(x, 8)
    y = conv(layers().MaxPooling2D()(a), 12)
    y = layers().Conv2DTranspose(8, 2, strides=2, padding="same")(y)
    y = conv(layers().Concatenate()([y, a]), 8)
    return keras().Model(inputs, layers().Conv2D(2, 1, activation="softmax")(y))


@network("function")
def unet_transposed_fixed_batch() -> Any:
    x = inputs = image(batch=1)
    a = conv(x, 8)
    y = conv(layers().MaxPooling2D()(a), 12)
    y = layers().Conv2DTranspose(8, 3, strides=2, padding="same", activation="relu")(y)
    return keras().Model(inputs, layers().Conv2D(1, 1)(layers().Add()([y, a])))


@network()
def unet_bilinear() -> Any:
    x = inputs = image()
    y = conv(conv(x, 8, strides=2), 8)
    y = layers().UpSampling2D(interpolation="bilinear")(y)
    return keras().Model(inputs, layers().Conv2D(1, 3, padding="same")(y))


@network("function")
def image_autoencoder() -> Any:
    """Of two UpSampling2D the converter makes no file where the batch is free."""
    x = inputs = image()
    x = conv(conv(x, 8, strides=2), 4, strides=2)
    x = layers().UpSampling2D()(conv(layers().UpSampling2D()(x), 8))
    return keras().Model(inputs, layers().Conv2D(3, 3, padding="same", activation="sigmoid")(x))


@network()
def decoder() -> Any:
    """A generator: from a vector to an image."""
    x = inputs = keras().Input((8,))
    x = layers().Reshape((4, 4, 8))(layers().Dense(128, activation="relu")(x))
    for width in (8, 4):
        x = layers().Conv2DTranspose(width, 4, strides=2, padding="same")(x)
        x = layers().LeakyReLU()(x)
    return keras().Model(inputs, layers().Conv2D(1, 3, padding="same", activation="tanh")(x))


def _atrous(batch: int | None) -> Any:
    x = inputs = image(batch=batch)
    x = conv(x, 8)
    parts = [
        layers().Conv2D(4, 3, padding="same", dilation_rate=d, activation="relu")(x)
        for d in (1, 2, 4)
    ]
    pooled = layers().Conv2D(4, 1)(layers().GlobalAveragePooling2D(keepdims=True)(x))
    parts.append(layers().UpSampling2D(16, interpolation="bilinear")(pooled))
    return keras().Model(inputs, layers().Conv2D(2, 1)(layers().Concatenate()(parts)))


@network()
def atrous_pyramid() -> Any:
    """DeepLab's ASPP: dilated branches, and one that is pooled and spread again. With a free batch
    the file declares shapes that are wrong."""
    return _atrous(None)


@network("function")
def atrous_pyramid_fixed_batch() -> Any:
    return _atrous(1)


def _ssd() -> tuple[Any, list[Any], list[Any]]:
    x = inputs = image(size=32)
    x = conv(x, 8, strides=2)
    boxes, classes = [], []
    for width in (12, 16):
        x = conv(depthwise(x, strides=2), width, kernel=1)
        boxes.append(layers().Reshape((-1, 4))(layers().Conv2D(8, 3, padding="same")(x)))
        classes.append(layers().Reshape((-1, 3))(layers().Conv2D(6, 3, padding="same")(x)))
    return inputs, boxes, classes


@network()
def ssd() -> Any:
    """Two outputs, each joined of two scales."""
    inputs, boxes, classes = _ssd()
    joined = [layers().Concatenate(axis=1)(p) for p in (boxes, classes)]
    return keras().Model(inputs, [joined[0], layers().Softmax()(joined[1])])


@network()
def ssd_one_output() -> Any:
    inputs, boxes, classes = _ssd()
    box, label = (layers().Concatenate(axis=1)(p) for p in (boxes, classes))
    label = layers().Activation("sigmoid")(label)
    return keras().Model(inputs, layers().Concatenate(axis=-1)([box, label]))


@network()
def ssd_unjoined() -> Any:
    inputs, boxes, classes = _ssd()
    return keras().Model(inputs, [*boxes, *classes])


@network()
def yolo() -> Any:
    """Leaky activations; offsets and sizes treated apart."""
    ops, x = keras().ops, image(size=32)
    inputs = x
    for width in (8, 12):
        x = layers().LeakyReLU(negative_slope=0.1)(conv(x, width, activation=None))
        x = layers().MaxPooling2D()(x)
    x = layers().Reshape((8, 8, 2, 7))(layers().Conv2D(14, 1)(x))
    where, size, rest = x[..., :2], x[..., 2:4], x[..., 4:]
    return keras().Model(
        inputs,
        layers().Concatenate()([ops.sigmoid(where), ops.exp(size), ops.sigmoid(rest)]),
    )


@network()
def focus() -> Any:
    """YOLOv5's first layer: every other pixel, four times."""
    x = inputs = image()
    parts = [x[:, i::2, j::2, :] for j in (0, 1) for i in (0, 1)]
    return keras().Model(inputs, head(conv(layers().Concatenate()(parts), 8)))


@network()
def feature_pyramid() -> Any:
    x = inputs = image(size=32)
    a = conv(conv(x, 8, strides=2), 8)
    b = conv(a, 12, strides=2)
    top = layers().Conv2D(8, 1)(b)
    low = layers().Add()([layers().Conv2D(8, 1)(a), layers().UpSampling2D()(top)])
    return keras().Model(inputs, [layers().Conv2D(2, 3, padding="same")(p) for p in (low, top)])


@network()
def fomo() -> Any:
    """A heat map of an eighth of the image."""
    x = inputs = image(size=32)
    for width in (8, 12, 16):
        x = conv(x, width, strides=2)
    return keras().Model(inputs, layers().Softmax()(layers().Conv2D(3, 1)(x)))


@network()
def key_points() -> Any:
    x = inputs = image()
    x = layers().Dense(8, activation="sigmoid")(layers().Flatten()(conv(x, 4, strides=2)))
    return keras().Model(inputs, layers().Reshape((4, 2))(x))


@network()
def image_and_vector() -> Any:
    a, b = keras().Input((16, 16, 3), name="a"), keras().Input((6,), name="b")
    x = layers().GlobalAveragePooling2D()(conv(a, 8))
    x = layers().Concatenate()([x, layers().Dense(4, activation="relu")(b)])
    return keras().Model([a, b], layers().Dense(3)(x))


@network()
def siamese() -> Any:
    """One network, two images, the distance between."""
    k, ops = keras(), keras().ops
    x = image()
    one = k.Model(x, layers().Dense(8)(layers().GlobalAveragePooling2D()(conv(x, 8))))
    a, b = image(), image()
    apart = ops.sum(ops.square(layers().Subtract()([one(a), one(b)])), axis=-1, keepdims=True)
    return k.Model([a, b], layers().Dense(1, activation="sigmoid")(apart))


@network()
def embedding_of_unit_length() -> Any:
    x = inputs = image()
    x = layers().Dense(8)(layers().GlobalAveragePooling2D()(conv(x, 8)))
    return keras().Model(inputs, layers().UnitNormalization()(x))


@network()
def activations() -> Any:
    x = inputs = image()
    for name in ("elu", "selu", "softplus", "softsign", "exponential", "mish", "relu6"):
        x = layers().Activation(name)(layers().Conv2D(4, 1)(x))
    return keras().Model(inputs, head(x))


@network()
def prelu() -> Any:
    x = inputs = image()
    x = layers().PReLU(shared_axes=[1, 2])(conv(x, 8, activation=None))
    return keras().Model(inputs, head(x))


@network()
def group_normalised() -> Any:
    x = inputs = image()
    x = layers().ReLU()(layers().GroupNormalization(2)(layers().Conv2D(8, 3)(x)))
    return keras().Model(inputs, head(x))


@network()
def cropped_and_padded() -> Any:
    x = inputs = image()
    x = layers().Cropping2D(((1, 2), (0, 3)))(conv(x, 4))
    x = layers().ZeroPadding2D(((0, 1), (2, 1)))(x)
    return keras().Model(inputs, head(conv(x, 8)))


@network()
def mirrored_edges() -> Any:
    ops, x = keras().ops, image()
    y = ops.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="reflect")
    return keras().Model(x, head(layers().Conv2D(8, 3, activation="relu")(y)))


@network()
def space_to_depth() -> Any:
    import tensorflow as tf

    x = inputs = image()
    x = layers().Lambda(lambda t: tf.nn.space_to_depth(t, 4))(x)
    return keras().Model(inputs, head(layers().Conv2D(8, 1, activation="relu")(x)))


@network()
def pixel_shuffle() -> Any:
    """Super resolution."""
    import tensorflow as tf

    x = inputs = image(channels=1)
    x = layers().Conv2D(4, 3, padding="same")(conv(x, 8))
    return keras().Model(inputs, layers().Lambda(lambda t: tf.nn.depth_to_space(t, 2))(x))


@network()
def preprocessed() -> Any:
    """What belongs before the model, in the model."""
    x = inputs = image(size=24)
    x = layers().Resizing(16, 16)(layers().Rescaling(1 / 255)(x))
    x = layers().Normalization(mean=[0.4, 0.5, 0.6], variance=[0.1, 0.2, 0.3])(x)
    return keras().Model(inputs, head(conv(x, 8)))


@network()
def camera_bytes() -> Any:
    """An input of uint8, as a camera gives it."""
    inputs = keras().Input((16, 16, 3), dtype="uint8")
    x = layers().Rescaling(1 / 127.5, offset=-1)(inputs)
    return keras().Model(inputs, head(conv(x, 8)))


@network()
def standardised() -> Any:
    """Each image by its own mean and deviation."""
    ops, x = keras().ops, image()
    mean, deviation = (f(x, axis=(1, 2, 3), keepdims=True) for f in (ops.mean, ops.std))
    return keras().Model(x, head(conv((x - mean) / (deviation + 0.001), 8)))


@network()
def grey_by_mean() -> Any:
    ops, x = keras().ops, image()
    y = ops.expand_dims(ops.mean(x, axis=-1), -1)
    return keras().Model(x, head(conv(y, 8)))


@network()
def maxout() -> Any:
    ops, x = keras().ops, image()
    y = ops.max(layers().Reshape((16, 16, 4, 2))(conv(x, 8)), axis=-1)
    return keras().Model(x, head(y))


@network()
def statistics_pooling() -> Any:
    """Mean and deviation over the image."""
    ops, x = keras().ops, image()
    y = conv(x, 8)
    both = [ops.mean(y, axis=(1, 2)), ops.std(y, axis=(1, 2))]
    return keras().Model(x, layers().Dense(4)(layers().Concatenate()(both)))


@network()
def volume() -> Any:
    """CONV_3D, which TFLM has not."""
    x = inputs = keras().Input((6, 8, 8, 1))
    x = layers().Conv3D(4, 3, activation="relu")(x)
    return keras().Model(inputs, layers().Dense(3)(layers().Flatten()(x)))
