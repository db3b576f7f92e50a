"""Measures the latency of a model and of its operators, in the order in which these begin.

It must not know arenas or reports.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tflm_planner.cost import Latency
from tflm_planner.device.measuring.events import events
from tflm_planner.device.measuring.measurement import OperatorTime, Spread
from tflm_planner.device.protocol import messages as m
from tflm_planner.device.protocol.board import BoardClient
from tflm_planner.device.protocol.fill import can_fill, make_values
from tflm_planner.model.ir import Model, Op, quote
from tflm_planner.support.errors import DeviceError, UsageError
from tflm_planner.verification.inputs import can_make_values, input_sets


def time_model(
    board: BoardClient, model: Model, latency: Latency, seed: int, count: int
) -> tuple[Spread, tuple[OperatorTime, ...], list[str]]:
    """Latency of the model and of its operators over several runs after a warm-up, and notes on
    operators that could not be timed."""
    runs, ticks_per_second = time_runs(board, model, seed, count), board.says.tick_hz
    totals = spread([[run[0]] for run in runs], ticks_per_second)
    begun = events(model)
    counted = min(len(run) for run in runs) - 1
    if counted == 0:
        return totals, (), ["this board does not time operators"]
    if begun is None:
        return totals, (), ["operators not shown: the model does not say which ones run"]
    if counted < len(begun):
        note = f"operators not shown: the log holds {counted} of the {len(begun)} that run"
        return totals, (), [note]
    return totals, tuple(_operators(runs, begun, model, latency, ticks_per_second)), []


def time_runs(board: BoardClient, model: Model, seed: int, count: int) -> list[list[int]]:
    """Ticks of each of `count` runs after a warm-up: first the total, then the ticks of each
    operator that began, if the board times operators."""
    operators = m.Feature.OPERATORS in board.says.features
    fill = all(map(can_fill, model.main.inputs))
    run_ticks: list[list[int]] = []
    warm = True
    while len(run_ticks) < count:
        if fill:
            first = board.invoke(1, seed=seed) if warm else None
            invocation = board.invoke(
                count - len(run_ticks), seed=seed, log=True, operators=operators
            )
        else:  # inputs that were set are used by one run only
            board.set_inputs(make_inputs(model, seed))
            first = board.invoke(1) if warm else None
            board.set_inputs(make_inputs(model, seed))
            invocation = board.invoke(1, log=True, operators=operators)
        warm = warm and first is None
        log = board.log()
        entries, rest = divmod(len(log), invocation.runs)
        if not log or rest:
            raise DeviceError(f"the board logs {len(log)} entries for {invocation.runs} runs")
        run_ticks += [log[i * entries : (i + 1) * entries] for i in range(invocation.runs)]
    if any(ticks == m.UNKNOWN for run in run_ticks for ticks in run):
        raise DeviceError("a run took longer than the board's clock can count; use a coarser one")
    return run_ticks[:count]


def spread(runs: Sequence[Sequence[int]], hertz: int) -> Spread:
    """Minimum, median and spread, in seconds, of the sums of each run's ticks."""
    sums = sorted(sum(run) for run in runs)
    median = statistics.median(sums)
    return Spread(sums[0] / hertz, median / hertz, (sums[-1] - sums[0]) / hertz, len(sums))


def _operators(
    runs: list[list[int]], begun: list[Op], model: Model, latency: Latency, hertz: int
) -> list[OperatorTime]:
    own = [_exclusive(run[1 : len(begun) + 1], begun) for run in runs]
    places: dict[Op, list[int]] = {}
    for i, op in enumerate(begun):
        places.setdefault(op, []).append(i)
    predicted = {row.op: row.each.times(row.runs).instructions for row in latency.by_op}
    instructions = max(1, sum(predicted.values()))
    total = max(1, sum(map(sum, own)))
    rows: list[OperatorTime] = []
    for index, op in enumerate(model.ops()):
        at = places.get(op)
        if at is None:
            continue
        ticks = [[run[i] for i in at] for run in own]
        share = predicted.get(op, 0) / instructions
        rows.append(
            OperatorTime(
                index=index,
                operator=op.kind,
                name=quote(op.outputs[0].name) if op.outputs else "",
                runs=len(at),
                predicted=share,
                measured=sum(map(sum, ticks)) / total,
                time=spread(ticks, hertz),
            )
        )
    return rows


def _exclusive(ticks: Sequence[int], begun: list[Op]) -> list[int]:
    """Ticks of each event minus those of the events inside it (in graphs that a WHILE calls)."""
    own = list(ticks)

    def walk(at: int) -> tuple[int, int]:
        """Subtract from event `at` the ticks of events inside it. Returns (index of the next event
        that is not inside it, ticks of event `at` including these)."""
        op, following = begun[at], at + 1
        called = {inner for graph in op.called_graphs() for inner in graph.ops}
        while following < len(begun) and begun[following] in called:
            following, spent = walk(following)
            own[at] -= spent
        own[at] = max(own[at], 0)
        return following, ticks[at]

    at = 0
    while at < len(begun):
        at, _ = walk(at)
    return own


def make_inputs(model: Model, seed: int) -> list[bytes]:
    """The bytes of every input. They are those that the board would generate if it can, otherwise
    random ones. Raises UsageError if no values can be made."""
    graph = model.main
    if all(map(can_fill, graph.inputs)):
        return [make_values(t, i, seed).tobytes() for i, t in enumerate(graph.inputs)]
    if not can_make_values(graph):
        raise UsageError("no values can be made for the types of the model's inputs")
    _, values = next(input_sets(graph, seed))
    return [value.tobytes() for value in values]
