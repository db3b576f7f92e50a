"""Fits the constants of a kernel path to measurements: non-negative least squares.

    cost of an operator = call + sum of counts x constants, none of them negative

It must not know operators or targets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflm_planner.cost.profiles import CALL

FloatVector = npt.NDArray[Any]
FLOOR = 300.0
"""Errors of costs below this many instructions count as absolute ones: the length of a call."""
FEW, USUAL_CALL = 5, 450.0
"""A path with fewer measurements gets a single constant, and a usual fixed part."""


def solve(a: FloatVector, b: FloatVector) -> FloatVector:
    """Non-negative least squares (Lawson and Hanson, 1974)."""
    size = a.shape[1]
    x, active = np.zeros(size), np.zeros(size, bool)
    gram, target = a.T @ a, a.T @ b
    for _ in range(3 * size):
        gradient = target - gram @ x
        gradient[active] = -np.inf
        best = int(np.argmax(gradient))
        if gradient[best] <= 1e-9 * max(1.0, float(np.abs(target).max())):
            break
        active[best] = True
        while True:
            trial = np.zeros(size)
            trial[active] = np.linalg.lstsq(a[:, active], b, rcond=1e-10)[0]
            if (trial[active] > 0).all():
                x = trial
                break
            falling = active & (trial <= 0)
            step = float(np.min(x[falling] / np.maximum(x[falling] - trial[falling], 1e-300)))
            x = x + step * (trial - x)
            x[falling & (x <= 1e-12)] = 0.0
            active &= x > 0
            if not active.any():
                break
    return x


def fit_path(rows: Sequence[tuple[Mapping[str, int], float]]) -> dict[str, float]:
    """Constants of one kernel path, from (counts, executed instructions)."""
    # A path with few measurements gets few constants: the first ones, which matter most.
    most_constants = max(1, len(rows) // 2)
    names = list(dict.fromkeys(name for counts, _ in rows for name in counts))[:most_constants]
    matrix = np.array([[1.0, *(counts.get(n, 0) for n in names)] for counts, _ in rows])
    executed = np.array([float(count) for _, count in rows])
    weight = 1 / (executed + FLOOR)
    weighted = matrix * weight[:, None]
    if len(rows) < FEW:  # too few to determine the fixed part: use a usual one
        first_counts = matrix[:, 1] if names else np.zeros(len(rows))
        fixed = min(USUAL_CALL, 0.9 * float(executed.min()))
        slope = float(np.median((executed - fixed) / np.maximum(first_counts, 1)))
        return {CALL: round(fixed, 1), **({names[0]: float(f"{slope:.4g}")} if names else {})}
    scale = np.maximum(np.abs(weighted).max(axis=0), 1e-30)
    constants = solve(weighted / scale, executed * weight) / scale
    return {
        name: float(f"{value:.4g}")
        for name, value in zip([CALL, *names], constants, strict=True)
        if value > 0 and float(f"{value:.4g}") > 0
    }
