"""Engines: every job has its result or its reason, whatever happens to the processes."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.jobs.work import Task, nothing_to_send, pid_of, square, talkative
from tests.processes import posix_only
from tflm_planner.jobs import cluster
from tflm_planner.jobs.engine import JobFailure
from tflm_planner.jobs.engines import engine_at
from tflm_planner.jobs.processes import LocalEngine
from tflm_planner.support.errors import UsageError


def results(engine, work, jobs) -> dict[int, object]:
    with engine:
        return dict(engine.results(work, jobs))


def wait_for(path: Path, pattern: str, number: int = 1) -> list[Path]:
    """The files, once there are so many."""
    while len(files := list(path.glob(pattern))) < number:
        time.sleep(0.01)
    return files


@pytest.mark.parametrize("workers", [1, 3])
def test_each_job_has_its_own_result(workers: int, tmp_path: Path) -> None:
    done = results(LocalEngine(workers), square, [Task(n, tmp_path) for n in (3, -1, 5)])
    assert (done[0], done[2]) == (9, 25)
    assert done[1] == JobFailure("ValueError: a negative number")
    assert results(LocalEngine(workers), square, []) == {}


def test_what_libraries_print_is_no_result() -> None:
    assert results(LocalEngine(1), talkative, [1, 2]) == {0: 1, 1: 2}


def test_what_cannot_be_sent_is_said(tmp_path: Path) -> None:
    done = results(LocalEngine(1), nothing_to_send, [1])
    assert isinstance(done[0], JobFailure) and "pickle" in done[0].reason
    done = results(LocalEngine(1), square, [lambda: None, Task(2, tmp_path)])
    assert isinstance(done[0], JobFailure) and "cannot be sent" in done[0].reason
    assert done[1] == 4


@posix_only
def test_a_process_that_dies_costs_a_second_attempt(tmp_path: Path) -> None:
    tasks = [Task(1, tmp_path), Task(2, tmp_path, deaths=1), Task(3, tmp_path, deaths=9)]
    done = results(LocalEngine(2), square, [*tasks, Task(4, tmp_path)])
    assert (done[0], done[1], done[3]) == (1, 4, 16)
    assert isinstance(done[2], JobFailure) and "SIGKILL" in done[2].reason
    assert len(list(tmp_path.glob("begun-2-*"))) == len(list(tmp_path.glob("begun-3-*"))) == 2


@posix_only
def test_a_process_that_somebody_kills_loses_nothing(tmp_path: Path) -> None:
    tasks = [Task(n, tmp_path, waits=True) for n in range(6)]

    def kill_one() -> None:
        os.kill(pid_of(wait_for(tmp_path, "begun-*")[0].name), signal.SIGKILL)
        (tmp_path / "go").touch()

    killer = threading.Thread(target=kill_one)
    killer.start()
    done = results(LocalEngine(2), square, tasks)
    killer.join()
    assert done == {n: n * n for n in range(6)}
    assert len(list(tmp_path.glob("begun-*"))) == 7


@posix_only
def test_who_stops_to_iterate_ends_the_processes(tmp_path: Path) -> None:
    tasks = [Task(0, tmp_path), *(Task(n, tmp_path, waits=True) for n in (1, 2))]
    with closing(LocalEngine(2).results(square, tasks)) as iterator:
        assert next(iterator) == (0, 0)
        pids = [pid_of(p.name) for p in wait_for(tmp_path, "begun-[12]-*", 2)]
    for pid in pids:
        assert not Path(f"/proc/{pid}").exists()


@pytest.mark.slow
def test_no_cluster_is_a_wrong_address(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "_SECONDS_TO_ANSWER", 1)
    with pytest.raises(UsageError, match="no Dask scheduler answers"):
        engine_at("tcp://localhost:1", 2)
