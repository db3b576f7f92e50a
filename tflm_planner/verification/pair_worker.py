"""The child process that runs front and back of a split model on one runtime, like one model.

`python -m tflm_planner.verification.pair_worker RUNTIME FRONT BACK ARENA OUTPUTS STRIPS` does
exactly what an application does: it fills the halos before each image, feeds strips to the front,
and appends the rows that the front makes to the back's input. STRIPS holds the fields of
`split_input.StripSchedule` and the shapes, as JSON. On TFLM the halos are not written between
strips, because the plan must preserve them. Strip rows below the image, and the back's input that
reserves the front's memory, hold noise, so that a result that depends on them differs.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np

from tflm_planner.support.frames import Failure, read_frame, write_frame
from tflm_planner.verification.worker import LOADERS, Invoke, first_line


class Application:
    """Runs front and back as one model."""

    def __init__(self, front: Invoke, back: Invoke, schedule: dict[str, Any], keeps: bool) -> None:
        """`keeps`: whether the interpreter preserves halos between invokes."""
        self._front, self._back, self._schedule, self._keeps = front, back, schedule, keeps
        self._noise = np.random.default_rng(0)

    def invoke(self, values: list[Any]) -> list[Any]:
        """Compute the outputs of one image."""
        (image,), schedule = values, self._schedule
        halos: list[Any] = [
            np.full(shape, value, kind)
            for shape, value, kind in zip(
                schedule["halo_shapes"], schedule["fills"], schedule["halo_types"], strict=True
            )
        ]
        boundary: Any = np.zeros(schedule["boundary_shape"], schedule["boundary_type"])
        for turn in range(schedule["turns"]):
            front_inputs: list[Any] = [self._strip(image, turn)]
            if schedule["clock"]:
                front_inputs.append(np.array([turn * schedule["clock"]], np.int32))
            front_inputs += halos if turn == 0 or not self._keeps else [None] * len(halos)
            rows, *halos = self._front(front_inputs)
            first = turn * schedule["made"] - schedule["delay"]
            begin, end = max(first, 0), min(first + schedule["made"], schedule["result_height"])
            if begin < end:
                boundary[:, begin:end] = rows[:, begin - first : end - first]
        room = np.frombuffer(self._noise.bytes(int(schedule["room"])), np.uint8)
        return self._back([boundary, room])

    def _strip(self, image: Any, turn: int) -> Any:
        rows = self._schedule["rows"]
        shape = (image.shape[0], rows, *image.shape[2:])
        noise = self._noise.integers(-100, 100, shape).astype(image.dtype)
        real = image[:, turn * rows : (turn + 1) * rows]
        noise[:, : real.shape[1]] = real
        return noise


def main() -> None:
    """Serve one pair until standard input ends."""
    name, front, back, arena, outputs, strips = sys.argv[1:7]
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    schedule = json.loads(strips)
    try:
        about_front, run_front = LOADERS[name](front, int(arena), 1 + len(schedule["fills"]))
        about_back, run_back = LOADERS[name](back, int(arena), int(outputs))
    except Exception as error:
        write_frame(answers, Failure(first_line(error)))
        return
    application = Application(run_front, run_back, schedule, keeps=name == "TFLM")
    halves = (("front", about_front), ("back", about_back))
    write_frame(answers, {f"{half}_{k}": v for half, about in halves for k, v in about.items()})
    while True:
        try:
            values = read_frame(sys.stdin.buffer)
        except EOFError:
            return
        try:
            write_frame(answers, application.invoke(values))
        except Exception as error:
            write_frame(answers, Failure(first_line(error)))


if __name__ == "__main__":
    main()
