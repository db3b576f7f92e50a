"""The order in which a kernel that slides a window reads its operand and writes its result.

All loops over output pixels run in raster order; an `AccessOrder` describes what happens between
two writes. The bounds (`contracts.bounds`) and the replay (`contracts.replay`) both start from it.
This module must not know libraries: each library gives the orders of its own kernels
(`KernelBuild.access_orders`).

    for unit (batch, or output row):             restart
      for pass over output channels:             passes   (None: one pass)
        for group of output pixels:              pixels
          [read the group's whole window]        chunk None: all reads before all writes
          for chunk of output channels:          chunk
            read the window; write the chunk
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Restart(Enum):
    """Where the grouping of output pixels starts anew."""

    NEVER = 0
    BATCH = 1
    ROW = 2


@dataclass(frozen=True, slots=True)
class AccessOrder:
    """How a kernel interleaves reads and writes; see the loops at the head of this module.

    kernel: its name, for messages. pixels: output pixels that are computed together. chunk: output
    channels that are written together after their inputs were read; None if the window of the whole
    group is read first. passes: output channels of one pass, if passes are the outer loop.
    tail_chunk: chunk of the pixels left over by groups of four, which MVE computes one by one.
    loose_tail: whether channels left over by chunks are computed one by one. edges: number of
    pixels at the left and at the right edge of a row that are computed separately, after their
    windows were copied; None if all are computed alike. accumulates: whether the first pixel of the
    window is copied to the output, and the rest of the window is read only after that.
    """

    kernel: str
    pixels: int = 1
    chunk: int | None = 1
    passes: int | None = None
    restart: Restart = Restart.BATCH
    tail_chunk: int | None = None
    loose_tail: bool = False
    edges: tuple[int, int] | None = None
    accumulates: bool = False


ELEMENTWISE = AccessOrder("reference kernel")
"""The reference kernels: for each output element the whole window is read, then it is written.
Finer than any other pixel-by-pixel order, so what is safe here is safe for those too."""
