"""The dynamic program of `segmentation`, compiled.

    least_tail[end][u]   tail added by positions 0 .. end-1 with at most u instruction steps, bytes
    choice[end][u]       what ends there: a segment, or one operator untiled

It knows arrays of integers only. It is imported lazily, as all compiled code.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tflm_planner.memory.allocators.kernel import Ints, compiled

Bools = np.ndarray[Any, np.dtype[np.bool_]]

IMPOSSIBLE = 1 << 60
"""The tail where nothing keeps the cap."""
UNTILED, NOTHING = -1, -2
"""Choices that are no segment."""


@compiled
def best_segmentations(
    live_bytes: Ints, starts: Ints, figures: Ints, usable: Bools, cap: int, steps: int
) -> tuple[Ints, Ints]:
    """The last row of `least_tail`, and `choice`, for heads of at most `cap` bytes.

    live_bytes: head of each untiled operator. starts: where the segments that end at a position
    begin in the list of segments, which is sorted by ends. figures: of each segment its first
    position, head, tail and instruction steps. usable: which segments may be chosen. steps: all
    instruction steps. Of equal tails the untiled operator is chosen, then the earlier segment.
    """
    first, head, tail, cost = figures[0], figures[1], figures[2], figures[3]
    count = len(live_bytes)
    least_tail = np.full((count + 1, steps + 1), IMPOSSIBLE, np.int64)
    choice = np.full((count + 1, steps + 1), NOTHING, np.int64)
    least_tail[0, :] = 0
    for end in range(1, count + 1):
        if live_bytes[end - 1] <= cap:
            for u in range(steps + 1):
                if least_tail[end - 1, u] < IMPOSSIBLE:
                    least_tail[end, u] = least_tail[end - 1, u]
                    choice[end, u] = UNTILED
        for segment in range(starts[end], starts[end + 1]):
            if head[segment] > cap or not usable[segment]:
                continue
            spent, begin = cost[segment], first[segment]
            for u in range(spent, steps + 1):
                before = least_tail[begin, u - spent]
                if before < IMPOSSIBLE and before + tail[segment] < least_tail[end, u]:
                    least_tail[end, u] = before + tail[segment]
                    choice[end, u] = segment
    return least_tail[count].copy(), choice
