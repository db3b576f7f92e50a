"""The command line of streamed input: parses, calls `api`, prints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tflm_planner.cli.shared import (
    AsJson,
    Inputs,
    Quiet,
    Seed,
    TargetName,
    Verbose,
    errors_as_exit_codes,
    operator_kinds,
    print_json,
    progress,
)  # fmt: skip

_DEFAULT_TARGET = "cortex-m4/cmsis-nn"


def add_to(app: typer.Typer) -> None:
    """Give the application this module's commands."""
    app.command("stream-input")(stream_input_command)


def stream_input_command(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The .tflite model.")],
    front: Annotated[Path, typer.Argument(metavar="FRONT", help="To write: takes rows.")],
    back: Annotated[Path, typer.Argument(metavar="BACK", help="To write: the rest.")],
    rows: Annotated[
        int | None, typer.Option(min=1, help="Rows of the image in a strip; else the fewest.")
    ] = None,
    end: Annotated[
        int | None,
        typer.Option(min=0, help="The front's last operator; else where SRAM is least."),
    ] = None,
    header: Annotated[
        Path | None, typer.Option(help="Also write the C++ that runs the pair.")
    ] = None,
    target: TargetName = _DEFAULT_TARGET,
    time_limit: Annotated[float, typer.Option(help="Seconds for each search at most.")] = 60.0,
    seed: Seed = 0,
    tile: Annotated[bool, typer.Option("--tile", help="Also tile the back.")] = False,
    overhead: Annotated[
        float, typer.Option("--latency-overhead", help="Instructions allowed, x.")
    ] = 1.20,
    ops: Annotated[
        str,
        typer.Option(help="With --tile: operators that the back may add, or 'all'."),
    ] = "all",
    portable: Annotated[
        bool, typer.Option("--portable", help="With --tile: a back for every TFLite runtime.")
    ] = False,
    workers: Annotated[int, typer.Option(min=1, help="With --tile: processes.")] = 2,
    lean: Annotated[
        bool, typer.Option("--lean", help="For firmware with the lean library.")
    ] = False,
    inputs: Inputs = 8,
    no_verify: Annotated[
        bool, typer.Option("--no-verify", help="Write without proving equality.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Experimental: split a model so that its input comes row by row and is never in SRAM whole."""
    with errors_as_exit_codes():
        from tflm_planner import api
        from tflm_planner.strips.text import render_streamed, streamed_to_json

        on = api.load_target(target, lean=lean)
        options = api.StripOptions(
            api.SearchOptions(time_limit=time_limit, seed=seed, machine=api.machine(on)),
            api.TilePermission(dialect=not portable, new_kinds=operator_kinds(ops), workers=workers)
            if tile
            else None,
            rows,
            end,
            overhead,
        )
        proof = None if no_verify else api.VerifyOptions(seed=seed, inputs=inputs)
        with progress(quiet, verbose) as say:
            made = api.stream_input(source, (front, back), options, proof, header, force, say)
        if as_json:
            print_json(streamed_to_json(made.found, made.before, on, made.verdict))
        elif not quiet:
            typer.echo(f"{source} -> {front} + {back}  for {on.id}")
            for line in render_streamed(made.found, made.before, on, made.verdict):
                typer.echo(line)
