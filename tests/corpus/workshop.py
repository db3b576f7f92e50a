"""Conversion in a child process of its own: the converter crashes on some networks, with all that
is in its process. TensorFlow is imported there, once.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from multiprocessing.connection import Connection
from typing import Self

from tests.corpus.convert import ConversionError
from tests.corpus.registry import NETWORKS

SECONDS = 600.0
"""That a conversion may take."""


class Workshop:
    """Converts networks one by one."""

    def __init__(self) -> None:
        self._pipe: Connection | None = None
        self._process: multiprocessing.process.BaseProcess | None = None

    def converted(self, name: str, kind: str) -> bytes:
        """The file. Raises ConversionError where the converter refuses, or crashes."""
        if self._pipe is None:
            self._start()
        assert self._pipe is not None
        self._pipe.send((name, kind))
        try:
            if not self._pipe.poll(SECONDS):
                raise EOFError
            done, answer = self._pipe.recv()
        except (EOFError, ConnectionError):
            self.close()
            raise ConversionError("the converter crashes") from None
        if not done:
            raise ConversionError(answer)
        return answer

    def _start(self) -> None:
        os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", OMP_NUM_THREADS="1")
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def close(self) -> None:
        """End the child."""
        if self._pipe is not None and self._process is not None:
            self._pipe.close()
            self._process.kill()
            self._process.join()
        self._pipe = self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _serve(pipe: Connection) -> None:
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)  # TensorFlow prints from C++
    os.dup2(silent, 2)
    import tests.corpus.networks  # noqa: F401 (fills the registry)
    from tests.corpus.convert import converted

    with contextlib.suppress(EOFError):
        while True:
            name, kind = pipe.recv()
            try:
                pipe.send((True, converted(NETWORKS[name], kind)))
            except ConversionError as error:
                pipe.send((False, str(error)))
