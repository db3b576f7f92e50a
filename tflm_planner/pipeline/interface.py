"""The Python interface that the package exports: the verbs that make or judge models, as functions
with plain keywords.

    import tflm_planner as tp
    planned = tp.plan("vww.tflite", target="nano33ble", tile=tp.Tile(max_slowdown=1.10))
    planned.save("vww_planned.tflite")

Everything here is typed, tested and stable; the packages below may change. Each function turns its
keywords into options and calls `api`, which has all options and serves the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from pathlib import Path
from types import NoneType
from typing import Literal, ParamSpec, TypeVar

from tflm_planner.pipeline import api
from tflm_planner.pipeline.inspection.inspect_model import Inspection
from tflm_planner.pipeline.keyword_types import Expected, check_names, check_types
from tflm_planner.pipeline.options import (
    Firmware,
    IoTypes,
    Stripping,
    operators_named,
    operators_of,
)
from tflm_planner.pipeline.python_words import in_python_words
from tflm_planner.pipeline.stream_input.render import render_header
from tflm_planner.report.document import Report
from tflm_planner.report.text.bounds import figure
from tflm_planner.report.text.safe import safe_text
from tflm_planner.support import defaults
from tflm_planner.support.errors import PlannerError, UsageError
from tflm_planner.support.files import check_writable, write_file, write_files
from tflm_planner.support.progress import Progress, silent
from tflm_planner.support.stopping import Reason
from tflm_planner.support.units import parse_size
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tflm.arena.predict import Arena
from tflm_planner.tflm.arena.uncertainty import BoundKind, Uncertainty, bound_of
from tflm_planner.tflm.targets import Target, with_lean
from tflm_planner.verification import Equality, Verdict
from tflm_planner.verification.terms import TermsProof

ModelSource = str | Path | bytes
"""A .tflite model: its path, or its bytes."""
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def _takes_keywords(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate a function so that it refuses arguments of wrong types, and that its errors name
    keywords instead of command-line options."""
    parameters = signature(function)

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        given = parameters.bind(*args, **kwargs).arguments
        check_types(given)
        check_types(given, {"tile": Expected((Tile, NoneType), "a Tile, or None for no tiles")})
        try:
            return function(*args, **kwargs)
        except PlannerError as error:
            error.args = (in_python_words(str(error)),)
            raise

    return call


@dataclass(frozen=True)
class Tile:
    """Permission to compute parts of the model in tiles (and in loops, if operators for them may be
    used).

    max_slowdown: instructions allowed, relative to the model as it was given; 1.10 is 10 % more.
    operators: which operators the result may use in addition to those of the model, so that the
    firmware must register them: "own" for none, "all", or their names. None: those that `firmware`
    permits. portable: whether every TFLite runtime must be able to run the result, not only TFLM.
    objective: whether to lower the bytes of the whole arena, or of its head.

    >>> from tflm_planner import Tile, plan
    >>> fast = Tile(max_slowdown=1.0)
    >>> planned = plan("tests/models/cnn_int8.tflite", tile=fast, budget="90K", verify=False)
    >>> planned.report.fits
    True
    """

    max_slowdown: float = defaults.SLOWDOWN
    operators: Literal["own", "all"] | Collection[str] | None = None
    portable: bool = False
    objective: Literal["arena", "head"] = "arena"

    def __post_init__(self) -> None:
        check_types({"max_slowdown": self.max_slowdown, "portable": self.portable})
        if self.operators is not None:
            words = "'own', 'all', a list of operator names, or None"
            check_names("operators", self.operators, words)


@dataclass(frozen=True)
class Planned:
    """A planned model."""

    data: bytes
    """The file's bytes."""
    report: Report
    """The report on the plan. All sizes are bytes."""
    source: Path | None = None
    """The path from which the model was read; None if it was given as bytes."""

    def __repr__(self) -> str:
        arenas = self.report.before.arena, self.report.after.arena
        before, after = (figure(arena.arena, arena.bound) for arena in arenas)
        return f"<Planned {safe_text(Path(self.report.source).name)}: {before} -> {after}>"

    @_takes_keywords
    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the model, either completely or not at all. Raises UsageError if `path` exists
        (unless `force`), is the source, or cannot be written.

        >>> from tempfile import TemporaryDirectory
        >>> from tflm_planner import arena, plan
        >>> planned = plan("tests/models/cnn_int8.tflite", tile=None, verify=False)
        >>> with TemporaryDirectory() as folder:
        ...     arena(planned.save(f"{folder}/planned.tflite")).bytes
        91180
        """
        inputs = () if self.source is None else (self.source,)
        check_writable(Path(path), force=force, inputs=inputs)
        write_file(Path(path), self.data)
        return Path(path)


@dataclass(frozen=True)
class StreamedInput:
    """A model split in two files, whose input comes row by row."""

    front: bytes
    """The bytes of the front's file."""
    back: bytes
    """The bytes of the back's file."""
    target: Target
    """The target for which it was split."""
    name: str
    """The name from which the C++ namespace is made."""
    _result: api.SplitResult
    source: Path | None = None
    """The path from which the model was read; None if it was given as bytes."""

    def __repr__(self) -> str:
        before, after = (figure(n, self.bound) for n in (self.bytes_before, self.bytes_after))
        return f"<StreamedInput {safe_text(self.name)}: {before} -> {after}>"

    @property
    def bytes_before(self) -> int:
        """Bytes of arena of the original model."""
        return self._result.before

    @property
    def bytes_after(self) -> int:
        """Bytes that front and back need together."""
        return self._result.pair.sram

    @property
    def bound(self) -> BoundKind:
        """How far `bytes_before` and `bytes_after` can be trusted: "exact", "enough", "at least" or
        "about"."""
        return bound_of(self._result.pair.uncertainties)

    @property
    def uncertainties(self) -> tuple[Uncertainty, ...]:
        """Why the bytes are not exact."""
        return self._result.pair.uncertainties

    @property
    def cannot_run(self) -> tuple[str, ...]:
        """Why the target's TFLM cannot run one of the files: operators and reasons. Empty if it can
        run them."""
        return self._result.pair.cannot_run

    @property
    def slowdown(self) -> float:
        """Instructions of front and back together, relative to the original."""
        return self._result.pair.slowdown

    @property
    def verdict(self) -> Verdict | None:
        """The runtimes' verdict on the pair; None if no proof was asked for."""
        return self._result.verdict

    @property
    def terms(self) -> TermsProof | None:
        """The proof for every input; None if no proof was asked for."""
        return self._result.terms

    @property
    def stopped(self) -> Reason | None:
        """Why the search was cut short, by its time limit or by Ctrl-C; None if it was not."""
        return self._result.stopped

    @_takes_keywords
    def save(
        self,
        front: str | Path,
        back: str | Path,
        header: str | Path | None = None,
        *,
        force: bool = False,
    ) -> None:
        """Write both files, and the C++ header that runs them. Raises UsageError if one of them
        exists (unless `force`), is the source, or cannot be written."""
        files = [(Path(front), self.front), (Path(back), self.back)]
        if header is not None:
            code = render_header(self._result.pair, self.name, self.target)
            files.append((Path(header), code.encode()))
        if len({path.resolve() for path, _ in files}) < len(files):
            raise UsageError("front, back and header must be different files")
        inputs = () if self.source is None else (self.source,)
        for path, _ in files:
            check_writable(path, force=force, inputs=inputs)
        write_files(dict(files))


@_takes_keywords
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
    machine. workers: the number of processes of the search.

    Raises UsageError, ModelError (the model is damaged, or cannot be run), OutputsDifferError, or
    UnsoundPlanError (an error of this tool that was found before anything was written).

    >>> from tflm_planner import plan
    >>> planned = plan("tests/models/cnn_int8.tflite", target="nano33ble", verify=False)
    >>> planned.report.before.arena.bytes, planned.report.after.arena.bytes, planned.report.fits
    (122012, 91180, True)
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


@_takes_keywords
def arena(model: ModelSource, *, target: str | Path | Target = defaults.TARGET) -> Arena:
    """The smallest arena in which a model runs on a target, in bytes, with its parts. If the model
    carries a plan, it is used. Raises UsageError or ModelError.

    >>> from tflm_planner import arena
    >>> found = arena("tests/models/cnn_int8.tflite", target="nano33ble")
    >>> found.bytes, found.head, found.tail
    (122012, 104560, 17444)
    """
    return api.arena(model, _target(target))


@_takes_keywords
def inspect(model: ModelSource, *, target: str | Path | Target = defaults.TARGET) -> Inspection:
    """Inspect a model as TFLM runs it on a target: its memory map, its arena, lower bounds of its
    head, and notes. Raises UsageError or ModelError.

    >>> from tflm_planner import inspect
    >>> found = inspect("tests/models/cnn_int8.tflite", target="nano33ble")
    >>> found.arena.bytes, found.limits.input_bytes, found.limits.best_order_bytes
    (122012, 6912, 73728)
    """
    return api.inspect(model, api.kernels_of(_target(target)))


@_takes_keywords
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


@_takes_keywords
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
    (122012, 92120)
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
