"""A line that fails: a pseudo-terminal between host and board on which faults are injected.

    host -- pts A -- proxy -- pts B -- virtual board

`Faults` is told of every whole frame in either direction and says what goes on in its place;
it may also send bytes of its own, pull the plug or reset the board.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import tty
from collections.abc import Callable, Iterable

from tflm_planner.device.protocol.framing import Frame, Receiver, encode
from tflm_planner.device.virtual.host_runtime import type_number
from tflm_planner.device.virtual.responder import Loaded, RefusedRequest, RunResult
from tflm_planner.device.virtual.virtual_board import VirtualBoard
from tflm_planner.model.serde import read_model

Hook = Callable[[Frame, int], Iterable[bytes] | None]
"""A frame and how many of its type came before -> what goes on; None lets it through."""


class Proxy:
    """`port` is what the host opens. `first`: bytes that the host reads before anything else."""

    def __init__(
        self,
        board: VirtualBoard,
        to_board: Hook | None = None,
        to_host: Hook | None = None,
        first: bytes = b"",
    ) -> None:
        self.board = board
        self._hooks = to_board, to_host
        self._first = first
        self._counts: list[dict[int, int]] = [{}, {}]
        self._stop, self._stopped = os.pipe()
        self._board_end = os.open(board.port, os.O_RDWR | os.O_NOCTTY)
        self._open_host()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _open_host(self) -> None:
        self._host_end, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.port = os.ttyname(self._slave)

    @property
    def alive(self) -> bool:
        """Whether the host's port is there."""
        return self._host_end >= 0

    def say(self, data: bytes) -> None:
        """Send bytes to the host, unasked."""
        with contextlib.suppress(OSError):
            os.write(self._host_end, data)

    def unplug(self) -> None:
        """The host's port vanishes."""
        for end in (self._slave, self._host_end):
            with contextlib.suppress(OSError):
                os.close(end)
        self._host_end = -1

    def _serve(self) -> None:
        receivers = Receiver(), Receiver()
        if self._first:
            os.write(self._host_end, self._first)
        while self._host_end >= 0:
            ends = self._host_end, self._board_end
            ready, _, _ = select.select([*ends, self._stop], [], [])
            if self._stop in ready:
                return
            for way, end in enumerate(ends):
                if end not in ready:
                    continue
                try:
                    receivers[way].push(os.read(end, 65536))
                except OSError:
                    return
                while self._host_end >= 0 and (frame := receivers[way].take()) is not None:
                    self._pass(way, frame)

    def _pass(self, way: int, frame: Frame) -> None:
        count = self._counts[way].get(frame.type, 0)
        self._counts[way][frame.type] = count + 1
        hook = self._hooks[way]
        said = hook(frame, count) if hook is not None else None
        for data in [encode(frame)] if said is None else said:
            while data and self._host_end >= 0:
                data = data[os.write((self._board_end, self._host_end)[way], data) :]

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.write(self._stopped, b"x")
        self._thread.join()
        self.unplug()
        for end in (self._board_end, self._stop, self._stopped):
            with contextlib.suppress(OSError):
                os.close(end)


class Fake:
    """An engine without TFLM: input and output of `size` bytes of int8, the output their
    reverse; arenas from `least` bytes on are large enough. `refuse`: what loading answers."""

    def __init__(self, size: int = 12, least: int = 1000) -> None:
        self.size, self.least = size, least
        self.refuse: RefusedRequest | None = None
        self.on_run: Callable[[], None] | None = None
        self.loads = 0
        self.data = b""

    def load(self, data: bytes, arena: int) -> Loaded:
        self.loads += 1
        self.data = data
        if self.refuse is not None:
            raise self.refuse
        tensor = (9, self.size, (1, self.size))
        return Loaded(self.least, self.least - 200, 200, 77, (tensor,), (tensor,))

    def fits(self, data: bytes, arena: int) -> bool:
        return arena >= self.least

    def run(self, inputs: list[bytes], number: int) -> RunResult:
        if self.on_run is not None:
            self.on_run()
        return RunResult(100 + number, [data[::-1] for data in inputs])

    def fill(self, seed: int) -> list[bytes]:
        return [bytes((seed + i) % 256 for i in range(self.size))]


class ModelFake(Fake):
    """An engine that has the tensors of a model, and times its operators: in run 0 those that
    begin take `ticks`, one more each in run 1 ..."""

    def __init__(self, data: bytes, ticks: list[int]) -> None:
        super().__init__(least=5000)
        main = read_model(data).main
        self._tensors = [
            tuple((type_number(t.type_name), t.nbytes, tuple(t.shape or ())) for t in part)
            for part in (main.inputs, main.outputs)
        ]
        self.ticks = ticks

    def load(self, data: bytes, arena: int) -> Loaded:
        return Loaded(self.least, self.least - 200, 200, 77, *self._tensors)

    def run(self, inputs: list[bytes], number: int) -> RunResult:
        operators = tuple(t + number for t in self.ticks)
        return RunResult(
            sum(operators) + 7, [bytes(size) for _, size, _ in self._tensors[1]], operators
        )

    def fill(self, seed: int) -> list[bytes]:
        return [bytes(size) for _, size, _ in self._tensors[0]]
