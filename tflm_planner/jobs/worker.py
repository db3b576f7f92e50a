"""The child process of `processes`: `python -m tflm_planner.jobs.worker`.

It reads frames of a function and a job, and answers each with the result, until standard input
ends.
"""

from __future__ import annotations

import os
import sys

from tflm_planner.support.frames import Failure, read_frame, write_frame


def main() -> None:
    """Serve until standard input ends."""
    # Libraries print to descriptor 1 too; frames keep a copy of it for themselves.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            work, job = read_frame(sys.stdin.buffer)
        except EOFError:
            return
        try:
            write_frame(answers, work(job))
        except Exception as error:  # of the work, or of a result that cannot be sent
            write_frame(answers, Failure(f"{type(error).__name__}: {error}"))


if __name__ == "__main__":
    main()
