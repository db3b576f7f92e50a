"""The child process of `processes`: `python -m tflm_planner.jobs.worker`.

It reads frames that hold a function and a job, and answers each with the result, until standard
input ends.
"""

from __future__ import annotations

import os
import sys

from tflm_planner.support.frames import Failure, read_frame, write_frame


def main() -> None:
    """Serve until standard input ends."""
    # Libraries also print to descriptor 1, so answers go to a copy of it and prints to stderr.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            work, job = read_frame(sys.stdin.buffer)
        except EOFError:
            return
        try:
            write_frame(answers, work(job))
        except Exception as error:  # from the work, or because its result cannot be sent
            write_frame(answers, Failure(f"{type(error).__name__}: {error}"))


if __name__ == "__main__":
    main()
