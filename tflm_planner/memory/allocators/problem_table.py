"""A problem as arrays of integers, for compiled code."""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

import numpy as np

from tflm_planner.memory.allocators.machine_code import Ints
from tflm_planner.memory.problem import Problem


class ProblemTable(NamedTuple):
    """size, start, end: of each buffer. The buffers that live together with buffer i are
    near[near_starts[i] : near_starts[i + 1]]. permits: sorted rows (buffer i, buffer j, low, high),
    in both directions, which permit low <= offset[j] - offset[i] <= high."""

    size: Ints
    start: Ints
    end: Ints
    near_starts: Ints
    near: Ints
    permits: Ints

    @staticmethod
    def of(problem: Problem) -> ProblemTable:
        """The table of this problem."""
        buffers = np.array([(b.size, b.start, b.end) for b in problem.buffers], np.int64)
        size, start, end = np.ascontiguousarray(buffers.reshape(-1, 3).T)
        counts = [0, *map(len, problem.neighbours)]
        near = np.fromiter(chain.from_iterable(problem.neighbours), np.int64, sum(counts))
        permits = sorted((*pair, *both) for pair, free in problem.permits.items() for both in free)
        rows = np.array(permits, np.int64).reshape(-1, 4)
        return ProblemTable(size, start, end, np.cumsum(counts), near, rows)
