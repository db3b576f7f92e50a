"""A port with a board. It is opened when needed, and opened again after a reset.

A board that was reset, or whose line broke, comes back after some seconds. Its job is then repeated
once from the start, and given up if it fails in this way again. A board that hangs does not come
back by itself, so its error is final. This module must not know what jobs do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tflm_planner.device.protocol.board import BoardClient, connect
from tflm_planner.device.protocol.line import LineError, SerialLine, reopen
from tflm_planner.device.protocol.link import BoardResetError, Timing

T = TypeVar("T")
RETURN = 8.0
"""Seconds within which a board that was reset comes back to its port."""


class Station:
    """A port with a board. `retries`: how often a job was repeated."""

    def __init__(
        self, port: str, baud: int, timing: Timing | None = None, comes_back: float = RETURN
    ) -> None:
        self.port, self._baud, self._timing, self._back = port, baud, timing, comes_back
        self._board: BoardClient | None = None
        self.retries = 0
        self.on_retry: Callable[[str], None] | None = None

    @property
    def board(self) -> BoardClient:
        """The session with the board, which is begun if necessary."""
        if self._board is None:
            self._board = connect(SerialLine(self.port, self._baud), self._timing)
        return self._board

    def run(self, job: Callable[[BoardClient], T]) -> T:
        """Return `job(board)`. The job is repeated once if the board is reset or its line
        breaks."""
        try:
            return job(self.board)
        except (BoardResetError, LineError) as error:
            if self._board is None:  # it was never there
                raise
            self.retries += 1
            if self.on_retry is not None:
                self.on_retry(f"{error}; trying once more")
            self.close()
            line = reopen(self.port, self._baud, self._back)
            self._board = connect(line, self._timing)
            return job(self._board)

    def close(self) -> None:
        """Close the port."""
        if self._board is not None:
            self._board.close()
            self._board = None

    def __enter__(self) -> Station:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
