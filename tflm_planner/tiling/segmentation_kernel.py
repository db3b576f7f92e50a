"""The dynamic program of `segmentation`, compiled.

    least_tail[end][u]   tail added by positions 0 .. end-1 with at most u instruction steps, bytes
    choice[end][u]       the last part of that split: a segment, or one untiled operator

It knows arrays of integers only. It is imported lazily, like all compiled code.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tflm_planner.memory.allocators.machine_code import Ints, compiled

Bools = np.ndarray[Any, np.dtype[np.bool_]]

IMPOSSIBLE = 1 << 60
"""The tail if no split is within the cap."""
UNTILED, NOTHING = -1, -2
"""Choices other than a segment."""


def best_segmentations(
    live_bytes: Ints, starts: Ints, figures: Ints, usable: Bools, cap: int, steps: int
) -> tuple[Ints, Ints]:
    """The last row of `least_tail`, and `choice`, for heads of at most `cap` bytes.

    live_bytes: head of each untiled operator. starts: for each position, where the segments that
    end there begin in the list of segments, which is sorted by ends. figures: for each segment its
    first position, head, tail and instruction steps. usable: which segments may be chosen. steps:
    all instruction steps. Of equal tails the untiled operator is chosen, then the earlier segment.
    """
    count = len(live_bytes)
    least_tail = np.full((count + 1, steps + 1), IMPOSSIBLE, np.int64)
    choice = np.full((count + 1, steps + 1), NOTHING, np.int64)
    least_tail[0] = 0
    _fill(live_bytes, starts, np.ascontiguousarray(figures), usable, cap, least_tail, choice)
    return least_tail[count].copy(), choice


def warm_up() -> None:
    """Load the compiled function; compile it if that was never done on this machine."""
    one = np.ones(1, np.int64)
    best_segmentations(
        one, np.array([0, 0, 1]), np.zeros((4, 1), np.int64), one.astype(np.bool_), 1, 1
    )


@compiled
def _fill(
    live_bytes: Ints, starts: Ints, figures: Ints, usable: Bools, cap: int, least_tail: Ints,
    choice: Ints,
) -> None:  # fmt: skip
    """Fill both tables from their first rows."""
    count, steps = live_bytes.size, least_tail.shape[1] - 1
    for end in range(1, count + 1):
        if live_bytes[end - 1] <= cap:
            for u in range(steps + 1):
                if least_tail[end - 1, u] < IMPOSSIBLE:
                    least_tail[end, u] = least_tail[end - 1, u]
                    choice[end, u] = UNTILED
        for segment in range(starts[end], starts[end + 1]):
            if figures[1, segment] > cap or not usable[segment]:
                continue
            begin, tail, spent = figures[0, segment], figures[2, segment], figures[3, segment]
            for u in range(spent, steps + 1):
                before = least_tail[begin, u - spent]
                if before < IMPOSSIBLE and before + tail < least_tail[end, u]:
                    least_tail[end, u] = before + tail
                    choice[end, u] = segment
