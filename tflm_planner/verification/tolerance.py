"""How far outputs may be apart if a sum was split, and how far apart they are.

Only the user can allow a tolerance (`--allow-inexact`), and only for models whose rewriting is not
exact. All other models must be equal bit by bit.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_EIGHT_BITS = 255


@dataclass(frozen=True, slots=True)
class Tolerance:
    """quantised: the largest difference of int8, uint8 and int16 outputs, in steps of 1/255 of the
    type's range. relative: the largest difference of floats, relative to the output's largest
    magnitude. Outputs of other types (indices, truth values) must be equal."""

    quantised: float = 4.0
    relative: float = 1e-4


@dataclass
class Differences:
    """Differences of all outputs seen so far.

    steps: difference in steps of the type -> how many values have it. relative: the largest
    difference of floats, relative to the output's largest magnitude. values: how many were
    compared. Without a tolerance every bit must be equal.
    """

    tolerance: Tolerance | None
    steps: Counter[int] = field(default_factory=Counter[int])
    relative: float = 0.0
    values: int = 0

    @property
    def any(self) -> bool:
        """Whether anything differed."""
        return self.relative > 0 or any(self.steps)

    def add(self, expected: Any, actual: Any) -> str | None:
        """Count the differences of one output. Returns why they are too large, or None if they are
        not."""
        if expected.shape != actual.shape or expected.dtype != actual.dtype:
            actual_form, expected_form = (f"{a.dtype}{list(a.shape)}" for a in (actual, expected))
            return f"{actual_form} in place of {expected_form}"
        self.values += expected.size
        if expected.tobytes() == actual.tobytes():
            self.steps[0] += expected.size
            return None
        if self.tolerance is None:
            return ""
        if expected.dtype.kind == "f":
            return self._add_floats(expected, actual, self.tolerance.relative)
        if expected.dtype.kind not in "iu" or expected.dtype.itemsize > 2:
            return f"outputs of {expected.dtype} must be equal"
        apart = np.abs(expected.astype(np.int64) - actual.astype(np.int64))
        self.steps.update(
            Counter({int(v): int(n) for v, n in zip(*_count_values(apart), strict=True)})
        )
        limits = np.iinfo(expected.dtype)
        most = self.tolerance.quantised * (int(limits.max) - int(limits.min)) / _EIGHT_BITS
        return f"{int(apart.max())} steps apart" if apart.max() > most else None

    def _add_floats(self, expected: Any, actual: Any, most: float) -> str | None:
        finite = np.isfinite(expected)
        if not np.array_equal(expected[~finite], actual[~finite], equal_nan=True):
            return "values that are not finite differ"
        if not np.isfinite(actual).all():
            return "a value became infinite, or no number"
        largest = float(np.abs(expected[finite]).max(initial=0.0))
        apart = float(np.abs(expected[finite] - actual[finite]).max(initial=0.0))
        relative = apart / largest if largest else float("inf") if apart else 0.0
        self.relative = max(self.relative, relative)
        return f"{relative:.1e} of the largest value apart" if relative > most else None

    def __str__(self) -> str:
        parts: list[str] = []
        if any(self.steps):
            total = max(sum(self.steps.values()), 1)
            shown = [
                f"{100 * count / total:.3g} % by {step}"
                for step, count in sorted(self.steps.items())
                if step
            ]
            more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
            exact = 100 * self.steps[0] / total
            largest = max(self.steps)
            parts.append(
                f"largest difference {largest} steps; {exact:.4g} % of values equal, "
                f"{', '.join(shown[:5])}{more}"
            )
        if self.relative:
            parts.append(f"largest difference of floats {self.relative:.1e} of the largest value")
        return "; ".join(parts)


def _count_values(values: Any) -> tuple[Any, Any]:
    return np.unique(values, return_counts=True)
