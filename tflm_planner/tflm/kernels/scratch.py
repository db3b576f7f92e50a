"""Scratch that TFLM's kernels request from the arena, in the order in which they request it.

Read from the Prepare functions of tflite-micro 90b983c (tensorflow/lite/micro/kernels) and the
buffer-size functions of CMSIS-NN 4ab83cc; for the Arduino library of 2023, from its own CMSIS-NN
of August 2022. Every target has its rule: an Arm core with DSP asks for other buffers than one
with MVE. This module must not know where scratch is placed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import zip_longest

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.tflm.kernels import custom_ops
from tflm_planner.tflm.kernels.cmsis_nn_scratch import CMSIS_RULES, lstm_buffer
from tflm_planner.tflm.kernels.costs import KNOWN
from tflm_planner.tflm.kernels.op_sizes import uses_cmsis
from tflm_planner.tflm.targets import CONSERVATIVE, Target, load_target

ScratchModel = Callable[[Op], tuple[int, ...]]
"""Bytes of each scratch request of an operator, in order."""


def scratch_model(target: Target) -> ScratchModel:
    """The scratch of a target's kernels. For unknown kernels: the largest of all known ones,
    request by request."""
    if target.kernels not in CONSERVATIVE:
        return lambda op: tuple(requests(op, target))
    known = [load_target("x86-64/reference"), load_target("arduino-2023")]
    known = [replace(t, pointer=target.pointer) for t in known]
    cmsis = replace(target, kernels="cmsis-nn", version="current", optimized="size")
    known += [replace(cmsis, extension=e) for e in ("none", "dsp", "mve")]
    return lambda op: _largest(list(requests(op, t)) for t in known)


def _largest(candidates: Iterable[list[int]]) -> tuple[int, ...]:
    columns = zip_longest(*(sorted(c, reverse=True) for c in candidates), fillvalue=0)
    return tuple(max(column) for column in columns)


def requests(op: Op, target: Target) -> Iterator[int]:
    """Scratch requests of one operator on a target with known kernels, empty ones included."""
    if not op.outputs or not op.operands():
        return
    if op.kind not in KNOWN or not custom_ops.readable(op):
        yield assumed(op)
    elif uses_cmsis(op.kind, target) and op.kind in CMSIS_RULES:
        yield from CMSIS_RULES[op.kind](op, target)
    elif op.kind in _RULES:
        yield from _RULES[op.kind](op, target.pointer)


def reference_scratch(op: Op, *, pointer_bytes: int = 8) -> tuple[int, ...]:
    """Scratch of TFLM's reference kernels; empty for operators that request none."""
    rule = _RULES.get(op.kind)
    if rule is None or not op.outputs or not op.operands() or not custom_ops.readable(op):
        return ()
    return tuple(rule(op, pointer_bytes))


def assumed(op: Op) -> int:
    """Bytes of scratch taken for an operator without an entry: a word for each element of its
    operands and results. Nothing bounds what a kernel may ask for; those of TFLM that need
    buffers for their whole tensors (accumulators, unpacked or turned filters) stay below this."""
    return sum(4 * t.elements for t in (*op.operands(), *op.outputs))


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
    if kind in ("int8", "int16"):
        yield (4 if kind == "int8" else 8) * elements
    if kind == "int16" and len(op.inputs) > 3 and _type(op, 3) == "int16":
        yield 8 * op.operands()[3].elements


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
    """unidirectional_sequence_lstm.cc: four gate buffers."""
    yield from 4 * [lstm_buffer(op)]


def _mirror_pad(op: Op, pointer_bytes: int) -> Iterator[int]:
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
