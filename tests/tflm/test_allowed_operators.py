"""Which operators may be added to the firmware, on which TFLM."""

from __future__ import annotations

from tflm_planner.pipeline import api
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tflm.versions import with_tflm

TARGET = api.load_target("cortex-m4/cmsis-nn")
OLD = with_tflm(TARGET, "2025-06")
UPDATE = "DYNAMIC_UPDATE_SLICE"
"""An operator that the older TFLM lacks."""
NOTHING = frozenset[str]()


def test_what_a_model_uses_is_always_allowed() -> None:
    for operators in (AllowedOperators.NONE, AllowedOperators.of(("PAD",)), AllowedOperators.ALL):
        for target in (TARGET, OLD):
            assert operators.allows(UPDATE, frozenset({UPDATE}), target)


def test_only_what_is_named_may_be_added() -> None:
    named = AllowedOperators.of(("PAD",))
    assert named.allows("PAD", NOTHING, TARGET) and not named.allows("SLICE", NOTHING, TARGET)
    assert not AllowedOperators.NONE.allows("PAD", NOTHING, TARGET)
    assert AllowedOperators.ALL.allows("PAD", NOTHING, TARGET)


def test_what_the_target_lacks_is_never_added() -> None:
    for operators in (AllowedOperators.of((UPDATE,)), AllowedOperators.ALL):
        assert operators.allows(UPDATE, NOTHING, TARGET)
        assert not operators.allows(UPDATE, NOTHING, OLD)


def test_no_names_are_none() -> None:
    assert AllowedOperators.of(()) == AllowedOperators.NONE != AllowedOperators.ALL
    assert not AllowedOperators.NONE.allows_new
    assert AllowedOperators.of(("PAD",)).allows_new and AllowedOperators.ALL.allows_new
