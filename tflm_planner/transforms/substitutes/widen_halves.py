"""Writes constants of float16 as float32, which TFLM reads.

    w float16 --DEQUANTIZE--> w' float32 --CONV_2D--        w' float32 --CONV_2D--

Converters write so what is optimised for size by tf.float16; LiteRT widens it when it runs, and
TFLM has no kernel for that. Every number of float16 is one of float32, so that nothing is rounded;
the file holds two more bytes of each. NaNs stay as they are: their bits are not the same on every
processor. This module must not know memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tflm_planner.model.edit import make_constants
from tflm_planner.model.ir import Graph, Model, Op
from tflm_planner.support.deferred import defer
from tflm_planner.support.words import count

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    np = defer("numpy")


def widen_halves(model: Model) -> list[str]:
    """Replace every DEQUANTIZE of a constant of float16; returns a note if there were any."""
    widened = sum(_widen_in(model, graph) for graph in model.graphs)
    if not widened:
        return []
    constants = count(widened, "constant", "constants")
    return [f"{constants} of float16 written as float32, as TFLM reads no float16"]


def _widen_in(model: Model, graph: Graph) -> int:
    """Replace those of one graph; returns how many."""
    ends = {t for s in model.signatures for _, t in (*s.inputs, *s.outputs)} | set(graph.outputs)
    widened: dict[Op, npt.NDArray[Any]] = {}
    for op in graph.ops:
        values = _widened(op)
        if values is not None and op.outputs[0] not in ends:
            widened[op] = values
    if widened:
        make_constants(model, graph, widened)
    return len(widened)


def _widened(op: Op) -> npt.NDArray[Any] | None:
    """The result of a DEQUANTIZE of a constant of float16; None for any other operator."""
    if op.kind != "DEQUANTIZE" or len(op.outputs) != 1 or not op.inputs:
        return None
    halves, result = op.inputs[0], op.outputs[0]
    if halves is None or halves.buffer.data is None or not halves.is_constant:
        return None
    if (halves.type_name, result.type_name) != ("float16", "float32"):
        return None
    values = halves.buffer.data[: halves.nbytes].view("<f2")
    if result.is_variable or values.size != result.elements or np.isnan(values).any():
        return None
    return values.astype("<f4")
