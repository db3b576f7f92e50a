"""Drops operators whose result is their operand, for whatever reads it.

    RESHAPE to the same shape, QUANTIZE to the same parameters, PAD of nothing, CAST to the same
    type, TRANSPOSE in the same order, SLICE of everything, CONCATENATION of one tensor;
    RESHAPE to another shape, of one row that FULLY_CONNECTED flattens by itself:

    (1, 7, 5, 32) --RESHAPE--> (1, 1120) --FULLY_CONNECTED 1120 to 10--> (1, 10)

Converters and other rewrites leave them in the model. Each costs an operator's share of the tail, a
copy, and a second buffer if its operand is needed longer. This module must not know memory.
"""

from __future__ import annotations

from collections.abc import Callable

from tflm_planner.model.constants import integers
from tflm_planner.model.edit import drop_operators
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.model.number_formats import same_values
from tflm_planner.ops.layout import row_product_of
from tflm_planner.ops.roles import RESHAPES
from tflm_planner.support.words import count


def drop_identities(model: Model) -> list[str]:
    """Drop operators without effect; returns a note if there were any."""
    dropped: list[str] = []
    for graph in model.graphs:
        while ops := _drop_from(model, graph):  # what one leaves behind may have lost its reader
            dropped += [op.kind for op in ops]
    if not dropped:
        return []
    kinds = ", ".join(dict.fromkeys(dropped))
    operators = count(len(dropped), "operator", "operators")
    return [f"dropped {operators} without effect ({kinds})"]


def _drop_from(model: Model, graph: Graph) -> list[Op]:
    """Remove the identities of a graph: readers of the result read the operand instead.

    An identity that makes a graph output stays: the output has a name and memory of its own, and a
    last RESHAPE after tiles is what permits their CONCATENATION to be dropped
    (`transforms.dialect`).
    """
    outside = {t for s in model.signatures for _, t in (*s.inputs, *s.outputs)}
    outside |= {*graph.inputs, *graph.outputs}
    dropped = [op for op in graph.ops if has_no_effect(op) and op.outputs[0] not in outside]
    if dropped:
        operands = {op.outputs[0]: op.operands()[0] for op in dropped}
        drop_operators(model, graph, dropped, operands)
    return dropped


def has_no_effect(op: Op) -> bool:
    """Whether whatever reads the only result may read the first operand instead: both have the same
    elements, and the same shape unless nothing reads that."""
    if len(op.outputs) != 1 or not op.inputs:
        return False
    operand, result = op.inputs[0], op.outputs[0]
    if operand is None or operand.shape is None or not same_values(operand, result):
        return False
    if operand.is_variable or result.is_variable or operand.is_constant:
        return False
    if operand.shape == result.shape:
        return op.kind in _SAME_ELEMENTS and _SAME_ELEMENTS[op.kind](op)
    return (
        op.kind in RESHAPES
        and len(operand.shape) <= _MOST_AXES
        and bool(result.consumers)
        and all(_flattens_row(reader, result) for reader in result.consumers)
    )


def _flattens_row(op: Op, data: Tensor) -> bool:
    """Whether `op` is a FULLY_CONNECTED that multiplies one row, `data`, whatever its shape. LiteRT
    takes the number of rows from the elements, TFLM, CMSIS-NN and ESP-NN from the result. Several
    rows need their shape: tiles are cut along it."""
    product = row_product_of(op)
    return (
        product is not None
        and product.rows == 1
        and [i for i, t in enumerate(op.inputs) if t is data] == [0]
        and len(op.outputs[0].shape or ()) == 2
        and not op.options.keeps_dims
    )


def _always(op: Op) -> bool:
    """True: if the shapes are equal, nothing else can differ."""
    return True


def _keeps_order(op: Op) -> bool:
    order = integers(op.inputs[1]) if len(op.inputs) > 1 else None
    return order is not None and order == sorted(order)


def _pads_nothing(op: Op) -> bool:
    paddings = integers(op.inputs[1]) if len(op.inputs) > 1 else None
    return paddings is not None and not any(paddings)


def _is_forward(op: Op) -> bool:
    """Whether a STRIDED_SLICE has steps of one: then it takes everything if its result has as many
    elements."""
    steps = integers(op.inputs[3]) if len(op.inputs) > 3 else None
    return steps is not None and all(step == 1 for step in steps)


def _joins_one(op: Op) -> bool:
    return len(op.inputs) == 1 and not op.options.activation


_MOST_AXES = 4
"""Axes of an image. FULLY_CONNECTED reads the shape of its data, for which every release of TFLM
has room for so many (`tflm.refusals`); RESHAPE reads none."""
_SAME_ELEMENTS: dict[str, Callable[[Op], bool]] = {
    "RESHAPE": _always,
    "SQUEEZE": _always,
    "EXPAND_DIMS": _always,
    "QUANTIZE": _always,  # by a factor of exactly one
    "CAST": _always,
    "SLICE": _always,
    "BROADCAST_TO": _always,
    "TILE": _always,
    "STRIDED_SLICE": _is_forward,
    "PAD": _pads_nothing,
    "PADV2": _pads_nothing,
    "MIRROR_PAD": _pads_nothing,
    "TRANSPOSE": _keeps_order,
    "CONCATENATION": _joins_one,
}
"""Kinds that may change nothing -> a check beyond equal shape, type and quantisation."""
