"""How far outputs may be apart: not at all, unless it is declared."""

from __future__ import annotations

import numpy as np
import pytest

from tflm_planner.verification.tolerance import Differences, Tolerance

A = np.array([1, -5, 100], np.int8)


def test_without_a_tolerance_every_bit_counts():
    strict = Differences(None)
    assert strict.add(A, A.copy()) is None and not strict.any
    assert strict.add(A, A + np.int8(1)) == ""
    zeros = np.zeros(2, np.float32)
    assert strict.add(zeros, -zeros) == ""


def test_steps_are_counted():
    found = Differences(Tolerance())
    assert found.add(A, A + np.array([0, 1, 4], np.int8)) is None
    assert found.steps == {0: 1, 1: 1, 4: 1}
    assert str(found).startswith("largest difference 4 steps; 33.33 % of values equal, 33.3 % by 1")
    assert found.add(A, A + np.array([0, 0, 5], np.int8)) == "5 steps apart"


@pytest.mark.parametrize(
    ("wanted", "got", "why"),
    [
        (np.array([300], np.int16), np.array([700], np.int16), None),
        (np.array([0], np.int16), np.array([1100], np.int16), "1100 steps apart"),
        (np.array([4], np.int32), np.array([5], np.int32), "outputs of int32 must be equal"),
        (np.array([True]), np.array([False]), "outputs of bool must be equal"),
        (np.array([1.0], "f4"), np.array([1.00005], "f4"), None),
        (np.array([1.0], "f4"), np.array([1.1], "f4"), "1.0e-01 of the largest value apart"),
        (np.array([1.0], "f4"), np.array([np.nan], "f4"), "a value became infinite, or no number"),
        (np.array([np.nan], "f4"), np.array([1.0], "f4"), "values that are not finite differ"),
        (np.array([0.0], "f4"), np.array([1e-9], "f4"), "inf of the largest value apart"),
        (np.array([1], np.int8), np.array([1, 1], np.int8), "int8[2] in place of int8[1]"),
    ],
)
def test_what_is_tolerated(wanted, got, why):
    assert Differences(Tolerance()).add(wanted, got) == why
