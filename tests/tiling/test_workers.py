"""Child processes of a search: results do not depend on them, whatever happens to them."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

import pytest

from tests.models.small import narrow_rows, wide
from tests.processes import (
    children,
    kill_children,
    posix_only,
    started_children,  # noqa: F401 (a fixture)
)
from tests.tiling.small_searches import ALL_BUT_LOOPS, SMALL, options, search
from tflm_planner.support.stopping import Stop, StoppedError
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tiling.evaluate import workers as workers_module
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.evaluate.evaluator import EvaluationRequest
from tflm_planner.tiling.evaluate.job_queue import JobQueue
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.transforms.tile.tile import band

pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
"""A thread that ends with an exception fails the test: its child would only be missed."""

AT_ONCE = replace(SMALL, jobs_before_processes=0, child_poll_seconds=60, search_work=300)
"""Children start with the first job, and jobs wait for those that are starting."""


@pytest.mark.slow
@pytest.mark.usefixtures("four_cores")
def test_the_number_of_processes_changes_nothing():
    asked = {"max_slowdown": 1.2, "operators": AllowedOperators.NONE, "search_budget": AT_ONCE}
    results = [search(narrow_rows(), workers=n, **asked) for n in (1, 2, 4)]
    assert results[0].best.regions and results[0] == results[1] == results[2]


@posix_only
@pytest.mark.usefixtures("started_children", "four_cores")
def test_jobs_of_a_dead_child_are_run_here():
    workers = Workers(wide(), options(workers=2, operators=ALL_BUT_LOOPS, search_budget=AT_ONCE))
    try:
        requests = [EvaluationRequest(Candidate((band(0, k, 2),), False)) for k in range(4)]
        truth = [workers.evaluator.evaluate(q) for q in requests]
        assert None not in truth
        assert workers.evaluate(requests[:2]) == truth[:2]  # ends when the child is up
        assert kill_children("-m tflm_planner.tiling.evaluate.worker") == 1
        assert workers.evaluate(requests) == truth
    finally:
        workers.close()


@dataclass(frozen=True)
class Squared:
    """A job."""

    number: int

    def run(self, evaluator):
        return self.number**2


class Dividing:
    """A job that fails."""

    def run(self, evaluator):
        return 1 // 0


@posix_only
@pytest.mark.usefixtures("started_children", "four_cores")
def test_nobody_waits_for_a_child_that_never_comes_up(monkeypatch, tmp_path):
    idle = tmp_path / "idle"
    idle.write_text("#!/bin/sh\nwhile :; do sleep 1; done\n")
    idle.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(idle))
    budget = replace(SMALL, jobs_before_processes=0)
    workers = Workers(wide(), options(workers=2, search_budget=budget))
    workers.stop = Stop(60)  # a failure instead of a test without end
    try:
        assert workers.run([Squared(n) for n in range(5)]) == [0, 1, 4, 9, 16]
        assert len(children(str(idle))) == 1
        with pytest.raises(ZeroDivisionError):
            workers.run([Squared(1), Dividing()])
        assert workers.run([Squared(4)]) == [16]
    finally:
        workers.close()


@dataclass
class Interrupting:
    """A job that ends the search when it is run for the third time."""

    stop: Stop
    runs: int = 0

    def run(self, evaluator):
        self.runs += 1
        if self.runs == 3:
            self.stop.interrupt()
        return self.runs


def test_jobs_are_run_once_each_until_the_search_is_stopped():
    workers = Workers(wide(), options())
    job = Interrupting(workers.stop)
    for _ in range(2):
        with pytest.raises(StoppedError):
            workers.run([job] * 5)
        assert job.runs == 3
    workers.stop = Stop()
    assert workers.run([Squared(n) for n in range(5)]) == [0, 1, 4, 9, 16]


def test_no_more_processes_than_the_machine_has_use_for(monkeypatch):
    """As many as are asked for would take all memory; results are the same."""
    monkeypatch.setattr(workers_module, "usable_cores", lambda: 3)
    started: list[object] = []

    def refuse(*_: object) -> None:
        started.append(_)
        raise OSError("no process in a test")

    monkeypatch.setattr(workers_module, "start_module", refuse)
    asked = options(workers=100_000, operators=AllowedOperators.ALL, search_budget=AT_ONCE)
    pool = Workers(wide(), asked)
    assert len(pool.evaluate([EvaluationRequest(Candidate((band(0, 1, 2),), False))])) == 1
    assert len(started) == 2


def test_a_process_rather_takes_the_kinds_of_jobs_that_it_took_before():
    """And what nobody took before rather than what another did; none is left out."""
    here, child = 0, 1
    kinds = ["a", "b", "a", None, "c", "b"]
    homes = {"a": here, "b": child}
    queue = JobQueue([Squared(n) for n in range(6)], Stop(), kinds, homes)
    assert queue.take(1, child) == 1
    assert queue.take(6, here) is None, "five are left"
    assert [queue.take(1, here) for _ in range(4)] == [0, 2, 3, 4]
    assert homes == {"a": here, "b": child, "c": here}
    assert queue.take(1, here) == 5 and homes["b"] == here, "rather than wait for the child"
    assert queue.take(1, child) is None
    assert queue.jobs_without_result() == [0, 1, 2, 3, 4, 5]
