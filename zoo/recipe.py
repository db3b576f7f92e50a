"""From an untrained Keras model to an int8 TFLite model whose outputs really vary.

    keras model -> randomise_batch_norm -> spread_logits -> convert -> bytes

Knows nothing of any particular network. Everything is drawn from a seeded generator, and
TensorFlow is asked for deterministic kernels, so the same versions give the same bytes.
"""

import os
from collections.abc import Callable

# Only errors in the log, and no search for accelerators: the models are small. oneDNN is off
# because its kernels sum in an order that depends on the processor.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

# One thread: how a sum is shared among threads depends on the load, and so does its last bit.
tf.config.threading.set_intra_op_parallelism_threads(1)

Images = np.ndarray
"""Batch of images, float32, shape (n, height, width, channels), values in [-1, 1]."""


def structured_images(rng: np.random.Generator, n: int, shape: tuple[int, ...]) -> Images:
    """Draw images with edges, colours and texture: noise at several scales, random contrast.

    White noise alone would give every image the same statistics after the first pooling, and
    hence nearly the same logits. A sequence, shape (tokens, width), is an image of one channel.
    """
    height, width = shape[:2]
    channels = shape[2] if len(shape) > 2 else 1
    images = np.empty((n, height, width, channels), np.float32)
    for image in images:
        image[:] = rng.normal(0, 0.5, channels)
        for cells in (2, 3, 5, 9, 17):
            coarse = rng.normal(0, rng.uniform(0.1, 0.8), (1, cells, cells, channels))
            method = rng.choice(["nearest", "bilinear"])
            image += tf.image.resize(coarse, (height, width), method=str(method))[0].numpy()
        image += rng.normal(0, rng.uniform(0.0, 0.3), image.shape)
        image *= rng.uniform(0.3, 1.2)
    return np.clip(images, -1, 1).reshape(n, *shape)


def randomise_batch_norm(model: keras.Model, rng: np.random.Generator, images: Images) -> None:
    """Give every BatchNormalization a random affine part and plausible statistics.

    With momentum 0, one call in training mode normalises each layer by the statistics of this
    very batch and stores them: activations keep their scale however deep the network is. The
    jitter afterwards makes the statistics imperfect, as those of trained models are.
    """
    norms = [layer for layer in model.layers if isinstance(layer, keras.layers.BatchNormalization)]
    for layer in norms:
        channels = layer.moving_mean.shape
        if layer.gamma is not None:
            layer.gamma.assign(rng.uniform(0.7, 1.4, channels))
        if layer.beta is not None:
            layer.beta.assign(rng.normal(0, 0.25, channels))
        layer.momentum = 0.0
    model(images, training=True)
    for layer in norms:
        mean, variance = layer.moving_mean.numpy(), layer.moving_variance.numpy()
        layer.moving_mean.assign(mean + np.sqrt(variance) * rng.normal(0, 0.05, mean.shape))
        layer.moving_variance.assign(variance * rng.uniform(0.9, 1.15, mean.shape) + 1e-6)
        layer.momentum = 0.99


def _heads(model: keras.Model) -> list[keras.layers.Layer]:
    """The output layers: those called predictions..., or else the last Dense layer."""
    dense, conv = keras.layers.Dense, keras.layers.Conv2D
    named = [layer for layer in model.layers if layer.name.startswith("predictions")]
    heads = [layer for layer in named if isinstance(layer, (dense, conv))]
    return heads or [[layer for layer in model.layers if isinstance(layer, dense)][-1]]


def spread_logits(model: keras.Model, images: Images, deviation: float = 2.0) -> None:
    """Scale and centre the output layers so that their values differ between images.

    An output layer is Dense or a 1x1 convolution. After it, over `images` and positions, each
    logit has mean 0 and the logits deviate by `deviation`, before any activation.
    """
    for head in _heads(model):
        features = keras.Model(model.inputs, head.input).predict(images, verbose=0)
        features = features.reshape(-1, features.shape[-1])
        kernel = head.kernel.numpy().reshape(features.shape[-1], -1)
        logits = features @ kernel
        kernel *= deviation / (logits - logits.mean(axis=0)).std()
        head.kernel.assign(kernel.reshape(head.kernel.shape))
        head.bias.assign(-(features @ kernel).mean(axis=0))


def convert(model: keras.Model, images: Images, quantised: bool = True) -> bytes:
    """Convert `model` at batch size 1 to full int8, inputs and outputs included, or to float.

    `images` are the representative data set, one calibration run each.
    """
    signature = tf.TensorSpec((1, *model.input_shape[1:]), tf.float32, name="image")
    function = tf.function(lambda image: model(image, training=False), autograph=False)
    # Frozen here: the converter leaves Keras 3 variables as resources, which cannot be calibrated.
    frozen = convert_variables_to_constants_v2(function.get_concrete_function(signature))
    converter = tf.lite.TFLiteConverter.from_concrete_functions([frozen])
    if not quantised:
        return bytes(converter.convert())
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([image[np.newaxis]] for image in images)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = tf.int8
    converter.inference_output_type = tf.int8
    return bytes(converter.convert())


def bake(
    network: Callable[[], keras.Model],
    seed: int,
    *,
    batch: int = 8,
    deviation: float = 2.0,
    quantised: bool = True,
) -> bytes:
    """Build `network` under `seed` and return it as a TFLite model, int8 unless told otherwise."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(seed)
    tf.config.experimental.enable_op_determinism()
    rng = np.random.default_rng(seed)
    model = network()
    images = structured_images(rng, batch, model.input_shape[1:])
    randomise_batch_norm(model, rng, images)
    spread_logits(model, images, deviation)
    return convert(model, images, quantised)
