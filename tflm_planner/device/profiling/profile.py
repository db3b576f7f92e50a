"""Profiles a board: measures the distinct operators of models, and of tiles that a search tries.

    models -> operators, one for each case -> models of one operator -> board -> database

A `Watch` in the target sees every operator whose cost a search asks for, so this module need not
know how searches work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol, TypeVar

from tflm_planner.cost import Watch, case_of, profile_target, with_source
from tflm_planner.cost.case import Case, canonical
from tflm_planner.device.measuring.timing import spread, time_runs
from tflm_planner.device.profiling.database import (
    BoardRow,
    LatencyRow,
    ProfileDatabase,
    operator_text,
)
from tflm_planner.device.profiling.single_operator import can_stand_alone, chain, single
from tflm_planner.device.protocol import messages as m
from tflm_planner.device.protocol.board import BoardClient
from tflm_planner.device.protocol.line import LineError
from tflm_planner.device.protocol.link import NoAnswerError
from tflm_planner.model.extract import is_stand_in
from tflm_planner.model.ir import Model, Op
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline.inspection.arenas import read_any
from tflm_planner.support.errors import DeviceError, UsageError
from tflm_planner.support.progress import Progress
from tflm_planner.tflm.targets import Target

T = TypeVar("T")


class Runner(Protocol):
    """Runs a job on the board, and repeats it after a reset (see `station.Station`)."""

    def run(self, job: Callable[[BoardClient], T]) -> T:
        """Return `job(board)`."""
        ...


_CHAIN = 9
"""Number of operators in the longer of two chains. The fixed cost of a run is computed from
both."""


@dataclass
class Shapes:
    """The operators to measure. models: case -> a model of that operator alone. left_out: kind of
    operator that is not measured -> why."""

    models: dict[Case, bytes] = field(default_factory=dict[Case, bytes])
    left_out: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, op: Op) -> None:
        """Add an operator, unless an equal one is there."""
        if is_stand_in(op):  # made by the search only
            return
        if not can_stand_alone(op):
            self.left_out[op.kind] = "not measured alone (control flow, state, or custom)"
            return
        case = canonical(case_of(op))
        if case not in self.models:
            self.models[case] = single(op)

    def add_model(self, data: bytes) -> Model:
        """Add all operators of a model."""
        model, _ = read_any(data, to_look_at=False)
        for op in model.ops():
            self.add(op)
        return model

    def watch(self, target: Target) -> Target:
        """A copy of the target that adds every operator whose cost a search asks for."""
        return with_source(target, Watch(self.add))


@dataclass(frozen=True, slots=True)
class Profiled:
    """The outcome of a run. measured: how many operators were measured. known: how many the
    database had. failed: operators that the board could not measure, and why. interrupted: whether
    Ctrl-C ended the run; latencies measured by then are kept."""

    measured: int
    known: int
    failed: tuple[str, ...]
    interrupted: bool = False


def board_row(says: m.Capabilities) -> BoardRow:
    """The row of a board in the database."""
    return BoardRow(
        board=says.board,
        core=says.core,
        kernels=says.kernels,
        tflm=says.tflm,
        firmware=says.firmware,
        target=says.target,
        clock_hz=says.clock_hz or says.tick_hz,
        virtual=says.virtual,
    )


def profile(
    on: Runner,
    shapes: Shapes,
    database: ProfileDatabase,
    runs: int,
    again: bool,
    on_progress: Progress,
) -> Profiled:
    """Measure on a board the operators that the database lacks, or all of them with `again`.

    Each latency is stored as soon as it is measured. An operator that the board refuses, or that
    resets the board twice, is left out and reported in `failed`. A board that hangs or is gone ends
    the run with a DeviceError; latencies measured by then are kept.
    """
    says = on.run(lambda board: board.says)
    row = board_row(says)
    stored = {r.operator for r in database.latencies(row) if not again}
    missing = {c: d for c, d in shapes.models.items() if operator_text(c) not in stored}
    own, known = _Own(on, runs), len(shapes.models) - len(missing)
    failed: list[str] = []
    for done, (case, data) in enumerate(missing.items()):
        try:
            shape = list(case.result.shape)
            on_progress(f"measuring {done + 1} of {len(missing)}: {case.kind} {shape}")
            database.add(row, [own.latency(says, case, data)])
        except KeyboardInterrupt:
            return Profiled(done - len(failed), known, tuple(failed), interrupted=True)
        except (NoAnswerError, LineError):
            raise
        except DeviceError as error:
            failed.append(f"{case.kind} {list(case.result.shape)}: {error}")
    return Profiled(len(missing) - len(failed), known, tuple(failed))


class _Own:
    """Measures latencies of single operators, without the fixed cost of a run."""

    def __init__(self, on: Runner, runs: int) -> None:
        self._on, self._runs = on, runs
        self._run_cost: int | None = None

    def latency(self, says: m.Capabilities, case: Case, data: bytes) -> LatencyRow:
        """Measure a case. Raises DeviceError if the operator is not registered."""
        if not says.knows(case.kind):
            raise DeviceError(f"operator {case.kind} is not registered in the firmware")
        ticks = self._ticks(says, data)
        time = spread([[t] for t in ticks], says.tick_hz)
        scale = 1e9
        return LatencyRow(
            operator_text(case), time.minimum * scale, time.median * scale, time.spread * scale,
            time.runs, datetime.now(UTC).isoformat(timespec="microseconds"),
        )  # fmt: skip

    def _ticks(self, says: m.Capabilities, data: bytes) -> list[int]:
        runs = self._time_runs(data)
        if m.Feature.OPERATORS in says.features and all(len(run) > 1 for run in runs):
            return [run[1] for run in runs]
        if not says.knows("RELU"):  # chains consist of RELU; without it, the whole run counts
            return [run[0] for run in runs]
        if self._run_cost is None:
            ticks_of_one, ticks_of_many = (
                min(r[0] for r in self._time_runs(chain(n))) for n in (1, _CHAIN)
            )
            self._run_cost = max(0, ticks_of_one - (ticks_of_many - ticks_of_one) // (_CHAIN - 1))
        return [max(0, run[0] - self._run_cost) for run in runs]

    def _time_runs(self, data: bytes) -> list[list[int]]:
        model = read_model(data)

        def job(board: BoardClient) -> list[list[int]]:
            board.upload(data)
            board.arena(0)
            board.allocate()
            return time_runs(board, model, 0, self._runs)

        return self._on.run(job)


# --- using a profile -----------------------------------------------------------------------------


def profiled_target(target: Target, database: ProfileDatabase) -> Target:
    """The target with latencies from the database. They are those of the board that matches the
    target or, if none matches, of the only board.

    Raises UsageError if there is no such board, or more than one.
    """
    board = _choose_board(target, database)
    rows = {r.case: r for r in database.latencies(board)}
    same = [b for b in database.boards() if _same(b, board) and b != board]
    for other in same:  # another firmware on the same board: the newer measurement counts
        for r in database.latencies(other):
            if r.case not in rows or rows[r.case].measured_at < r.measured_at:
                rows[r.case] = r
    if not rows:
        raise UsageError(f"{database.path} holds no latencies of {board.board}; profile a model")
    cycles = {case: r.minimum_ns * 1e-9 * board.clock_hz for case, r in rows.items()}
    return profile_target(target, board.board, board.target, board.clock_hz, cycles)


def _same(a: BoardRow, b: BoardRow) -> bool:
    return (a.board, a.core, a.kernels, a.target) == (b.board, b.core, b.kernels, b.target)


def _choose_board(target: Target, database: ProfileDatabase) -> BoardRow:
    boards = database.boards()
    name = "" if target.board is None else target.board.id
    for fits in (
        [b for b in boards if b.board == name],
        [b for b in boards if b.target == target.id],
        boards,
    ):
        kinds = {(b.board, b.core, b.kernels, b.target) for b in fits}
        if len(kinds) == 1:
            return fits[-1]
        if len(kinds) > 1:
            choices = ", ".join(sorted(f"{b.board} ({b.target or b.core})" for b in fits))
            raise UsageError(f"{database.path} holds several boards: {choices}; name one: --target")
    raise UsageError(f"{database.path} holds no board yet; profile a model first")
