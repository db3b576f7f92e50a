"""What convolutions cost in the arena of lean firmware.

    stock   Init: OpData                 Prepare: arrays
    lean    Prepare: [OpData] [array] [array] borrowed from temporary memory, then looked up:
            in the pool -> flash | an equal one of an earlier tile -> shared | else kept in RAM

The order of look-ups and comparisons is that of arduino_runner/src/lean/lean.cpp. This module
must not know addresses.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tflm_planner.ir import Graph, Model, Op, Tensor
from tflm_planner.tflm import lean
from tflm_planner.tflm.persistent import Cost, scales
from tflm_planner.tflm.targets import Target


@dataclass(frozen=True, slots=True)
class LeanCost:
    """Bytes of one wrapped operator, whose Init runs within Prepare.

    parameters: whether builtin parameters stay in the arena. borrowed: temporary blocks taken
    before what Prepare fetches, each aligned to 16. fetched: as in `Cost`. prepare: persistent
    allocations made by Init and Prepare; kept: those made afterwards, with all temporary memory
    still in use.
    """

    parameters: bool
    borrowed: tuple[int, ...]
    fetched: tuple[Tensor, ...]
    prepare: tuple[int, ...]
    kept: tuple[int, ...]


def lean_costs(
    model: Model, target: Target, costs: Sequence[Cost], asked: Sequence[Sequence[int]]
) -> list[LeanCost | None]:
    """One entry for each operator of the model, None for those that are not wrapped. `costs` and
    `asked`: what stock TFLM allocates, and the scratch requests, of each operator."""
    pool = lean.carried_pool(model)
    ops = list(model.ops())
    in_flash = [_parameters_in_flash(op, pool, one) for op, one in zip(ops, costs, strict=True)]
    pool.rewind()
    firmware = _Firmware(target, pool)
    found: list[LeanCost | None] = []
    rest = iter(zip(ops, costs, asked, in_flash, strict=True))
    for graph in model.graphs:
        firmware.enter(graph)
        for op, one, requests, flash in (next(rest) for _ in graph.ops):
            wrapped = op.kind in lean.LEAN_KINDS
            found.append(firmware.prepare(op, one, requests, not flash) if wrapped else None)
    return found


def _parameters_in_flash(op: Op, pool: lean.Pool, one: Cost) -> bool:
    wanted = lean.builtin_parameters(op) if pool else None
    if wanted is None or one.builtin is None:
        return False
    size, _ = one.builtin
    return pool.find(wanted[:size]) is not None


@dataclass
class _Firmware:
    """The wrappers' state while sub-graph after sub-graph is prepared."""

    target: Target
    pool: lean.Pool
    _filters: set[int] = field(default_factory=set[int])
    _arrays: dict[Hashable, Hashable] = field(default_factory=dict[Hashable, Hashable])
    _opdata: set[Hashable] = field(default_factory=set[Hashable])
    _made: int = 0

    @property
    def _shares(self) -> bool:
        """LEAN_SHARE: not on cores on which other vendors' kernels are usual."""
        return not self.target.core.startswith("Xtensa")

    def enter(self, graph: Graph) -> None:
        """A sub-graph's nodes share among themselves only."""
        self._filters, self._arrays, self._opdata = set(), {}, set()

    def prepare(self, op: Op, one: Cost, requests: Sequence[int], parameters: bool) -> LeanCost:
        """What the operator's Init and Prepare take now."""
        stock = LeanCost(parameters, (), one.fetched, (one.init, *one.prepare), ())
        arrays = lean.parameter_arrays(op)
        if arrays is None or (not self.pool and not self._shares):
            return stock
        known = id(op.inputs[1])
        watched = not self.pool and known not in self._filters
        self._filters.add(known)
        if watched:
            places = [self._new_place() for _ in arrays]
            self._remember(op, arrays, places, _opdata_form(op, requests, places))
            return stock
        return self._hooked(op, one, requests, parameters, arrays)

    def _hooked(
        self, op: Op, one: Cost, requests: Sequence[int], parameters: bool, arrays: Sequence[bytes]
    ) -> LeanCost:
        old = self.target.version == "arduino-2023"
        known = op.inputs[1]
        assert known is not None
        held = list(arrays) if not old or scales(known) >= lean.channels(op) else []
        kept: list[int] = []
        places: list[Hashable] = []
        for role, array in enumerate(held):
            place = self._place(op, role, array)
            if place is None:
                place = self._new_place()
                kept.append(len(array))
            places.append(place)
        places += [self._new_place() for _ in arrays[len(held) :]]
        form = _opdata_form(op, requests, places)
        if not self._shares or form not in self._opdata:
            kept.append(one.init)
        self._remember(op, arrays, places, form)
        borrowed = () if old else (one.init, *map(len, held))
        fetched = (*((known,) * len(held) if old else ()), *one.fetched)
        return LeanCost(parameters, borrowed, fetched, one.prepare[len(held) :], tuple(kept))

    def _place(self, op: Op, role: int, array: bytes) -> Hashable | None:
        at = self.pool.find(array)
        if at is not None:
            return "flash", at
        return self._arrays.get((op.kind, id(op.inputs[1]), role, array)) if self._shares else None

    def _new_place(self) -> Hashable:
        self._made += 1
        return "ram", self._made

    def _remember(
        self, op: Op, arrays: Sequence[bytes], places: Sequence[Hashable], form: Hashable
    ) -> None:
        for role, (array, place) in enumerate(zip(arrays, places, strict=True)):
            self._arrays[op.kind, id(op.inputs[1]), role, array] = place
        self._opdata.add(form)


# --- OpData ---------------------------------------------------------------------------------------


def _opdata_form(op: Op, requests: Sequence[int], places: Sequence[Hashable]) -> Hashable:
    """Equal for two operators exactly if TFLM computes the same OpData for both: kind, padding,
    zero points, range of the activation, where the arrays lie, scratch (its index is unique)."""
    scratch: Hashable = id(op) if any(requests) else None
    data, known, result = op.inputs[0], op.inputs[1], op.outputs[0]
    assert data is not None and known is not None
    points = tuple(_zero_point(t) for t in (data, known, result))
    kinds = data.type_name, known.type_name, _bias_type(op)
    return op.kind, kinds, _padding(op), points, _activation(op), tuple(places), scratch


def _bias_type(op: Op) -> str:
    bias = op.inputs[2] if len(op.inputs) > 2 else None
    return "" if bias is None else bias.type_name


def _zero_point(tensor: Tensor) -> int:
    found: Any = None if tensor.quantization is None else tensor.quantization.zeroPoint
    return 0 if found is None or len(found) == 0 else int(found[0])


def _padding(op: Op) -> tuple[int, ...]:
    """ComputePaddingHeightWidth: padding and the odd rest, of rows and of columns."""
    options: Any = op.options
    data, known = op.inputs[0], op.inputs[1]
    assert data is not None and known is not None
    sizes, window = data.shape or (0,) * 4, known.shape or (0,) * 4
    strides = options.strideH, options.strideW
    dilations = options.dilationHFactor, options.dilationWFactor
    found: list[int] = []
    for axis, stride, dilation in zip((1, 2), strides, dilations, strict=True):
        reach = (window[axis] - 1) * dilation + 1
        same = options.padding == 0
        count = (sizes[axis] + stride - 1) // stride if same else (sizes[axis] + stride - reach) // stride  # noqa: E501  # fmt: skip
        total = max(0, (count - 1) * stride + reach - sizes[axis])
        found += [total // 2, total % 2]
    return tuple(found)


_RANGES = {"int8": (-128, 127), "int16": (-32768, 32767)}


def _activation(op: Op) -> tuple[int, int]:
    """CalculateActivationRangeQuantized: the quantised bounds of the fused activation."""
    options: Any = op.options
    result = op.outputs[0]
    low, high = _RANGES.get(result.type_name, (0, 0))
    scale: Any = None if result.quantization is None else result.quantization.scale
    if scale is None or len(scale) == 0:
        return low, high

    def quantized(real: float) -> int:
        ratio = float(np.float32(real) / np.float32(scale[0]))
        return _zero_point(result) + int(np.floor(abs(ratio) + 0.5) * np.sign(ratio))

    bounds = {1: (0.0, None), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
    below, above = bounds.get(int(options.fusedActivationFunction), (None, None))
    low = low if below is None else max(low, quantized(below))
    return low, high if above is None else min(high, quantized(above))
