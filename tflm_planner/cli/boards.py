"""What the commands for boards share: serial port, timeout, target and number of runs.

It must not know commands.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Generator

    from tflm_planner.device.protocol.station import Station
    from tflm_planner.tflm.targets import Target

BoardModel = Annotated[
    Path, typer.Argument(readable=False, metavar="MODEL", help="The .tflite model.")
]
Port = Annotated[
    str | None,
    typer.Option("--port", "-p", help="The board's serial port; found by its USB id if not given."),
]
Baud = Annotated[int, typer.Option(min=300, help="Baud rate, for boards behind a UART.")]
DEFAULT_BAUD = 115200
Patience = Annotated[
    float, typer.Option("--timeout", min=0.1, help="Seconds that a working board may be silent.")
]
DEFAULT_PATIENCE = 60.0
BoardTarget = Annotated[
    str | None,
    typer.Option("--target", "-t", help="Predict for this target, not the one the board says."),
]
RunCount = Annotated[int, typer.Option(min=1, max=1000, help="Runs to time.")]
DEFAULT_RUNS = 10


@contextmanager
def open_station(
    port: str | None, baud: int, patience: float, on_progress: Callable[[str], None]
) -> Generator[Station]:
    """The board at a serial port. patience: seconds for which it may be silent."""
    from tflm_planner.device.protocol.line import choose_port
    from tflm_planner.device.protocol.link import Timing
    from tflm_planner.device.protocol.station import Station

    with Station(choose_port(port), baud, Timing(patience=patience)) as station:
        station.on_retry = on_progress
        yield station


def add_profile(target: Target, path: Path | None) -> Target:
    """The target with the latencies of a profile database, for commands that plan."""
    if path is None:
        return target
    from tflm_planner.device.profiling.database import ProfileDatabase
    from tflm_planner.device.profiling.profile import profiled_target

    with ProfileDatabase(path) as database:
        return profiled_target(target, database)
