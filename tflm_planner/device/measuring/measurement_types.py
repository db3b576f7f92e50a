"""The document of a measurement: every key, its type and its limits. See `support.documents`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tflm_planner.support.documents import Document, says
from tflm_planner.tflm.arena.uncertainty import BoundKind

SCHEMA_VERSION = 3
_Count = Annotated[int, msgspec.Meta(ge=0)]
_Positive = Annotated[int, msgspec.Meta(ge=1)]


class ModelJson(Document):
    """The model that was measured."""

    name: str
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class BoardSaidJson(Document):
    """What the board says of itself."""

    board: str
    core: str
    kernels: str
    tflm: str
    firmware: str
    clock: Annotated[str, says("Where its ticks come from.")]
    clock_hz: int | None
    virtual: Annotated[bool, says("Latencies are those of another machine.")]


class BoardJson(BoardSaidJson):
    """The board, and what runs on it."""

    lean: Annotated[bool, says("Measured with the lean library.")]


class SizeJson(Document):
    """Bytes, predicted for the target and measured on the board."""

    name: Literal["arena", "head", "tail", "arena_used_bytes()"]
    predicted: int | None
    bound: Annotated[
        BoundKind, says('What predicted is; "at least" for kernels that nobody has read.')
    ]
    measured: int | None
    difference: int | None


class TimesJson(Document):
    """Times of several runs."""

    minimum: float = msgspec.field(name="minimum_seconds")
    median: float = msgspec.field(name="median_seconds")
    spread: float = msgspec.field(name="spread_seconds")
    runs: _Positive = msgspec.field(name="timed_runs")


class LatencyJson(TimesJson):
    """An inference."""

    predicted_seconds: Annotated[
        float | None, says("An order of magnitude: instructions over the clock.")
    ]
    predicted_instructions: int
    allocate_seconds: Annotated[float, says("AllocateTensors.")]


class OperatorJson(Document):
    """One operator, over all its runs in an inference."""

    index: _Count
    operator: str
    name: str
    runs: Annotated[_Positive, says("In one inference.")]
    predicted: float = msgspec.field(name="predicted_share")
    measured: float = msgspec.field(name="measured_share")
    minimum_seconds: float
    median_seconds: float
    spread_seconds: float
    timed_runs: _Positive


class OutputJson(Document):
    """An output of the model."""

    index: int
    name: str
    bytes: int
    crc: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{8}$"), says("After the last step.")]
    equal: Annotated[
        bool | None, says("To what TFLM computes on the host, in every step; null: not compared.")
    ]
    different_bytes: Annotated[int, says("Of all steps.")]
    first_wrong_step: Annotated[int | None, says("Counted from 0; null: none.")]


class MemoryJson(Document):
    """RAM of the board in bytes."""

    static: int | None
    heap_used: int | None
    heap_peak: int | None
    heap_free: int | None
    stack_size: int | None
    stack_allocate: int | None
    stack_invoke: int | None
    bad_frames: int | None


class EnergyJson(Document):
    """Energy of one inference."""

    joules: float
    watts: float
    source: str
    measured: Annotated[bool, says("By a current meter; else an estimate.")]


class MeasurementJson(Document):
    """A model on a board, beside what was predicted. Sizes in bytes, times in seconds; null where
    unknown."""

    schema_version: Literal[3]
    model: ModelJson
    target: Annotated[str, says("The target that was predicted for.")]
    board: BoardJson
    sizes: list[SizeJson]
    latency: LatencyJson
    operators: Annotated[list[OperatorJson], says("Empty where the board does not time operators.")]
    outputs: list[OutputJson]
    steps: Annotated[
        _Positive,
        says("Invokes in a row, each with inputs of its own, whose outputs were compared."),
    ]
    memory: MemoryJson
    energy: EnergyJson | None
    notes: list[str]
