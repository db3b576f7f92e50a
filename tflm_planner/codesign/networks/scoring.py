"""Runs models on images with LiteRT: outputs, accuracies, and the ranges of their values.

Models run on the reference kernels, whose int8 results equal those of TFLM bit by bit, but for a
few sums of dense layers, which are one step apart. It needs no TensorFlow.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tflm_planner.codesign.networks.build import build_floats_traced, value_sets
from tflm_planner.codesign.networks.ranges import ValueRange, common_ranges
from tflm_planner.codesign.networks.weights import Array, Network


def value_ranges(network: Network, images: Array) -> tuple[ValueRange, ...]:
    """The ranges that the values of a folded network have on images (number, rows, columns,
    channels), in the order that `build_int8` takes; where concatenations connect values, the union
    of theirs."""
    data, names = build_floats_traced(network)
    interpreter = _interpreter(data, keeps_values=True)
    places = {d["name"]: d["index"] for d in interpreter.get_tensor_details()}
    low, high = np.zeros(len(names)), np.zeros(len(names))
    for image in images:
        _invoke(interpreter, image)
        values = [interpreter.get_tensor(places[name]) for name in names]
        low = np.minimum(low, [value.min() for value in values])
        high = np.maximum(high, [value.max() for value in values])
    ranges = [ValueRange(float(a), float(b)) for a, b in zip(low, high, strict=True)]
    return common_ranges(ranges, value_sets(network.chain))


def outputs(data: bytes, images: Iterable[Array]) -> Array:
    """The outputs (number, ..., classes) of a model for float images. For an int8 model the images
    are quantized first, and outputs are int8."""
    return np.stack(list(_outputs(data, images)))


def accuracy(data: bytes, images: Iterable[Array], labels: Array) -> float:
    """The share of labels, of images or of cells, whose class has the largest output."""
    return float((outputs(data, images).argmax(axis=-1) == labels).mean())


def _outputs(data: bytes, images: Iterable[Array]) -> Iterator[Array]:
    interpreter = _interpreter(data)
    for image in images:
        yield _invoke(interpreter, image)


def _interpreter(data: bytes, *, keeps_values: bool = False) -> Any:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter: Any = Interpreter(
        model_content=data,
        experimental_op_resolver_type=OpResolverType.BUILTIN_REF,
        experimental_preserve_all_tensors=keeps_values,
        num_threads=1,
    )
    interpreter.allocate_tensors()
    return interpreter


def _invoke(interpreter: Any, image: Array) -> Array:
    (given,) = interpreter.get_input_details()
    (result,) = interpreter.get_output_details()
    if given["dtype"] == np.int8:
        scale, zero_point = given["quantization"]
        image = np.clip(np.rint(image / scale) + zero_point, -128, 127)
    interpreter.set_tensor(given["index"], image[None].astype(given["dtype"]))
    interpreter.invoke()
    return interpreter.get_tensor(result["index"])[0].copy()
