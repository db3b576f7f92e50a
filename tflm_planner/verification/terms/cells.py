"""Cells of a memory, one for every byte: which element lies there, and which byte of it.

    element |   x0   |   x0   |   x1   |   x2   | ..
    byte    | 0 of 2 | 1 of 2 | 0 of 2 | 1 of 4 | ..    an int16, half of one, a quarter of another

An element is there if all of its bytes are, in order. This module must not know plans.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tflm_planner.ops.terms.field import LANES, Residues
from tflm_planner.ops.terms.values import DTYPES

Mask = npt.NDArray[np.bool_]
Tags = npt.NDArray[np.uint32]
_WIDTH, _KIND, _NUMBER = 8, 16, 24
"""First bits of what a tag says of a byte, behind its place in an element: of how many bytes that
is, the type of the number that it is known to be (0 if it is not), and this byte of the number."""
_OF_WIDTH, _OF_KIND = np.uint32(255 << _WIDTH), np.uint32(255 << _KIND)
_OF_ELEMENT = np.uint32(255) | _OF_WIDTH
_TORN = _OF_WIDTH
"""In place of a width: of an element that is no longer whole."""
_KINDS = {
    np.dtype(t): np.uint32(i + 1 << _KIND) for i, t in enumerate(dict.fromkeys(DTYPES.values()))
}
_PLACES = {w: np.arange(w, dtype=np.uint32) | np.uint32(w << _WIDTH) for w in (1, 2, 4, 8)}
"""Tags of the bytes of an element of so many, of which no number is known."""


@dataclass(frozen=True, slots=True)
class Cells:
    """One entry a byte. element: of the field. tag: what it is of that element."""

    element: Residues
    tag: Tags

    @classmethod
    def of_bytes(cls, elements: Residues) -> Cells:
        """Elements of a byte each."""
        tag = np.zeros(elements.shape[1], np.uint32)
        tag[:] = _PLACES[1]
        return cls(elements, tag)

    def __len__(self) -> int:
        return self.tag.size

    def __getitem__(self, part: slice) -> Cells:
        """Some of them, in the same memory."""
        return Cells(self.element[:, part], self.tag[part])

    def copy(self) -> Cells:
        """The same, apart."""
        return Cells(self.element.copy(), self.tag.copy())

    def put(self, part: slice, cells: Cells) -> None:
        """Write cells over some."""
        self.element[:, part] = cells.element
        self.tag[part] = cells.tag

    def put_where(self, mask: Mask, cells: Cells) -> None:
        """Write cells over those that a mask names."""
        np.copyto(self.element, cells.element, where=mask)
        np.copyto(self.tag, cells.tag, where=mask)

    def put_elements(self, part: slice, width: int, elements: Residues) -> None:
        """Write elements of so many bytes: (LANES, count)."""
        self.element[:, part].reshape(LANES, -1, width)[:] = elements[:, :, None]
        self.tag[part].reshape(-1, width)[:] = _PLACES[width]

    def put_numbers(self, part: slice, numbers: npt.NDArray[Any], elements: Residues) -> None:
        """Write numbers that are known, with the elements that stand for them."""
        self.put_elements(part, numbers.dtype.itemsize, elements)
        each_byte = np.frombuffer(numbers.tobytes(), np.uint8).astype(np.uint32)
        self.tag[part] |= each_byte << np.uint32(_NUMBER) | _KINDS[numbers.dtype]

    def is_whole(self, width: int) -> Mask:
        """Which elements of so many bytes are there."""
        is_in_place = (self.tag & _OF_ELEMENT).reshape(-1, width) == _PLACES[width]
        if width == 1:
            return is_in_place[:, 0]
        elements = self.element.reshape(LANES, -1, width)
        return is_in_place.all(1) & (elements == elements[:, :, :1]).all((0, 2))

    def numbers(self, dtype: np.dtype[Any]) -> npt.NDArray[Any] | None:
        """The numbers of whole elements, if all of them are known to be of a type."""
        kind = _KINDS[dtype]
        if not self.tag.size or self.tag[0] & _OF_KIND != kind:
            return None  # as a rule the first one tells it
        if ((self.tag & _OF_KIND) != kind).any():
            return None
        return (self.tag >> np.uint32(_NUMBER)).astype(np.uint8).view(dtype)

    def columns(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Which byte each is, of an element of how many: what tells torn elements apart."""
        tags = self.tag.astype(np.int64)
        return tags & 255, tags >> _WIDTH & 255

    def same_as(self, other: Cells) -> Mask:
        """Which hold the same byte, as far as is known."""
        is_same = (self.tag ^ other.tag) & _OF_ELEMENT == 0
        is_same &= self.tag & _OF_WIDTH != _TORN
        return is_same & (self.element == other.element).all(0)

    def merged(self, other: Cells, elements: Residues) -> Cells:
        """What depends on a condition: elements that do; of bytes that are not the same in both,
        no place is known, and of numbers, no number."""
        differing = self.tag ^ other.tag
        tag = np.where(differing & _OF_ELEMENT, self.tag | _TORN, self.tag)
        tag = np.where(differing & ~_OF_ELEMENT, tag & _OF_ELEMENT, tag)
        return Cells(elements, tag)
