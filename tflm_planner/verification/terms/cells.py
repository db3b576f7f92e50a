"""Cells of a memory, one for each byte: which byte of which element lies there.

    element |   x0   |   x0   |   x1   |   x2   | ..
    byte    | 0 of 2 | 1 of 2 | 0 of 2 | 1 of 4 | ..    an int16, half of one, a quarter of another

An element is whole if all of its bytes are there, in order. This module must not know plans.
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
"""Positions of the bit fields of a tag. The lowest 8 bits are the byte's index in its element. At
_WIDTH begins the element's size in bytes, at _KIND the type of its number (0 if the number is
unknown), at _NUMBER this byte of the number."""
_OF_WIDTH, _OF_KIND = np.uint32(255 << _WIDTH), np.uint32(255 << _KIND)
_OF_ELEMENT = np.uint32(255) | _OF_WIDTH
_TORN = _OF_WIDTH
"""Stands in place of the size, for a byte of an element that is no longer whole."""
_KINDS = {
    np.dtype(t): np.uint32(i + 1 << _KIND) for i, t in enumerate(dict.fromkeys(DTYPES.values()))
}
_PLACES = {w: np.arange(w, dtype=np.uint32) | np.uint32(w << _WIDTH) for w in (1, 2, 4, 8)}
"""Size of an element in bytes -> tags of its bytes, if its number is unknown."""


@dataclass(frozen=True, slots=True)
class Cells:
    """One entry per byte. element: the field element that lies there, (LANES, count). tag: which
    byte of the element it is."""

    element: Residues
    tag: Tags

    @classmethod
    def of_bytes(cls, elements: Residues) -> Cells:
        """Cells of elements that are one byte each."""
        tag = np.zeros(elements.shape[1], np.uint32)
        tag[:] = _PLACES[1]
        return cls(elements, tag)

    def __len__(self) -> int:
        return self.tag.size

    def __getitem__(self, part: slice) -> Cells:
        """A slice of the cells, as a view of the same memory."""
        return Cells(self.element[:, part], self.tag[part])

    def copy(self) -> Cells:
        """A copy with memory of its own."""
        return Cells(self.element.copy(), self.tag.copy())

    def put(self, part: slice, cells: Cells) -> None:
        """Overwrite a slice of the cells."""
        self.element[:, part] = cells.element
        self.tag[part] = cells.tag

    def put_where(self, mask: Mask, cells: Cells) -> None:
        """Overwrite the cells that a mask selects."""
        np.copyto(self.element, cells.element, where=mask)
        np.copyto(self.tag, cells.tag, where=mask)

    def put_elements(self, part: slice, width: int, elements: Residues) -> None:
        """Write elements (LANES, count) of `width` bytes each."""
        self.element[:, part].reshape(LANES, -1, width)[:] = elements[:, :, None]
        self.tag[part].reshape(-1, width)[:] = _PLACES[width]

    def put_numbers(self, part: slice, numbers: npt.NDArray[Any], elements: Residues) -> None:
        """Write numbers that are known, with the elements that stand for them."""
        self.put_elements(part, numbers.dtype.itemsize, elements)
        each_byte = np.frombuffer(numbers.tobytes(), np.uint8).astype(np.uint32)
        self.tag[part] |= each_byte << np.uint32(_NUMBER) | _KINDS[numbers.dtype]

    def is_whole(self, width: int) -> Mask:
        """Which elements of `width` bytes are whole."""
        is_in_place = (self.tag & _OF_ELEMENT).reshape(-1, width) == _PLACES[width]
        if width == 1:
            return is_in_place[:, 0]
        elements = self.element.reshape(LANES, -1, width)
        return is_in_place.all(1) & (elements == elements[:, :, :1]).all((0, 2))

    def numbers(self, dtype: np.dtype[Any]) -> npt.NDArray[Any] | None:
        """The numbers of whole elements, if all of them are known and of this type; else None."""
        kind = _KINDS[dtype]
        if not self.tag.size or self.tag[0] & _OF_KIND != kind:
            return None  # usually the first cell decides it
        if ((self.tag & _OF_KIND) != kind).any():
            return None
        return (self.tag >> np.uint32(_NUMBER)).astype(np.uint8).view(dtype)

    def columns(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """For each cell the index of the byte in its element, and the size of the element. These
        distinguish torn elements."""
        tags = self.tag.astype(np.int64)
        return tags & 255, tags >> _WIDTH & 255

    def same_as(self, other: Cells) -> Mask:
        """Which cells hold the same byte in both memories, as far as is known."""
        is_same = (self.tag ^ other.tag) & _OF_ELEMENT == 0
        is_same &= self.tag & _OF_WIDTH != _TORN
        return is_same & (self.element == other.element).all(0)

    def merged(self, other: Cells, elements: Residues) -> Cells:
        """The cells after a branch that may have gone either way. elements: the merged field
        elements. A byte that differs in its place in the element is torn, and a number that differs
        becomes unknown."""
        differing = self.tag ^ other.tag
        tag = np.where(differing & _OF_ELEMENT, self.tag | _TORN, self.tag)
        tag = np.where(differing & ~_OF_ELEMENT, tag & _OF_ELEMENT, tag)
        return Cells(elements, tag)
