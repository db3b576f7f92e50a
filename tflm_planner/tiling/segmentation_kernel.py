"""The best covers of a line by items, compiled: the dynamic program of `partition`.

    best[end][u]     the least tail of positions 0 .. end-1 for at most u units of instructions
    choice[end][u]   what comes last there: an item, or a position as it is

It knows arrays of integers only. It is imported lazily, as compiled code is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tflm_planner.memory.allocators.machine_code import Ints, compiled

Bools = np.ndarray[Any, np.dtype[np.bool_]]

FAR = 1 << 60
"""The tail of what cannot be had."""
AS_IS, NOTHING = -1, -2
"""Choices that are no item."""


def best_segmentations(
    needs: Ints, starts: Ints, figures: Ints, usable: Bools, cap: int, most: int
) -> tuple[Ints, Ints]:
    """The last row of `best`, and `choice`, under a cap on heads. needs: of positions as they are.
    starts: of the items that end at a position, which are listed by their ends. figures: where
    items begin, their heads, tails, and units of instructions. usable: which may be taken. most:
    units of instructions. Of equal tails the earlier item is taken."""
    count = len(needs)
    best = np.full((count + 1, most + 1), FAR, np.int64)
    choice = np.full((count + 1, most + 1), NOTHING, np.int64)
    best[0] = 0
    _cover(needs, starts, np.ascontiguousarray(figures), usable, cap, best, choice)
    return best[count].copy(), choice


def warm_up() -> None:
    """Load what is compiled here, and compile it where that was never done on this machine."""
    one = np.ones(1, np.int64)
    best_segmentations(
        one, np.array([0, 0, 1]), np.zeros((4, 1), np.int64), one.astype(np.bool_), 1, 1
    )


@compiled
def _cover(
    needs: Ints, starts: Ints, figures: Ints, usable: Bools, cap: int, best: Ints, choice: Ints
) -> None:
    count, most = needs.size, best.shape[1] - 1
    for end in range(1, count + 1):
        if needs[end - 1] <= cap:
            for u in range(most + 1):
                if best[end - 1, u] < FAR:
                    best[end, u] = best[end - 1, u]
                    choice[end, u] = AS_IS
        for item in range(starts[end], starts[end + 1]):
            if figures[1, item] > cap or not usable[item]:
                continue
            begin, tail, spent = figures[0, item], figures[2, item], figures[3, item]
            for u in range(spent, most + 1):
                before = best[begin, u - spent]
                if before < FAR and before + tail < best[end, u]:
                    best[end, u] = before + tail
                    choice[end, u] = item
