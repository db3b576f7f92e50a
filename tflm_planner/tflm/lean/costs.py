"""What operators with parameters for each channel cost in the arena of lean firmware.

    stock   Init: OpData                 Prepare: arrays
    lean    Prepare: [OpData] [array] [array] borrowed from temporary memory, then looked up:
            in the pool -> flash | an equal one of an earlier tile -> shared | else kept in RAM

The order of look-ups and comparisons is that of arduino_runner/src/lean/lean.cpp. This module
must not know addresses.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.model.options import SAME_PADDING
from tflm_planner.ops.window import CONVOLUTIONS
from tflm_planner.support.deferred import defer
from tflm_planner.tflm.kernels import library_of
from tflm_planner.tflm.kernels.operator_allocations import OperatorAllocations, operator_allocations
from tflm_planner.tflm.kernels.prepare import (
    PersistentAllocation,
    PrepareStep,
    TempBuffer,
    scale_count_of,
)
from tflm_planner.tflm.lean import pool as lean
from tflm_planner.tflm.targets import Target

if TYPE_CHECKING:
    import numpy as np
else:
    np = defer("numpy")


def lean_costs(
    model: Model,
    target: Target,
    costs: Sequence[OperatorAllocations],
    requests_by_op: Sequence[Sequence[int]],
) -> list[OperatorAllocations]:
    """What each operator of the model allocates with lean firmware. `costs`, `requests_by_op`:
    allocations and scratch requests of each operator in stock TFLM. Operators that are not wrapped
    stay as they are; the Init of the others runs within their Prepare."""
    pool = lean.carried_pool(model)
    ops = list(model.ops())
    parsed = [_drop_parameters(op, pool, cost) for op, cost in zip(ops, costs, strict=True)]
    pool.rewind()
    firmware = _Firmware(target, pool)
    allocations: list[OperatorAllocations] = []
    remaining = iter(zip(ops, parsed, requests_by_op, strict=True))
    for graph in model.graphs:
        firmware.enter_graph()
        for op, cost, requests in (next(remaining) for _ in graph.ops):
            wrapped = op.kind in lean.LEAN_KINDS
            allocations.append(firmware.prepare(op, cost, requests) if wrapped else cost)
    return allocations


def lean_form(ops: Sequence[Op], target: Target) -> Hashable:
    """A key for operators of equal kinds, options and shapes: two lists have equal keys if lean
    firmware keeps pieces of equal sizes for both, each with its own pool and also in tiles. That is
    so where the same arrays contain each other and the same operators have equal OpData."""
    array_pairs = [_parameters(op, target) for op in ops]
    arrays = list(dict.fromkeys(a for pair in array_pairs for a in pair or ()))
    number = {array: k for k, array in enumerate(arrays)}
    inside = tuple(tuple(lean.lies_at(inner, outer) for outer in arrays) for inner in arrays)
    small = tuple(a if max(np.frombuffer(a, "<u4"), default=0) < _SMALL else b"" for a in arrays)
    value_numbers: dict[Hashable, int] = {}
    op_forms = tuple(
        None
        if pair is None
        else (
            number[pair[0]],
            number[pair[1]],
            value_numbers.setdefault(_values(op), len(value_numbers)),
        )
        for op, pair in zip(ops, array_pairs, strict=True)
    )
    return op_forms, inside, small


_SMALL = 1 << 16
"""Words of builtin parameters are smaller than this, multipliers are larger. An array of smaller
words may lie inside parameters."""


def lean_kept_bytes(op: Op, target: Target) -> int:
    """Bytes that one operator by itself keeps, with the pool of the final file, which holds all but
    OpData. It is never too little: that tiles share OpData shows only in whole models."""
    cost = operator_allocations(op, target)
    if not target.lean or op.kind not in lean.LEAN_KINDS:
        return cost.kept
    if lean.builtin_parameters(op) is not None:
        cost = replace(cost, builtin=None)
    held_count = len(_held_arrays(op, _parameters(op, target) or (), target))
    return replace(cost, prepare=_drop_allocations(cost.prepare, held_count)).kept


def _drop_parameters(op: Op, pool: lean.Pool, cost: OperatorAllocations) -> OperatorAllocations:
    """Without the builtin parameters that are found in the pool."""
    parameters = lean.builtin_parameters(op) if pool else None
    if parameters is None or cost.builtin is None:
        return cost
    size, _ = cost.builtin
    return cost if pool.find(parameters[:size]) is None else replace(cost, builtin=None)


def _parameters(op: Op, target: Target) -> tuple[bytes, bytes] | None:
    """The arrays that Prepare asks memory for, where lean firmware serves them. In TFLM of 2023
    FULLY_CONNECTED has one scale."""
    if op.kind == "FULLY_CONNECTED" and target.is_arduino_2023:
        return None
    return lean.parameter_arrays(op)


def _drop_allocations(steps: Sequence[PrepareStep], count: int) -> tuple[PrepareStep, ...]:
    """The steps of Prepare without its first `count` persistent allocations, which hold the
    arrays."""
    to_drop = iter(range(count))
    return tuple(
        s for s in steps if not isinstance(s, PersistentAllocation) or next(to_drop, None) is None
    )


def _held_arrays(op: Op, arrays: Sequence[bytes], target: Target) -> Sequence[bytes]:
    """The arrays for which there is temporary memory. TFLM of 2023 has no temporary buffers; it
    holds an array in the zero points of its filter, if there are enough of them."""
    weights = op.inputs[1] if len(op.inputs) > 1 else None
    if target.is_arduino_2023 and (weights is None or scale_count_of(weights) < lean.channels(op)):
        return ()
    return arrays


@dataclass
class _Firmware:
    """The wrappers' state while sub-graph after sub-graph is prepared."""

    target: Target
    pool: lean.Pool
    _filters: set[Tensor] = field(default_factory=set[Tensor])
    _arrays: dict[Hashable, Hashable] = field(default_factory=dict[Hashable, Hashable])
    _opdata: set[Hashable] = field(default_factory=set[Hashable])
    _made: int = 0

    @property
    def _shares(self) -> bool:
        """LEAN_SHARE: not on cores on which other vendors' kernels are usual."""
        return self.target.core_family != "Xtensa"

    def enter_graph(self) -> None:
        """Begin a sub-graph: its nodes share among themselves only."""
        self._filters, self._arrays, self._opdata = set(), {}, set()

    def prepare(
        self, op: Op, cost: OperatorAllocations, requests: Sequence[int]
    ) -> OperatorAllocations:
        """What the operator's Init and Prepare take now."""
        init = (PersistentAllocation(size, used=0) for size in cost.init)
        stock = replace(cost, init=(), prepare=(*self._fetches(op), *init, *cost.prepare))
        arrays = _parameters(op, self.target)
        if arrays is None or not (self.pool or self._shares_tiles(op)):
            return stock
        weights = op.inputs[1]
        assert weights is not None
        watched = not self.pool and weights not in self._filters
        self._filters.add(weights)
        if watched:
            places = [self._new_place() for _ in arrays]
            self._remember(op, arrays, places, _opdata_form(op, requests, places, self.target))
            return stock
        return self._replace_prepare(op, cost, requests, arrays)

    def _shares_tiles(self, op: Op) -> bool:
        """Whether arrays of an earlier tile are looked for where there is no pool."""
        return self._shares and op.kind in CONVOLUTIONS

    def _fetches(self, op: Op) -> list[Tensor]:
        """The tensors that the wrapper itself fetches: a filter's scales tell whether there are
        arrays at all."""
        if op.kind != "FULLY_CONNECTED" or not self.pool or self.target.is_arduino_2023:
            return []
        data, weights = op.inputs[:2]
        quantized = data is not None and data.type_name in ("int8", "int16")
        return (
            [weights] if quantized and weights is not None and len(weights.shape or ()) == 2 else []
        )

    def _replace_prepare(
        self, op: Op, cost: OperatorAllocations, requests: Sequence[int], arrays: Sequence[bytes]
    ) -> OperatorAllocations:
        """Prepare with the arrays, its first pieces, taken out. Held arrays and OpData are
        temporary instead; what is found nowhere else is copied to the tail at the end, while all of
        these are in use."""
        held_arrays = _held_arrays(op, arrays, self.target)
        persistent: list[int] = []
        places: list[Hashable] = []
        for role, array in enumerate(held_arrays):
            place = self._place(op, role, array)
            if place is None:
                place = self._new_place()
                persistent.append(len(array))
            places.append(place)
        places += [self._new_place() for _ in arrays[len(held_arrays) :]]
        form = _opdata_form(op, requests, places, self.target)
        if not self._shares or form not in self._opdata:
            persistent += cost.init
        self._remember(op, arrays, places, form)
        wrapper_steps = (*self._fetches(op), *self._wrapper_steps(op, cost, held_arrays))
        steps = (
            *wrapper_steps,
            *_drop_allocations(cost.prepare, len(held_arrays)),
            *map(PersistentAllocation, persistent),
        )
        return replace(cost, init=(), prepare=steps)

    def _wrapper_steps(
        self, op: Op, cost: OperatorAllocations, held_arrays: Sequence[bytes]
    ) -> list[PrepareStep]:
        """Temporary memory that the wrapper takes before Prepare runs."""
        if not self.target.is_arduino_2023:
            return [*map(TempBuffer, cost.init), *(TempBuffer(len(array)) for array in held_arrays)]
        weights = op.inputs[1]
        assert weights is not None
        return [weights] * max(1, len(held_arrays))  # the first is fetched to look for room

    def _place(self, op: Op, role: int, array: bytes) -> Hashable | None:
        offset = self.pool.find(array)
        if offset is not None:
            return "flash", offset
        return self._arrays.get((op.kind, op.inputs[1], role, array)) if self._shares else None

    def _new_place(self) -> Hashable:
        self._made += 1
        return "ram", self._made

    def _remember(
        self, op: Op, arrays: Sequence[bytes], places: Sequence[Hashable], form: Hashable
    ) -> None:
        for role, (array, place) in enumerate(zip(arrays, places, strict=True)):
            self._arrays[op.kind, op.inputs[1], role, array] = place
        self._opdata.add(form)


# --- OpData ---------------------------------------------------------------------------------------


def _opdata_form(
    op: Op, requests: Sequence[int], places: Sequence[Hashable], target: Target
) -> Hashable:
    """Equal for two operators exactly if TFLM computes the same OpData for both: kind, padding or
    sizes, zero points, range of the activation, where the arrays lie, scratch (its index is
    unique), row sums of a filter (their place is)."""
    alone: Hashable = op if any(requests) else None
    if op.kind == "FULLY_CONNECTED":
        sizes = library_of(target).op_data_key(op, target)
        alone = op if sizes is None else alone
    else:
        sizes = _padding(op)
    return op.kind, _values(op), sizes, tuple(places), alone


def _values(op: Op) -> Hashable:
    """The part of OpData that follows from types and quantisation."""
    data, weights, result = op.inputs[0], op.inputs[1], op.outputs[0]
    assert data is not None and weights is not None
    points = tuple(t.quantization.zero_point for t in (data, weights, result))
    return data.type_name, weights.type_name, _bias_type(op), points, _activation(op)


def _bias_type(op: Op) -> str:
    bias = op.inputs[2] if len(op.inputs) > 2 else None
    return "" if bias is None else bias.type_name


def _padding(op: Op) -> tuple[int, ...]:
    """ComputePaddingHeightWidth: padding and the odd rest, of rows and of columns."""
    options = op.options
    data, weights = op.inputs[0], op.inputs[1]
    assert data is not None and weights is not None
    sizes, window = data.shape or (0,) * 4, weights.shape or (0,) * 4
    padding: list[int] = []
    for axis, stride, dilation in zip((1, 2), options.stride, options.dilation, strict=True):
        reach = (window[axis] - 1) * dilation + 1
        same = options.padding == SAME_PADDING
        count = (sizes[axis] + stride - 1) // stride if same else (sizes[axis] + stride - reach) // stride  # noqa: E501  # fmt: skip
        total = max(0, (count - 1) * stride + reach - sizes[axis])
        padding += [total // 2, total % 2]
    return tuple(padding)


_RANGES = {"int8": (-128, 127), "int16": (-32768, 32767)}


def _activation(op: Op) -> tuple[int, int]:
    """CalculateActivationRangeQuantized: the quantised bounds of the fused activation."""
    result = op.outputs[0]
    low, high = _RANGES.get(result.type_name, (0, 0))
    scale, zero_point = result.quantization.scale, result.quantization.zero_point
    if scale is None:
        return low, high

    def quantize(real: float) -> int:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = float(np.float32(real) / np.float32(scale))
        if not math.isfinite(ratio):  # damaged: TFLM refuses, or computes garbage
            return zero_point
        return zero_point + int(np.floor(abs(ratio) + 0.5) * np.sign(ratio))

    bounds = {1: (0.0, None), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
    below, above = bounds.get(op.options.activation, (None, None))
    low = low if below is None else max(low, quantize(below))
    return low, high if above is None else min(high, quantize(above))
