"""Scratch that TFLM's reference kernels request from the arena, in the order of their requests.

Read from the Prepare functions of tflite-micro 90b983c (tensorflow/lite/micro/kernels). This
module must not know where scratch is placed.
"""

from __future__ import annotations

from collections.abc import Iterator

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.tflm.kernels.operands import element_type
from tflm_planner.tflm.target import Target


def _rank(tensor: Tensor) -> int:
    return len(tensor.shape or ())


def unpacked_filter(op: Op, target: Target) -> Iterator[int]:
    """int4 filters are unpacked whole (conv_common.cc, depthwise_conv_common.cc)."""
    if element_type(op, 1) == "int4":
        yield op.operands()[1].elements


def mean_or_sum(op: Op, target: Target) -> Iterator[int]:
    """reduce_common.cc, PrepareMeanOrSumHelper."""
    data, axes = op.operands()[:2]
    if data.type_name in ("int8", "int16"):
        yield 4 * op.outputs[0].elements
    yield 4 * _rank(data)
    yield 4 * axes.elements


def other_reduction(op: Op, target: Target) -> Iterator[int]:
    """reduce_common.cc, PrepareMinMaxHelper and PrepareAllHelper."""
    data, axes = op.operands()[:2]
    yield 4 * _rank(data)
    yield 4 * axes.elements


def add_n(op: Op, target: Target) -> Iterator[int]:
    """Pointers to the operands."""
    if op.outputs[0].type_name in ("int8", "float32"):
        yield target.pointer * len(op.inputs)


def transpose_conv(op: Op, target: Target) -> Iterator[int]:
    """Sums of integers, and a bias of int16 widened."""
    kind, elements = element_type(op, 2), op.outputs[0].elements
    if kind in ("int8", "int16"):
        yield (4 if kind == "int8" else 8) * elements
    if kind == "int16" and len(op.inputs) > 3 and element_type(op, 3) == "int16":
        yield 8 * op.operands()[3].elements


def svdf(op: Op, target: Target) -> Iterator[int]:
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


def lstm(op: Op, target: Target) -> Iterator[int]:
    """unidirectional_sequence_lstm.cc: four gate buffers."""
    yield from 4 * [lstm_gate_bytes(op)]


def mirror_pad(op: Op, target: Target) -> Iterator[int]:
    """Elements of the operand and of the result along each axis."""
    yield from 2 * [4 * _rank(op.operands()[0])]
