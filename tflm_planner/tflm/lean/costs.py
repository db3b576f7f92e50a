"""What operators with parameters per channel allocate in the arena of lean firmware.

    stock   Init: OpData                 Prepare: arrays
    lean    Prepare: [OpData] [array] [array] made in temporary memory, then searched:
            in the pool -> flash | equal to an earlier tile's -> shared | else copied to RAM

The order of searches and comparisons is that of arduino_runner/src/lean/lean.cpp. This module must
not know addresses.
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
    allocations and scratch requests of each operator in stock TFLM. Operators without a lean
    wrapper allocate as in stock TFLM; the Init of the others runs within their Prepare."""
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
    """A key for comparing two lists of operators that have equal kinds, options and shapes, each
    list with its own pool. If the keys are equal, lean firmware allocates equal sizes for both,
    whole or in tiles. They are equal if the same parameter arrays lie within each other, and the
    same operators have equal OpData."""
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
"""Words of builtin parameters are smaller than this, multipliers are larger. Only an array of
smaller words may also be found inside builtin parameters."""


def lean_kept_bytes(op: Op, target: Target) -> int:
    """Bytes that one operator by itself keeps in the arena, if the pool of the final file has all
    its parameters but OpData. It is never too little: that tiles share OpData is seen only in whole
    models."""
    cost = operator_allocations(op, target)
    if not target.lean or op.kind not in lean.LEAN_KINDS:
        return cost.kept
    if lean.builtin_parameters(op) is not None:
        cost = replace(cost, builtin=None)
    held_count = len(_held_arrays(op, _parameters(op, target) or (), target))
    return replace(cost, prepare=_drop_allocations(cost.prepare, held_count)).kept


def _drop_parameters(op: Op, pool: lean.Pool, cost: OperatorAllocations) -> OperatorAllocations:
    """The allocations without the builtin parameters that are found in the pool."""
    parameters = lean.builtin_parameters(op) if pool else None
    if parameters is None or cost.builtin is None:
        return cost
    size, _ = cost.builtin
    return cost if pool.find(parameters[:size]) is None else replace(cost, builtin=None)


def _parameters(op: Op, target: Target) -> tuple[bytes, bytes] | None:
    """The arrays that Prepare allocates; None if lean firmware does not move them. In TFLM of 2023
    FULLY_CONNECTED has a single scale and no arrays."""
    if op.kind == "FULLY_CONNECTED" and target.is_arduino_2023:
        return None
    return lean.parameter_arrays(op)


def _drop_allocations(steps: Sequence[PrepareStep], count: int) -> tuple[PrepareStep, ...]:
    """The steps of Prepare without its first `count` persistent allocations, which are those of the
    arrays."""
    to_drop = iter(range(count))
    return tuple(
        s for s in steps if not isinstance(s, PersistentAllocation) or next(to_drop, None) is None
    )


def _held_arrays(op: Op, arrays: Sequence[bytes], target: Target) -> Sequence[bytes]:
    """The arrays that can be made in temporary memory. TFLM of 2023 has no temporary buffers; an
    array is made in the memory of the filter's fetched zero points, if there are enough of them."""
    weights = op.inputs[1] if len(op.inputs) > 1 else None
    if target.is_arduino_2023 and (weights is None or scale_count_of(weights) < lean.channels(op)):
        return ()
    return arrays


@dataclass
class _Firmware:
    """The state of the lean wrappers while sub-graphs are prepared one after the other."""

    target: Target
    pool: lean.Pool
    _filters: set[Tensor] = field(default_factory=set[Tensor])
    _arrays: dict[Hashable, Hashable] = field(default_factory=dict[Hashable, Hashable])
    _opdata: set[Hashable] = field(default_factory=set[Hashable])
    _made: int = 0

    @property
    def _shares(self) -> bool:
        """LEAN_SHARE: false for cores on which kernels of other vendors are common."""
        return self.target.core_family != "Xtensa"

    def enter_graph(self) -> None:
        """Begin a sub-graph: only nodes of the same sub-graph share with each other."""
        self._filters, self._arrays, self._opdata = set(), {}, set()

    def prepare(
        self, op: Op, cost: OperatorAllocations, requests: Sequence[int]
    ) -> OperatorAllocations:
        """What the operator's Init and Prepare allocate, given the operators before it."""
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
        """Whether arrays of an earlier tile are searched even without a pool."""
        return self._shares and op.kind in CONVOLUTIONS

    def _fetches(self, op: Op) -> list[Tensor]:
        """The tensors that the wrapper itself fetches: it needs the number of the filter's scales
        to know whether there are arrays."""
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
        """The allocations if the wrapper replaces the arrays, which are the first persistent pieces
        of Prepare. Arrays that can be held, and OpData, are temporary instead; those that are not
        found elsewhere are copied to the tail at the end, while the temporary ones are still in
        use."""
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
        """Temporary memory that the wrapper allocates before Prepare runs."""
        if not self.target.is_arduino_2023:
            return [*map(TempBuffer, cost.init), *(TempBuffer(len(array)) for array in held_arrays)]
        weights = op.inputs[1]
        assert weights is not None
        return [weights] * max(1, len(held_arrays))  # also fetched if no array fits in it

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
    """Equal for two operators exactly if TFLM computes the same OpData for both. It consists of
    kind, padding or sizes, zero points, range of the activation, places of the arrays, scratch
    (unique, because its index is), and row sums of a filter (unique, because their address is)."""
    alone: Hashable = op if any(requests) else None
    if op.kind == "FULLY_CONNECTED":
        sizes = library_of(target).op_data_key(op, target)
        alone = op if sizes is None else alone
    else:
        sizes = _padding(op)
    return op.kind, _values(op), sizes, tuple(places), alone


def _values(op: Op) -> Hashable:
    """The part of OpData that follows from types, quantisation and activation."""
    data, weights, result = op.inputs[0], op.inputs[1], op.outputs[0]
    assert data is not None and weights is not None
    points = tuple(t.quantization.zero_point for t in (data, weights, result))
    return data.type_name, weights.type_name, _bias_type(op), points, _activation(op)


def _bias_type(op: Op) -> str:
    bias = op.inputs[2] if len(op.inputs) > 2 else None
    return "" if bias is None else bias.type_name


def _padding(op: Op) -> tuple[int, ...]:
    """ComputePaddingHeightWidth: padding and its odd remainder, for rows and for columns."""
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
