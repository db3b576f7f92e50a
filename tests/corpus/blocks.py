"""Pieces that networks are built from. Keras is imported where it is asked for."""

from __future__ import annotations

from functools import cache
from typing import Any


@cache
def keras() -> Any:
    """Keras, quiet and on one thread (`zoo.recipe` sees to that)."""
    import keras

    import zoo.recipe

    assert zoo.recipe is not None
    return keras


def layers() -> Any:
    """`keras.layers`."""
    return keras().layers


def image(size: int = 16, channels: int = 3, batch: int | None = None) -> Any:
    """An input; the batch is free unless given, as in most tutorials."""
    return keras().Input((size, size, channels), batch_size=batch)


def series(steps: int = 16, features: int = 6, batch: int | None = None) -> Any:
    """An input of steps in time."""
    return keras().Input((steps, features), batch_size=batch)


def conv(
    x: Any, width: int, *, kernel: Any = 3, strides: int = 1, activation: str | None = "relu"
) -> Any:
    """Convolution, BatchNormalization, activation."""
    x = layers().Conv2D(width, kernel, strides=strides, padding="same", use_bias=False)(x)
    x = layers().BatchNormalization()(x)
    return layers().Activation(activation)(x) if activation else x


def depthwise(x: Any, strides: int = 1, *, activation: str | None = "relu") -> Any:
    """Depthwise 3x3, BatchNormalization, activation."""
    x = layers().DepthwiseConv2D(3, strides=strides, padding="same", use_bias=False)(x)
    x = layers().BatchNormalization()(x)
    return layers().Activation(activation)(x) if activation else x


def squeeze(x: Any, gate: str) -> Any:
    """Squeeze and excitation."""
    width = x.shape[-1]
    y = layers().Reshape((1, 1, width))(layers().GlobalAveragePooling2D()(x))
    y = layers().Conv2D(4, 1, activation="relu")(y)
    return layers().Multiply()([x, layers().Conv2D(width, 1, activation=gate)(y)])


def head(x: Any, classes: int = 5) -> Any:
    """Pooled, dense, softmax."""
    x = layers().GlobalAveragePooling2D()(x)
    return layers().Dense(classes, activation="softmax")(x)
