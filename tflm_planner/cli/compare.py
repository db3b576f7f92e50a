"""The command line of `compare`: it parses arguments, calls `api` and prints.

The fields of `CompareArguments` are the command line: names, types, defaults, help.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from tflm_planner.cli.shared import (
    AsJson,
    Source,
    Verbose,
    WorkerCount,
    exit_on_errors,
    print_json,
    show_progress,
    takes_fields_of,
    width_of,
)
from tflm_planner.cli.without_effect import Need, refuse_both, refuse_without_effect
from tflm_planner.support import defaults

if TYPE_CHECKING:
    from tflm_planner.report.comparison import Comparison
    from tflm_planner.tflm.targets import Target


@dataclass(frozen=True)
class CompareArguments:
    """The command line of `compare`, as it was given."""

    source: Source
    boards: Annotated[
        str,
        typer.Option(
            help="Boards whose id, name, vendor or target this is a part of; * and ? stand for "
            "any letters. All boards if not given.",
            metavar="PATTERN",
        ),
    ] = ""
    kernels: Annotated[
        str,
        typer.Option(
            help="Kernel library of their firmware, e.g. esp-nn-1.2.1; else as boards come.",
            metavar="NAME",
        ),
    ] = ""
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            "-t",
            help="Board, target or TOML file, in place of the boards; may be repeated.",
        ),
    ] = None
    as_is: Annotated[bool, typer.Option("--as-is", help="Only the model as it is: at once.")] = (
        False
    )
    tiles: Annotated[
        bool, typer.Option("--tiles", help="Search for tiles, too: up to minutes.")
    ] = False
    deep: Annotated[
        bool,
        typer.Option(
            "--deep", help="Search for tiles, with more operators, and with the lean library."
        ),
    ] = False
    workers: WorkerCount = defaults.WORKERS
    as_json: AsJson = False
    verbose: Verbose = False

    def needs(self) -> Iterator[Need]:
        """The options that have an effect only in combination with others."""
        of_boards = "it is for the built-in boards; leave out --target"
        yield Need(("--boards", "--kernels"), not self.target, of_boards)
        searched = self.tiles or self.deep
        yield Need(("--workers",), searched, "it is for a search; add --tiles or --deep")

    def targets(self) -> list[Target]:
        """The boards and targets that were asked for. Raises UsageError."""
        from tflm_planner.tflm.targets import boards_like, load_target

        if self.target:
            return [load_target(name) for name in dict.fromkeys(self.target)]
        return [*boards_like(self.boards, self.kernels)]


@takes_fields_of(CompareArguments)
def compare_command(arguments: CompareArguments) -> None:
    """Show what a model needs on every board, as it is and planned, and whether it fits."""
    with exit_on_errors():
        refuse_both("--as-is", "--tiles", "--deep")
        refuse_without_effect(arguments.needs())
        targets = arguments.targets()

        from tflm_planner.report.json.comparison import comparison_to_json
        from tflm_planner.report.text.comparison import render_comparison

        comparison = _compare(arguments, targets)
        if arguments.as_json:
            print_json(comparison_to_json(comparison))
        else:
            typer.echo(render_comparison(comparison, width_of(sys.stdout)), nl=False)


def _compare(arguments: CompareArguments, targets: list[Target]) -> Comparison:
    from tflm_planner.pipeline import read_only

    if arguments.as_is:
        return read_only.compare_as_is(arguments.source, targets)

    from tflm_planner.pipeline import api
    from tflm_planner.pipeline.comparison import compare_boards

    columns = compare_boards.WITH_TILES if arguments.tiles else compare_boards.QUICK
    columns = compare_boards.ALL if arguments.deep else columns
    with show_progress(arguments.as_json, arguments.verbose) as on_progress:
        return api.compare(arguments.source, targets, columns, arguments.workers, on_progress)
