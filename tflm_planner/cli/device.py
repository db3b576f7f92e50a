"""The commands for boards: parse, call `device`, print. Nothing else.

Heavy modules are imported inside the commands. Exit code 6: no board, or one that fails.
"""

from __future__ import annotations

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
    Runs,
    open_station,
)
from tflm_planner.cli.idle import Command, Need, refuse_both, refuse_idle
from tflm_planner.cli.profile import profile_command
from tflm_planner.cli.shared import (
    AsJson,
    Quiet,
    Seed,
    TargetName,
    Verbose,
    check_reports,
    exit_on_errors,
    print_json,
    refuse_silence,
    show_progress,
)
from tflm_planner.support import defaults
from tflm_planner.support.errors import OutputsDifferError

if TYPE_CHECKING:
    from tflm_planner.device.energy import Power
    from tflm_planner.device.measurement import Measurement


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
    baud: Baud = DEFAULT_BAUD,
    target: BoardTarget = None,
    runs: Runs = DEFAULT_RUNS,
    seed: Seed = defaults.SEED,
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
    timeout: Patience = DEFAULT_PATIENCE,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Measure a model on a board, beside what was predicted: arena, latency, stack, outputs."""
    with exit_on_errors():
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
        predicted = None if target is None else load_target(target)
        watts = _power(power, current, volts)
        with (
            show_progress(quiet, verbose) as report_progress,
            open_station(port, baud, timeout, report_progress) as station,
        ):
            options = MeasureOptions(runs, seed, predicted, lean, not no_compare, watts)
            measurement: Measurement = station.run(
                lambda board: measure(board, source.name, data, options, report_progress)
            )
        for path in report or []:
            write_file(path, RENDERERS[path.suffix](measurement).encode("utf-8", "replace"))
        if as_json:
            print_json(to_json(measurement))
        elif not quiet:
            typer.echo(render(measurement), nl=False)
        if measurement.differs:
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


def export_command(
    source: Annotated[Path, typer.Argument(metavar="MODEL", help="The .tflite model.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write; made if need be.")],
    target: TargetName = defaults.TARGET,
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
    with exit_on_errors():
        from tflm_planner.device.export import export
        from tflm_planner.support.files import (
            check_writable,
            holds,
            make_folder,
            read_file,
            write_file,
        )
        from tflm_planner.tflm.targets import load_target

        loaded = load_target(target, lean=lean)
        texts = export(read_file(source), name or source.stem, loaded)
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
    with exit_on_errors():
        from tflm_planner.device.virtual_board import serve_until_interrupted
        from tflm_planner.support.files import read_file
        from tflm_planner.support.units import parse_size

        models = {path.stem: read_file(path) for path in model or []}
        serve_until_interrupted(parse_size(ram), models, link, typer.echo)


def ports_command() -> None:
    """List serial ports; those with the USB id of a board first."""
    with exit_on_errors():
        from tflm_planner.device.line import ports
        from tflm_planner.report.text import safe_text

        for name, what, known in ports():
            typer.echo(f"{'* ' if known else '  '}{name}  {safe_text(what)}")
