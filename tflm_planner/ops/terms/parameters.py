"""The parameters of an operator besides its operands: options, types and quantization, as keys.

Two operators have equal keys only if they compute the same function of equal elements. A key does
not include where a tensor lies, its name or its size.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.model.schema import field_name
from tflm_planner.ops.choices import chooses_elements

Quantisation = tuple[str, tuple[float, ...], tuple[int, ...], int]


def quantisation(tensor: Tensor | None) -> Quantisation | None:
    """Type, scales, zero points and the axis along which these vary. Zero points that are all equal
    are given once."""
    if tensor is None:
        return None
    own = tensor.quantization
    points = own.zero_points if own.scales else ()
    if len(set(points)) == 1:
        points = points[:1]
    return tensor.type_name, own.scales, points, own.axis if own.is_per_channel else 0


def options(op: Op, *left_out: str) -> tuple[tuple[str, Any], ...]:
    """All options that are not 0, by the schema's names. left_out: the names (as in
    `model.options`) of options to leave out."""
    unwanted = {field_name(name) for name in left_out}
    fields = op.options.fields().items()
    plain = {name: _plain(value) for name, value in fields if name not in unwanted}
    return tuple(sorted((name, value) for name, value in plain.items() if value))


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def all_of(op: Op, tensors: Iterable[Tensor | None], *left_out: str) -> tuple[object, ...]:
    """Kind, options and quantization of the tensors: the key of an operator that computes every
    element in the same way."""
    custom = b"" if op.custom_options is None else op.custom_options.tobytes()
    kind = "SELECT_V2" if chooses_elements(op) else op.kind
    name = kind, op.code.custom or ""  # a custom operator may have the name of a builtin
    return name, options(op, *left_out), custom, tuple(quantisation(t) for t in tensors)


def is_float(tensor: Tensor) -> bool:
    """Whether the type is floating point: sums are rounded at every step, so their order
    matters."""
    return tensor.type_name in ("float32", "float64", "float16", "bfloat16")
