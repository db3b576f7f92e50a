"""Makes variants of a user's network by a function `file.py:function` that makes a Keras model.

    function(resolution, width, depth) --> Keras model --converter--> int8 model

In `fitting`, only this module needs TensorFlow, which is imported when it is used.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tflm_planner.codesign.chains.families import Grid
from tflm_planner.codesign.chains.sizes import Floors, Size
from tflm_planner.codesign.fitting.variants import Variant
from tflm_planner.cost import latency_of
from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.model.serde import read_model
from tflm_planner.support.errors import UsageError
from tflm_planner.tflm.target import Target

_CALIBRATION = 4
"""Number of random calibration inputs. Memory does not depend on calibrated ranges."""

MakeKeras = Callable[[int, float, int], Any]
Convert = Callable[[Any], bytes]


def user_variants(
    spec: str,
    grid: Grid,
    target: Target,
    on_progress: Callable[[str], None],
    convert: Convert | None = None,
) -> list[Variant]:
    """All variants that a user's function makes, sorted by multiplications, most first. convert:
    turns what the function returns into the file of an int8 model; default is TensorFlow's
    converter. Raises UsageError if file, function, TensorFlow or resolutions are missing, or if the
    function fails."""
    if not grid.resolutions:
        raise UsageError("--build: say what the function is called with; add --resolutions 96,128")
    convert = convert or _converter()
    function = _function(spec)
    name = Path(spec.rpartition(":")[0]).stem
    variants: list[Variant] = []
    for depth in grid.depths or (0,):
        for resolution in grid.resolutions:
            for width in grid.widths or (1.0,):
                label = f"{name}_{width:g}_{resolution}" + f"_d{depth}" * bool(depth)
                on_progress(f"building {label}")
                try:
                    data = convert(function(resolution, width, depth))
                except Exception as error:  # whatever a user's code raises
                    raise UsageError(
                        f"{spec} fails for resolution {resolution}, width {width:g}, depth "
                        f"{depth}: {type(error).__name__}: {error}"
                    ) from error
                model = read_model(data)
                size = Size(latency_of(model, target).total.macs, *_parameters(model))
                make = partial(bytes, data)  # the file is made already
                variants.append(
                    Variant(
                        name=label,
                        resolution=resolution,
                        width=width,
                        depth=depth,
                        size=size,
                        floors=floors_of_model(model),
                        make=make,
                    )
                )
    return sorted(variants, key=lambda v: (-v.size.macs, -v.size.parameters, v.name))


def floors_of_model(model: Model) -> Floors:
    """The lower bounds of `sizes.floors_of`, from the operators of a model. For a plan only the
    largest operand or result of each operator is counted, for a stock plan all its operands or all
    its results, whichever are more."""
    stock = plan = 0
    for op in model.main.ops:
        operands = [t.nbytes for t in _values(op)]
        results = [t.nbytes for t in op.outputs]
        plan = max(plan, *operands, *results, 0)
        stock = max(stock, sum(operands), sum(results))
    return Floors(stock, plan, sum(t.nbytes for t in model.main.inputs))


def _values(op: Op) -> Iterator[Tensor]:
    """The operands of an operator that are not constants, without duplicates."""
    return (t for t in dict.fromkeys(op.operands()) if not t.is_constant)


def _parameters(model: Model) -> tuple[int, int]:
    """The number of weights and biases, and their bytes."""
    constants = {t for op in model.ops() for t in op.operands() if t.is_constant}
    weights = [t for t in constants if not t.quantization.is_absent]
    unique = {t.buffer: t for t in weights}.values()
    return sum(t.elements for t in weights), sum(t.nbytes for t in unique)


def _function(spec: str) -> MakeKeras:
    """Load the function that `file.py:function` names. Raises UsageError."""
    file, _, name = spec.rpartition(":")
    path = Path(file)
    if not file or not name or not path.is_file():
        raise UsageError(f"--build {spec!r}: write FILE.py:FUNCTION, of a file that exists")
    module_spec = importlib.util.spec_from_file_location(path.stem, path)
    if module_spec is None or module_spec.loader is None:
        raise UsageError(f"--build {spec!r}: {file} is no Python file")
    module = importlib.util.module_from_spec(module_spec)
    try:
        module_spec.loader.exec_module(module)
    except Exception as error:  # whatever a user's code raises
        raise UsageError(f"--build {spec!r}: {type(error).__name__}: {error}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise UsageError(f"--build {spec!r}: {file} has no function {name}")
    return function


def _converter() -> Convert:
    """A function that converts a Keras model to int8 with TensorFlow. Raises UsageError if
    TensorFlow is missing."""
    try:
        import tensorflow as tf  # pyright: ignore
    except ImportError as error:
        raise UsageError(
            "--build makes Keras models, which needs TensorFlow: pip install "
            "'tflm-planner[codesign]'; the built-in families (--family) need none"
        ) from error
    tensorflow: Any = tf

    def convert(keras_model: Any) -> bytes:
        shape = (1, *keras_model.input_shape[1:])  # a batch of one, which TFLM needs

        def infer(image: Any) -> Any:
            return keras_model(image, training=False)

        def samples() -> Iterator[list[Any]]:
            random = np.random.default_rng(0)
            for _ in range(_CALIBRATION):
                yield [random.normal(size=shape).astype(np.float32)]

        image = tensorflow.TensorSpec(shape, tensorflow.float32)
        concrete = tensorflow.function(infer).get_concrete_function(image)
        constants = importlib.import_module("tensorflow.python.framework.convert_to_constants")
        frozen = constants.convert_variables_to_constants_v2(concrete)
        lite = tensorflow.lite
        converter = lite.TFLiteConverter.from_concrete_functions([frozen], keras_model)
        converter.optimizations = [lite.Optimize.DEFAULT]
        converter.representative_dataset = samples
        converter.target_spec.supported_ops = [lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tensorflow.int8
        with redirect_stdout(sys.stderr):  # so that what TensorFlow prints does not get into --json
            return bytes(converter.convert())

    return convert
