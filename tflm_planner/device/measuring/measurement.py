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
    """A size in bytes: predicted for the target, measured on the board; None where unknown. bound:
    how the predicted size is known: exact, enough, or "at least"."""

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
    """Seconds: the fastest run, the median one, and the slowest less the fastest."""

    minimum: float
    median: float
    spread: float
    runs: int


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """One operator of the model. runs: in one inference. predicted: its share of the predicted
    instructions; measured: its share of the measured time (its called graphs apart). time: of all
    its runs in an inference."""

    index: int
    operator: str
    name: str
    runs: int
    predicted: float
    measured: float
    time: Spread


@dataclass(frozen=True, slots=True)
class OutputCheck:
    """An output on the board: its CRC after the last step, and whether TFLM here computes the same
    bytes in every step. None: it was not compared. different: bytes, of all steps; first_wrong:
    the first step with one, counted from 0."""

    index: int
    name: str
    size: int
    crc: int
    equal: bool | None
    different: int = 0
    first_wrong: int | None = None


@dataclass(frozen=True)
class Measurement:
    """A whole measurement. model: its name. sizes: arena and its parts. predicted_seconds: by the
    latency model, None without a clock. steps: Invokes in a row, each with inputs of its own,
    whose outputs were compared."""

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
        """Whether an output is not what TFLM computes here."""
        return any(check.equal is False for check in self.outputs)
