"""Writes constants as float32 that TFLM would not read, or would read wrong.

    w float16 --DEQUANTIZE--> w' float32 --CONV_2D--        w' float32 --CONV_2D--

    float16            converters write so what is optimised for size by tf.float16; TFLM has no
                       kernel for it. The file holds two more bytes of each
    int8 or uint8 of   "weight-only" quantisation, as AI Edge Quantizer writes it: TFLM's kernel of
    several scales;    DEQUANTIZE takes the first scale for all channels, and computes garbage. The
    int4               file holds three more bytes of each of int8, and TFLM no more dequantises
                       them into the arena

Numbers are those that LiteRT computes when it runs (`ops.dequantized`). This module must not know
memory.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tflm_planner.model.constants import numbers_of
from tflm_planner.model.edit import make_constants
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.ops.dequantized import dequantized
from tflm_planner.support.words import count

if TYPE_CHECKING:
    import numpy.typing as npt


def widen_constants(model: Model) -> list[str]:
    """Replace every DEQUANTIZE of such a constant; returns notes if there were any."""
    widened: Counter[str] = Counter()
    for graph in model.graphs:
        widened += _widen_in(model, graph)
    halves, notes = widened.pop("float16", 0), list[str]()
    if halves:
        constants = count(halves, "constant", "constants")
        notes.append(f"{constants} of float16 written as float32, as TFLM reads no float16")
    if widened:
        constants = count(widened.total(), "constant", "constants")
        notes.append(
            f"{constants} of {' and '.join(sorted(widened))} written as float32: TFLM's DEQUANTIZE "
            "takes one scale for all channels, and no int4"
        )
    return notes


def _widen_in(model: Model, graph: Graph) -> Counter[str]:
    """Replace those of one graph; returns how many of each type."""
    ends = {t for s in model.signatures for _, t in (*s.inputs, *s.outputs)} | set(graph.outputs)
    widened: dict[Op, npt.NDArray[Any]] = {}
    kinds: Counter[str] = Counter()
    for op in graph.ops:
        values = _widened(op)
        if values is not None and op.outputs[0] not in ends:
            widened[op] = values
            kinds[op.operands()[0].type_name] += 1
    if widened:
        make_constants(model, graph, widened)
    return kinds


def _widened(op: Op) -> npt.NDArray[Any] | None:
    """The result of a DEQUANTIZE that TFLM does not compute; None for any other operator."""
    if op.kind != "DEQUANTIZE" or len(op.outputs) != 1 or not op.inputs:
        return None
    narrow, result = op.inputs[0], op.outputs[0]
    if narrow is None or not _is_unread(narrow) or result.type_name != "float32":
        return None
    numbers = numbers_of(narrow)
    if numbers is None or result.is_variable or numbers.size != result.elements:
        return None
    return dequantized(numbers, narrow)


def _is_unread(tensor: Tensor) -> bool:
    """Whether it is a constant that TFLM dequantises wrong, or not at all."""
    is_misread = tensor.type_name in ("float16", "int4") or tensor.quantization.is_per_channel
    return tensor.is_constant and is_misread
