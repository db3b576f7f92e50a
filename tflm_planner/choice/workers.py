"""Trials in several processes; in this one where no other can be had.

Every process reads the model by itself and is told trials; answers are put in the order of the
questions, so that the number of processes changes nothing but the time. What was answered once is
known from then on, to all searches that share the workers. Children are started as
`python -m tflm_planner.choice.worker`, never forked and never by importing the caller's script.
"""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import sys
from collections.abc import Hashable, Sequence
from typing import Any

from tflm_planner.choice.bench import Bench, Question
from tflm_planner.choice.options import TileOptions
from tflm_planner.choice.trial import Outcome
from tflm_planner.verify.frames import read_frame, write_frame

_WORTH_STARTING = 24
"""Questions asked before the first child is started: small searches end sooner."""


class Workers:
    """Answers questions with `options.workers` processes, this one among them."""

    def __init__(self, data: bytes, options: TileOptions) -> None:
        self.bench = Bench(data, options)
        self._data, self._options = data, options
        self._children: list[subprocess.Popen[bytes]] = []
        self._asked, self._more = 0, options.workers - 1
        self._known: dict[Hashable, Outcome | None] = {}

    def knows(self, question: Question) -> bool:
        """Whether the answer is known already."""
        return self.key(question) in self._known

    def key(self, question: Question) -> Hashable:
        """Equal for questions that have one answer."""
        return self.bench.key(question)

    def answers(self, questions: Sequence[Question]) -> list[Outcome | None]:
        """One outcome a question, in their order."""
        keys = [self.key(q) for q in questions]
        fresh = {key: q for key, q in zip(keys, questions, strict=True) if key not in self._known}
        if fresh:
            outcomes = self._worked_out(list(fresh.values()))
            self._known.update(zip(fresh, outcomes, strict=True))
        return [self._known[key] for key in keys]

    def _worked_out(self, questions: Sequence[Question]) -> list[Outcome | None]:
        self._asked += len(questions)
        if self._asked > _WORTH_STARTING and self._more > 0:
            self._start()
        shares = [list(questions[k :: len(self._children) + 1]) for k in range(self._count)]
        busy = [c for c, share in zip(self._children, shares[1:], strict=True) if _ask(c, share)]
        answered = [[self.bench.answer(q) for q in shares[0]]]
        for child, share in zip(self._children, shares[1:], strict=True):
            found = _told(child, len(share)) if child in busy else None
            answered.append([self.bench.answer(q) for q in share] if found is None else found)
        merged: list[Outcome | None] = [None] * len(questions)
        for k, share in enumerate(answered):
            merged[k :: len(answered)] = share
        return merged

    @property
    def _count(self) -> int:
        return len(self._children) + 1

    def _start(self) -> None:
        while self._more > 0:
            self._more -= 1
            with contextlib.suppress(OSError):
                child = subprocess.Popen(
                    [sys.executable, "-m", "tflm_planner.choice.worker"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
                if _ask(child, (self._data, self._options)):
                    self._children.append(child)

    def close(self) -> None:
        """End the children."""
        for child in self._children:
            child.kill()
            child.wait()
            for stream in (child.stdin, child.stdout):
                with contextlib.suppress(OSError):
                    if stream is not None:
                        stream.close()
        self._children = []


def _ask(child: subprocess.Popen[bytes], message: Any) -> bool:
    try:
        assert child.stdin is not None
        write_frame(child.stdin, message)
    except OSError:
        return False
    return True


def _told(child: subprocess.Popen[bytes], count: int) -> list[Outcome | None] | None:
    """A child's answers; None where it has none, so that they are worked out here."""
    try:
        assert child.stdout is not None
        found: list[Outcome | None] = read_frame(child.stdout)
    except (OSError, EOFError, pickle.UnpicklingError):
        return None
    return found if len(found) == count else None
