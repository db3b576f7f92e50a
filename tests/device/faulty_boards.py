"""A job on a board, with short waits, and answers that are not what the board said."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tests.device.proxy import Hook, Proxy
from tflm_planner.device.protocol import messages as m
from tflm_planner.device.protocol.board import BoardClient, connect
from tflm_planner.device.protocol.framing import Frame, encode
from tflm_planner.device.protocol.line import SerialLine
from tflm_planner.device.protocol.link import Timing

QUICK = Timing(answer=0.15, repeats=3, patience=0.4, greeting=0.5)
MODEL = b"\x1c\0\0\0TFL3" + bytes(range(256)) * 40
Setup = Callable[..., Proxy]


def opened(proxy: Proxy, timing: Timing = QUICK) -> BoardClient:
    return connect(SerialLine(proxy.port), timing)


def whole_job(board: BoardClient) -> tuple[Any, ...]:
    """All commands; what they find is checked, so that no fault passes unseen."""
    board.upload(MODEL)
    board.arena(0)
    found = board.allocate(smallest=True)
    assert found.smallest == 1008
    board.arena(2000)
    assert (board.allocate().used, board.allocate().arena) == (1000, 2000)
    ran = board.invoke(4, seed=9, log=True)
    assert board.log() == [100, 101, 102, 103]
    assert board.output(0, 12) == bytes(range(20, 8, -1))
    board.set_inputs([bytes(12)])
    board.invoke()
    assert board.output(0, 12) == bytes(12)
    board.memory()
    return ran.crcs


def instead(command: m.Command, payload: bytes | Callable[[bytes], bytes]) -> Hook:
    def hook(frame: Frame, count: int) -> Iterable[bytes] | None:
        if frame.type != command | m.REPLY or frame.status != m.DONE:
            return None
        said = payload if isinstance(payload, bytes) else payload(frame.payload)
        return [encode(Frame(frame.type, 0, frame.sequence, said))]

    return hook
