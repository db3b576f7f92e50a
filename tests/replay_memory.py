"""Memory in which every byte holds a token: which byte of which result was written there.

    memory  [ t0 t1 t2 | . . . . | c7 c8 ]

It knows a model's tensors and where they lie, and no operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.models.build import schema

Tokens = npt.NDArray[np.int64]
Place = tuple[int, int]
"""(sub-graph, tensor or operator index)"""

_SIZES = {
    "FLOAT32": 4, "INT32": 4, "UINT32": 4, "INT64": 8, "UINT64": 8, "FLOAT64": 8, "COMPLEX64": 8,
    "COMPLEX128": 16, "INT16": 2, "UINT16": 2, "FLOAT16": 2, "BFLOAT16": 2, "INT8": 1, "UINT8": 1,
    "BOOL": 1, "INT4": 1, "RESOURCE": 4, "VARIANT": 4,
}  # fmt: skip
_TYPES = {v: _SIZES.get(k, 0) for k, v in vars(schema.TensorType).items() if isinstance(v, int)}


class ClobberedError(Exception):
    """A byte did not hold what its reader expects; the text says whose, and who reads."""


def integers_of(vector: Any) -> list[int]:
    """A vector of a table, which may be missing."""
    return [] if vector is None else [int(v) for v in vector]


@dataclass
class TokenMemory:
    """The head of an arena while a model runs, and what each tensor was written with."""

    model: Any
    offsets: Mapping[Place, int]
    tokens: Tokens = field(default_factory=lambda: np.zeros(1 << 16, np.int64))
    contents: dict[Place, Tokens] = field(default_factory=dict[Place, Tokens])
    last_token: int = 0

    def fresh(self, count: int) -> Tokens:
        """Tokens that stand nowhere yet."""
        self.last_token += count
        return np.arange(self.last_token - count + 1, self.last_token + 1)

    def reserve(self, end: int) -> None:
        """Make room for bytes up to `end`."""
        if end > self.tokens.size:
            self.tokens = np.concatenate([self.tokens, np.zeros(2 * end, np.int64)])

    def write(self, place: Place, tokens: Tokens) -> None:
        """Write a tensor's content, and remember it as what readers expect."""
        self.contents[place] = tokens.copy()
        at = self.range(place)
        if at is not None:
            if at[0] < 0:
                raise ClobberedError(f"{self.name(place)} lies below the arena")
            self.reserve(at[1])
            self.tokens[at[0] : at[1]] = tokens

    def expect(self, place: Place, reader: str) -> None:
        """An error unless memory holds the tensor as it was produced."""
        at = self.range(place)
        if at is None:
            return
        wanted = self.contents.get(place)
        if wanted is None or at[0] < 0:
            raise ClobberedError(f"{reader} reads {self.name(place)}, which nobody wrote")
        self.reserve(at[1])
        wrong = np.flatnonzero(self.tokens[at[0] : at[1]] != wanted)
        if wrong.size:
            raise ClobberedError(
                f"{reader} finds {wrong.size} bytes of {self.name(place)} overwritten, "
                f"from byte {int(wrong[0])} on"
            )

    def range(self, place: Place) -> tuple[int, int] | None:
        """Bytes that the tensor takes in the head; None when it lies elsewhere or is empty."""
        tensor = self.tensor(place)
        buffer = self.model.buffers[tensor.buffer]
        constant = (buffer.data is not None and len(buffer.data)) or buffer.offset > 1
        if constant or tensor.isVariable or tensor.externalBuffer or place not in self.offsets:
            return None
        size = self.size(place)
        offset = self.offsets[place]
        return (offset, offset + size) if size else None

    def tensor(self, place: Place) -> Any:
        """The tensor's table."""
        return self.model.subgraphs[place[0]].tensors[place[1]]

    def shape(self, place: Place) -> list[int]:
        """The tensor's shape, empty for a scalar."""
        return integers_of(self.tensor(place).shape)

    def width(self, place: Place) -> int:
        """Bytes of an element."""
        return _TYPES.get(self.tensor(place).type, 0)

    def size(self, place: Place) -> int:
        """Bytes of the tensor."""
        return int(np.prod(self.shape(place), dtype=np.int64)) * self.width(place)

    def name(self, place: Place) -> str:
        """The tensor in words, for errors."""
        return f"tensor {place[1]} of graph {place[0]} ({self.tensor(place).name!r})"

    def array(self, place: Place) -> npt.NDArray[Any]:
        """The content of a tensor: its shape, and a last axis of bytes."""
        tokens = self.contents.get(place)
        if tokens is None or tokens.size != self.size(place):
            tokens = self.contents[place] = self.fresh(self.size(place))
        return tokens.reshape(*self.shape(place), self.width(place))

    def integers(self, place: Place) -> list[int] | None:
        """The values of a constant of integers; None when it is none."""
        data = self.model.buffers[self.tensor(place).buffer].data
        if data is None or not len(data) or self.width(place) not in (4, 8):
            return None
        return [int(v) for v in np.asarray(data, np.uint8).view(f"<i{self.width(place)}")]
