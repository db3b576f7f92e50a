"""The libraries that networks are trained and converted with, imported on first use and set up to
give the same numbers in every run.

    keras()         operators and variables, in the same words on TensorFlow and PyTorch
    gradients(), array_of(), compiled(), ...        what Keras has no common word for
    tensorflow()    TensorFlow itself, whose converter makes .tflite files of Keras models

`KERAS_BACKEND` chooses, as everywhere in Keras: `tensorflow` (the default where it is installed) or
`torch`. Either takes a GPU where it finds one.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal, TypeVar

import numpy as np

from tflm_planner.codesign.networks.weights import Array
from tflm_planner.support.errors import UsageError

FrameworkTensor = Any
"""A tensor of the framework in use."""
Framework = Literal["tensorflow", "torch"]
Function = TypeVar("Function", bound=Callable[..., Any])
THREADS = 2
"""The threads of an operator on a CPU, on however many cores. Parts of a sum are given to threads,
so that another number trains other weights. For more cores and larger networks the environment
variables TF_NUM_INTRAOP_THREADS (TensorFlow) and OMP_NUM_THREADS (PyTorch) set another number."""


@cache
def keras() -> Any:
    """Keras 3 on the framework in use. Raises UsageError if there is none."""
    framework = _framework()
    os.environ["KERAS_BACKEND"] = framework
    _torch() if framework == "torch" else tensorflow()
    try:
        return importlib.import_module("keras")
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{framework} is installed, and Keras is not: pip install 'tflm-planner[codesign]', or "
            "[codesign-torch]"
        ) from error


@cache
def tensorflow() -> Any:
    """TensorFlow with deterministic operators of `THREADS` threads. Raises UsageError if it is not
    installed.

    oneDNN's kernels are disabled: with them training sometimes crashed ("corrupted size vs.
    prev_size", TensorFlow 2.21 on a loaded machine), without them it never did."""
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", str(THREADS))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        tf: Any = importlib.import_module("tensorflow")
    except ImportError as error:
        raise UsageError(
            "training and Keras models need TensorFlow: pip install 'tflm-planner[codesign]'; "
            "training alone runs on PyTorch, too: pip install 'tflm-planner[codesign-torch]'; "
            "built-in families (fit --family) and .tflite files need neither"
        ) from error
    tf.config.experimental.enable_op_determinism()
    return tf


def gradients(
    loss: Callable[[], FrameworkTensor], variables: Sequence[Any]
) -> tuple[FrameworkTensor, list[FrameworkTensor | None]]:
    """The value of `loss`, and its gradient by each variable; None for those it does not use."""
    values = [variable.value for variable in variables]
    if _framework() == "torch":
        found = loss()
        return found.detach(), list(_torch().autograd.grad(found, values, allow_unused=True))
    with tensorflow().GradientTape() as tape:
        found = loss()
    return found, tape.gradient(found, values)


def array_of(tensor: FrameworkTensor) -> Array:
    """A tensor or variable as an array of its own. (Keras's own word warns that TensorFlow's
    variables do not know numpy 2.)"""
    tensor = getattr(tensor, "value", tensor)
    return np.array((tensor.detach().cpu() if _framework() == "torch" else tensor).numpy())


def compiled(function: Function, *, is_rewritten: bool = True) -> Function:
    """The same function, as a graph where the framework runs graphs faster. is_rewritten: whether
    the framework may rewrite the graph.

    Where the values of a graph are estimated at more than four fifths of 256 MB, TensorFlow 2.21
    rewrites sums of three or more summands so that they are added in the order in which they come,
    deterministic operators or not (grappler's `memory_optimizer`, which alone cannot be switched
    off)."""
    if _framework() == "torch":
        return function
    graph = tensorflow().function(function, reduce_retracing=True, autograph=False)
    return graph if is_rewritten else _as_written(graph)


def _as_written(graph: Any) -> Any:
    """The function of a graph, which TensorFlow runs as it was written."""
    options, disabled = tensorflow().config.optimizer, "disable_meta_optimizer"

    def run(*given: Any) -> Any:
        before = options.get_experimental_options().get(disabled, False)
        options.set_experimental_options({disabled: True})
        try:
            return graph(*given)
        finally:
            options.set_experimental_options({disabled: before})

    return run


def fake_quantized(values: FrameworkTensor, low: float, high: float) -> FrameworkTensor:
    """Values rounded to the nearest of 256 from `low` to `high`, as in int8. The gradient ignores
    the rounding, and is 0 outside.

    Keras's own word for it rounds one value in 100,000 to the other side on TensorFlow; the figures
    of docs/training.md were made with TensorFlow's."""
    if _framework() == "torch":
        return keras().quantizers.fake_quant_with_min_max_vars(values, low, high)
    return tensorflow().quantization.fake_quant_with_min_max_args(values, low, high)


def without_gradients() -> AbstractContextManager[Any]:
    """A context in which nothing is kept for gradients."""
    return _torch().no_grad() if _framework() == "torch" else nullcontext()


@cache
def _framework() -> Framework:
    """The framework in use. Raises UsageError for one that this code does not know."""
    default = "tensorflow" if find_spec("tensorflow") or not find_spec("torch") else "torch"
    wanted = os.environ.get("KERAS_BACKEND", default)
    if wanted not in ("tensorflow", "torch"):
        raise UsageError(
            f"KERAS_BACKEND is {wanted}; networks are trained here on tensorflow or torch"
        )
    return wanted


@cache
def _torch() -> Any:
    """PyTorch with deterministic operators of `THREADS` threads, which multiply floats as floats:
    on a GPU convolutions round their operands to 10 bits otherwise, and a network differs from what
    numpy computes in the fourth digit (measured on an H200). Raises UsageError if it is not
    installed."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else cuBLAS may sum in any order
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError as error:
        raise UsageError(
            "KERAS_BACKEND is torch, which is not installed: "
            "pip install 'tflm-planner[codesign-torch]'"
        ) from error
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(THREADS)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    return torch
