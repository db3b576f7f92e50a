"""A network as a .tflite file in one of seven types, by the converter's documented recipes.

TensorFlow is imported where it is needed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from tests.corpus.blocks import keras
from tests.corpus.registry import Network

TYPES = ("float32", "float16", "dynamic", "int8-float", "int8", "uint8", "int16x8")
"""Of weights and activations: float16 and dynamic range quantise weights alone; int8-float is int8
with the float input and output that the converter leaves unless told otherwise."""
SAMPLES = 4
"""Of the representative data set."""
_ENDS = {"int8": "int8", "uint8": "uint8", "int16x8": "int16"}


class ConversionError(Exception):
    """The converter made no file of it: nothing for this tool to judge."""


@cache
def made(network: Network) -> Any:
    """The network with values worth computing with; the same at every call."""
    keras().backend.clear_session()
    keras().utils.set_random_seed(len(network.name))
    model = network.make()
    rng = np.random.default_rng(len(network.name))
    for layer in getattr(model, "_flatten_layers", list)():
        if isinstance(layer, keras().layers.BatchNormalization):
            for value, low, high in (
                (layer.gamma, 0.7, 1.4), (layer.beta, -0.3, 0.3),
                (layer.moving_mean, -0.3, 0.3), (layer.moving_variance, 0.3, 1.2),
            ):  # fmt: skip
                value.assign(rng.uniform(low, high, value.shape))
    return model


def converted(network: Network, kind: str) -> bytes:
    """The file. Raises ConversionError where the converter refuses."""
    converter = _converter(network)
    _ask_for(converter, kind, _examples(made(network)))
    try:
        return bytes(converter.convert())
    except Exception as error:  # whatever it is, it is the converter's
        first = str(error).strip().splitlines()
        raise ConversionError(first[0][:160] if first else type(error).__name__) from error


def _converter(network: Network) -> Any:
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    lite, model = tf.lite.TFLiteConverter, made(network)
    if network.how == "export":
        return lite.from_saved_model(_exported(network).name)
    shape = (1, *_shapes(model)[0][0])
    function = tf.function(lambda x: model(x, training=False))
    called = function.get_concrete_function(tf.TensorSpec(shape, tf.float32))
    return lite.from_concrete_functions([convert_variables_to_constants_v2(called)])


@cache
def _exported(network: Network) -> tempfile.TemporaryDirectory[str]:
    """A SavedModel, which `from_keras_model` writes too, but for each type again."""
    import tensorflow as tf

    model, folder = made(network), tempfile.TemporaryDirectory()
    if not isinstance(model, keras().Model):
        tf.saved_model.save(model, folder.name, signatures=model.serve)
        return folder
    signature = None
    if hasattr(model, "shape_in"):
        signature = [tf.TensorSpec((None, *model.shape_in), tf.float32)]
    model.export(folder.name, verbose=False, input_signature=signature)
    return folder


Example = list[np.ndarray] | dict[str, np.ndarray]
"""Of several inputs by their names: a signature has them in another order."""


def _ask_for(converter: Any, kind: str, examples: list[Example]) -> None:
    import tensorflow as tf

    converter.experimental_enable_resource_variables = True
    if kind == "float32":
        return
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if kind in ("float16", "dynamic"):
        return
    converter.representative_dataset = lambda: _each(examples)
    sets = tf.lite.OpsSet
    wanted = sets.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
    converter.target_spec.supported_ops = [
        wanted if kind == "int16x8" else sets.TFLITE_BUILTINS_INT8
    ]
    if kind in _ENDS and _is_float(examples[0]):
        converter.inference_input_type = getattr(tf, _ENDS[kind])
        converter.inference_output_type = getattr(tf, _ENDS[kind])


def _each(examples: list[Example]) -> Iterator[Example]:
    yield from examples


def _is_float(example: Example) -> bool:
    values = example.values() if isinstance(example, dict) else example
    return all(v.dtype == np.float32 for v in values)


def _shapes(model: Any) -> list[tuple[tuple[int, ...], str]]:
    """Shape without the batch, and type, of each input."""
    given = getattr(model, "shape_in", None)
    if given is not None:
        return [(given, "float32")]
    if not isinstance(model, keras().Model):
        return [((1, 6), "float32")]
    return [(tuple(t.shape[1:]), t.dtype) for t in model.inputs]


def _examples(model: Any) -> list[Example]:
    rng = np.random.default_rng(7)

    def one(shape: tuple[int, ...], kind: str) -> np.ndarray:
        if kind != "float32":
            return rng.integers(0, 20, (1, *shape)).astype(kind)
        return rng.normal(0, 0.7, (1, *shape)).astype(np.float32)

    drawn = [[one(*shape) for shape in _shapes(model)] for _ in range(SAMPLES)]
    if len(drawn[0]) == 1:
        return list(drawn)
    names = [tensor.name for tensor in model.inputs]
    return [dict(zip(names, values, strict=True)) for values in drawn]
