"""Runs jobs in processes of this machine.

    thread 1 -- job --> child 1 -- result --+
    thread 2 -- job --> child 2 -- result --+--> queue --> whoever iterates
         `-- a child that dies: a new one, and the job again

A process pool of the standard library breaks as a whole when one process dies, and does not say
which job that process had. Here each child has one job at a time. Ctrl-C reaches only the parent
(see `children`).
"""

from __future__ import annotations

import contextlib
import pickle
import queue
import signal
import tempfile
import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from tflm_planner.jobs.engine import ATTEMPTS, J, JobFailure, R
from tflm_planner.support.children import start_module
from tflm_planner.support.frames import Failure, read_frame, write_frame

_WORKER = "tflm_planner.jobs.worker"
_POLL = 0.2
"""Seconds between checks for Ctrl-C while waiting for a result, for systems on which Ctrl-C does
not wake a waiting queue."""
_LAST_WORDS = 300
"""How many of the last letters that a dead child printed are reported."""


class LocalEngine:
    """A `JobEngine` that uses `workers` processes of this machine."""

    def __init__(self, workers: int, imports: Sequence[str] = ()) -> None:
        self._workers, self._imports = workers, (_WORKER, *imports)

    def results(
        self, work: Callable[[J], R], jobs: Sequence[J]
    ) -> Generator[tuple[int, R | JobFailure]]:
        """See `JobEngine`."""
        run = _JobRun(work, jobs)
        children = [_JobProcess(self._imports) for _ in range(min(self._workers, len(jobs)))]
        threads = [threading.Thread(target=run.feed, args=(c,), daemon=True) for c in children]
        try:
            for thread in threads:
                thread.start()
            for _ in jobs:
                yield run.next_result()
        finally:
            run.is_over = True
            for child in children:
                child.end()
            for thread in threads:
                thread.join()
            for child in children:
                child.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: children end with the iteration that started them."""


@dataclass
class _JobRun:
    """The jobs of one call of `results`, shared by its threads. is_over: no further job is to be
    started."""

    work: Callable[[Any], Any]
    jobs: Sequence[Any]
    is_over: bool = False
    finished: queue.SimpleQueue[tuple[int, Any]] = field(
        default_factory=queue.SimpleQueue[tuple[int, Any]]
    )
    _taken: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next_result(self) -> tuple[int, Any]:
        """Wait for the next result: the job's number and its result."""
        while True:
            with contextlib.suppress(queue.Empty):
                return self.finished.get(timeout=_POLL)

    def feed(self, child: _JobProcess) -> None:
        """Give a child one job after another, as long as there are any."""
        while (number := self._take()) is not None:
            result = self._do(child, self.jobs[number])
            if self.is_over:
                return
            self.finished.put((number, result))

    def _take(self) -> int | None:
        with self._lock:
            if self.is_over or self._taken == len(self.jobs):
                return None
            self._taken += 1
            return self._taken - 1

    def _do(self, child: _JobProcess, job: Any) -> Any:
        death = ""
        for _ in range(ATTEMPTS):
            if self.is_over:
                break
            try:
                return child.do(self.work, job)
            except _ChildDiedError as error:
                death = str(error)
        return JobFailure(f"its process died {ATTEMPTS} times: {death}")


class _ChildDiedError(Exception):
    """A child ended before it answered; the text says how."""


class _JobProcess:
    """A process that does one job at a time. It is started for the first job, and again after it
    died."""

    def __init__(self, imports: Sequence[str]) -> None:
        self._imports = imports
        self._is_over = False
        self._lock = threading.Lock()
        self._process: Any = None
        self._errors: Any = None

    def do(self, work: Callable[[Any], Any], job: Any) -> Any:
        """Do a job and return its result, or a JobFailure. Raises _ChildDiedError."""
        process = self._running()
        try:
            write_frame(process.stdin, (work, job))
            answer = read_frame(process.stdout)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            raise _ChildDiedError(self._how_it_ended()) from None
        except Exception as error:  # pickling failed before anything was sent
            return JobFailure(f"it cannot be sent to a process: {error}")
        return JobFailure(answer.reason) if isinstance(answer, Failure) else answer

    def _running(self) -> Any:
        with self._lock:
            if self._is_over:
                raise _ChildDiedError("it was ended")
            if self._process is None:
                self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed in close)
                try:
                    self._process = start_module([_WORKER], self._errors, self._imports)
                except OSError as error:
                    raise _ChildDiedError(f"none can be started: {error}") from error
            return self._process

    def _how_it_ended(self) -> str:
        """How the process ended and what it printed last. This also closes the process, so that the
        next job starts another."""
        with self._lock:
            self._process.kill()  # in case it only closed its pipes
            code = self._process.wait()
            self._errors.seek(0)
            words = self._errors.read().decode("utf-8", "replace").strip()[-_LAST_WORDS:]
        self.close()
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return f"{how}{': ' * bool(words)}{words}"

    def end(self) -> None:
        """Kill the process, whatever it does. A thread that waits for its answer gets
        _ChildDiedError."""
        with self._lock:
            self._is_over = True
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        """Wait until the process has ended, and close its streams."""
        with self._lock:
            if self._process is None:
                return
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout, self._errors):
                with contextlib.suppress(OSError):
                    stream.close()
            self._process = None
