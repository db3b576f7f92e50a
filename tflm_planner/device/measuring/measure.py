"""Measures a model on a board, and compares the figures with predictions.

    upload -> smallest arena -> run there, outputs against TFLM here -> latencies, stack

The outputs are computed in the smallest arena, because a wrong plan shows there. For models that
keep state, the outputs of several Invokes in a row, each with other inputs, are compared. It must
not know lines or reports.
"""

from __future__ import annotations

import hashlib
import importlib.util
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tflm_planner.cost import Latency, latency_of
from tflm_planner.device.measuring.energy import Power, energy_of, stated_power
from tflm_planner.device.measuring.measurement import MeasuredSize, Measurement, OutputCheck
from tflm_planner.device.measuring.timing import make_inputs, time_model
from tflm_planner.device.protocol import messages as m
from tflm_planner.device.protocol.board import BoardAllocation, BoardClient
from tflm_planner.device.protocol.fill import can_fill
from tflm_planner.device.virtual.host_runtime import HostEngine
from tflm_planner.device.virtual.responder import RefusedRequest
from tflm_planner.model.ir import Model, Tensor, quote
from tflm_planner.model.reachability import entry_graphs
from tflm_planner.ops import has_side_effects
from tflm_planner.pipeline.inspection.arenas import read_any
from tflm_planner.support.errors import DeviceError, UsageError
from tflm_planner.support.progress import Progress
from tflm_planner.tflm.arena.predict import Arena, arena_of
from tflm_planner.tflm.arena.uncertainty import bound_of, head_bound_of
from tflm_planner.tflm.targets import (
    HOST_RUNTIME,
    Target,
    all_boards,
    all_targets,
    load_target,
    with_lean,
)
from tflm_planner.transforms.attach_plan import carried_plan

_ROOM = 64 << 10
"""Bytes of arena in addition to the prediction for the wheel."""
STATEFUL_STEPS = 8
"""Invokes in a row of a model with state: enough for rows of a ring buffer to be reused."""


@dataclass(frozen=True)
class MeasureOptions:
    """What to measure of a model on a board."""

    runs: int = 10
    """Inferences that are timed."""
    seed: int = 0
    """Seed of the inputs."""
    target: Target | None = None
    """Target of the predictions. None: the target that the board reports."""
    lean: bool = False
    """Whether the firmware has the lean library, as with a lean target."""
    compare: bool = True
    """Whether outputs are compared with those of TFLM on this machine."""
    power: Power | None = None
    """The power while the board is active. None: the power stated for the target's board."""
    steps: int | None = None
    """Invokes in a row whose outputs are compared. None: STATEFUL_STEPS if the model keeps state,
    else 1."""


def target_of(says: m.Capabilities) -> Target:
    """The target that a board reports. Raises UsageError if it is unknown."""
    board = all_boards().get(says.board)
    if board is not None and says.target in ("", board.target):
        return load_target(says.board)
    if says.target in all_targets():
        return load_target(says.target)
    raise UsageError(
        f"the board says it is {says.board!r} ({says.core}, {says.kernels}, TFLM {says.tflm}), "
        "which no target stands for; name one with --target (see `tflm-plan targets`)"
    )


def prediction_target(options: MeasureOptions, says: m.Capabilities) -> Target:
    """The target of the predictions: a lean one if the board is to use its lean library. Raises
    UsageError if it is unknown, or cannot be lean."""
    target = options.target or target_of(says)
    return with_lean(target) if options.lean else target


def measure(
    board: BoardClient, name: str, data: bytes, options: MeasureOptions, on_progress: Progress
) -> Measurement:
    """Measure the model in `data`. Raises DeviceError if the board cannot run it, ModelError if the
    model is damaged."""
    model, _ = read_any(data, to_look_at=False)
    target = prediction_target(options, board.says)
    plan = carried_plan(model)
    predicted = arena_of(model, target, plan)
    latency = latency_of(model, target, plan)
    check_runs(board.says, model)
    load(board, data, on_progress)
    on_progress("looking for the smallest arena")
    allocation = smallest(board, predicted.arena, lean=target.lean)
    assert allocation.smallest is not None
    board.arena(allocation.smallest)
    tight = board.allocate(lean=target.lean)
    on_progress("running")
    steps = options.steps or (STATEFUL_STEPS if keeps_state(model) else 1)
    checks, notes = _outputs(board, model, data, tight, replace(options, steps=steps))
    latency_spread, times, more = time_model(board, model, latency, options.seed, options.runs)
    return Measurement(
        model=name,
        sha256=hashlib.sha256(data).hexdigest(),
        board=board.says,
        target=target.id,
        lean=target.lean,
        sizes=_sizes(predicted, allocation),
        latency=latency_spread,
        predicted_seconds=_rough_seconds(latency, board.says),
        predicted_instructions=latency.instructions,
        allocate_seconds=tight.ticks / board.says.tick_hz,
        operators=times,
        outputs=checks,
        steps=steps,
        memory=board.memory(),
        energy=energy_of(options.power or _stated_power(target), latency_spread.median),
        notes=(*_virtual(board.says), *predicted.warnings, *notes, *more),
    )  # fmt: skip


def _stated_power(target: Target) -> Power | None:
    board = target.board
    if board is None or not board.active_microwatts:
        return None
    return stated_power(board.active_microwatts / 1000, f"stated for {board.id}")


def _rough_seconds(latency: Latency, says: m.Capabilities) -> float | None:
    """Predicted instructions divided by the clock of the target's board, or else by the clock that
    the board states."""
    if latency.rough_seconds is not None or says.virtual or not says.clock_hz:
        return latency.rough_seconds
    return latency.instructions / says.clock_hz


def _virtual(says: m.Capabilities) -> tuple[str, ...]:
    return ("a virtual board: latencies are this machine's",) if says.virtual else ()


def check_runs(says: m.Capabilities, model: Model) -> None:
    """Raise DeviceError if operators of the model are not registered on the board. The error lists
    all of them."""
    kinds = dict.fromkeys(op.kind for g in entry_graphs(model) for op in g.ops)
    kinds.update(dict.fromkeys(op.kind for op in model.ops()))
    missing = [kind for kind in kinds if not says.knows(kind)]
    if missing:
        raise DeviceError(
            f"the firmware on {says.board} does not register {', '.join(missing)}; add them to its "
            "op resolver and flash it again (tflm-plan export writes the lines)"
        )


def load(board: BoardClient, data: bytes, on_progress: Progress) -> None:
    """Put the model onto the board: select it if it is compiled in, otherwise upload it."""
    index = board.stored_index(data)
    if index is not None:
        board.select(index, data)
        return
    if len(data) > board.says.model_room:
        raise DeviceError(
            f"the model has {len(data):,} bytes, and {board.says.board} has room for "
            f"{board.says.model_room:,} in RAM; compile it into the firmware: tflm-plan export"
        )
    on_progress(f"uploading {len(data):,} bytes")
    board.upload(data)


def smallest(board: BoardClient, predicted: int, *, lean: bool = False) -> BoardAllocation:
    """Find the smallest arena on the board. The search begins a little below the predicted size,
    because in arenas that are much too small TFLM may crash instead of failing."""
    board.arena(0)
    lowest = max(0, predicted - max(1024, predicted // 16)) // 16 * 16
    allocation = board.allocate(smallest=True, lean=lean, lowest=min(lowest, board.arena(0)))
    if lowest and allocation.smallest == lowest:
        allocation = board.allocate(smallest=True, lean=lean)
    assert allocation.smallest is not None
    board.arena(allocation.smallest)  # known within one step; now find it to the byte
    exact = board.allocate(
        smallest=True, lean=lean, step=1, lowest=max(0, allocation.smallest - 16)
    )
    return replace(allocation, smallest=exact.smallest)


def _sizes(predicted: Arena, allocation: BoardAllocation) -> tuple[MeasuredSize, ...]:
    bound, head_bound = bound_of(predicted.uncertainties), head_bound_of(predicted.uncertainties)
    return (
        MeasuredSize("arena", predicted.arena, allocation.smallest, bound),
        MeasuredSize("head", predicted.head, allocation.head, head_bound),
        MeasuredSize("tail", predicted.tail, allocation.tail, bound),
        MeasuredSize("arena_used_bytes()", predicted.used, allocation.used, bound),
    )


# --- outputs -------------------------------------------------------------------------------------


def keeps_state(model: Model) -> bool:
    """Whether an Invoke may depend on earlier ones, through variables or through operators with
    unknown state. Operators that call graphs count only by the operators in these graphs."""
    return any(has_side_effects(op) and not op.graphs for op in model.ops())


def _outputs(
    board: BoardClient,
    model: Model,
    data: bytes,
    allocation: BoardAllocation,
    options: MeasureOptions,
) -> tuple[tuple[OutputCheck, ...], list[str]]:
    """Invoke the model `options.steps` times in a row, fetch all outputs each time, and compare
    them with those of TFLM on this machine."""
    graph = model.main
    if (allocation.inputs, allocation.outputs) != (len(graph.inputs), len(graph.outputs)):
        raise DeviceError(
            f"the board's model has {allocation.inputs} inputs and {allocation.outputs} outputs, "
            f"the file {len(graph.inputs)} and {len(graph.outputs)}"
        )
    seeds = [(options.seed + step) % (m.UNKNOWN + 1) for step in range(options.steps or 1)]
    sizes = [board.tensor(True, i).size for i in range(allocation.outputs)]
    board_outputs = [_run_there(board, model, seed, sizes) for seed in seeds]
    host_outputs, notes = _run_here(model, data, seeds) if options.compare else (None, [])
    return tuple(
        _check(
            i,
            tensor,
            [outputs[i] for outputs in board_outputs],
            None if host_outputs is None else [outputs[i] for outputs in host_outputs],
        )
        for i, tensor in enumerate(graph.outputs)
    ), notes


def _run_there(
    board: BoardClient, model: Model, seed: int, sizes: Sequence[int]
) -> tuple[bytes, ...]:
    """The outputs of one Invoke on the board."""
    if all(map(can_fill, model.main.inputs)):
        board.invoke(seed=seed)
    else:
        board.set_inputs(make_inputs(model, seed))
        board.invoke()
    return tuple(board.output(i, size) for i, size in enumerate(sizes))


def _check(
    index: int, tensor: Tensor, board_outputs: Sequence[bytes], host_outputs: Sequence[bytes] | None
) -> OutputCheck:
    """Compare one output after each step on the board and on this machine."""
    name, size, crc = quote(tensor.name), len(board_outputs[-1]), zlib.crc32(board_outputs[-1])
    if host_outputs is None:
        return OutputCheck(index, name, size, crc, None)
    wrong = [_count_differences(*pair) for pair in zip(board_outputs, host_outputs, strict=True)]
    first = next((step for step, count in enumerate(wrong) if count), None)
    return OutputCheck(
        index=index,
        name=name,
        size=size,
        crc=crc,
        equal=first is None,
        different=sum(wrong),
        first_wrong=first,
    )


def _count_differences(a: bytes, b: bytes) -> int:
    return sum(x != y for x, y in zip(a, b, strict=False)) + abs(len(a) - len(b))


def _run_here(
    model: Model, data: bytes, seeds: Sequence[int]
) -> tuple[list[list[bytes]] | None, list[str]]:
    """The outputs of TFLM on this machine after each step. If there are none, None and a note that
    says why."""
    if importlib.util.find_spec("tflite_micro") is None:
        return None, ["outputs not compared: tflite-micro is not installed here"]
    host = HostEngine()
    try:
        room = arena_of(model, load_target(HOST_RUNTIME), carried_plan(model)).arena
        host.load(data, room // 16 * 16 + _ROOM)
        steps = enumerate(seeds)
        return [host.run(make_inputs(model, seed), step).outputs for step, seed in steps], []
    except RefusedRequest as refused:
        return None, [f"outputs not compared: TFLM here refuses the model ({refused.text})"]
    finally:
        host.close()
