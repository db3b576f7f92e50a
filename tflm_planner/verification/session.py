"""A model loaded in a runtime in a child process, seen from the parent."""

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
    "TFLM": (_WORKER, "tflite_micro"),
}
"""What a child process that runs a runtime imports."""


class RuntimeFailureError(Exception):
    """The runtime refused, aborted or did not answer in time; the text says which."""


class RuntimeTimeoutError(RuntimeFailureError):
    """The runtime did not answer in time."""


class Child:
    """A child process that answers frames with frames. Requests and answers may be pipelined."""

    def __init__(
        self, arguments: list[str], time_limit: float, imports: Sequence[str] = ()
    ) -> None:
        """Start `python -m ARGUMENTS`. `time_limit`: seconds for any answer. `imports`: modules
        that it needs and that take long to import."""
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
        """Ask."""
        assert self._process.stdin is not None
        try:
            write_frame(self._process.stdin, values)
        except OSError as error:
            raise RuntimeFailureError(self._epitaph()) from error

    def receive(self) -> Any:
        """The next answer; RuntimeFailureError when there is none."""
        try:
            answer: Any = self._answers.get(timeout=self._limit)
        except queue.Empty:
            self.close()
            message = f"no answer within {self._limit:.0f} s"
            raise RuntimeTimeoutError(message) from None
        if answer is None:
            raise RuntimeFailureError(self._epitaph())
        if isinstance(answer, Failure):
            raise RuntimeFailureError(f"{answer.reason}{self._last_words()}")
        return answer

    def _epitaph(self) -> str:
        code = self._process.wait()
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return f"the runtime ended the process ({how}){self._last_words()}"

    def _last_words(self) -> str:
        """The last line that the runtime printed: usually its reason."""
        self._errors.seek(0)
        printed = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        lines = [line.strip() for line in printed if not line.startswith(("INFO", "WARNING"))]
        return f": {lines[-1][:200]}" if lines else ""

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def crash(self) -> str | None:
        """Let the runtime end in good order; the name of the signal that ended it otherwise.

        A runtime that writes outside its memory may compute all that is asked, and die later.
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
    """A child process serving one model: `send` several sessions their inputs, then `receive`
    from each."""

    def __init__(
        self, runtime: str, model: Path, *, arena: int, outputs: int, time_limit: float
    ) -> None:
        """Start loading; `describe()` waits for it. `arena`: bytes for TFLM. `outputs`: how
        many the model has. `time_limit`: seconds for any answer."""
        arguments = [_WORKER, runtime, str(model), str(arena), str(outputs)]
        super().__init__(arguments, time_limit, RUNTIME_IMPORTS[runtime])

    def describe(self) -> dict[str, int]:
        """What the runtime said on loading: for TFLM head and tail in bytes."""
        return self.receive()
