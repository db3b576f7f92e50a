"""The child process of a virtual board. It runs the Python wheel's TFLM and takes commands in
frames.

    ("load", model, arena)   -> (head, tail, nanoseconds, inputs, outputs): (dtype, shape) each
    ("run", inputs)          -> (nanoseconds, outputs), as bytes

Times are processor times of this thread, so that other work on the machine does not count. It is a
process of its own because TFLM aborts the process on some models. One process serves any number of
models, because starting one is slow.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np

from tflm_planner.support.frames import Failure, read_frame, write_frame
from tflm_planner.verification.worker import allocation, first_line


class HostInterpreter:
    """Holds at most one interpreter."""

    def __init__(self) -> None:
        self._interpreter: Any = None
        self._inputs: list[tuple[np.dtype[Any], tuple[int, ...]]] = []
        self._outputs = 0

    def load(self, model: bytes, arena: int, inputs: int, outputs: int) -> tuple[Any, ...]:
        """Make an interpreter for a model in an arena of `arena` bytes. Returns the tuple that the
        module describes."""
        from tflite_micro import runtime

        self._interpreter = None  # freed first: two arenas may not fit
        started = time.thread_time_ns()
        interpreter: Any = runtime.Interpreter.from_bytes(model, arena_size=arena)
        spent = time.thread_time_ns() - started
        self._interpreter, self._outputs = interpreter, outputs
        details = [interpreter.get_input_details(i) for i in range(inputs)]
        self._inputs = [(np.dtype(d["dtype"]), tuple(map(int, d["shape"]))) for d in details]
        results = [interpreter.get_output_details(i) for i in range(outputs)]
        sizes = allocation(interpreter)
        result_types = [(np.dtype(d["dtype"]).name, tuple(map(int, d["shape"]))) for d in results]
        return (
            sizes.get("head", 0), sizes.get("tail", 0), spent,
            [(dtype.name, shape) for dtype, shape in self._inputs], result_types,
        )  # fmt: skip

    def run(self, inputs: list[bytes]) -> tuple[int, list[bytes]]:
        """Set the inputs and invoke. Returns (nanoseconds, outputs)."""
        pairs = zip(inputs, self._inputs, strict=True)
        for index, (data, (dtype, shape)) in enumerate(pairs):
            self._interpreter.set_input(np.frombuffer(data, dtype).reshape(shape), index)
        started = time.thread_time_ns()
        self._interpreter.invoke()
        spent = time.thread_time_ns() - started
        return spent, [self._interpreter.get_output(i).tobytes() for i in range(self._outputs)]


def main() -> None:
    """Serve until standard input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    host = HostInterpreter()
    while True:
        try:
            command, *arguments = read_frame(sys.stdin.buffer)
        except EOFError:
            return
        try:
            write_frame(
                answers, host.load(*arguments) if command == "load" else host.run(*arguments)
            )
        except Exception as error:
            write_frame(answers, Failure(first_line(error)))


if __name__ == "__main__":
    main()
