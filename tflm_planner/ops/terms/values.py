"""The values of a tensor while a model runs on terms: known numbers, or field elements.

Constants are known, and so are values computed from constants alone: shapes, counters, indices,
tables. They decide when loops end and which rows are taken. Everything that depends on an input is
a term.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tflm_planner.model.constants import NUMPY_CODES, numbers_of
from tflm_planner.model.ir import Tensor
from tflm_planner.ops.terms import mixing
from tflm_planner.ops.terms.field import LANES, Residues
from tflm_planner.ops.terms.mixing import Mixer

Array = npt.NDArray[Any]

DTYPES = {name: np.dtype(code).type for name, code in NUMPY_CODES.items()}


class InexpressibleError(Exception):
    """A model cannot be expressed as terms, so that the proof makes no statement on it. The text
    says why."""


class OutsideError(InexpressibleError):
    """An operator reads outside of its operand. In a result that is an error, since the original
    does not."""


class MisdeclaredError(OutsideError):
    """A result is declared with another shape than its operands give. Some runtimes use one, some
    the other."""


@dataclass(frozen=True, slots=True)
class Values:
    """Elements of one tensor. known: whether `data` holds numbers. data: known numbers in the
    tensor's shape, or field elements with a first axis of lanes before that shape."""

    data: Array
    known: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape without the axis of lanes."""
        return self.data.shape if self.known else self.data.shape[1:]

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.data.size if self.known else self.data.size // LANES

    def reshape(self, shape: tuple[int, ...]) -> Values:
        """The same elements in another shape. Raises InexpressibleError if that shape has another
        number of elements."""
        if shape == self.shape:
            return self
        if math.prod(shape) != self.size:
            raise InexpressibleError(f"{self.size} elements cannot have the shape {list(shape)}")
        return Values(self.data.reshape(shape if self.known else (LANES, *shape)), self.known)

    def move(self, move: Callable[[Array], Array]) -> Values:
        """Elements moved by a function of arrays, lane by lane. The function must only move
        elements."""
        if self.known:
            return Values(np.asarray(move(self.data)), True)
        return Values(np.stack([move(lane) for lane in self.data]), False)

    def is_same_as(self, other: Values) -> bool:
        """Whether both are equal bit by bit, with the same type and shape, so that every operator
        computes the same from either."""
        a, b = self.data, other.data
        if a is b:
            return self.known == other.known
        if self.known != other.known or a.dtype != b.dtype or a.shape != b.shape:
            return False
        return a.tobytes() == b.tobytes() if self.known else bool((a == b).all())

    def at(self, index: tuple[Any, ...]) -> Values:
        """The elements at a basic index of numpy (slices and integers)."""
        if self.known:
            return Values(np.asarray(self.data[index]), True)
        return Values(self.data[(slice(None), *index)], False)


class Symbols:
    """Makes field elements that stand for numbers, and for named things such as inputs."""

    def __init__(self, mixer: Mixer) -> None:
        self._mixer = mixer
        self._single: dict[tuple[str, bytes], Residues] = {}
        self._constants: dict[Tensor, Values] = {}
        self._bytes = self._table(np.arange(-128, 256, dtype=np.int64))

    def _table(self, numbers: Array) -> Residues:
        kind = "float" if numbers.dtype.kind == "f" else "integer"
        return self._mixer.elements(mixing.keys(mixing.key("number", kind), numbers))

    def of_numbers(self, numbers: Array) -> Residues:
        """The elements of numbers. Equal integers of all types give equal elements; floats are told
        apart by their bits."""
        small = numbers.dtype.kind in "iu" and numbers.dtype.itemsize == 1
        if small or numbers.dtype.kind == "b":
            return self._bytes[:, numbers.astype(np.int64) + 128]
        if numbers.dtype.kind in "iu":
            numbers = numbers.astype(np.int64)
        if numbers.size != 1:
            return self._table(numbers)
        name = numbers.dtype.str, numbers.tobytes()  # zero points and counters recur
        if name not in self._single:
            self._single[name] = self._table(numbers.reshape(()))
        return self._single[name].reshape(LANES, *numbers.shape)

    def of_number(self, number: float) -> Residues:
        """The element of one number: LANES residues."""
        kind = np.float64 if isinstance(number, float) else np.int64
        return self.of_numbers(np.array(number, kind))

    def of_name(self, shape: tuple[int, ...], *name: object) -> Values:
        """A symbol for each element of a tensor of this shape, made from the name and the
        position."""
        count = math.prod(shape)
        words = mixing.keys(mixing.key(*name), mixing.positions(count))
        return Values(self._mixer.elements(words).reshape(LANES, *shape), False)

    def of_constant(self, tensor: Tensor) -> Values:
        """The numbers of a constant, always as the same object. Raises InexpressibleError as
        `constant` does."""
        if tensor not in self._constants:
            self._constants[tensor] = Values(constant(tensor), True)
        return self._constants[tensor]

    def elements(self, values: Values) -> Residues:
        """Values as field elements, whether they are known numbers or not."""
        return self.of_numbers(values.data) if values.known else values.data


def constant(tensor: Tensor) -> Array:
    """The numbers of a constant. Raises InexpressibleError if they cannot be read here."""
    numbers = numbers_of(tensor)
    if numbers is None:
        raise InexpressibleError(f"the bytes of {tensor.name!r} ({tensor.type_name}) are not read")
    return numbers
