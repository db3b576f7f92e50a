"""The command line: it parses arguments, calls `api` and prints, and does nothing else.

Heavy modules are imported inside the commands, so that `tflm-plan --help` answers at once. Exit
codes: 0 done (and within budget), 1 internal, 2 usage, 3 over budget (best effort written), 4
outputs differ (nothing written) or a wrong plan, 5 unsupported or damaged model, 6 no board, or one
that fails.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tflm_planner.cli import device, stream_input
from tflm_planner.cli.arena import arena_command
from tflm_planner.cli.batch import batch_command
from tflm_planner.cli.check import check_command
from tflm_planner.cli.compare import compare_command
from tflm_planner.cli.fit import fit_command
from tflm_planner.cli.inspection import inspect_command
from tflm_planner.cli.mcp import mcp_command
from tflm_planner.cli.plan import PlanArguments
from tflm_planner.cli.shared import (
    AsJson,
    check_reports,
    exit_on_errors,
    fail,
    print_json,
    render_all,
    show_progress,
    takes_fields_of,
    width_of,
)
from tflm_planner.cli.streams import escape_unencodable
from tflm_planner.cli.verify import verify_command
from tflm_planner.cli.without_effect import RecordingCommand
from tflm_planner.support.errors import suggest
from tflm_planner.support.interrupts import ending_in_order
from tflm_planner.support.version import __version__

if TYPE_CHECKING:
    from tflm_planner.report.document import Report

_HELP = """Makes TensorFlow Lite models fit microcontrollers: same bits, a fraction of the SRAM.

`tflm-plan IN.tflite` plans a model: the verb `plan` may be left out, and
`tflm-plan plan --help` lists its options."""
_EXIT_CODES = (
    "Exit codes: 0 done, 1 internal error, 2 wrong usage, 3 does not fit (the smallest was "
    "written), 4 outputs differ (nothing written) or the plan is wrong, 5 unsupported or damaged "
    "model, 6 no board, or one that fails, 130 stopped by Ctrl-C."
)
_EXAMPLES = """Examples:

`tflm-plan person.tflite --target nano33ble` : does it fit, and what to paste

`tflm-plan person.tflite small.tflite --budget 60K --firmware more-ops` : into 60 KiB, with a few
more operators registered

"""

app = typer.Typer(
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=_HELP,
    epilog=_EXIT_CODES,
)

DEFAULT_VERB = "plan"
_LONGEST = 200
"""Letters: a longer word is not taken for a misspelt verb."""
_GLOBAL_OPTIONS = {"-h", "--help", "--version"}


def main() -> None:
    """Entry point: `tflm-plan in out` means `tflm-plan plan in out`."""
    escape_unencodable()
    arguments = sys.argv[1:]
    verbs = [command.name for command in app.registered_commands if command.name]
    if arguments and arguments[0] not in {*verbs, *_GLOBAL_OPTIONS}:
        try:
            _refuse_misspelt(arguments[0], verbs)
            _refuse_late_verb(arguments, verbs)
        except typer.Exit as stop:
            raise SystemExit(stop.exit_code) from None
        arguments.insert(0, DEFAULT_VERB)
    with ending_in_order():
        app(arguments, prog_name="tflm-plan")


def _refuse_misspelt(word: str, verbs: Collection[str]) -> None:
    """Exit with code 2 if the first word looks like a verb but is neither a verb nor a file. The
    verb may be left out, but not misspelt. A word that looks like a file name or an option is
    passed on to `plan`."""
    path = Path(word)
    if word.startswith("-") or path.suffix or len(word) > _LONGEST or path.name != word:
        return
    if not path.exists():
        fail(f"no verb {word!r}, and no such file; {suggest(word, verbs)}", 2)


def _refuse_late_verb(words: Sequence[str], verbs: Collection[str]) -> None:
    """Exit with code 2 if the second word is a verb: it would be the name of the file to write."""
    if len(words) > 1 and words[1] in verbs:
        rest = shlex.join([words[0], *words[2:]])
        fail(f"the verb comes first: tflm-plan {words[1]} {rest}", 2)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tflm-plan {__version__}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print version.")
    ] = False,
) -> None:
    """Options before any verb."""


@app.command(DEFAULT_VERB, cls=RecordingCommand, epilog=_EXAMPLES + _EXIT_CODES)
@takes_fields_of(PlanArguments)
def plan_command(arguments: PlanArguments) -> None:
    """Write a model that computes the same bits in less memory, proved before it is written."""
    with exit_on_errors():
        from tflm_planner.pipeline import api
        from tflm_planner.report.render import RENDERERS

        reports, output = arguments.report or [], arguments.output
        check_reports(reports, RENDERERS, (arguments.source, output))
        options = arguments.options()
        source = sys.stdin.buffer.read() if arguments.reads_stdin else arguments.source
        destination = None if arguments.writes_stdout else output
        with show_progress(arguments.quiet, arguments.verbose) as on_progress:
            result = api.plan(
                source,
                destination,
                options,
                on_progress,
                lambda report: render_all(report, reports, RENDERERS),
            )
        if arguments.writes_stdout:
            sys.stdout.buffer.write(result.data)
        _print_report(result.report, arguments)
        if not result.report.may_fit:
            raise typer.Exit(3)


app.command("inspect", cls=RecordingCommand)(inspect_command)


app.command("arena", cls=RecordingCommand)(arena_command)


@app.command("targets", cls=RecordingCommand)
def targets_command(as_json: AsJson = False) -> None:
    """List the targets and boards that --target knows."""
    with exit_on_errors():
        from tflm_planner.report.text.targets import render_targets, targets_to_json
        from tflm_planner.tflm.targets import all_boards, all_targets

        if as_json:
            print_json(targets_to_json(all_targets(), all_boards()))
        else:
            typer.echo(render_targets(all_targets(), all_boards()), nl=False)


app.command("batch", cls=RecordingCommand)(batch_command)
app.command("check", cls=RecordingCommand)(check_command)
app.command("compare", cls=RecordingCommand)(compare_command)
app.command("fit", cls=RecordingCommand)(fit_command)
app.command("mcp", cls=RecordingCommand)(mcp_command)
app.command("verify", cls=RecordingCommand)(verify_command)
device.add_to(app)
stream_input.add_to(app)


def _print_report(report: Report, arguments: PlanArguments) -> None:
    """Print the report on stdout, or on stderr if the model itself is written to stdout."""
    if arguments.as_json:
        from tflm_planner.report.json.document import to_json

        print_json(to_json(report))
    elif not arguments.quiet:
        from tflm_planner.report.text.fit import is_good
        from tflm_planner.report.text.report import render_report

        stream = sys.stderr if arguments.writes_stdout else sys.stdout
        text = render_report(report, width=width_of(stream), encoding=stream.encoding or "utf-8")
        verdict, details = text.split("\n", 1)
        colour = {True: typer.colors.GREEN, False: typer.colors.RED, None: None}[is_good(report)]
        if stream.isatty() and not os.environ.get("NO_COLOR"):
            verdict = typer.style(verdict, fg=colour, bold=True)
        typer.echo(f"{verdict}\n{details}", nl=False, err=arguments.writes_stdout)
