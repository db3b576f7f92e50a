"""The child process of a search: `python -m tflm_planner.tiling.evaluate.worker`; see `workers`."""

from __future__ import annotations

import contextlib
import os
import sys

from tflm_planner.support.frames import read_frame, write_frame
from tflm_planner.tiling.evaluate.evaluator import Evaluator


def main() -> None:
    """Run the jobs from standard input until it ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed must not mix with the answers
    with contextlib.suppress(EOFError, BrokenPipeError):
        data, options = read_frame(sys.stdin.buffer)
        evaluator = Evaluator(data, options)
        write_frame(answers, "ready")
        while True:
            write_frame(answers, read_frame(sys.stdin.buffer).run(evaluator))


if __name__ == "__main__":
    main()
