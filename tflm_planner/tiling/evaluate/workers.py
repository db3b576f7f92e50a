"""Runs jobs in several processes, or only in this one if no other can be started.

Every process reads the model by itself. When it is free it takes the next job, rather one whose
tiles it has made before, as it remembers them and some of their plans. Results are put in the order
of the jobs, so that the number of processes changes only the time. Evaluations are cached
for all searches that share the workers. When a search is stopped, no further job begins, and
running jobs are not waited for. Children are started as `python -m
tflm_planner.tiling.evaluate.worker`, never forked and never by importing the caller's script; jobs
do not wait for a child that is still starting.
"""

from __future__ import annotations

import contextlib
import pickle
import subprocess
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any, TypeVar

from tflm_planner.support.children import ChildProcess, start_module
from tflm_planner.support.cores import usable_cores
from tflm_planner.support.frames import read_frame, write_frame
from tflm_planner.support.stopping import Stop
from tflm_planner.tiling.evaluate.candidate import Evaluation
from tflm_planner.tiling.evaluate.evaluator import (
    UNTILED,
    EvaluationRequest,
    Evaluator,
    RequestFamily,
)
from tflm_planner.tiling.evaluate.job_queue import Job, JobQueue
from tflm_planner.tiling.options import TilingOptions

T = TypeVar("T")

_WORKER = "tflm_planner.tiling.evaluate.worker"
_HERE = 0
"""The number of this process; the children have the following ones."""
_JOBS_OF_CHILD, _JOBS_LEFT_TO_TAKE_TWO = 2, 4
"""How many jobs a child has at once, and how many must be left for it to take the second one."""


def process_count(wanted: int) -> int:
    """The number of processes to use if `wanted` are asked for: more than one a core would only
    wait for each other, and each takes memory."""
    return min(wanted, usable_cores())


class Workers:
    """Evaluates candidates of the model in `data` with `options.workers` processes, this one
    included, or with fewer if the machine has too few cores."""

    def __init__(self, data: bytes, options: TilingOptions) -> None:
        self.evaluator = Evaluator(data, options)
        self._data, self._options = data, options
        self._children: list[_Child] = []
        self._job_count, self._children_to_start = 0, process_count(options.workers) - 1
        self._known: dict[Hashable, Evaluation | None] = {}
        self._homes: dict[Hashable, int] = {}
        self.stop = Stop()
        """Ends the running search."""
        if len(self.evaluator.model.main.ops) > options.search_budget.large_model:
            self._start_children()

    def knows(self, request: EvaluationRequest) -> bool:
        """Whether the evaluation is cached."""
        return self.key(request) in self._known

    def key(self, request: EvaluationRequest) -> Hashable:
        """Equal for requests with the same evaluation."""
        return self.evaluator.key(request)

    def evaluate(self, requests: Sequence[EvaluationRequest]) -> list[Evaluation | None]:
        """One evaluation for each request, in their order; None where it is impossible."""
        keys = [self.key(r) for r in requests]
        unknown = {key: r for key, r in zip(keys, requests, strict=True) if key not in self._known}
        if unknown:
            evaluations = self._evaluate_unknown(list(unknown.values()))
            self._known.update(zip(unknown, evaluations, strict=True))
        return [self._known[key] for key in keys]

    def _evaluate_unknown(self, requests: Sequence[EvaluationRequest]) -> list[Evaluation | None]:
        families: dict[Hashable, list[int]] = {}
        for number, request in enumerate(requests):
            families.setdefault(request.family, []).append(number)
        if len(families) < process_count(self._options.workers):  # single jobs use more processes
            families = {number: [number] for number in range(len(requests))}
        self._job_count += len(requests) - len(families)
        jobs = [RequestFamily(tuple(requests[k] for k in family)) for family in families.values()]
        evaluations: list[Evaluation | None] = [None] * len(requests)
        results = self.run(jobs, [job.tiles for job in jobs])
        for numbers, of_family in zip(families.values(), results, strict=True):
            for number, evaluation in zip(numbers, of_family, strict=True):
                evaluations[number] = evaluation
        return evaluations

    def run(self, jobs: Sequence[Job[T]], kinds: Sequence[Hashable] = ()) -> list[T]:
        """The result of each job. kinds: one for each job, or none; jobs of one kind are rather run
        by one process. Raises StoppedError if the search is stopped before."""
        self.stop.check()
        self._job_count += len(jobs)
        enough = self._job_count > self._options.search_budget.jobs_before_processes
        if enough and self._children_to_start > 0:
            self._start_children()
        queue = JobQueue[T](jobs, self.stop, kinds or [None] * len(jobs), self._homes)
        poll = self._options.search_budget.child_poll_seconds
        threads = [
            Thread(target=_feed_child, args=(child, process, queue, poll))
            for process, child in enumerate(self._children, _HERE + 1)
        ]
        try:
            for thread in threads:
                thread.start()
            while (number := queue.take(1, _HERE)) is not None:
                queue.results[number] = jobs[number].run(self.evaluator)
            queue.is_closed = True
            for thread in threads:
                while thread.is_alive():
                    self.stop.check_all()
                    thread.join(poll)
        except BaseException:  # nobody waits for the results of the children any more
            queue.is_closed = True
            self.close()
            raise
        for number in queue.jobs_without_result():
            self.stop.check()
            queue.results[number] = jobs[number].run(self.evaluator)
        return [queue.results[k] for k in range(len(jobs))]

    def _start_children(self) -> None:
        while self._children_to_start > 0:
            self._children_to_start -= 1
            with contextlib.suppress(OSError):
                child = _Child(start_module([_WORKER], subprocess.DEVNULL, [_WORKER]))
                self._children.append(child)
                model = self._data, self._options
                Thread(target=child.send_model, args=(model,), daemon=True).start()

    def close(self) -> None:
        """End the children."""
        for child in self._children:
            child.close()
        self._children = []


@dataclass
class _Child:
    """A child process; it runs jobs once it is ready."""

    process: ChildProcess
    ready: Event = field(default_factory=Event)

    def send_model(self, model: tuple[bytes, TilingOptions]) -> None:
        """Send the model to the child, and wait until it has read it and evaluated it once: what
        the first job loads takes 0.4 s, for which the search would wait later. A pipe's buffer is
        smaller than a model, so the write blocks until the child reads."""
        first = RequestFamily((UNTILED,))
        if all(self.send(message) and self.receive() is not None for message in (model, first)):
            self.ready.set()

    def send(self, message: Any) -> bool:
        """Returns whether the message could be sent."""
        try:
            assert self.process.stdin is not None
            write_frame(self.process.stdin, message)
        except (OSError, ValueError):
            return False
        return True

    def receive(self) -> Any:
        """The child's next answer; None if there is none, so that this process must do the job."""
        try:
            assert self.process.stdout is not None
            return read_frame(self.process.stdout)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            return None

    def close(self) -> None:
        """End the child."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()


def _feed_child(child: _Child, process: int, queue: JobQueue[Any], poll_seconds: float) -> None:
    """Have a child run jobs as long as there are any. It has one job to work on, and a second one
    while enough jobs are left. The caller runs the jobs that the child does not finish."""
    while not child.ready.wait(poll_seconds):
        if queue.is_closed:
            return
    sent: deque[int] = deque()
    while True:
        while len(sent) < _JOBS_OF_CHILD:
            number = queue.take(_JOBS_LEFT_TO_TAKE_TWO if sent else 1, process)
            if number is None:
                break
            if not child.send(queue.jobs[number]):
                return
            sent.append(number)
        if not sent:
            return
        result = child.receive()
        if result is None:
            return
        queue.results[sent.popleft()] = result
