"""What may go wrong in a rewritten and planned model: one small change at one place.

    candidates(model) -> Mutant ...      those of one kind and another, at every place
    mutated(file, mutant) -> file        with that change alone

Shapes stay as they are, so that the plan in the file goes on to fit. It must not know proofs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from tflm_planner.model.edit import set_option
from tflm_planner.model.ir import Graph, Model, Op, Tensor, link
from tflm_planner.model.quantization import Quantization
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.ops import sharings
from tflm_planner.tflm.liveness import timeline_of
from tflm_planner.tflm.sharing import taken_input_overlaps
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.transforms.attach_plan import AttachPlan, carried_plan
from tflm_planner.transforms.base import run

Place = tuple[int, int]
"""Sub-graph and operator in it."""
PLAN_KINDS = ("moved by 16", "onto another", "too close by 16", "unaligned", "swapped in time")
_DTYPES = {"int8": "i1", "int16": "<i2", "int32": "<i4", "int64": "<i8", "float32": "<f4"}
_POOLS = ("MAX_POOL_2D", "AVERAGE_POOL_2D")
_WINDOWS = ("CONV_2D", "DEPTHWISE_CONV_2D", *_POOLS)
_PRODUCTS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV")
_PLACES = {"SLICE": (1,), "STRIDED_SLICE": (1,), "GATHER": (1,), "DYNAMIC_UPDATE_SLICE": (2,)}
_QUANTISED = (*_PRODUCTS, "ADD", "SUB", "MUL", "AVERAGE_POOL_2D", "MEAN", "SOFTMAX", "LOGISTIC")


@dataclass(frozen=True)
class Mutant:
    """A change of a model. kind: what goes wrong. where: at which operator or tensor."""

    kind: str
    where: str
    change: Callable[[Model], object]

    @property
    def of_plan(self) -> bool:
        """Whether the plan is wrong, rather than the rewrite."""
        return self.kind in PLAN_KINDS


def mutated(data: bytes, mutant: Mutant) -> bytes:
    """The file with one thing wrong."""
    model = read_model(data, dialect=True)
    mutant.change(model)
    return write_model(model)


# --- rewrites ---


def of_rewrite(model: Model) -> Iterator[Mutant]:
    """Every operator with one thing wrong."""
    for g, graph in enumerate(model.graphs):
        for i, op in enumerate(graph.ops):
            where = f"{op.kind} {g}:{i}"
            for kind, what, change in _of_op(op, inner=g > 0):
                yield Mutant(kind, where + what, _at((g, i), change))
            for operand, other in _others(op, graph, i):
                change = _reading(graph.tensors.index(other), operand)
                yield Mutant("wrong slice", f"{where} operand {operand}", _at((g, i), change))


Change = Callable[[Op, Graph], object]


def _at(place: Place, change: Change) -> Callable[[Model], object]:
    def apply(model: Model) -> None:
        graph = model.graphs[place[0]]
        op = graph.ops[place[1]]
        _own_constants(model, graph, op)
        change(op, graph)
        link(model.graphs)

    return apply


def _others(op: Op, graph: Graph, position: int) -> Iterator[tuple[int, Tensor]]:
    """(operand, another tensor of its shape that is there as well), the newest."""
    made = [*graph.inputs, *(t for other in graph.ops[:position] for t in other.outputs)]
    for k, tensor in enumerate(op.inputs):
        others = [t for t in made if t is not tensor and _alike(t, tensor)]
        if others and tensor in made:
            yield k, others[-1]


def _reading(tensor: int, operand: int) -> Change:
    return lambda op, graph: op.inputs.__setitem__(operand, graph.tensors[tensor])


def _own_constants(model: Model, graph: Graph, op: Op) -> None:
    """Constants of an operator apart from those that others read too."""
    offsets = carried_plan(model) or {}
    for i, tensor in enumerate(op.inputs):
        if tensor is not None and tensor.is_constant:
            twin = copy(tensor)
            twin.buffer = copy(tensor.buffer)
            op.inputs[i] = twin
            graph.tensors.append(twin)
            model.buffers.append(twin.buffer)
    if offsets:
        run(model, AttachPlan(offsets))


Found = Iterator[tuple[str, str, Change]]


def _of_op(op: Op, *, inner: bool) -> Found:
    yield from _of_places(op, inner=inner)
    yield from _of_operands(op)
    if op.kind in _PRODUCTS:
        yield from _of_numbers(op)
    if op.kind in _WINDOWS:
        yield from _of_window(op)
    if op.kind in _QUANTISED and _is_quantised(op.outputs[0]):
        yield "quantisation", " scale", lambda op, _: _rescale(op.outputs[0])
        yield "quantisation", " zero point", lambda op, _: _shift_zero(op.outputs[0])
    if op.options.may_have_activation:
        other = 0 if op.options.activation else 1
        yield "activation", "", lambda op, _: set_option(op, "fused_activation_function", other)


def _of_places(op: Op, *, inner: bool) -> Found:
    """Where rows are taken from and put: begins, indices, paddings, counters of loops."""
    for operand in _PLACES.get(op.kind, ()):
        for at, by in _moves(op, operand):
            yield "offset", f" {at} by {by}", lambda op, _, a=at, b=by, o=operand: _add(op, o, a, b)
    if op.kind in ("PAD", "PADV2", "MIRROR_PAD") and _operand(op, 1).is_constant:
        pads = _numbers(_operand(op, 1)).reshape(-1)
        for axis in range(len(pads) // 2):
            for source, to in ((2 * axis, 2 * axis + 1), (2 * axis + 1, 2 * axis)):
                if pads[source] > 0:
                    yield (
                        "padding",
                        f" {source} to {to}",
                        lambda op, _, s=source, t=to: _carry(op, s, t),
                    )
    if inner and op.kind in ("ADD", "SUB", "MUL", "LESS", "MAXIMUM", "MINIMUM"):
        for k, tensor in enumerate(op.inputs):
            if tensor is not None and tensor.is_constant and tensor.type_name == "int32":
                yield "turns", f" operand {k}", lambda op, _, k=k: _add(op, k, 0, 1)


def _moves(op: Op, operand: int) -> Iterator[tuple[int, int]]:
    """(element, by how much) of a constant begin or index, so that it stays inside."""
    tensor = op.inputs[operand]
    if tensor is None or not tensor.is_constant:
        return
    begins = _numbers(tensor).reshape(-1)
    if op.kind == "GATHER":
        size = (_operand(op, 0).shape or (1,))[op.options.axis]
        rooms = [(0, size - 1)] * len(begins)
    else:
        whole = _operand(op, 0).shape or ()
        part = _operand(op, 1) if op.kind == "DYNAMIC_UPDATE_SLICE" else op.outputs[0]
        part = part.shape or ()
        if len(whole) != len(part):
            return
        rooms = [(0, w - p) for w, p in zip(whole, part, strict=True)]
    for at, ((low, high), begin) in enumerate(zip(rooms, begins, strict=False)):
        for by in (1, -1):
            if low <= begin + by <= high:
                yield at, by


def _of_operands(op: Op) -> Found:
    """Operands in another order."""
    for k, (a, b) in enumerate(pairwise(op.inputs)):
        if op.kind in ("CONCATENATION", "SUB", "PACK") and a is not b and _alike(a, b):
            yield "order", f" {k}", lambda op, _, k=k: _swap(op.inputs, k)


def _alike(a: Tensor | None, b: Tensor | None) -> bool:
    return a is not None and b is not None and (a.shape, a.type) == (b.shape, b.type)


def _of_numbers(op: Op) -> Found:
    weights = op.inputs[1]
    if weights is not None and weights.is_constant and weights.type_name in _DTYPES:
        for at in (0, weights.elements // 2, weights.elements - 1):
            yield "weight", f" {at}", lambda op, _, a=at: _add(op, 1, a, _step(op.inputs[1], a))
    bias = op.inputs[2] if len(op.inputs) > 2 and op.kind != "TRANSPOSE_CONV" else None
    if bias is not None and bias.is_constant:
        yield "bias", "", lambda op, _: _add(op, 2, 0, 1)
    if weights is not None and _is_quantised(weights):
        yield "quantisation", " of weights", lambda op, _: _rescale(op.inputs[1])


def _of_window(op: Op) -> Found:
    o = op.options
    yield "padding", " kind", lambda op, _: set_option(op, "padding", 1 - op.options.padding)
    sizes = dict(zip(("stride_h", "stride_w"), o.stride, strict=True))
    if op.kind in _POOLS:
        pool = zip(("filter_height", "filter_width"), o.pool_size, strict=True)
        sizes |= {name: size for name, size in pool if size > 1}
    else:
        sizes |= dict(zip(("dilation_h_factor", "dilation_w_factor"), o.dilation, strict=True))
    for name, value in sizes.items():
        other = value - 1 if value > 1 else value + 1
        yield "window", f" {name}", lambda op, _, n=name, v=other: set_option(op, n, v)


# --- plans ---


def of_plan(model: Model, kernels: TargetKernels) -> Iterator[Mutant]:
    """Every tensor in a wrong place, and operators at a wrong time."""
    offsets = carried_plan(model) or {}
    tensors = list(model.tensors())
    number = {t: i for i, t in enumerate(tensors)}
    placed = [t for t in offsets if offsets[t] >= 0]
    for tensor in placed:
        for by in (16, -16):
            if offsets[tensor] + by >= 0:
                yield _moved("moved by 16", number[tensor], offsets[tensor] + by)
        yield _moved("unaligned", number[tensor], offsets[tensor] + 4)
        others = [t for t in placed if offsets[t] != offsets[tensor]]
        if others:
            other = others[(7 * number[tensor]) % len(others)]
            yield _moved("onto another", number[tensor], offsets[other])
    line = timeline_of(model, kernels.scratch_of)
    for shared in taken_input_overlaps(line, offsets, kernels):
        closer = offsets[shared.result] + 16
        yield _moved("too close by 16", number[shared.result], closer)
    for op in model.ops():
        for s in sharings(op):
            at = offsets.get(s.operand, -1), offsets.get(s.result, -2)
            if at[1] - at[0] == s.distance and at[1] >= 16:
                yield _moved("too close by 16", number[s.result], at[1] - 16)
    for g, graph in enumerate(model.graphs):
        for i, (first, second) in enumerate(pairwise(graph.ops)):
            if not {*first.outputs} & {*second.operands()}:
                where = f"{first.kind} and {second.kind} {g}:{i}"
                yield Mutant(
                    "swapped in time", where, lambda m, g=g, i=i: _swap(m.graphs[g].ops, i)
                )


def _moved(kind: str, tensor: int, to: int) -> Mutant:
    def change(model: Model) -> None:
        offsets = carried_plan(model) or {}
        moving = list(model.tensors())[tensor]
        run(model, AttachPlan({**offsets, moving: to}))

    return Mutant(kind, f"tensor {tensor} to {to}", change)


# --- small changes ---


def _operand(op: Op, k: int) -> Tensor:
    """An operand that the operator cannot do without."""
    tensor = op.inputs[k]
    assert tensor is not None, f"operand {k} of {op.kind} is missing"
    return tensor


def _numbers(tensor: Tensor) -> np.ndarray:
    assert tensor.buffer.data is not None, f"{tensor.name} is no constant"
    return np.frombuffer(tensor.buffer.data.tobytes(), _DTYPES[tensor.type_name])


def _add(op: Op, operand: int, at: int, by: float) -> None:
    tensor = op.inputs[operand]
    assert tensor is not None
    numbers = _numbers(tensor).copy()
    numbers[at] += by
    tensor.buffer.data = numbers.view(np.uint8)


def _step(tensor: Tensor | None, at: int) -> int:
    assert tensor is not None
    return -1 if _numbers(tensor)[at] > 0 else 1


def _carry(op: Op, source: int, to: int) -> None:
    _add(op, 1, source, -1)
    _add(op, 1, to, 1)


def _is_quantised(tensor: Tensor) -> bool:
    return bool(tensor.quantization.scales)


def _rescale(tensor: Tensor | None) -> None:
    assert tensor is not None
    scales = Quantization.of(1.25 * s for s in tensor.quantization.scales).scales
    tensor.quantization = replace(tensor.quantization, scales=scales)


def _shift_zero(tensor: Tensor) -> None:
    points = tuple(p + 1 for p in tensor.quantization.zero_points)
    tensor.quantization = replace(tensor.quantization, zero_points=points)


def _swap(things: list, at: int) -> None:
    things[at], things[at + 1] = things[at + 1], things[at]
