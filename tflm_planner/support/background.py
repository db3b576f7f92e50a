"""Work that goes on beside what this thread does."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def in_background(work: Callable[[], T]) -> Callable[[], T]:
    """Begin the work in a thread of its own. The function that is returned waits for its end, and
    returns its result or raises its error. Work that nobody waits for ends with the program."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:
            outcome.set_exception(error)

    Thread(target=run, daemon=True).start()
    return outcome.result
