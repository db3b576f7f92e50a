"""Virtual boards behind a proxy that injects faults."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.device.faulty_boards import Setup
from tests.device.proxy import Fake, Hook, Proxy
from tflm_planner.device.virtual.virtual_board import VirtualBoard, virtual_capabilities


@pytest.fixture
def engine() -> Fake:
    return Fake()


@pytest.fixture
def setup(engine: Fake) -> Iterator[Setup]:
    with ExitStack() as stack:

        def make(
            to_board: Hook | None = None,
            to_host: Hook | None = None,
            first: bytes = b"",
            largest: int = 1024,
            ram: int = 1 << 16,
        ) -> Proxy:
            says = virtual_capabilities(ram)
            board = stack.enter_context(VirtualBoard(says, engine, largest=largest))
            return stack.enter_context(Proxy(board, to_board, to_host, first))

        yield make
