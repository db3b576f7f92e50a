"""Progress: messages that come too fast are dropped."""

from __future__ import annotations

import pytest

from tflm_planner.support import progress
from tflm_planner.support.progress import Seldom


def test_at_most_a_message_a_second_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, said = [10.0], list[str]()
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    seldom = Seldom(said.append)
    for now in (10.0, 10.9, 11.0, 11.5, 11.99, 14.0, 14.9, 15.0):
        clock[0] = now
        seldom.say(f"{now:g}")
    assert said == ["11", "14", "15"]
