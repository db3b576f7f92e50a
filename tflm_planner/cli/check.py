"""The command line of `check`: it parses arguments, calls `memory_fit` and prints.

The fields of `CheckArguments` are the command line: names, types, defaults, help.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tflm_planner.cli.shared import (
    AsJson,
    Quiet,
    exit_on_errors,
    print_json,
    takes_fields_of,
)
from tflm_planner.cli.without_effect import Need, refuse_both, refuse_without_effect, was_given
from tflm_planner.support import defaults
from tflm_planner.support.errors import UsageError

if TYPE_CHECKING:
    from tflm_planner.report.memory_fit import FitCheck
    from tflm_planner.tflm.targets import Target


@dataclass(frozen=True)
class CheckArguments:
    """The command line of `check`, as it was given."""

    sources: Annotated[
        list[Path] | None,
        typer.Argument(readable=False, metavar="[IN...]", help="The .tflite models."),
    ] = None
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            "-t",
            help="Target, board or TOML file; see `tflm-plan targets`. May be repeated: releases "
            f"of a kernel library, say. [default: {defaults.TARGET}]",
        ),
    ] = None
    max_arena: Annotated[
        str | None,
        typer.Option(
            help="Bytes that the arena may take, e.g. 64K; a board's SRAM if not given.",
            metavar="BYTES",
        ),
    ] = None
    manifest: Annotated[
        list[Path] | None,
        typer.Option(
            help="ESPHome's manifest of a wake word: names model and arena; may be repeated.",
            metavar="FILE",
        ),
    ] = None
    allow_at_least: Annotated[
        bool,
        typer.Option(
            "--allow-at-least", help='Let pass what fits by a figure that is only "at least".'
        ),
    ] = False
    as_json: AsJson = False
    quiet: Quiet = False

    @property
    def target_names(self) -> list[str]:
        """The targets as they were given; the default target if none was given."""
        return self.target or [defaults.TARGET]

    def arena_limit(self, target: Target) -> int:
        """The bytes that the arena of a model may take. Raises UsageError if neither --max-arena
        nor a board gives a limit."""
        from tflm_planner.support.units import parse_size

        if self.max_arena is not None:
            return parse_size(self.max_arena)
        if target.board is None:
            raise UsageError(
                f"{target.id} is no board, whose SRAM would be the limit; add --max-arena BYTES"
            )
        return target.board.sram

    def check(self) -> None:
        """Raise UsageError if something is missing, or if an option has no effect."""
        if not (self.sources or self.manifest):
            raise UsageError("nothing to check; name models, or a --manifest")
        if self.manifest and not was_given("--target"):
            raise UsageError(
                "a manifest does not say for which chip; add --target, such as esp32s3/esp-nn-1.2.3"
            )
        why = "a manifest names its arena; name models, too, or leave it out"
        refuse_without_effect([Need(("--max-arena",), bool(self.sources), why)])
        refuse_both("--quiet", "--json")
        if self.as_json and len(self.target_names) > 1:
            raise UsageError("--json is a document of one target; ask for one --target at a time")


@takes_fields_of(CheckArguments)
def check_command(arguments: CheckArguments) -> None:
    """Say whether models fit, a line each, for continuous integration. Exit code 0: all do; 3: one
    does not, or is not known to; 5: one cannot be read, or TFLM cannot run it."""
    with exit_on_errors():
        from tflm_planner.report.memory_fit import exit_code, fit_check_lines, fit_checks_to_json
        from tflm_planner.tflm.targets import load_target

        arguments.check()
        targets = [load_target(name) for name in arguments.target_names]
        checks = [check for target in targets for check in _checks(arguments, target)]
        code = exit_code(checks, allow_at_least=arguments.allow_at_least)
        if arguments.as_json:
            print_json(fit_checks_to_json(checks, targets[0]))
        elif not arguments.quiet:
            for line in fit_check_lines(checks, with_target=len(targets) > 1):
                typer.echo(line)
        if code:
            raise typer.Exit(code)


def _checks(arguments: CheckArguments, target: Target) -> list[FitCheck]:
    from tflm_planner.pipeline.inspection.memory_fit import check_manifest, check_model

    sources = arguments.sources or []
    arena_limit = arguments.arena_limit(target) if sources else 0
    checks = [check_model(path, arena_limit, target) for path in sources]
    checks += [check_manifest(path, target) for path in arguments.manifest or []]
    name = target.id if target.board is None else target.board.id
    return [replace(check, target=name) for check in checks]
