"""The result of measuring as data: sizes, latencies, outputs, in bytes and seconds.

It must not know boards' lines, or how to render.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tflm_planner.device.measuring.energy import Energy
from tflm_planner.device.protocol.board import BoardMemory
from tflm_planner.device.protocol.messages import Capabilities
from tflm_planner.tflm.arena.uncertainty import BoundKind


@dataclass(frozen=True, slots=True)
class MeasuredSize:
    """A size in bytes: predicted for the target, and measured on the board; None if unknown. bound:
    whether the predicted size is exact, enough, or "at least"."""

    name: str
    predicted: int | None
    measured: int | None
    bound: BoundKind = "exact"

    @property
    def difference(self) -> int | None:
        """Measured minus predicted."""
        if self.predicted is None or self.measured is None:
            return None
        return self.measured - self.predicted


@dataclass(frozen=True, slots=True)
class Spread:
    """Times in seconds. minimum: of the fastest run. median: of the median run. spread: the slowest
    minus the fastest."""

    minimum: float
    median: float
    spread: float
    runs: int


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """One operator of the model. runs: how often it runs in one inference. predicted: its share of
    the predicted instructions. measured: its share of the measured time, without the graphs that it
    calls. time: the time of all its runs in an inference."""

    index: int
    operator: str
    name: str
    runs: int
    predicted: float
    measured: float
    time: Spread


@dataclass(frozen=True, slots=True)
class OutputCheck:
    """A check of one output. crc: its CRC on the board after the last step. equal: whether TFLM on
    this machine computes the same bytes in every step; None if it was not compared. different: how
    many bytes differ, over all steps. first_wrong: the first step with a difference, counted from
    0."""

    index: int
    name: str
    size: int
    crc: int
    equal: bool | None
    different: int = 0
    first_wrong: int | None = None


@dataclass(frozen=True)
class Measurement:
    """A complete measurement. model: the name of the model. sizes: the arena and its parts.
    predicted_seconds: from the latency model; None if the clock is unknown. steps: how many Invokes
    in a row, each with other inputs, had their outputs compared."""

    model: str
    sha256: str
    board: Capabilities
    target: str
    lean: bool
    sizes: tuple[MeasuredSize, ...]
    latency: Spread
    predicted_seconds: float | None
    predicted_instructions: int
    allocate_seconds: float
    operators: tuple[OperatorTime, ...]
    outputs: tuple[OutputCheck, ...]
    steps: int
    memory: BoardMemory
    energy: Energy | None
    notes: tuple[str, ...] = field(default_factory=tuple)

    @property
    def differs(self) -> bool:
        """Whether an output differs from that of TFLM on this machine."""
        return any(check.equal is False for check in self.outputs)
