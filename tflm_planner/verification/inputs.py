"""Makes the inputs for a comparison: random, extreme, constant and realistic ones, in an order
fixed by the seed.

Random numbers alone saturate activations and are alike in all parts of an image. They would not
show errors that depend on small numbers or on one part of an image. So there are other kinds:

    faint    a few steps around zero           sparse   zeros, and a few numbers of all sizes
    natural  smooth, and dark in one half      random   again, after extremes: state would show
"""

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
_FAINT_STEPS, _FAINT = 3, 0.02
"""How far faint inputs are from zero: integers in quantization steps, and the size of floats."""
_FILLED = 0.05
"""The share of numbers that are not zero in a sparse input."""
_NARROW = 2
"""Random int32 and int64 inputs lie in [0, 2), because they are mostly indices or counts, and TFLM
does not check these."""


def can_make_values(graph: Graph) -> bool:
    """Whether values can be made for every input."""
    return all(t.type_name in _DTYPES for t in graph.inputs)


def input_sets(graph: Graph, seed: int, *, count: int = 8) -> Iterator[tuple[str, list[Array]]]:
    """Yield `count` pairs (label, one array for each input): random, all minimum, all maximum,
    constant, random again, faint, natural and sparse; after these only random ones."""
    rng = np.random.default_rng(seed)
    kinds: list[tuple[str, Callable[[Tensor], Array]]] = [
        ("random", lambda t: _random(t, rng)),
        ("all minimum", lambda t: _extreme(t, highest=False)),
        ("all maximum", lambda t: _extreme(t, highest=True)),
        ("constant", lambda t: _fill(t, 0 if _is_narrow(t) else 1)),
        ("random", lambda t: _random(t, rng)),
        ("faint", lambda t: _faint(t, rng)),
        ("natural", lambda t: _natural(t, rng)),
        ("sparse", lambda t: _sparse(t, rng)),
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


def _faint(tensor: Tensor, rng: np.random.Generator) -> Array:
    """Values such as a sensor gives in silence or in the dark."""
    if not _has_values(tensor):
        return _random(tensor, rng)
    return _around_zero(tensor, rng.normal(size=tensor.shape or ()), _FAINT, _FAINT_STEPS)


def _natural(tensor: Tensor, rng: np.random.Generator) -> Array:
    """Waves along all axes except the batch, with a little noise, and faint in the first half of
    the longest axis."""
    if not _has_values(tensor):
        return _random(tensor, rng)
    shape = tensor.shape or ()
    values = 0.02 * rng.normal(size=shape)
    for axis in range(1, len(shape)):
        waves = 2 * np.pi * rng.uniform(0.5, 2.5) * np.arange(shape[axis]) / shape[axis]
        wave = np.cos(waves + rng.uniform(0, 2 * np.pi)) / (len(shape) - 1)
        values += wave.reshape(-1, *[1] * (len(shape) - 1 - axis))
    if shape:
        longest = int(np.argmax(shape))
        dark = [slice(None)] * len(shape)
        dark[longest] = slice(0, shape[longest] // 2)
        values[tuple(dark)] *= _FAINT
    dtype = dtype_of(tensor)
    steps = 1.0 if dtype.kind == "f" else (np.iinfo(dtype).max - np.iinfo(dtype).min) / 2
    return _around_zero(tensor, values, 1.0, float(steps))


def _sparse(tensor: Tensor, rng: np.random.Generator) -> Array:
    """Zeros with a few random numbers of all sizes among them."""
    values = _random(tensor, rng)
    if not _has_values(tensor):
        return values
    zeros = _around_zero(tensor, np.zeros(values.shape), 1.0, 1.0)
    return np.where(rng.random(values.shape) < _FILLED, values, zeros)


def _has_values(tensor: Tensor) -> bool:
    """Whether its numbers are measurements, rather than indices, counts or choices."""
    return not _is_narrow(tensor) and dtype_of(tensor).kind in "fiu"


def _around_zero(tensor: Tensor, values: Array, size: float, steps: float) -> Array:
    """Scale values to the tensor's type: 1 becomes `size` in a float tensor, and `steps`
    quantization steps above the zero point in an integer tensor."""
    dtype = dtype_of(tensor)
    if dtype.kind == "f":
        return np.asarray(size * values, dtype)
    low, high = _range(dtype)
    single = tensor.quantization.single
    zero = 0 if single is None else single[1]
    return np.clip(np.round(steps * values) + zero, low, high - 1).astype(dtype)


def _range(dtype: np.dtype[Any]) -> tuple[int, int]:
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max) + 1


def _extreme(tensor: Tensor, *, highest: bool) -> Array:
    dtype = dtype_of(tensor)
    if dtype.kind == "f":
        return _fill(tensor, 4.0 if highest else -4.0)
    low, high = (0, _NARROW) if dtype.kind == "b" or _is_narrow(tensor) else _range(dtype)
    return _fill(tensor, high - 1 if highest else low)


def _fill(tensor: Tensor, value: float) -> Array:
    return np.full(tensor.shape or (), value, dtype_of(tensor))
