"""The commands for boards: they parse arguments, call `device` and print, and do nothing else.
`measure` and `profile` have files of their own.

Heavy modules are imported inside the commands. Exit code 6: no board, or one that fails.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tflm_planner.cli.boards import BoardModel
from tflm_planner.cli.choices import Library
from tflm_planner.cli.measure import measure_command
from tflm_planner.cli.profile import profile_command
from tflm_planner.cli.shared import Quiet, TargetName, Tflm, at_tflm, exit_on_errors
from tflm_planner.cli.without_effect import RecordingCommand
from tflm_planner.support import defaults


def add_to(app: typer.Typer) -> None:
    """Add the commands for boards to the program."""
    app.command("measure", cls=RecordingCommand)(measure_command)
    app.command("profile", cls=RecordingCommand)(profile_command)
    app.command("export", cls=RecordingCommand)(export_command)
    app.command("virtual-board", cls=RecordingCommand)(virtual_board_command)
    app.command("ports", cls=RecordingCommand)(ports_command)


def export_command(
    source: BoardModel,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write; made if need be.")],
    target: TargetName = defaults.TARGET,
    name: Annotated[
        str | None,
        typer.Option(help="What files and C++ identifiers begin with; the model's name if not."),
    ] = None,
    firmware: Annotated[
        Library, typer.Option(help="Stock TFLM, or with the lean library (as target+lean).")
    ] = "as-is",
    tflm: Tflm = None,
    package: Annotated[
        str,
        typer.Option(
            help="Also what makes DIR a package: arduino, platformio, esp-idf, zephyr.",
            metavar="KIND,...",
        ),
    ] = "",
    own_kernels: Annotated[
        bool,
        typer.Option(
            "--own-kernels", help="The firmware has kernels of its own for what TFLM cannot run."
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write C++ sources of a model: its data, op resolver and arena, for any TFLM project."""
    with exit_on_errors():
        from tflm_planner.device.cpp.export import export
        from tflm_planner.device.cpp.names import cpp_names
        from tflm_planner.device.cpp.packages import packages
        from tflm_planner.support.files import (
            check_writable,
            holds,
            make_folder,
            read_file,
            write_files,
        )
        from tflm_planner.tflm.targets import load_target

        loaded = at_tflm(load_target(target, lean=firmware == "lean"), tflm)
        called = name or source.stem
        texts = dict(export(read_file(source), called, loaded, own_kernels=own_kernels))
        of_package = packages(package, cpp_names(called), loaded)
        texts |= of_package
        files = {folder / file: text.encode("utf-8", "replace") for file, text in texts.items()}
        for parent in dict.fromkeys(path.parent for path in (folder / "x", *files)):
            make_folder(parent)
        for path, data in files.items():
            may_replace = force or holds(path, data)
            why = "it is of another model or target: give this one another --name"
            if str(path.relative_to(folder)) in of_package:
                why = "it is the package of another model or target: name another folder"
            check_writable(path, force=may_replace, inputs=(source,), why=why)
        write_files(files)
        for path in files:
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
        from tflm_planner.device.virtual.virtual_board import serve_until_interrupted
        from tflm_planner.support.files import read_file
        from tflm_planner.support.units import parse_size

        models = {path.stem: read_file(path) for path in model or []}
        serve_until_interrupted(parse_size(ram), models, link, typer.echo)


def ports_command() -> None:
    """List serial ports; those with the USB id of a board first."""
    with exit_on_errors():
        from tflm_planner.device.protocol.line import ports
        from tflm_planner.report.text.safe import safe_text

        for name, description, is_board in ports():
            typer.echo(f"{'* ' if is_board else '  '}{name}  {safe_text(description)}")
