"""The verbs that make or judge models, as functions with plain keywords. Each turns its keywords
into options and calls `api`, which has all options and serves the command line."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from tflm_planner.pipeline import api
from tflm_planner.pipeline.inspection.inspect_model import Inspection
from tflm_planner.pipeline.interface.results import Planned, StreamedInput
from tflm_planner.pipeline.interface.takes_keywords import takes_keywords
from tflm_planner.pipeline.interface.tile import Tile
from tflm_planner.pipeline.options import (
    Firmware,
    IoTypes,
    Stripping,
    operators_named,
    operators_of,
)
from tflm_planner.support import defaults
from tflm_planner.support.errors import UsageError
from tflm_planner.support.progress import Progress, silent
from tflm_planner.support.units import parse_size
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tflm.arena.predict import Arena
from tflm_planner.tflm.targets import Target, with_lean
from tflm_planner.verification import Equality

ModelSource = str | Path | bytes
"""A .tflite model: its path, or its bytes."""


@takes_keywords
def plan(
    model: ModelSource,
    *,
    target: str | Path | Target = defaults.TARGET,
    budget: int | str | None = None,
    tile: Tile | None = Tile(),
    firmware: Firmware = "as-is",
    io: IoTypes = "keep",
    strip: bool = False,
    verify: bool = True,
    inputs: int = defaults.INPUTS,
    seed: int = defaults.SEED,
    time_limit: float | None = None,
    workers: int = defaults.WORKERS,
    on_progress: Progress = silent,
) -> Planned:
    """Plan a model for a target: the result computes the same bits in less memory, which is proved.

    target: a target's id, a board's id or a TOML file (`tflm-plan targets` lists them). budget:
    bytes that the arena may take, also as "256K"; default is a board's SRAM. The fastest result
    within the budget is taken, or else the smallest; `report.fits` tells whether it fits beyond
    doubt, `report.may_fit` whether it fits if the arena is as predicted where the prediction says
    "at least". tile: what tiles and loops may cost and need; None computes every operator as a
    whole. firmware: how the firmware may change: "as-is" not at all, "more-ops" may register more
    operators, "lean" may also use the lean library. io: "int8" drops conversions at inputs and
    outputs; `report.converted` lists the values that the application then converts. strip: drop
    from the file what the runtime does not read. verify: False skips the proof for every input and
    the runs on LiteRT and TFLM; then a model that TFLM cannot run is planned too, for firmware with
    kernels of its own (`report.cannot_run`). inputs: how many random inputs those runs compare.
    seed: the seed of these inputs and of the search. time_limit: seconds after which the search
    ends with the best result so far; None ends it by counted work, which gives the same file on any
    machine. workers: the most processes of the search, one a core.

    Raises UsageError, ModelError (the model is damaged, or cannot be run), OutputsDifferError, or
    UnsoundPlanError (an error of this tool that was found before anything was written).

    >>> from tflm_planner import plan
    >>> planned = plan("tests/models/cnn_int8.tflite", target="nano33ble", verify=False)
    >>> planned.report.before.arena.bytes, planned.report.after.arena.bytes, planned.report.fits
    (122012, 79660, True)
    """
    target = _target_with(firmware, target)
    stripping: Stripping = "nothing"
    if strip:
        stripping = "unread" if tile is not None and tile.portable else "unread by TFLM"
    options = api.PlanOptions(
        api.MemoryOptions(
            seed=seed, kernels=api.kernels_of(target), strip=stripping, time_limit=time_limit
        ),
        tiles=_permission(tile, firmware, workers),
        io=io,
        given_arena_limit=parse_size(budget) if isinstance(budget, str) else budget,
        verify=_proof(seed, inputs, verify=verify),
    )
    result = api.plan(model, None, options, on_progress)
    source = None if isinstance(model, bytes) else Path(model)
    return Planned(result.data, result.report, source)


@takes_keywords
def arena(model: ModelSource, *, target: str | Path | Target = defaults.TARGET) -> Arena:
    """The smallest arena in which a model runs on a target, in bytes, with its parts. If the model
    carries a plan, it is used. Raises UsageError or ModelError.

    >>> from tflm_planner import arena
    >>> found = arena("tests/models/cnn_int8.tflite", target="nano33ble")
    >>> found.bytes, found.head, found.tail
    (122012, 104560, 17444)
    """
    return api.arena(model, _target(target))


@takes_keywords
def inspect(model: ModelSource, *, target: str | Path | Target = defaults.TARGET) -> Inspection:
    """Inspect a model as TFLM runs it on a target: its memory map, its arena, lower bounds of its
    head, and notes. Raises UsageError or ModelError.

    >>> from tflm_planner import inspect
    >>> found = inspect("tests/models/cnn_int8.tflite", target="nano33ble")
    >>> found.arena.bytes, found.limits.input_bytes, found.limits.best_order_bytes
    (122012, 6912, 62208)
    """
    return api.inspect(model, api.kernels_of(_target(target)))


@takes_keywords
def verify(
    original: ModelSource,
    result: ModelSource,
    *,
    target: str | Path | Target = defaults.TARGET,
    inputs: int = defaults.INPUTS,
    seed: int = defaults.SEED,
) -> Equality:
    """Compare two models: for every input by terms (`terms`, `proved`), and bit by bit on the
    installed runtimes (`checks`, `differs`), which are LiteRT's reference kernels, and real TFLM on
    Linux x86-64. target: for which a plan in the result is judged. inputs: how many random inputs
    the runtimes compare. Raises UsageError or ModelError.

    >>> from tflm_planner import verify
    >>> verify("tests/models/cnn_int8.tflite", "tests/models/cnn_int8.tflite", inputs=1).proved
    True
    """
    options = api.VerifyOptions(seed, inputs)
    return api.check_equal(original, result, options, target=_target(target))


@takes_keywords
def stream_input(
    model: ModelSource,
    *,
    target: str | Path | Target = defaults.TARGET,
    max_slowdown: float = defaults.STREAM_SLOWDOWN,
    rows: int | None = None,
    end: int | None = None,
    tile: Tile | None = Tile(),
    firmware: Firmware = "as-is",
    verify: bool = True,
    inputs: int = defaults.INPUTS,
    seed: int = defaults.SEED,
    time_limit: float | None = None,
    workers: int = defaults.WORKERS,
    on_progress: Progress = silent,
) -> StreamedInput:
    """Split a model in two so that its input comes a few rows at a time and is never in memory as a
    whole.

    max_slowdown: instructions allowed for the pair, relative to the model. rows: rows of the image
    at a time (None: the fewest possible). end: the front's last operator, by its position in the
    file (None: the one that needs the least memory). tile: permission for tiles in the back (None:
    no tiles); its own `max_slowdown` has no effect, as the pair's counts. The other keywords are
    those of `plan`. Raises UsageError, ModelError (the input cannot be streamed, or TFLM cannot run
    the model), OutputsDifferError, or UnsoundPlanError, as `plan` does.

    >>> from tflm_planner import stream_input
    >>> cnn = "tests/models/cnn_int8.tflite"
    >>> pair = stream_input(cnn, target="nano33ble", tile=None, verify=False)
    >>> pair.bytes_before, pair.bytes_after
    (122012, 80600)
    """
    target = _target_with(firmware, target)
    options = api.StreamOptions(
        api.MemoryOptions(seed=seed, kernels=api.kernels_of(target), time_limit=time_limit),
        tiles=_permission(tile, firmware, workers),
        rows=rows,
        end=end,
        max_slowdown=max_slowdown,
        verify=_proof(seed, inputs, verify=verify),
    )
    result = api.stream_input(model, None, options, on_progress=on_progress)
    source = None if isinstance(model, bytes) else Path(model)
    name = "model" if source is None else source.stem
    front, back = result.pair.front.data, result.pair.back.data
    return StreamedInput(front, back, target, name, result, source)


def _proof(seed: int, inputs: int, *, verify: bool) -> api.VerifyOptions | None:
    """How the result is to be proved; None if it is not. Raises UsageError for invalid values, also
    if they are not used."""
    options = api.VerifyOptions(seed, inputs)
    return options if verify else None


def _permission(tile: Tile | None, firmware: Firmware, workers: int) -> api.TilePermission | None:
    """The permission as an option of the pipeline; None for no tiles. Raises UsageError for invalid
    values, also of `workers` that have nothing to search."""
    asked = tile or Tile()
    permission = api.TilePermission(
        max_slowdown=asked.max_slowdown,
        dialect=not asked.portable,
        operators=_allowed_operators(asked.operators, firmware),
        objective=asked.objective,
        workers=workers,
    )
    return None if tile is None else permission


def _allowed_operators(
    operators: str | Collection[str] | None, firmware: Firmware
) -> AllowedOperators:
    if operators is None:
        return operators_of(firmware)
    if not isinstance(operators, str):
        return operators_named(operators)
    if operators not in ("own", "all"):
        raise UsageError(f"operators {operators!r}: give 'own', 'all' or a list of operator names")
    return AllowedOperators.ALL if operators == "all" else AllowedOperators.NONE


def _target(target: str | Path | Target) -> Target:
    return target if isinstance(target, Target) else api.load_target(target)


def _target_with(firmware: Firmware, target: str | Path | Target) -> Target:
    """The target, lean if the firmware is. Raises UsageError for a word that is not in
    `Firmware`."""
    operators_of(firmware)
    return with_lean(_target(target)) if firmware == "lean" else _target(target)
