"""The command line of `verify`: it parses arguments, calls `api` and prints.

    verify A B      compares the two models
    verify MODEL    checks the plan that the model carries

The fields of `VerifyArguments` are the command line: names, types, defaults, help.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    exit_on_errors,
    print_json,
    refuse_silence,
    show_progress,
    takes_fields_of,
)
from tflm_planner.cli.without_effect import Need, refuse_without_effect
from tflm_planner.support import defaults
from tflm_planner.support.errors import ModelError, OutputsDifferError, WrongPlanError


@dataclass(frozen=True)
class VerifyArguments:
    """The command line of `verify`, as it was given."""

    original: Annotated[
        Path,
        typer.Argument(
            readable=False, metavar="A", help="The original; alone: the model with a plan."
        ),
    ]
    result: Annotated[
        Path | None,
        typer.Argument(readable=False, metavar="[B]", help="The model to compare with it."),
    ] = None
    target: TargetName = defaults.TARGET
    seed: Seed = defaults.SEED
    inputs: Inputs = defaults.INPUTS
    allow_inexact: Annotated[
        bool,
        typer.Option("--allow-inexact", help="Accept small differences, and say how small."),
    ] = False
    as_json: AsJson = False
    quiet: Quiet = False
    verbose: Verbose = False

    def check(self) -> None:
        """Raise UsageError for options that have no effect, or contradict each other."""
        refuse_silence()
        why = "a plan is judged for every input; name a second model to compare with"
        options = ("--seed", "--inputs", "--allow-inexact", "--verbose")
        refuse_without_effect([Need(options, self.result is not None, why)])


@takes_fields_of(VerifyArguments)
def verify_command(arguments: VerifyArguments) -> None:
    """Compare two models for every input, and bit by bit on LiteRT's reference kernels and on real
    TFLM, and the arenas that they need on a target. With one model: judge the memory plan that it
    carries."""
    with exit_on_errors():
        arguments.check()
        if arguments.result is None:
            _judge_plan(arguments)
        else:
            _compare(arguments, arguments.result)


def _judge_plan(arguments: VerifyArguments) -> None:
    from tflm_planner.pipeline import api
    from tflm_planner.report.json.document import plan_verdict_to_json
    from tflm_planner.report.text.plan_verdict import render_plan_verdict

    target = api.load_target(arguments.target)
    verdict, arena = api.check_plan(arguments.original, target)
    if arguments.as_json:
        print_json(plan_verdict_to_json(verdict, arena, target))
    elif not arguments.quiet:
        text = render_plan_verdict(arguments.original.name, verdict, arena, target)
        typer.echo(text, nl=False)
    if not verdict.sound:
        raise WrongPlanError("the plan that the model carries is wrong")


def _compare(arguments: VerifyArguments, result: Path) -> None:
    from tflm_planner.pipeline import api
    from tflm_planner.report.json.document import equality_to_json
    from tflm_planner.report.text.equality import render_equality

    target = api.load_target(arguments.target)
    with show_progress(arguments.quiet, arguments.verbose) as on_progress:
        tolerance = api.Tolerance() if arguments.allow_inexact else None
        options = api.VerifyOptions(
            seed=arguments.seed, inputs=arguments.inputs, tolerance=tolerance
        )
        equality = api.check_equal(arguments.original, result, options, on_progress, target)
    arenas = api.arena(arguments.original, target), api.arena(result, target)
    if arguments.as_json:
        print_json(equality_to_json(equality, arenas, target))
    elif not arguments.quiet:
        typer.echo(render_equality(equality, arenas, target), nl=False)
    if equality.differs:
        raise OutputsDifferError("the models compute different outputs")
    if equality.refuted:
        raise OutputsDifferError("the models are not proved equal; see above")
    if not (equality.equal or equality.close):
        raise ModelError("nobody here could compare the models; see above")
