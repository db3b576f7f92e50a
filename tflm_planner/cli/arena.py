"""The command line of `arena`: it parses arguments, calls `api` and prints.

    arena IN               one arena
    arena IN --split       two: what stays, and the rest
    arena A B --shared     one for several models

The fields of `ArenaArguments` are the command line: names, types, defaults, help.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tflm_planner.cli.shared import (
    AsJson,
    TargetName,
    Tflm,
    at_tflm,
    exit_on_errors,
    print_json,
    takes_fields_of,
)
from tflm_planner.cli.without_effect import refuse_both
from tflm_planner.support import defaults
from tflm_planner.support.errors import UsageError

if TYPE_CHECKING:
    from tflm_planner.tflm.targets import Target


@dataclass(frozen=True)
class ArenaArguments:
    """The command line of `arena`, as it was given."""

    sources: Annotated[
        list[Path], typer.Argument(readable=False, metavar="IN...", help="The .tflite model.")
    ]
    target: TargetName = defaults.TARGET
    tflm: Tflm = None
    split: Annotated[
        bool,
        typer.Option("--split", help="In two arenas: what stays (PSRAM, say), and the rest."),
    ] = False
    shared: Annotated[
        bool,
        typer.Option(
            "--shared", help="Several models in one arena, in the order of their allocation."
        ),
    ] = False
    as_json: AsJson = False

    def check(self) -> None:
        """Raise UsageError if the options do not fit the number of models."""
        refuse_both("--split", "--shared")
        if self.shared and len(self.sources) < 2:
            raise UsageError("--shared is for several models; name the others too")
        if not self.shared and len(self.sources) > 1:
            raise UsageError("several models: add --shared for one arena, or ask for one at a time")


@takes_fields_of(ArenaArguments)
def arena_command(arguments: ArenaArguments) -> None:
    """Say how large tensor_arena must be on a target, to the byte, planned model or not."""
    with exit_on_errors():
        from tflm_planner.tflm.targets import load_target

        arguments.check()
        target = at_tflm(load_target(arguments.target), arguments.tflm)
        if arguments.shared:
            _print_common(arguments, target)
        else:
            _print_one(arguments, target)


def _print_one(arguments: ArenaArguments, target: Target) -> None:
    from tflm_planner.pipeline.inspection import arenas
    from tflm_planner.report.text.arena import render_arena, render_split_arena

    (source,) = arguments.sources
    arena, apart = arenas.arena(source, target), arenas.split_arena(source, target)
    if arguments.as_json:
        from tflm_planner.report.json.document import arena_to_json

        print_json(arena_to_json(arena, target, apart))
    elif not arguments.split:
        typer.echo(render_arena(source.name, arena, target), nl=False)
    elif apart is None:
        raise UsageError(f"{target.id}: the sizes of two arenas are known for current TFLM only")
    else:
        typer.echo(render_split_arena(source.name, arena, apart, target), nl=False)


def _print_common(arguments: ArenaArguments, target: Target) -> None:
    from tflm_planner.pipeline.inspection import arenas
    from tflm_planner.report.json.document import common_arena_to_json
    from tflm_planner.report.text.arena import render_common_arena

    arena = arenas.common_arena(arguments.sources, target)
    if arguments.as_json:
        names = [str(source) for source in arguments.sources]
        print_json(common_arena_to_json(names, arena, target))
    else:
        names = [source.name for source in arguments.sources]
        typer.echo(render_common_arena(names, arena, target), nl=False)
