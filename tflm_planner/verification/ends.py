"""Converts values of a result's inputs and outputs into the types that the original has.

A result may take and give integers where the original takes and gives floats that stand for them
(`transforms.drop_conversions`). Both models then get the same numbers, each in its own type. An
integer q stands for scale * (q - zero point), and the original's QUANTIZE turns this number back
into exactly q, because the two float roundings are far smaller than half a quantization step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tflm_planner.model.ir import Graph, Tensor
from tflm_planner.model.number_formats import is_shifted
from tflm_planner.verification.inputs import Array, dtype_of

_INTEGERS = frozenset({"int8", "uint8", "int16"})


def differing_ends(original: Graph, result: Graph) -> str:
    """Describes the inputs or outputs whose number, shapes or types rule out that the result is a
    version of the original; empty if none do."""
    for what in ("inputs", "outputs"):
        a, b = (list[Tensor](getattr(g, what)) for g in (original, result))
        if len(a) != len(b) or not all(map(_stand_for_each_other, a, b)):
            said = ([(t.type_name, t.shape or ()) for t in ends] for ends in (a, b))
            return "different {}: {} and {}".format(what, *said)
    return ""


def _stand_for_each_other(original: Tensor, result: Tensor) -> bool:
    if (original.shape or ()) != (result.shape or ()):
        return False
    if original.type == result.type:
        return True
    is_quantized = result.type_name in _INTEGERS and result.quantization.single is not None
    return is_shifted(original, result) or (original.type_name == "float32" and is_quantized)


def as_original(
    original: Sequence[Tensor], result: Sequence[Tensor], values: Sequence[Any]
) -> list[Any]:
    """Values of a result's inputs or outputs in the original's types."""
    return [_convert(a, b, v) for a, b, v in zip(original, result, values, strict=True)]


def _convert(original: Tensor, result: Tensor, values: Array) -> Array:
    """Convert as TFLM and LiteRT do: DEQUANTIZE multiplies in double precision."""
    if original.type == result.type:
        return values
    result_scale, original_scale = result.quantization.single, original.quantization.single
    assert result_scale is not None
    if original.type_name == "float32":
        return (result_scale[0] * (values.astype(np.float64) - result_scale[1])).astype(np.float32)
    assert original_scale is not None
    return (values.astype(np.int16) + (original_scale[1] - result_scale[1])).astype(
        dtype_of(original)
    )
