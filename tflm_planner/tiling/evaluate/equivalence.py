"""When two intervals of a line are alike: a trial of one is then a trial of the other.

    x -[conv 3x3]- a -[conv 1x1]- b -[add]- y -[conv 3x3]- c -[conv 1x1]- d -[add]- z
       <----------- 0 .. 3 -------------->      <----------- 3 .. 6 ------------>   alike

Alike are the kinds, options, types and shapes of the operators, how their tensors hang together,
which of these enter, leave and live through, and which are quantised alike; for lean firmware
also which parameters lie in which. Networks repeat blocks, and differ in what this leaves out:
weights, and names. It must not know trials.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, cast

import numpy as np

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.model.schema import members
from tflm_planner.tflm.lean.costs import lean_form
from tflm_planner.tiling.estimate.schedule import LinearSchedule

_LEARNT = {
    "CONV_2D": (1, 2), "DEPTHWISE_CONV_2D": (1, 2), "FULLY_CONNECTED": (1, 2),
    "TRANSPOSE_CONV": (1, 3), "BATCH_MATMUL": (0, 1), "PRELU": (1,),
}  # fmt: skip
"""Kind -> its operands whose values, where they are constant, change nothing but results."""


class IntervalSignatures:
    """Of intervals of one line."""

    def __init__(self, line: LinearSchedule) -> None:
        self._line = line
        self._place = {id(t): i for i, t in enumerate(line.model.main.tensors)}
        self._results = {id(t) for t in line.model.main.outputs}
        self._ops: dict[int, Hashable] = {}
        self._known: dict[tuple[int, int], Hashable] = {}

    def of(self, first: int, end: int) -> Hashable:
        """Equal for intervals that are alike."""
        key = first, end
        if key not in self._known:
            self._known[key] = self._form(first, end), self._kept(first, end)
        return self._known[key]

    def _kept(self, first: int, end: int) -> Hashable:
        """In lean firmware values decide what is kept where."""
        target = self._line.options.machine.target
        return lean_form(self._line.ops[first:end], target) if target.lean else None

    def _op(self, at: int) -> Hashable:
        if at not in self._ops:
            self._ops[at] = _op_form(self._line.ops[at])
        return self._ops[at]

    def _form(self, first: int, end: int) -> Hashable:
        line, seen = self._line, _NumberedTensors()
        ops: list[Hashable] = []
        for at in range(first, end):
            op = line.ops[at]
            uses = tuple(-1 if t is None else seen.number(t) for t in op.inputs)
            makes = tuple(map(seen.number, (*op.outputs, *op.intermediates)))
            ops.append((self._op(at), uses, makes))
        through = tuple(map(seen.number, line.through(first, end)))
        inner = {id(op) for op in line.ops[first:end]}
        leaving = tuple(
            id(t) in self._results or any(id(c) not in inner for c in t.consumers)
            for t in seen.tensors
        )
        results = tuple(id(t) in self._results for t in seen.tensors)
        listed = sorted(range(len(seen.tensors)), key=lambda k: self._place[id(seen.tensors[k])])
        order = tuple(k for k in listed if not seen.tensors[k].is_constant)
        forms = tuple(map(_tensor_form, seen.tensors))
        return tuple(ops), forms, through, leaving, results, order, tuple(seen.alike)


class _NumberedTensors:
    """Tensors by numbers, as they turn up; with those that share bytes or quantisation."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.alike: list[tuple[int, int]] = []
        self._number: dict[int, int] = {}
        self._buffers: dict[int, int] = {}
        self._scales: dict[Hashable, int] = {}

    def number(self, tensor: Tensor) -> int:
        found = self._number.get(id(tensor))
        if found is not None:
            return found
        number = self._number[id(tensor)] = len(self.tensors)
        self.tensors.append(tensor)
        self.alike.append((
            self._buffers.setdefault(id(tensor.buffer), number),
            self._scales.setdefault(_quantized(tensor), number),
        ))  # fmt: skip
        return number


def _tensor_form(t: Tensor) -> Hashable:
    quantization: Any = t.quantization
    axis = 0 if quantization is None else int(quantization.quantizedDimension)
    scales = len(_listed(quantization, "scale")), len(_listed(quantization, "zeroPoint"))
    external = t.buffer.external or t.external_data > 0
    return t.type, t.shape, t.is_variable, t.is_view, t.is_constant, external, axis, scales


def _quantized(t: Tensor) -> Hashable:
    return _listed(t.quantization, "scale"), _listed(t.quantization, "zeroPoint")


def _listed(quantization: Any, name: str) -> tuple[float, ...]:
    found = None if quantization is None else getattr(quantization, name)
    return () if found is None else tuple(np.asarray(found).tolist())


def _op_form(op: Op) -> Hashable:
    """What the operator is by itself. One that calls graphs is like no other."""
    learnt = _LEARNT.get(op.kind, ())
    values = tuple(
        None if t is None or not t.is_constant or k in learnt else _bytes(t.buffer.data)
        for k, t in enumerate(op.inputs)
    )
    options = None if op.options is None else _plain(members(op.options))
    alone = id(op) if op.graphs else None
    custom = None if op.custom_options is None else _bytes(op.custom_options)
    return op.code.builtin, op.code.custom, options, custom, values, alone


def _bytes(data: Any) -> bytes:
    return b"" if data is None else bytes(data)


def _plain(value: Any) -> Hashable:
    """Options as nested tuples."""
    if isinstance(value, dict):
        found = cast("dict[str, Any]", value)
        return tuple((name, _plain(v)) for name, v in sorted(found.items()))
    if isinstance(value, list | tuple | np.ndarray):
        several: list[Any] = np.asarray(cast("Any", value)).ravel().tolist()
        return tuple(map(_plain, several))
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    return _plain(members(value))
