"""The command line of `stream-input`: it parses arguments, calls `api` and prints.

The fields of `StreamInputArguments` are the command line: names, types, defaults, help.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tflm_planner.cli.choices import BackSearchMethod, Firmware
from tflm_planner.cli.shared import (
    TIME_LIMIT_HELP,
    AsJson,
    Inputs,
    Quiet,
    Seed,
    Source,
    TargetName,
    Tflm,
    Verbose,
    WorkerCount,
    allowed_operators,
    at_tflm,
    exit_on_errors,
    ops_needs,
    print_json,
    refuse_silence,
    show_progress,
    takes_fields_of,
)  # fmt: skip
from tflm_planner.cli.without_effect import Need, RecordingCommand, refuse_without_effect
from tflm_planner.support import defaults

if TYPE_CHECKING:
    from tflm_planner.pipeline.api import StreamOptions, TilePermission, VerifyOptions


@dataclass(frozen=True)
class StreamInputArguments:
    """The command line of `stream-input`, as it was given."""

    source: Source
    front: Annotated[Path, typer.Argument(metavar="FRONT", help="To write: takes rows.")]
    back: Annotated[Path, typer.Argument(metavar="BACK", help="To write: the rest.")]
    rows: Annotated[
        int | None, typer.Option(min=1, help="Rows of the image in a strip; else the fewest.")
    ] = None
    end: Annotated[
        int | None,
        typer.Option(min=0, help="The front's last operator; else where SRAM is least."),
    ] = None
    header: Annotated[Path | None, typer.Option(help="Also write the C++ that runs the pair.")] = (
        None
    )
    target: TargetName = defaults.TARGET
    tflm: Tflm = None
    time_limit: Annotated[
        float | None,
        typer.Option(help=TIME_LIMIT_HELP),
    ] = None
    seed: Seed = defaults.SEED
    firmware: Annotated[
        Firmware,
        typer.Option(
            help="What the back may need: nothing new; more operators; the lean library too."
        ),
    ] = "as-is"
    ops: Annotated[
        str, typer.Option(help="Operators that tiles of the back may add; no others.")
    ] = ""
    max_slowdown: Annotated[
        float, typer.Option(help="Instructions of the pair, relative to the model.")
    ] = defaults.STREAM_SLOWDOWN
    search: Annotated[
        BackSearchMethod, typer.Option(help="What is tried in the back beside order and plan.")
    ] = "regions"
    portable: Annotated[
        bool, typer.Option("--portable", help="A back that every TFLite runtime runs.")
    ] = False
    workers: WorkerCount = defaults.WORKERS
    inputs: Inputs = defaults.INPUTS
    no_verify: Annotated[
        bool, typer.Option("--no-verify", help="Write without proving equality.")
    ] = False
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False
    as_json: AsJson = False
    quiet: Quiet = False
    verbose: Verbose = False

    def needs(self) -> Iterator[Need]:
        """The options that have an effect only in combination with others."""
        searched = self.search != "none"
        tiles = ("--ops", "--portable", "--workers")
        yield Need(tiles, searched, "it is for tiles of the back; leave out --search none")
        yield from ops_needs(self.firmware)
        more = searched or self.firmware != "more-ops"
        yield Need(("--firmware",), more, "operators are for tiles; leave out --search none")
        yield Need(("--inputs",), not self.no_verify, "--no-verify compares nothing; leave it out")

    def options(self) -> StreamOptions:
        """What the command line asks for. Raises UsageError."""
        from tflm_planner.pipeline import api

        refuse_without_effect(self.needs())
        refuse_silence()
        named = api.load_target(self.target, lean=self.firmware == "lean")
        target = at_tflm(named, self.tflm)
        memory = api.MemoryOptions(
            time_limit=self.time_limit, seed=self.seed, kernels=api.kernels_of(target)
        )
        tiles = self._permission() if self.search != "none" else None
        return api.StreamOptions(
            memory,
            tiles,
            rows=self.rows,
            end=self.end,
            max_slowdown=self.max_slowdown,
            verify=self._proof(),
            force=self.force,
        )

    def _proof(self) -> VerifyOptions | None:
        """How the pair is to be verified; None with --no-verify."""
        from tflm_planner.pipeline import api

        return None if self.no_verify else api.VerifyOptions(seed=self.seed, inputs=self.inputs)

    def _permission(self) -> TilePermission:
        from tflm_planner.pipeline import api

        return api.TilePermission(
            dialect=not self.portable,
            operators=allowed_operators(self.firmware, self.ops),
            workers=self.workers,
        )


def add_to(app: typer.Typer) -> None:
    """Add this module's command to the program."""
    app.command("stream-input", cls=RecordingCommand)(stream_input_command)


@takes_fields_of(StreamInputArguments)
def stream_input_command(arguments: StreamInputArguments) -> None:
    """Experimental: split a model so that its input comes row by row and is never in SRAM whole."""
    with exit_on_errors():
        from tflm_planner.pipeline import api
        from tflm_planner.pipeline.stream_input.render import render_streamed, streamed_to_json

        options = arguments.options()
        with show_progress(arguments.quiet, arguments.verbose) as on_progress:
            split = api.stream_input(
                arguments.source,
                (arguments.front, arguments.back),
                options,
                arguments.header,
                on_progress,
            )
        target = options.target
        proof_outcome = split.verdict, split.stopped, split.terms
        if arguments.as_json:
            print_json(streamed_to_json(split.pair, split.before, target, *proof_outcome))
        elif not arguments.quiet:
            files = f"{arguments.source} -> {arguments.front} + {arguments.back}"
            typer.echo(f"{files}  for {target.id}")
            for line in render_streamed(split.pair, split.before, *proof_outcome):
                typer.echo(line)
