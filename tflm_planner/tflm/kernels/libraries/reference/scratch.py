"""Scratch that TFLM's reference kernels request from the arena, in the order of their requests.

Read from the Prepare functions of tflite-micro 90b983c (tensorflow/lite/micro/kernels). This
module must not know where scratch is placed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.tflm.kernels import custom_ops
from tflm_planner.tflm.kernels.operands import element_type


def scratch_requests(op: Op, pointer: int) -> tuple[int, ...]:
    """Bytes of each request, empty ones included. pointer: bytes of one. The operator has operands
    and results, and its parameters can be read."""
    rule = _RULES.get(op.kind)
    return () if rule is None else tuple(rule(op, pointer))


def _rank(tensor: Tensor) -> int:
    return len(tensor.shape or ())


def _unpacked_filter(op: Op, pointer: int) -> Iterator[int]:
    """int4 filters are unpacked whole (conv_common.cc, depthwise_conv_common.cc)."""
    if element_type(op, 1) == "int4":
        yield op.operands()[1].elements


def _mean_or_sum(op: Op, pointer: int) -> Iterator[int]:
    """reduce_common.cc, PrepareMeanOrSumHelper."""
    data, axes = op.operands()[:2]
    if data.type_name in ("int8", "int16"):
        yield 4 * op.outputs[0].elements
    yield 4 * _rank(data)
    yield 4 * axes.elements


def _other_reduction(op: Op, pointer: int) -> Iterator[int]:
    """reduce_common.cc, PrepareMinMaxHelper and PrepareAllHelper."""
    data, axes = op.operands()[:2]
    yield 4 * _rank(data)
    yield 4 * axes.elements


def _add_n(op: Op, pointer: int) -> Iterator[int]:
    if op.outputs[0].type_name in ("int8", "float32"):
        yield pointer * len(op.inputs)


def _transpose_conv(op: Op, pointer: int) -> Iterator[int]:
    kind, elements = element_type(op, 2), op.outputs[0].elements
    if kind in ("int8", "int16"):
        yield (4 if kind == "int8" else 8) * elements
    if kind == "int16" and len(op.inputs) > 3 and element_type(op, 3) == "int16":
        yield 8 * op.operands()[3].elements


def _svdf(op: Op, pointer: int) -> Iterator[int]:
    """svdf_common.cc: filters x batch, and for integers units x batch."""
    data, features = op.operands()[:2]
    batch = (data.shape or (1,))[0]
    filters = (features.shape or (1,))[0]
    yield 4 * batch * filters
    if data.type_name == "int8":
        units = (op.outputs[0].shape or (1,))[-1]
        yield 4 * batch * units


def lstm_gate_bytes(op: Op) -> int:
    """Bytes of one gate buffer: batch x state, of the cell's type."""
    data = op.operands()[0]
    shape = data.shape or (1, 1, 1)
    batch = shape[1] if op.options.is_time_major and len(shape) == 3 else shape[0]
    state = op.inputs[19] if len(op.inputs) > 19 else None
    width = (state.shape or (1,))[-1] if state is not None else 0
    return (4 if data.type_name == "float32" else 2) * batch * width


def _lstm(op: Op, pointer: int) -> Iterator[int]:
    """unidirectional_sequence_lstm.cc: four gate buffers."""
    yield from 4 * [lstm_gate_bytes(op)]


def _mirror_pad(op: Op, pointer: int) -> Iterator[int]:
    yield from 2 * [4 * _rank(op.operands()[0])]


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
    **custom_ops.SCRATCH,
}
