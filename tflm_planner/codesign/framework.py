"""Imports TensorFlow on first use, set up to give the same numbers in every run."""

from __future__ import annotations

import importlib
import os
from functools import cache
from typing import Any

from tflm_planner.support.errors import UsageError


@cache
def tensorflow() -> Any:
    """TensorFlow with deterministic operators. Raises UsageError if it is not installed.

    oneDNN's kernels are disabled: with them training sometimes crashed ("corrupted size vs.
    prev_size", TensorFlow 2.21 on a loaded machine), without them it never did."""
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        tf: Any = importlib.import_module("tensorflow")
    except ImportError as error:
        raise UsageError(
            "training and Keras models need TensorFlow: pip install 'tflm-planner[codesign]'; "
            "built-in families (fit --family) and .tflite files need none"
        ) from error
    tf.config.experimental.enable_op_determinism()
    return tf
