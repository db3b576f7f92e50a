"""Which region to run in a loop, or the reason why it cannot run in one.

It must not know how: geometry, body and transform build on this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from tflm_planner.transforms.base import TransformRefusedError

LoopBorder = Literal["reverse", "masked", "peeled"]
LOOP_BORDERS: tuple[LoopBorder, ...] = get_args(LoopBorder)


class NotStreamableError(TransformRefusedError):
    """The reason why a region cannot run in a loop; the text follows "not streamed: "."""

    prefix = "not streamed"


@dataclass(frozen=True)
class LoopedRegion:
    """A region that runs a few rows at a time inside one WHILE.

    ops: positions in the main graph before the transform. rows: rows of the region's result that
    one turn makes. border: how the image's borders are handled. "masked" runs from the top down and
    "reverse" from the bottom up (then a stride-2 window padded only below needs no mask); both mask
    rows outside the image that a window reads as padding. "peeled" runs from the top down and
    unrolls the first and the last turns, so that no turn of the loop masks anything.
    """

    ops: tuple[int, ...]
    rows: int = 1
    border: LoopBorder = "masked"

    def __post_init__(self) -> None:
        assert self.border in LOOP_BORDERS, "unknown border"
        assert self.ops and self.rows > 0, "nothing to stream"
