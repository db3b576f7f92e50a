"""The commands for boards: parse, call `device`, print. Nothing else.

Heavy modules are imported inside the commands. Exit code 6: no board, or one that fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tflm_planner.cli.idle import Command, Need, refuse_both, refuse_idle
from tflm_planner.cli.shared import (
    AsJson,
    Quiet,
    Seed,
    TargetName,
    Verbose,
    check_reports,
    errors_as_exit_codes,
    print_json,
    progress,
    refuse_silence,
)
from tflm_planner.support.errors import OutputsDifferError, UsageError

if TYPE_CHECKING:
    from collections.abc import Generator

    from tflm_planner.device.energy import Power
    from tflm_planner.device.measurement import Measurement
    from tflm_planner.device.profiling import Profiled, Shapes
    from tflm_planner.device.station import Station
    from tflm_planner.tflm.targets import Target

Port = Annotated[
    str | None,
    typer.Option("--port", "-p", help="The board's serial port; found by its USB id if not given."),
]
Baud = Annotated[int, typer.Option(min=300, help="Baud rate, for boards behind a UART.")]
Patience = Annotated[
    float, typer.Option("--timeout", min=0.1, help="Seconds that a working board may be silent.")
]
OfTarget = Annotated[
    str | None,
    typer.Option("--target", "-t", help="Predict for this target, not the one the board says."),
]
Runs = Annotated[int, typer.Option(min=1, max=1000, help="Runs to time.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands for boards to the program."""
    app.command("measure", cls=Command)(measure_command)
    app.command("profile", cls=Command)(profile_command)
    app.command("export", cls=Command)(export_command)
    app.command("virtual-board", cls=Command)(virtual_board_command)
    app.command("ports", cls=Command)(ports_command)


def measure_command(
    source: Annotated[Path, typer.Argument(metavar="MODEL", help="The .tflite model.")],
    port: Port = None,
    baud: Baud = 115200,
    target: OfTarget = None,
    runs: Runs = 10,
    seed: Seed = 0,
    lean: Annotated[bool, typer.Option("--lean", help="With the firmware's lean library.")] = False,
    no_compare: Annotated[
        bool, typer.Option("--no-compare", help="Do not run TFLM here to compare outputs.")
    ] = False,
    power: Annotated[
        float | None, typer.Option(help="The board's active power in mW, for energy (estimate).")
    ] = None,
    current: Annotated[
        Path | None, typer.Option(help="CSV of a current meter, for energy (measured).")
    ] = None,
    volts: Annotated[float, typer.Option(help="Supply voltage, with --current.")] = 3.3,
    report: Annotated[
        list[Path] | None,
        typer.Option(help="Also write a report: .json, .csv or .html; may be repeated."),
    ] = None,
    timeout: Patience = 60.0,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Measure a model on a board, beside what was predicted: arena, latency, stack, outputs."""
    with errors_as_exit_codes():
        from tflm_planner.device.measurement_report import RENDERERS, render, to_json
        from tflm_planner.device.measuring import MeasureOptions, measure
        from tflm_planner.support.files import read_file, write_file
        from tflm_planner.tflm.targets import load_target

        refuse_silence()
        refuse_both("--power", "--current")
        why = "it is the voltage beside a meter's currents; add --current FILE"
        refuse_idle([Need(("--volts",), current is not None, why)])
        check_reports(report or [], RENDERERS, (source,))
        data = read_file(source)
        on = None if target is None else load_target(target)
        watts = _power(power, current, volts)
        with progress(quiet, verbose) as say, _station(port, baud, timeout, say) as station:
            options = MeasureOptions(runs, seed, on, lean, not no_compare, watts)
            found: Measurement = station.run(
                lambda board: measure(board, source.name, data, options, say)
            )
        for path in report or []:
            write_file(path, RENDERERS[path.suffix](found).encode("utf-8", "replace"))
        if as_json:
            print_json(to_json(found))
        elif not quiet:
            typer.echo(render(found), nl=False)
        if found.differs:
            raise OutputsDifferError(
                "the board's outputs are not those of TFLM here: a plan for another kernel "
                "library, or kernels that compute otherwise (measure the original model to tell)"
            )


def _power(milliwatts: float | None, current: Path | None, volts: float) -> Power | None:
    """The power that was given, by a meter's record or as a figure."""
    from tflm_planner.device.energy import metered_power, stated_power

    if current is not None:
        return metered_power(current, volts)
    if milliwatts is not None:
        return stated_power(milliwatts, "--power")
    return None


@contextmanager
def _station(
    port: str | None, baud: int, timeout: float, say: Callable[[str], None]
) -> Generator[Station]:
    from tflm_planner.device.line import choose_port
    from tflm_planner.device.link import Timing
    from tflm_planner.device.station import Station

    with Station(choose_port(port), baud, Timing(patience=timeout)) as station:
        station.on_retry = say
        yield station


def profile_command(
    models: Annotated[
        list[Path] | None, typer.Argument(metavar="[MODEL]...", help=".tflite models.")
    ] = None,
    database: Annotated[
        Path, typer.Option("--db", help="The profile database; made if need be.")
    ] = Path("profile.db"),
    port: Port = None,
    baud: Baud = 115200,
    tiles: Annotated[
        bool, typer.Option("--tiles", help="Also the tiles that a search would try.")
    ] = False,
    target: OfTarget = None,
    runs: Runs = 10,
    again: Annotated[
        bool, typer.Option("--again", help="Measure anew what the database has.")
    ] = False,
    merge: Annotated[
        list[Path] | None, typer.Option(help="Take over another database; may be repeated.")
    ] = None,
    export: Annotated[
        Path | None, typer.Option(help="Write the database as .csv or .json.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="With --tiles: seconds to search a model at most.")
    ] = None,
    timeout: Patience = 60.0,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Measure the operators of models on a board, for plan --profile."""
    with errors_as_exit_codes():
        from tflm_planner.device.database import EXPORTERS, ProfileDatabase
        from tflm_planner.device.profiling import Shapes, profile
        from tflm_planner.support.files import check_writable, read_file, write_file

        refuse_silence(with_json=False)
        refuse_idle(_profile_needs(bool(models), tiles))
        if export is not None:
            if export.suffix not in EXPORTERS:
                raise UsageError(f"{export}: choose a name ending in {', '.join(EXPORTERS)}")
            check_writable(export, force=True, inputs=(database,))
        if not (models or merge or export):
            raise UsageError("nothing to do: give models to measure, --merge or --export")
        files = [read_file(path) for path in models or []]
        check_writable(database, force=True, inputs=tuple(models or ()))
        with ProfileDatabase(database, create=True) as kept:
            for path in merge or []:
                with ProfileDatabase(path) as other:
                    taken = kept.merge(other)
                if not quiet:
                    typer.echo(f"{path}: {taken:,} latencies taken over")
            if files:
                shapes = Shapes()
                for data in files:
                    shapes.add_model(data)
                with (
                    progress(quiet, verbose) as say,
                    _station(port, baud, timeout, say) as station,
                ):
                    if tiles:
                        _add_tiles(shapes, files, _target_of(station, target), time_limit, say)
                    done = profile(station, shapes, kept, runs, again, say)
                if not quiet:
                    _print_profiled(done, shapes.left_out)
            if export is not None:
                write_file(export, EXPORTERS[export.suffix](kept).encode("utf-8", "replace"))


def _profile_needs(models: bool, tiles: bool) -> Iterator[Need]:
    """Options of `profile` that do something only beside others."""
    board = ("--port", "--baud", "--tiles", "--runs", "--again", "--timeout", "--verbose")
    yield Need(board, models, "nothing is measured; give models")
    why = "it is for the tiles that a search would try; add --tiles"
    yield Need(("--target", "--time-limit"), models and tiles, why)


def _target_of(station: Station, name: str | None) -> Target:
    from tflm_planner.device.measuring import target_of
    from tflm_planner.tflm.targets import load_target

    return target_of(station.board.says) if name is None else load_target(name)


def _add_tiles(
    shapes: Shapes,
    files: list[bytes],
    target: Target,
    seconds: float | None,
    say: Callable[[str], None],
) -> None:
    """The operators that a tile search weighs, whatever it finds."""
    from tflm_planner.pipeline import api

    watched = shapes.watched(target)
    for data in files:
        search = api.MemoryOptions(time_limit=seconds, kernels=api.kernels_of(watched))
        tiles = api.TilePermission(overhead=2.0, new_kinds=None, workers=1)
        api.plan(data, None, api.PlanOptions(search, tiles, verify=None), say)


def _print_profiled(done: Profiled, left_out: dict[str, str]) -> None:
    from tflm_planner.report.text import safe_text

    typer.echo(f"{done.measured:,} operators measured, {done.known:,} were known")
    for kind, why in left_out.items():
        typer.echo(f"  left out: {safe_text(kind)}: {why}")
    for failure in done.failed:
        typer.echo(f"  failed: {safe_text(failure)}")
    if done.interrupted:
        typer.echo("interrupted; what was measured is kept")
        raise typer.Exit(130)


def export_command(
    source: Annotated[Path, typer.Argument(metavar="MODEL", help="The .tflite model.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write; made if need be.")],
    target: TargetName = "cortex-m4/cmsis-nn",
    name: Annotated[
        str | None,
        typer.Option(help="What files and C++ identifiers begin with; the model's name if not."),
    ] = None,
    lean: Annotated[
        bool, typer.Option("--lean", help="For firmware with the lean library: target+lean.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write C++ sources of a model: its data, op resolver and arena, for any TFLM project."""
    with errors_as_exit_codes():
        from tflm_planner.device.export import export
        from tflm_planner.support.files import (
            check_writable,
            holds,
            make_folder,
            read_file,
            write_file,
        )
        from tflm_planner.tflm.targets import load_target

        on = load_target(target, lean=lean)
        texts = export(read_file(source), name or source.stem, on)
        files = {folder / file: text.encode("utf-8", "replace") for file, text in texts.items()}
        make_folder(folder)
        for path, data in files.items():
            same = force or holds(path, data)
            why = "it is of another model or target: give this one another --name"
            check_writable(path, force=same, inputs=(source,), why=why)
        for path, data in files.items():
            write_file(path, data)
            if not quiet:
                typer.echo(path)


def virtual_board_command(
    ram: Annotated[str, typer.Option(help="Bytes for model and arena, e.g. 256K.")] = "64M",
    model: Annotated[
        list[Path] | None,
        typer.Option(help="A model that is compiled in, so to speak; may be repeated."),
    ] = None,
    link: Annotated[
        Path | None, typer.Option(help="Also make a symbolic link to the port, e.g. /tmp/board.")
    ] = None,
) -> None:
    """Open a serial port with a board behind it that is none: TFLM on this machine."""
    with errors_as_exit_codes():
        from tflm_planner.device.virtual_board import serve_until_interrupted
        from tflm_planner.support.files import read_file
        from tflm_planner.support.units import parse_size

        models = {path.stem: read_file(path) for path in model or []}
        serve_until_interrupted(parse_size(ram), models, link, typer.echo)


def ports_command() -> None:
    """List serial ports; those with the USB id of a board first."""
    with errors_as_exit_codes():
        from tflm_planner.device.line import ports
        from tflm_planner.report.text import safe_text

        for name, what, known in ports():
            typer.echo(f"{'* ' if known else '  '}{name}  {safe_text(what)}")


def with_profile(target: Target, path: Path | None) -> Target:
    """The target with the latencies of a profile database, for commands that plan."""
    if path is None:
        return target
    from tflm_planner.device.database import ProfileDatabase
    from tflm_planner.device.profiling import profiled_target

    with ProfileDatabase(path) as database:
        return profiled_target(target, database)
