"""Generates inputs from a seed; the board generates the same ones (section 5 of
schema/protocol.md)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflm_planner.model.ir import Tensor
from tflm_planner.verification.inputs import dtype_of

_GOLDEN, _MASK = 0x9E3779B9, 0xFFFFFFFF
_TYPES = frozenset(
    ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool", "float32")
)


def can_fill(tensor: Tensor) -> bool:
    """Whether the generator can make values of a tensor's type."""
    return tensor.type_name in _TYPES


def make_values(tensor: Tensor, index: int, seed: int) -> npt.NDArray[Any]:
    """The values of input number `index`, in the tensor's shape."""
    shape, dtype = tensor.shape or (), dtype_of(tensor)
    drawn = np.array(draw(int(np.prod(shape, dtype=np.int64)), index, seed), np.uint32)
    return elements(drawn, dtype).reshape(shape)


def draw(count: int, index: int, seed: int) -> list[int]:
    """The first `count` numbers of the sequence for input `index` (xorshift32, Marsaglia 2003)."""
    x = (seed ^ (_GOLDEN * (index + 1))) & _MASK or 1
    drawn: list[int] = []
    for _ in range(count):
        x ^= (x << 13) & _MASK
        x ^= x >> 17
        x ^= (x << 5) & _MASK
        drawn.append(x)
    return drawn


def elements(drawn: npt.NDArray[np.uint32], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Numbers of the sequence as elements of a type."""
    if dtype.kind == "f":
        return (((drawn >> 24).astype(np.int32) - 128) / 32).astype(dtype)
    if dtype.itemsize == 1 and dtype.kind != "b":
        return (drawn >> 24).astype(np.uint8).view(dtype)
    if dtype.itemsize == 2:
        return (drawn >> 16).astype(np.uint16).view(dtype)
    return (drawn >> 31).astype(dtype)
