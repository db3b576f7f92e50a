"""Finds results whose declared shape differs from the shape that the operator makes.

For a free batch size converters declare 1 everywhere, even where SPACE_TO_BATCH_ND (of a dilated
convolution) makes several images from one, or where a RESHAPE moves the batch. Other runtimes
compute shapes again when they load a model; TFLM takes them as declared, and leaves most of the
result unwritten:

    1 x 16 x 16 --SPACE_TO_BATCH_ND--> declared 1 x 10 x 10, made 4 x 10 x 10

It must not know plans.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from tflm_planner.model.check_operators import fault_of
from tflm_planner.model.constants import integers
from tflm_planner.model.ir import Op, Tensor
from tflm_planner.ops.roles import RESHAPES

_ADVICE = (
    "the model was converted with a free batch. TFLM takes shapes as they are declared, and would "
    "compute garbage; convert a function of a fixed batch: TFLiteConverter.from_concrete_functions("
    "[tf.function(model).get_concrete_function(tf.TensorSpec((1, ...)))]); Keras frees the batch "
    "on export even where Input(batch_size=1) fixes it"
)
_ADVICE_IN_LOOPS = (
    "its sizes change from turn to turn, as where a recurrent layer returns its sequence, or the "
    "batch was left free. TFLM takes shapes as they are declared, and would compute garbage; "
    "convert with unroll=True, and a function of a fixed batch"
)


def misdeclaration(ops: Iterable[Op]) -> str | None:
    """A message about the first operator whose result is not declared as it is made, with advice;
    None if there is none."""
    ops = list(ops)
    looped = {i for op in ops if op.graphs for graph in op.called_graphs() for i in graph.ops}
    for op in ops:
        advice = _ADVICE_IN_LOOPS if op in looped else _ADVICE
        elements, result = _elements_of_result(op), op.outputs[0] if op.outputs else None
        if elements is not None and result is not None and elements != result.elements:
            declared = " x ".join(map(str, result.shape or ()))
            return (
                f"{op.label}: its result is declared as {declared}, but it makes {elements:,} "
                f"elements of one image, not {result.elements:,}: {advice}"
            )
        fault = fault_of(op)
        if fault is not None:
            return f"{op.label} {fault}: {advice}"
    return None


def _elements_of_result(op: Op) -> int | None:
    """Number of elements of the result that the operator makes; None if that is not known."""
    if op.kind in RESHAPES and op.inputs and op.inputs[0] is not None:
        return op.inputs[0].elements
    if len(op.inputs) < 3 or None in op.inputs:
        return None
    data, _, edges = op.operands()[:3]
    if op.kind == "SPACE_TO_BATCH_ND":
        return _elements_of_pad(data, integers(edges))
    if op.kind == "BATCH_TO_SPACE_ND":
        block = integers(op.operands()[1])
        return None if block is None else _elements_of_batch_to_space(data, block, integers(edges))
    return None


def _elements_of_pad(data: Tensor, edges: list[int] | None) -> int | None:
    shape = list(data.shape or ())
    if edges is None or len(edges) > 2 * (len(shape) - 1):
        return None
    for axis in range(len(edges) // 2):
        shape[1 + axis] += edges[2 * axis] + edges[2 * axis + 1]
    return math.prod(shape)


def _elements_of_batch_to_space(
    data: Tensor, block: list[int], edges: list[int] | None
) -> int | None:
    """Several images become one, whose borders are cropped."""
    shape = list(data.shape or ())
    if edges is None or len(edges) != 2 * len(block) or len(block) >= len(shape):
        return None
    images = math.prod(block)
    if images < 1 or shape[0] % images:
        return 0
    shape[0] //= images
    for axis, times in enumerate(block):
        shape[1 + axis] = shape[1 + axis] * times - edges[2 * axis] - edges[2 * axis + 1]
    return math.prod(shape)
