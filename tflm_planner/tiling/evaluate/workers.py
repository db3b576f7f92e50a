"""Trials in several processes; in this one where no other can be had.

Every process reads the model by itself and takes the next job when it is free; answers are put in
the order of the questions, so that the number of processes changes nothing but the time. What was
answered once is known from then on, to all searches that share the workers. Where a search is
stopped nothing more is begun, and nobody waits for what is. Children are started
as `python -m tflm_planner.tiling.evaluate.worker`, never forked and never by importing the caller's
script; nobody waits for one that is still starting.
"""

from __future__ import annotations

import contextlib
import pickle
import subprocess
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Any, Generic, Protocol, TypeVar

from tflm_planner.support.children import start_module
from tflm_planner.support.frames import read_frame, write_frame
from tflm_planner.support.stopping import Stop
from tflm_planner.tiling.evaluate.candidate import Evaluation
from tflm_planner.tiling.evaluate.evaluator import EvaluationRequest, Evaluator, RequestFamily
from tflm_planner.tiling.options import TilingOptions

T = TypeVar("T", covariant=True)

_WORTH_STARTING = 8
"""Questions and jobs before the first child is started: small searches end sooner."""
_LARGE = 120
"""Operators of a model whose search takes long in any case: children are started at once."""
_MOMENT = 0.02
"""Seconds after which a child is looked at again that is starting."""
_AHEAD, _PLENTY = 2, 4
"""Jobs that a child knows of at once; and what must be left for it to take another early."""


class Job(Protocol[T]):
    """Something to be worked out: plain data that can go to another process."""

    def on(self, bench: Evaluator) -> T:
        """Work it out; never None."""
        ...


class Workers:
    """Answers questions with `options.workers` processes, this one among them."""

    def __init__(self, data: bytes, options: TilingOptions) -> None:
        self.bench = Evaluator(data, options)
        self._data, self._options = data, options
        self._children: list[_Child] = []
        self._asked, self._more = 0, options.workers - 1
        self._known: dict[Hashable, Evaluation | None] = {}
        self.stop = Stop()
        """Of the search under way."""
        if len(self.bench.model.main.ops) > _LARGE:
            self._start()

    def knows(self, question: EvaluationRequest) -> bool:
        """Whether the answer is known already."""
        return self.key(question) in self._known

    def key(self, question: EvaluationRequest) -> Hashable:
        """Equal for questions that have one answer."""
        return self.bench.key(question)

    def answers(self, questions: Sequence[EvaluationRequest]) -> list[Evaluation | None]:
        """One outcome a question, in their order."""
        keys = [self.key(q) for q in questions]
        fresh = {key: q for key, q in zip(keys, questions, strict=True) if key not in self._known}
        if fresh:
            outcomes = self._worked_out(list(fresh.values()))
            self._known.update(zip(fresh, outcomes, strict=True))
        return [self._known[key] for key in keys]

    def _worked_out(self, questions: Sequence[EvaluationRequest]) -> list[Evaluation | None]:
        families: dict[Hashable, list[int]] = {}
        for at, question in enumerate(questions):
            families.setdefault(question.family, []).append(at)
        if len(families) < self._options.workers:  # sooner done one by one
            families = {at: [at] for at in range(len(questions))}
        self._asked += len(questions) - len(families)
        jobs = [RequestFamily(tuple(questions[at] for at in of)) for of in families.values()]
        merged: list[Evaluation | None] = [None] * len(questions)
        for places, found in zip(families.values(), self.done(jobs), strict=True):
            for at, answer in zip(places, found, strict=True):
                merged[at] = answer
        return merged

    def done(self, jobs: Sequence[Job[T]]) -> list[T]:
        """What each of the jobs came to. Raises StoppedError where the search is over before."""
        self.stop.check()
        self._asked += len(jobs)
        if self._asked > _WORTH_STARTING and self._more > 0:
            self._start()
        shared = _JobQueue[T](jobs, self.stop)
        threads = [Thread(target=_feed_child, args=(child, shared)) for child in self._children]
        try:
            for thread in threads:
                thread.start()
            while (taken := shared.take(1)) is not None:
                shared.found[taken] = jobs[taken].on(self.bench)
            shared.ended = True
            for thread in threads:
                while thread.is_alive():
                    self.stop.check_all()
                    thread.join(_MOMENT)
        except BaseException:  # answers are under way that nobody waits for
            shared.ended = True
            self.close()
            raise
        for lost in shared.lost():
            self.stop.check()
            shared.found[lost] = jobs[lost].on(self.bench)
        return [shared.found[k] for k in range(len(jobs))]

    def _start(self) -> None:
        while self._more > 0:
            self._more -= 1
            with contextlib.suppress(OSError):
                child = _Child(
                    start_module(["tflm_planner.tiling.evaluate.worker"], subprocess.DEVNULL)
                )
                self._children.append(child)
                given = self._data, self._options
                Thread(target=child.greet, args=(given,), daemon=True).start()

    def close(self) -> None:
        """End the children."""
        for child in self._children:
            child.close()
        self._children = []


@dataclass
class _Child:
    """A process that does jobs once it is ready."""

    process: subprocess.Popen[bytes]
    ready: Event = field(default_factory=Event)

    def greet(self, given: tuple[bytes, TilingOptions]) -> None:
        """Give it the model, and wait until it has read it. A pipe holds less than a model: who
        writes one waits until the child has come up."""
        if self.ask(given) and self.told() is not None:
            self.ready.set()

    def ask(self, message: Any) -> bool:
        """Whether a message could be sent."""
        try:
            assert self.process.stdin is not None
            write_frame(self.process.stdin, message)
        except (OSError, ValueError):
            return False
        return True

    def told(self) -> Any:
        """Its next answer; None where it has none, so that the job is done here."""
        try:
            assert self.process.stdout is not None
            return read_frame(self.process.stdout)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            return None

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()


@dataclass
class _JobQueue(Generic[T]):
    """Jobs that several processes do, each the next one when it is free. stop: after which none
    is begun. found: by number. ended: whether there is nothing left to begin."""

    jobs: Sequence[Job[T]]
    stop: Stop
    found: dict[int, T] = field(default_factory=dict[int, T])
    ended: bool = False
    _next: int = 0
    _lock: Lock = field(default_factory=Lock)

    def take(self, least: int) -> int | None:
        """The next job that nobody has; None where fewer than `least` are left."""
        with self._lock:
            if self._next + least > len(self.jobs) or self.stop.is_over:
                return None
            self._next += 1
            return self._next - 1

    def lost(self) -> list[int]:
        """Jobs that are not done."""
        return [k for k in range(len(self.jobs)) if k not in self.found]


def _feed_child(child: _Child, shared: _JobQueue[Any]) -> None:
    """Have a child do jobs, as long as there are any: one under way, and one more as long as there
    are enough for all. What it does not do is left to the caller."""
    while not child.ready.wait(_MOMENT):
        if shared.ended:
            return
    asked: deque[int] = deque()
    while True:
        while len(asked) < _AHEAD:
            taken = shared.take(_PLENTY if asked else 1)
            if taken is None:
                break
            if not child.ask(shared.jobs[taken]):
                return
            asked.append(taken)
        if not asked:
            return
        found = child.told()
        if found is None:
            return
        shared.found[asked.popleft()] = found
