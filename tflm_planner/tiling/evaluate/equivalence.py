"""When two intervals of a schedule, or two models, are equivalent: an evaluation of one then holds
for the other.

    x -[conv 3x3]- a -[conv 1x1]- b -[add]- y -[conv 3x3]- c -[conv 1x1]- d -[add]- z
       <----------- 0 .. 3 -------------->      <----------- 3 .. 6 ------------>   equivalent

Equivalent intervals have operators of equal kinds, options, types and shapes, connected in the same
way; the same tensors enter, leave, live through, and share bytes or quantisation. For lean
firmware, also the parameters of the same operators contain each other. Networks repeat blocks that
differ only in weights and names, which are ignored here, but for weights so large that a kernel's
sums forbid to compute pixels apart. Models are compared likewise, with all
their tensors in the order of the file. It must not know candidates.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from tflm_planner.model.ir import DataBuffer, Graph, Model, Op, Tensor
from tflm_planner.ops.roles import PRODUCTS
from tflm_planner.tflm.kernels import adds_pixels_alike
from tflm_planner.tflm.lean.costs import lean_form
from tflm_planner.tiling.estimate.interval import Interval
from tflm_planner.tiling.estimate.schedule import LinearSchedule

_OPERANDS_WITHOUT_COST: dict[str, tuple[int, ...]] = {
    **{kind: (roles.weights, roles.bias) for kind, roles in PRODUCTS.items()},
    "BATCH_MATMUL": (0, 1),
    "PRELU": (1,),
}
"""Kind -> operands whose constant values change only results, and no figure."""


class IntervalSignatures:
    """Signatures of the intervals of one schedule: equal for equivalent intervals."""

    def __init__(self, schedule: LinearSchedule) -> None:
        self._schedule = schedule
        self._file_position = {t: i for i, t in enumerate(schedule.model.main.tensors)}
        self._model_outputs = {*schedule.model.main.outputs}
        self._op_signatures: dict[int, Hashable] = {}
        self._known: dict[Interval, Hashable] = {}

    def of(self, interval: Interval) -> Hashable:
        """The signature of an interval."""
        if interval not in self._known:
            self._known[interval] = self._structure(interval), self._lean_form(interval)
        return self._known[interval]

    def _lean_form(self, interval: Interval) -> Hashable:
        """For lean firmware: where parameters are stored, which depends on their values."""
        target = self._schedule.options.kernels.target
        return lean_form(self._schedule.ops[interval.as_slice], target) if target.lean else None

    def _op_signature(self, position: int) -> Hashable:
        if position not in self._op_signatures:
            self._op_signatures[position] = _op_signature(self._schedule.ops[position])
        return self._op_signatures[position]

    def _structure(self, interval: Interval) -> Hashable:
        schedule, numbered = self._schedule, _NumberedTensors()
        ops: list[Hashable] = []
        for position in interval.positions:
            op = schedule.ops[position]
            reads = tuple(-1 if t is None else numbered.number(t) for t in op.inputs)
            makes = tuple(map(numbered.number, (*op.outputs, *op.intermediates)))
            ops.append((self._op_signature(position), reads, makes))
        through = tuple(map(numbered.number, schedule.tensors_living_through(interval)))
        inner, outputs = {*schedule.ops[interval.as_slice]}, self._model_outputs
        leaving = tuple(
            t in outputs or any(c not in inner for c in t.consumers) for t in numbered.tensors
        )
        results = tuple(t in outputs for t in numbered.tensors)
        by_file = sorted(
            range(len(numbered.tensors)), key=lambda k: self._file_position[numbered.tensors[k]]
        )
        order = tuple(k for k in by_file if not numbered.tensors[k].is_constant)
        signatures = tuple(map(_tensor_signature, numbered.tensors))
        shared = tuple(numbered.shared)
        return tuple(ops), signatures, through, leaving, results, order, shared


def model_signature(model: Model) -> Hashable:
    """The signature of a model: equal for models that differ only in weights, scales, zero
    points and names, and of which the same operators may be cut. Such models need the same arena
    on stock firmware, as they are and however they are planned; their files may differ in size,
    by names and by weights that happen to be equal. (On lean firmware zero points decide which
    parameters are stored once.) A model whose operators call graphs equals only itself."""
    metadata = sorted((entry.name, _bytes(entry.buffer.data)) for entry in model.metadata)
    return tuple(map(_graph_signature, model.graphs)), tuple(metadata)


def _graph_signature(graph: Graph) -> Hashable:
    numbered = _NumberedTensors()
    for tensor in graph.tensors:
        numbered.number(tensor)
    ops = [
        (
            _op_signature(op),
            tuple(-1 if t is None else numbered.number(t) for t in op.inputs),
            tuple(map(numbered.number, (*op.outputs, *op.intermediates))),
        )
        for op in graph.ops
    ]
    ends = tuple(map(numbered.number, graph.inputs)), tuple(map(numbered.number, graph.outputs))
    details = tuple((t.is_sparse, _has_channel_zeros(t)) for t in numbered.tensors)
    signatures = tuple(map(_tensor_signature, numbered.tensors))
    return tuple(ops), ends, signatures, details, tuple(numbered.shared)


def _has_channel_zeros(t: Tensor) -> bool:
    """Whether a kernel may have to keep zero points for each channel."""
    return t.quantization.is_per_channel and any(t.quantization.zero_points)


class _NumberedTensors:
    """Tensors numbered in the order in which they are first seen.

    shared: for each tensor, the number of the first tensor with the same bytes, and of the first
    with an equal quantization.
    """

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.shared: list[tuple[int, int]] = []
        self._number: dict[Tensor, int] = {}
        self._first_of_buffer: dict[DataBuffer, int] = {}
        self._first_of_quantization: dict[Hashable, int] = {}

    def number(self, tensor: Tensor) -> int:
        """The number of a tensor; a new number if it was not seen before."""
        known = self._number.get(tensor)
        if known is not None:
            return known
        number = self._number[tensor] = len(self.tensors)
        self.tensors.append(tensor)
        values = tensor.quantization.scales, tensor.quantization.zero_points
        self.shared.append((
            self._first_of_buffer.setdefault(tensor.buffer, number),
            self._first_of_quantization.setdefault(values, number),
        ))  # fmt: skip
        return number


def _tensor_signature(t: Tensor) -> Hashable:
    quantization = t.quantization
    scales = len(quantization.scales), len(quantization.zero_points)
    external = t.buffer.external or t.external_data > 0
    kind = t.type, t.shape, t.is_variable, t.is_view, t.is_constant, external
    return kind, quantization.axis, scales


def _op_signature(op: Op) -> Hashable:
    """The properties of an operator by itself. An operator that calls graphs equals only itself."""
    weights = _OPERANDS_WITHOUT_COST.get(op.kind, ())
    constants = tuple(
        None if t is None or not t.is_constant or k in weights else _bytes(t.buffer.data)
        for k, t in enumerate(op.inputs)
    )
    itself = op if op.graphs else None
    custom = None if op.custom_options is None else _bytes(op.custom_options)
    cuttable = adds_pixels_alike(op)  # which may depend on weights
    return op.code.builtin, op.code.custom, op.options.key(), custom, constants, cuttable, itself


def _bytes(data: Any) -> bytes:
    return b"" if data is None else bytes(data)
