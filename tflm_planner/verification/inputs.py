"""Inputs to compare with: random, extreme and constant, in a fixed order for a seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tflm_planner.model.ir import Graph, Tensor

Array = npt.NDArray[Any]

_DTYPES = {
    "int8": np.int8, "uint8": np.uint8, "int16": np.int16, "uint16": np.uint16,
    "int32": np.int32, "uint32": np.uint32, "int64": np.int64, "uint64": np.uint64,
    "float32": np.float32, "float64": np.float64, "float16": np.float16, "bool": np.bool_,
}  # fmt: skip
_NARROW = 2
"""Random int32 and int64 inputs lie in [0, 2): they are indices or counts more often than not,
and TFLM does not check them."""


def supported(graph: Graph) -> bool:
    """Whether values can be made for every input."""
    return all(t.type_name in _DTYPES for t in graph.inputs)


def input_sets(graph: Graph, seed: int, *, count: int = 8) -> Iterator[tuple[str, list[Array]]]:
    """(what it is, one array for each input): random, all minimum, all maximum, constant, then
    random ones again, so that state left by extreme inputs would show."""
    rng = np.random.default_rng(seed)
    kinds: list[tuple[str, Callable[[Tensor], Array]]] = [
        ("random", lambda t: _random(t, rng)),
        ("all minimum", lambda t: _extreme(t, highest=False)),
        ("all maximum", lambda t: _extreme(t, highest=True)),
        ("constant", lambda t: _filled(t, 0 if _is_narrow(t) else 1)),
    ]
    for i in range(count):
        label, make = kinds[i if i < len(kinds) else 0]
        yield label, [make(t) for t in graph.inputs]


def dtype_of(tensor: Tensor) -> np.dtype[Any]:
    """The numpy type of a tensor's elements."""
    return np.dtype(_DTYPES[tensor.type_name])


def _is_narrow(tensor: Tensor) -> bool:
    return dtype_of(tensor).kind in "iu" and dtype_of(tensor).itemsize >= 4


def _random(tensor: Tensor, rng: np.random.Generator) -> Array:
    dtype, shape = dtype_of(tensor), tensor.shape or ()
    if dtype.kind == "f":
        return rng.normal(size=shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, size=shape).astype(dtype)
    low, high = (0, _NARROW) if _is_narrow(tensor) else _range(dtype)
    return rng.integers(low, high, size=shape, dtype=dtype)


def _range(dtype: np.dtype[Any]) -> tuple[int, int]:
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max) + 1


def _extreme(tensor: Tensor, *, highest: bool) -> Array:
    dtype = dtype_of(tensor)
    if dtype.kind == "f":
        return _filled(tensor, 4.0 if highest else -4.0)
    low, high = (0, _NARROW) if dtype.kind == "b" or _is_narrow(tensor) else _range(dtype)
    return _filled(tensor, high - 1 if highest else low)


def _filled(tensor: Tensor, value: float) -> Array:
    return np.full(tensor.shape or (), value, dtype_of(tensor))
