"""Which change of which model of a front is tried next."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from tflm_planner.tiling.front_changes import FrontChanges


def four_of(model: str) -> Iterator[str]:
    """Changes of model "a" are "a1" to "a4"."""
    return (f"{model}{n}" for n in range(1, 5))


def test_models_of_the_front_take_turns():
    changes = FrontChanges(four_of)
    assert [*changes.untried("ab")] == ["a1", "b1", "a2", "b2", "a3", "b3", "a4", "b4"]


def test_a_new_model_catches_up_and_one_that_left_is_not_changed_further():
    changes = FrontChanges(four_of)
    assert [*islice(changes.untried("ab"), 5)] == ["a1", "b1", "a2", "b2", "a3"]
    assert [*changes.untried("bc")] == ["c1", "c2", "b3", "c3", "b4", "c4"]


def test_no_change_comes_twice_nor_a_model_of_the_front():
    same = {"a": "xby", "b": "xz"}
    changes = FrontChanges(lambda model: iter(same[model]))
    assert [*changes.untried("ab")] == ["x", "z", "y"]
    assert [*changes.untried("ab")] == []
