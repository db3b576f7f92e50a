"""The engine of a virtual board: real TFLM (the Python wheel) in a child process.

Its latencies are this machine's; arena, outputs and errors are TFLM's own. If TFLM aborts the
process, as it does on some models, the next load starts another.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tflm_planner.device.protocol import messages as m
from tflm_planner.device.protocol.fill import draw, elements
from tflm_planner.device.virtual.responder import Loaded, RefusedRequest, RunResult
from tflm_planner.model.serde import read_model
from tflm_planner.support.errors import PlannerError
from tflm_planner.verification.session import RUNTIME_IMPORTS, Child, RuntimeFailureError

TICK_HZ = 100_000_000
_NANOSECONDS = 1_000_000_000 // TICK_HZ
_MISSING = re.compile(r"Didn't find op for builtin opcode '(\w+)'")
_MOST_SECONDS = 600.0


class HostEngine:
    """See `responder.Engine`. time_limit: seconds that one load or run may take."""

    def __init__(self, time_limit: float = _MOST_SECONDS) -> None:
        self._limit = time_limit
        self._child: Child | None = None
        self._loaded: list[tuple[str, int]] = []
        """For each input of the loaded model: numpy's type name and the number of elements."""
        self._counts: tuple[bytes, tuple[int, int]] = b"", (0, 0)

    def close(self) -> None:
        """End the child process."""
        if self._child is not None:
            self._child.__exit__(None, None, None)
            self._child = None

    def load(self, data: bytes, arena: int) -> Loaded:
        """See `responder.Engine`. The wheel takes any arena size."""
        try:
            answer = self._ask("load", data, arena, *self._arity(data))
        except RuntimeFailureError as failure:
            missing = _MISSING.search(str(failure))
            if missing is not None:
                raise RefusedRequest(m.Error.OPERATOR_MISSING, 0, missing[1]) from failure
            raise RefusedRequest(m.Error.ALLOCATE_FAILED, arena, str(failure)) from failure
        head, tail, spent, inputs, outputs = answer
        self._loaded = [(name, int(np.prod(shape, dtype=np.int64))) for name, shape in inputs]
        return Loaded(
            head + tail, head, tail, min(spent // _NANOSECONDS, m.UNKNOWN),
            tuple(_describe(name, shape) for name, shape in inputs),
            tuple(_describe(name, shape) for name, shape in outputs),
        )  # fmt: skip

    def fits(self, data: bytes, arena: int) -> bool:
        """See `responder.Engine`."""
        try:
            self._ask("load", data, arena, *self._arity(data))
        except RuntimeFailureError:
            return False
        return True

    def run(self, inputs: list[bytes], number: int) -> RunResult:
        """See `responder.Engine`."""
        try:
            spent, outputs = self._ask("run", inputs)
        except RuntimeFailureError as failure:
            raise RefusedRequest(m.Error.INVOKE_FAILED, number, str(failure)) from failure
        return RunResult(spent // _NANOSECONDS, outputs)

    def fill(self, seed: int) -> list[bytes]:
        """See `responder.Engine`."""
        filled_inputs: list[bytes] = []
        for index, (name, count) in enumerate(self._loaded):
            if name not in _FILLED:
                raise RefusedRequest(m.Error.TYPE_UNSUPPORTED, type_number(name))
            drawn = np.array(draw(count, index, seed), np.uint32)
            filled_inputs.append(elements(drawn, np.dtype(name)).tobytes())
        return filled_inputs

    def _ask(self, *request: object) -> Any:
        if self._child is None:
            self._child = Child(
                ["tflm_planner.device.virtual.host_runtime_worker"],
                self._limit,
                RUNTIME_IMPORTS["TFLM"],
            )
        try:
            self._child.send(request)
            return self._child.receive()
        except RuntimeFailureError as failure:
            if not self._child.alive:
                self.close()
            raise failure

    def _arity(self, data: bytes) -> tuple[int, int]:
        """The number of inputs and outputs of a model, which the wheel does not provide."""
        if self._counts[0] != data:
            try:
                main = read_model(data, dialect=True).main
            except PlannerError as error:
                raise RefusedRequest(m.Error.MODEL_UNSUPPORTED, 0, str(error)) from error
            self._counts = data, (len(main.inputs), len(main.outputs))
        return self._counts[1]


_FILLED = frozenset(
    ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool", "float32")
)


def _describe(name: str, shape: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(name).itemsize
    return type_number(name), size, shape


_LITE_TYPES = {"float32": 1, "int32": 2, "uint8": 3, "int64": 4, "string": 5, "bool": 6,
               "int16": 7, "complex64": 8, "int8": 9, "float16": 10, "float64": 11,
               "uint64": 13, "uint32": 16, "uint16": 17}  # fmt: skip


def type_number(name: str) -> int:
    """The protocol's number for an element type of numpy; 0 if it has none."""
    return _LITE_TYPES.get(name, 0)
