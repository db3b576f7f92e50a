"""Make `cnn_int8.tflite`: the small convolutional network the tests and examples run on.

    python -m tests.models.make_cnn          (from the repository's root; needs TensorFlow)

The committed file was made with TensorFlow 2.21.0, Keras 3.15.1, seed 48; the same versions
give the same bytes. The network is untrained but lively: see `zoo.recipe`.

48x48x3 image -> stem -> inverted residual (ADD) -> mixed module (CONCATENATION) -> separable
blocks, one residual, one with squeeze and excitation (MEAN, LOGISTIC, MUL) -> AVERAGE_POOL_2D ->
FULLY_CONNECTED -> RESHAPE -> SOFTMAX, 10 classes.

The module is where a planner can shine. Each branch widens the same tensor, filters it with its
own kernel size and ends narrow. In channels of 24x24 pixels:

    x 24 --+-- 1x1: 24 -- depthwise 3x3: 24 -- 1x1: 16 --+
           +-- 1x1: 40 -- depthwise 5x5: 40 -- 1x1: 20 --+-- concat: 64
           +-- 1x1: 56 -- depthwise 7x7: 56 -- 1x1: 20 --+
           +-- max pool 3x3: 24 -- 1x1: 8 ---------------+

The file has them from top to bottom, so the widest runs while the results of two others wait:
172 channels alive at once, 99,072 bytes, and TFLM's head is just that. With the widest first, 136
channels do, 78,336 bytes; but TFLM's greedy planner, biggest first, leaves a gap and needs
92,160 for such an order. It takes the right order and a planned arena together.
"""

import argparse
from pathlib import Path

import keras
from keras import layers

from zoo.recipe import bake

SEED = 48


def _conv(x, filters: int, name: str, kernel: int = 1, strides: int = 1, relu: bool = True):
    x = layers.Conv2D(
        filters, kernel, strides, padding="same", use_bias=False, name=f"{name}_conv"
    )(x)
    x = layers.BatchNormalization(name=f"{name}_norm")(x)
    return layers.ReLU(6.0, name=f"{name}_relu")(x) if relu else x


def _depthwise(x, name: str, kernel: int = 3, strides: int = 1):
    x = layers.DepthwiseConv2D(
        kernel, strides, padding="same", use_bias=False, name=f"{name}_conv"
    )(x)
    x = layers.BatchNormalization(name=f"{name}_norm")(x)
    return layers.ReLU(6.0, name=f"{name}_relu")(x)


def _inverted_residual(x, wide: int, narrow: int, name: str, strides: int = 1):
    y = _conv(x, wide, f"{name}_expand")
    y = _depthwise(y, f"{name}_depthwise", strides=strides)
    y = _conv(y, narrow, f"{name}_project", relu=False)
    return layers.Add(name=f"{name}_add")([x, y]) if y.shape == x.shape else y


def _mixed_module(x, name: str):
    branches = []
    for kernel, wide, narrow in ((3, 24, 16), (5, 40, 20), (7, 56, 20)):
        y = _conv(x, wide, f"{name}_expand{kernel}")
        y = _depthwise(y, f"{name}_depthwise{kernel}", kernel=kernel)
        branches.append(_conv(y, narrow, f"{name}_project{kernel}"))
    pooled = layers.MaxPooling2D(3, 1, padding="same", name=f"{name}_pool")(x)
    branches.append(_conv(pooled, 8, f"{name}_project_pool"))
    return layers.Concatenate(name=f"{name}_concat")(branches)


def _squeeze_excite(x, name: str):
    channels = x.shape[-1]
    y = layers.GlobalAveragePooling2D(name=f"{name}_mean")(x)
    y = layers.Dense(channels // 4, activation="relu", name=f"{name}_squeeze")(y)
    y = layers.Dense(channels, activation="sigmoid", name=f"{name}_excite")(y)
    y = layers.Reshape((1, 1, channels), name=f"{name}_reshape")(y)
    return layers.Multiply(name=f"{name}_scale")([x, y])


def small_cnn() -> keras.Model:
    """Return the network, float and untrained."""
    image = keras.Input((48, 48, 3), name="image")
    x = _conv(image, 24, "stem", kernel=3, strides=2)
    x = _inverted_residual(x, 48, 24, "block1")
    x = _mixed_module(x, "module")
    x = _conv(_depthwise(x, "block2_depthwise", strides=2), 48, "block2_project", relu=False)
    x = _inverted_residual(x, 144, 48, "block3")
    x = _inverted_residual(x, 144, 64, "block4", strides=2)
    x = _squeeze_excite(x, "attention")
    x = _conv(x, 160, "top")
    x = layers.AveragePooling2D(6, name="pool")(x)
    x = layers.Dense(10, name="logits")(x)
    x = layers.Reshape((10,), name="flatten")(x)
    return keras.Model(image, layers.Softmax(name="probability")(x), name="small_cnn")


def main() -> None:
    """Write the model next to this file, or to `--out`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("cnn_int8.tflite"))
    out = parser.parse_args().out
    out.write_bytes(bake(small_cnn, SEED, batch=64))
    print(f"{out}: {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
