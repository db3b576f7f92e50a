"""Keras models as int8 models, with TensorFlow's converter, which is imported when it is used."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from tflm_planner.codesign.framework import tensorflow
from tflm_planner.support.errors import UsageError

_CALIBRATION = 4
"""Number of random calibration inputs. Memory does not depend on calibrated ranges."""
KERAS_FILES = ".keras", ".h5"
"""How files of Keras models are named."""

Convert = Callable[[Any], bytes]
"""A Keras model -> the file of an int8 model."""


def _tensorflow() -> Any:
    """TensorFlow, whose Keras runs on it. Raises UsageError if it is missing, or if Keras is to run
    on something else."""
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    if backend != "tensorflow":
        raise UsageError(
            f"KERAS_BACKEND is {backend}; Keras models are converted by TensorFlow: unset it"
        )
    return tensorflow()


def convert_keras_file(path: Path) -> bytes:
    """The int8 model of a file that Keras wrote, calibrated with random numbers. Raises UsageError
    if TensorFlow is missing, if Keras runs on something else, or cannot read the file."""
    convert, keras = keras_converter(), _tensorflow().keras
    try:
        model = keras.models.load_model(path, compile=False)
    except Exception as error:  # whatever Keras raises
        raise UsageError(f"{path} is no Keras model: {type(error).__name__}: {error}") from error
    return convert(model)


def keras_converter() -> Convert:
    """A function that converts a Keras model to int8 with TensorFlow. Raises UsageError if
    TensorFlow is missing, or if Keras runs on something else."""
    tf = _tensorflow()

    def convert(keras_model: Any) -> bytes:
        shape = (1, *keras_model.input_shape[1:])  # a batch of one, which TFLM needs

        def infer(image: Any) -> Any:
            return keras_model(image, training=False)

        def samples() -> Iterator[list[Any]]:
            random = np.random.default_rng(0)
            for _ in range(_CALIBRATION):
                yield [random.normal(size=shape).astype(np.float32)]

        image = tf.TensorSpec(shape, tf.float32)
        concrete = tf.function(infer).get_concrete_function(image)
        constants = importlib.import_module("tensorflow.python.framework.convert_to_constants")
        frozen = constants.convert_variables_to_constants_v2(concrete)
        lite = tf.lite
        converter = lite.TFLiteConverter.from_concrete_functions([frozen], keras_model)
        converter.optimizations = [lite.Optimize.DEFAULT]
        converter.representative_dataset = samples
        converter.target_spec.supported_ops = [lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
        with redirect_stdout(sys.stderr):  # so that what TensorFlow prints does not get into --json
            return bytes(converter.convert())

    return convert
