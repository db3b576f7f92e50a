"""What an operator computes by, besides its operands: options, types and quantisation, as keys.

Two operators have equal keys only if they compute the same function of equal elements. Where a
tensor lies, what it is called and how large it is are no part of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.model.quantization import parameters
from tflm_planner.model.schema import members

Quantisation = tuple[str, tuple[float, ...], tuple[int, ...], int]


def quantisation(tensor: Tensor | None) -> Quantisation | None:
    """Type, scales, zero points and the axis along which they differ; one zero point stands for
    many that are equal."""
    if tensor is None:
        return None
    scales, points = parameters(tensor)
    if len(set(points)) == 1:
        points = points[:1]
    if not scales:
        points = []
    axis = int(tensor.quantization.quantizedDimension) if len(scales) > 1 else 0
    return tensor.type_name, tuple(scales), tuple(points), axis


def zero_point(tensor: Tensor) -> int:
    """The first zero point; 0 without one, and for floats."""
    _, points = parameters(tensor)
    return points[0] if points and tensor.type_name not in ("float32", "float64") else 0


def activation(op: Op) -> int:
    """The fused activation; 0 without one."""
    return int(getattr(op.options, "fusedActivationFunction", 0) or 0)


def options(op: Op, *left_out: str) -> tuple[tuple[str, Any], ...]:
    """All options that are not at their default, by name."""
    fields = {} if op.options is None else members(op.options)
    plain = {name: _plain(value) for name, value in fields.items() if name not in left_out}
    return tuple(sorted((name, value) for name, value in plain.items() if value))


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value


def all_of(op: Op, tensors: Iterable[Tensor | None], *left_out: str) -> tuple[object, ...]:
    """Kind, options and the quantisation of tensors: the key of an operator that computes each
    element alike."""
    custom = b"" if op.custom_options is None else op.custom_options.tobytes()
    name = op.kind, op.code.custom or ""  # a custom operator may be called as a builtin
    return name, options(op, *left_out), custom, tuple(quantisation(t) for t in tensors)


def is_float(tensor: Tensor) -> bool:
    """Whether sums of it are rounded at every step, so that their order matters."""
    return tensor.type_name in ("float32", "float64", "float16", "bfloat16")
