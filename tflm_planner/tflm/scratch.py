"""Scratch that TFLM's kernels request from the arena, in the order in which they request it.

Read from the Prepare functions of tflite-micro 90b983c (tensorflow/lite/micro/kernels). The
reference kernels, which the Python wheel runs, are here; sizes that depend on the pointer size
take it as an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tflm_planner.ir import Op, Tensor

ScratchModel = Callable[[Op], tuple[int, ...]]
"""Bytes of each scratch request of an operator, in order."""


def reference_scratch(op: Op, *, pointer_bytes: int = 8) -> tuple[int, ...]:
    """Scratch of TFLM's reference kernels; empty for operators that request none."""
    rule = _RULES.get(op.kind)
    if rule is None or not op.outputs or not op.operands():
        return ()
    return tuple(rule(op, pointer_bytes))


def _type(op: Op, index: int = 0) -> str:
    tensor = op.inputs[index] if index < len(op.inputs) else None
    return "" if tensor is None else tensor.type_name


def _rank(tensor: Tensor) -> int:
    return len(tensor.shape or ())


def _unpacked_filter(op: Op, pointer_bytes: int) -> Iterator[int]:
    """int4 filters are unpacked whole (conv_common.cc, depthwise_conv_common.cc)."""
    if _type(op, 1) == "int4":
        yield op.operands()[1].elements


def _mean_or_sum(op: Op, pointer_bytes: int) -> Iterator[int]:
    """reduce_common.cc, PrepareMeanOrSumHelper."""
    data, axes = op.operands()[:2]
    if data.type_name in ("int8", "int16"):
        yield 4 * op.outputs[0].elements
    yield 4 * _rank(data)
    yield 4 * axes.elements


def _other_reduction(op: Op, pointer_bytes: int) -> Iterator[int]:
    """reduce_common.cc, PrepareMinMaxHelper and PrepareAllHelper."""
    data, axes = op.operands()[:2]
    yield 4 * _rank(data)
    yield 4 * axes.elements


def _add_n(op: Op, pointer_bytes: int) -> Iterator[int]:
    if op.outputs[0].type_name in ("int8", "float32"):
        yield pointer_bytes * len(op.inputs)


def _transpose_conv(op: Op, pointer_bytes: int) -> Iterator[int]:
    kind, elements = _type(op, 2), op.outputs[0].elements
    if kind == "int16" and len(op.inputs) > 3 and _type(op, 3) == "int16":
        yield 8 * op.operands()[3].elements
    if kind in ("int8", "int16"):
        yield (4 if kind == "int8" else 8) * elements


def _svdf(op: Op, pointer_bytes: int) -> Iterator[int]:
    """svdf_common.cc: filters x batch, and for integers units x batch."""
    data, features = op.operands()[:2]
    batch = (data.shape or (1,))[0]
    filters = (features.shape or (1,))[0]
    yield 4 * batch * filters
    if data.type_name == "int8":
        units = (op.outputs[0].shape or (1,))[-1]
        yield 4 * batch * units


def _lstm(op: Op, pointer_bytes: int) -> Iterator[int]:
    """unidirectional_sequence_lstm.cc: four gate buffers of batch x state, of the cell's type."""
    data = op.operands()[0]
    shape = data.shape or (1, 1, 1)
    time_major = bool(getattr(op.options, "timeMajor", False))
    batch = shape[1] if time_major and len(shape) == 3 else shape[0]
    state = op.inputs[19] if len(op.inputs) > 19 else None
    width = (state.shape or (1,))[-1] if state is not None else 0
    element = 4 if data.type_name == "float32" else 2
    yield from (element * batch * width for _ in range(4))


def _mirror_pad(op: Op, pointer_bytes: int) -> Iterator[int]:
    yield from (4 * _rank(op.operands()[0]) for _ in range(2))


_RULES: dict[str, Callable[[Op, int], Iterator[int]]] = {
    "CONV_2D": _unpacked_filter,
    "DEPTHWISE_CONV_2D": _unpacked_filter,
    "FULLY_CONNECTED": _unpacked_filter,
    "MEAN": _mean_or_sum,
    "SUM": _mean_or_sum,
    "REDUCE_MAX": _other_reduction,
    "REDUCE_MIN": _other_reduction,
    "REDUCE_ALL": _other_reduction,
    "ADD_N": _add_n,
    "TRANSPOSE_CONV": _transpose_conv,
    "SVDF": _svdf,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
    "MIRROR_PAD": _mirror_pad,
}
