"""The parent's side of a child process in which a runtime has loaded a model."""

from __future__ import annotations

import contextlib
import queue
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from tflm_planner.support.children import start_module
from tflm_planner.support.frames import Failure, read_frame, write_frame

_WORKER = "tflm_planner.verification.worker"
RUNTIME_IMPORTS = {
    "LiteRT": (_WORKER, "ai_edge_litert.interpreter"),
    "LiteRT shapes": (_WORKER, "ai_edge_litert.interpreter"),
    "TFLM": (_WORKER, "tflite_micro"),
}
"""The modules that a child process imports to run a runtime."""


class RuntimeFailureError(Exception):
    """The runtime refused, aborted or did not answer in time; the text says which."""


class RuntimeTimeoutError(RuntimeFailureError):
    """The runtime did not answer in time."""


class Child:
    """A child process that answers each frame with a frame. Several requests may be sent before
    their answers are received."""

    def __init__(
        self, arguments: list[str], time_limit: float, imports: Sequence[str] = ()
    ) -> None:
        """Start `python -m ARGUMENTS`. `time_limit`: seconds for any answer. `imports`: slow
        modules that the process needs."""
        self._limit = time_limit
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed in __exit__)
        self._process = start_module(arguments, self._errors, imports)
        self._answers: queue.Queue[Any] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            while True:
                self._answers.put(read_frame(self._process.stdout))
        except (EOFError, OSError, ValueError):
            self._answers.put(None)

    def send(self, values: Any) -> None:
        """Send a request. Raises RuntimeFailureError if the process has ended."""
        assert self._process.stdin is not None
        try:
            write_frame(self._process.stdin, values)
        except OSError as error:
            raise RuntimeFailureError(self._how_it_ended()) from error

    def receive(self) -> Any:
        """The next answer. Raises RuntimeFailureError if there is none, RuntimeTimeoutError if it
        does not come in time."""
        try:
            answer: Any = self._answers.get(timeout=self._limit)
        except queue.Empty:
            self.close()
            message = f"no answer within {self._limit:.0f} s"
            raise RuntimeTimeoutError(message) from None
        if answer is None:
            raise RuntimeFailureError(self._how_it_ended())
        if isinstance(answer, Failure):
            raise RuntimeFailureError(f"{answer.reason}{self._last_words()}")
        return answer

    def _how_it_ended(self) -> str:
        code = self._process.wait()
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return f"the runtime ended the process ({how}){self._last_words()}"

    def _last_words(self) -> str:
        """The last line that the runtime printed on stderr, which is usually the reason of a
        failure."""
        self._errors.seek(0)
        printed = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        lines = [line.strip() for line in printed if not line.startswith(("INFO", "WARNING"))]
        return f": {lines[-1][:200]}" if lines else ""

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def crash(self) -> str | None:
        """Let the runtime exit normally. Returns the name of the signal if one ended it, else None.

        A runtime that writes outside its memory may answer every request and crash only at exit.
        """
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            code = self._process.wait(timeout=self._limit)
        except subprocess.TimeoutExpired:
            return None
        return signal.Signals(-code).name if code < 0 else None

    def close(self) -> None:
        """End the child process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._errors.close()


class Session(Child):
    """A child process that serves one model. To run several in parallel, `send` inputs to all
    sessions, then `receive` from each."""

    def __init__(
        self, runtime: str, model: Path, *, arena: int, outputs: int, time_limit: float
    ) -> None:
        """Start to load the model; `describe()` waits until it is loaded. `arena`: bytes for TFLM.
        `outputs`: the model's number of outputs. `time_limit`: seconds for any answer."""
        arguments = [_WORKER, runtime, str(model), str(arena), str(outputs)]
        super().__init__(arguments, time_limit, RUNTIME_IMPORTS[runtime])

    def describe(self) -> dict[str, int]:
        """What the runtime reported after loading: for TFLM, head and tail in bytes."""
        return self.receive()
