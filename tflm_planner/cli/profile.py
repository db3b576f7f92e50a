"""The command line of `profile`: it parses arguments, calls `device` and prints.

The fields of `ProfileArguments` are the command line: names, types, defaults, help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tflm_planner.cli.boards import (
    DEFAULT_BAUD,
    DEFAULT_PATIENCE,
    DEFAULT_RUNS,
    Baud,
    BoardTarget,
    Patience,
    Port,
    RunCount,
    open_station,
)
from tflm_planner.cli.shared import (
    Quiet,
    Verbose,
    exit_on_errors,
    refuse_silence,
    show_progress,
    takes_fields_of,
)
from tflm_planner.cli.without_effect import Need, refuse_without_effect
from tflm_planner.support.errors import UsageError

if TYPE_CHECKING:
    from tflm_planner.device.profiling.database import ProfileDatabase
    from tflm_planner.device.profiling.profile import Profiled, Shapes
    from tflm_planner.device.protocol.station import Station
    from tflm_planner.tflm.targets import Target


@dataclass(frozen=True)
class ProfileArguments:
    """The command line of `profile`, as it was given."""

    models: Annotated[
        list[Path] | None,
        typer.Argument(readable=False, metavar="[MODEL]...", help=".tflite models."),
    ] = None
    database: Annotated[
        Path, typer.Option("--db", help="The profile database; made if need be.")
    ] = Path("profile.db")
    port: Port = None
    baud: Baud = DEFAULT_BAUD
    tiles: Annotated[
        bool, typer.Option("--tiles", help="Also the tiles that a search would try.")
    ] = False
    target: BoardTarget = None
    runs: RunCount = DEFAULT_RUNS
    again: Annotated[bool, typer.Option("--again", help="Measure anew what the database has.")] = (
        False
    )
    merge: Annotated[
        list[Path] | None, typer.Option(help="Take over another database; may be repeated.")
    ] = None
    export: Annotated[Path | None, typer.Option(help="Write the database as .csv or .json.")] = None
    time_limit: Annotated[
        float | None, typer.Option(help="With --tiles: seconds to search a model at most.")
    ] = None
    timeout: Patience = DEFAULT_PATIENCE
    quiet: Quiet = False
    verbose: Verbose = False

    def needs(self) -> Iterator[Need]:
        """The options that have an effect only in combination with others."""
        models = bool(self.models)
        board = ("--port", "--baud", "--tiles", "--runs", "--again", "--timeout", "--verbose")
        yield Need(board, models, "nothing is measured; give models")
        why = "it is for the tiles that a search would try; add --tiles"
        yield Need(("--target", "--time-limit"), models and self.tiles, why)

    def check(self) -> None:
        """Raise UsageError if options contradict each other, if a file cannot be written, or if
        there is nothing to do."""
        from tflm_planner.device.profiling.database import EXPORTERS
        from tflm_planner.support.files import check_writable

        refuse_silence(with_json=False)
        refuse_without_effect(self.needs())
        if self.export is not None:
            if self.export.suffix not in EXPORTERS:
                raise UsageError(f"{self.export}: choose a name ending in {', '.join(EXPORTERS)}")
            check_writable(self.export, force=True, inputs=(self.database,))
        if not (self.models or self.merge or self.export):
            raise UsageError("nothing to do: give models to measure, --merge or --export")


@takes_fields_of(ProfileArguments)
def profile_command(arguments: ProfileArguments) -> None:
    """Measure the operators of models on a board, for plan --profile."""
    with exit_on_errors():
        from tflm_planner.device.profiling.database import EXPORTERS, ProfileDatabase
        from tflm_planner.support.files import check_writable, read_file, write_file

        arguments.check()
        models = [read_file(path) for path in arguments.models or []]
        inputs = tuple(arguments.models or ())
        check_writable(arguments.database, force=True, inputs=inputs)
        is_filled = bool(models or arguments.merge)
        with ProfileDatabase(arguments.database, create=is_filled) as database:
            _merge(database, arguments)
            if models:
                _measure(database, models, arguments)
            if arguments.export is not None:
                text = EXPORTERS[arguments.export.suffix](database)
                write_file(arguments.export, text.encode("utf-8", "replace"))


def _merge(database: ProfileDatabase, arguments: ProfileArguments) -> None:
    """Copy the latencies of other databases into this one."""
    from tflm_planner.device.profiling.database import ProfileDatabase

    for path in arguments.merge or []:
        with ProfileDatabase(path) as other:
            count = database.merge(other)
        if not arguments.quiet:
            typer.echo(f"{path}: {count:,} latencies taken over")


def _measure(database: ProfileDatabase, models: list[bytes], arguments: ProfileArguments) -> None:
    """Measure the operators of the models, and those of their tiles if that was asked for."""
    from tflm_planner.device.profiling.profile import Shapes, profile

    shapes = Shapes()
    for data in models:
        shapes.add_model(data)
    with (
        show_progress(arguments.quiet, arguments.verbose) as on_progress,
        open_station(arguments.port, arguments.baud, arguments.timeout, on_progress) as station,
    ):
        if arguments.tiles:
            target = _target_of(station, arguments.target)
            _add_tiles(shapes, models, target, arguments.time_limit, on_progress)
        profiled = profile(station, shapes, database, arguments.runs, arguments.again, on_progress)
    if not arguments.quiet:
        _print_profiled(profiled, shapes.left_out)


def _target_of(station: Station, name: str | None) -> Target:
    from tflm_planner.device.measuring.measure import target_of
    from tflm_planner.tflm.targets import load_target

    return target_of(station.board.says) if name is None else load_target(name)


def _add_tiles(
    shapes: Shapes,
    models: list[bytes],
    target: Target,
    seconds: float | None,
    on_progress: Callable[[str], None],
) -> None:
    """Add to `shapes` every operator whose latency a search for tiles asks for, whatever the search
    finds."""
    from tflm_planner.pipeline import api

    watched = shapes.watch(target)
    for data in models:
        memory = api.MemoryOptions(time_limit=seconds, kernels=api.kernels_of(watched))
        tiles = api.TilePermission(max_slowdown=2.0, operators=api.AllowedOperators.ALL, workers=1)
        api.plan(data, None, api.PlanOptions(memory, tiles, verify=None), on_progress)


def _print_profiled(profiled: Profiled, left_out: dict[str, str]) -> None:
    from tflm_planner.report.text.safe import safe_text

    typer.echo(f"{profiled.measured:,} operators measured, {profiled.known:,} were known")
    for kind, why in left_out.items():
        typer.echo(f"  left out: {safe_text(kind)}: {why}")
    for failure in profiled.failed:
        typer.echo(f"  failed: {safe_text(failure)}")
    if profiled.interrupted:
        typer.echo("interrupted; what was measured is kept")
        raise typer.Exit(130)
