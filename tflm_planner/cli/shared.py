"""What all commands share: common options, exit codes for errors, progress.

It must not know commands, and imports nothing heavy.
"""

from __future__ import annotations

import inspect
import json
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeVar, cast, get_type_hints

import typer

from tflm_planner.cli.choices import Firmware
from tflm_planner.cli.without_effect import Need, refuse_both, was_given
from tflm_planner.support.errors import PlannerError, UsageError

if TYPE_CHECKING:
    from tflm_planner.tflm.allowed_operators import AllowedOperators
    from tflm_planner.tflm.targets import Target

QUIET_HELP = "Print errors only."
VERBOSE_HELP = "Say what is being done."
JSON_HELP = "Print one JSON document on stdout."
TIME_LIMIT_HELP = "Seconds to search at most; proof on top. Else counted: same bytes everywhere."
TFLM_HELP = "Month or day of the firmware's TFLM, e.g. 2025-06: what it can do."

Source = Annotated[Path, typer.Argument(readable=False, metavar="IN", help="The .tflite model.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help=QUIET_HELP)]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help=VERBOSE_HELP)]
AsJson = Annotated[bool, typer.Option("--json", help=JSON_HELP)]
WorkerCount = Annotated[int, typer.Option(min=1, help="Most processes of the search, one a core.")]
TargetName = Annotated[
    str,
    typer.Option("--target", "-t", help="Target, board or TOML file; see `tflm-plan targets`."),
]
Tflm = Annotated[str | None, typer.Option("--tflm", help=TFLM_HELP, metavar="DATE")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random choices.")]
Inputs = Annotated[int, typer.Option(min=1, help="Inputs to compare on each runtime.")]
_WIDTH = 100
"""Columns of the text if it is not printed to a terminal."""
_NARROWEST, _WIDEST = 60, 200

A = TypeVar("A")


def takes_fields_of(kind: type[A]) -> Callable[[Callable[[A], None]], Callable[..., None]]:
    """Make a command of a function that takes one object of the dataclass `kind`. typer reads
    names, types and defaults of options from a signature, so the signature is built from the fields
    of `kind`."""

    def decorate(command: Callable[[A], None]) -> Callable[..., None]:
        def command_with_options(**values: Any) -> None:
            command(kind(**values))

        hints = get_type_hints(kind, include_extras=True)
        parameters = [
            inspect.Parameter(
                f.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if f.default is MISSING else f.default,
                annotation=hints[f.name],
            )
            for f in fields(cast("Any", kind))
        ]
        typed: Any = command_with_options
        typed.__signature__ = inspect.Signature(parameters)
        typed.__annotations__ = {p.name: p.annotation for p in parameters}
        typed.__doc__, typed.__name__ = command.__doc__, command.__name__
        return typed

    return decorate


@contextmanager
def exit_on_errors() -> Generator[None]:
    """Turn an exception into one line on stderr and the exit code of its class. There is no
    traceback unless TFLM_PLAN_DEBUG is set."""
    try:
        yield
    except PlannerError as error:
        fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        fail("interrupted; nothing was written", 130)
    except (typer.Exit, BrokenPipeError):
        raise
    except OSError as error:  # not of a path that was given: a temporary folder, a cache
        where = f" ({error.filename})" if error.filename else ""
        fail(f"the system refused: {error.strerror or error}{where}; is a disk full?", 2)
    except ModuleNotFoundError as error:  # of an install without dependencies (docs/install.md)
        if (error.name or "").startswith("tflm_planner"):
            raise
        fail(
            f"this needs the package {error.name!r}, which is not installed here; install "
            "tflm-planner with its dependencies, or use arena, inspect or compare --as-is",
            2,
        )
    except Exception as error:
        if os.environ.get("TFLM_PLAN_DEBUG"):
            traceback.print_exc()
        fail(
            f"internal error: {type(error).__name__}: {error}; please report it with the model "
            "(TFLM_PLAN_DEBUG=1 shows where)",
            1,
        )


def fail(message: str, code: int) -> None:
    """Print one line on stderr and exit with this code."""
    from tflm_planner.report.text.safe import safe_text

    typer.echo(f"tflm-plan: error: {safe_text(message)}", err=True)
    raise typer.Exit(code)


@contextmanager
def show_progress(quiet: bool, verbose: bool) -> Generator[Any]:
    """A function that takes progress messages. If verbose, it prints them on stderr; if stderr is a
    terminal, it shows a spinner there from the first second on; else it is silent."""
    from tflm_planner.support.progress import silent

    if quiet or (not verbose and not sys.stderr.isatty()):
        yield silent
    elif verbose:
        yield _print_on_stderr
    else:
        from tflm_planner.support.progress import Spinner

        with Spinner() as spinner:
            yield spinner.say


def _print_on_stderr(message: str) -> None:
    typer.echo(message, err=True)


def width_of(stream: TextIO) -> int:
    """Columns that text on a stream may take: those of the terminal, within limits."""
    if not stream.isatty():
        return _WIDTH
    return min(max(shutil.get_terminal_size((_WIDTH, 0)).columns, _NARROWEST), _WIDEST)


def print_json(document: Any) -> None:
    """Print one JSON document on stdout."""
    typer.echo(json.dumps(document, indent=2, allow_nan=False))


def at_tflm(target: Target, day: str | None) -> Target:
    """The target with the TFLM of the given day; unchanged if `day` is None."""
    from tflm_planner.tflm.versions import with_tflm

    return target if day is None else with_tflm(target, day)


def allowed_operators(firmware: Firmware, names: str) -> AllowedOperators:
    """The operators that may be added to the firmware. names: a list such as "PAD,SLICE"; "" means
    all that `firmware` allows. Raises UsageError for a name that TFLM does not have."""
    from tflm_planner.pipeline.options import operators_named, operators_of

    if not names:
        return operators_of(firmware)
    named = {name.strip().lstrip("+").upper() for name in names.split(",")} - {""}
    if not named:
        raise UsageError(f"--ops {names!r} names no operator; write PAD,SLICE for example")
    if named == {"ALL"}:
        raise UsageError(f"--ops {names!r}: for all operators write --firmware more-ops")
    return operators_named(named)


def ops_needs(firmware: Firmware) -> Iterator[Need]:
    """What --ops needs of --firmware. "as-is" excludes it only where the user typed that: it is
    also the default, with which --ops says what may be added all the same."""
    all_already = firmware == "more-ops"
    yield Need(("--ops",), not all_already, "--firmware more-ops allows all; give one of both")
    stays = firmware == "as-is" and was_given("--firmware")
    yield Need(("--ops",), not stays, "--firmware as-is allows none; give one of both")


def check_reports(paths: Sequence[Path], suffixes: Collection[str], inputs: Iterable[Path]) -> None:
    """Raise UsageError unless each report can be written: its name must end in one of `suffixes`,
    and it must be neither given twice nor be one of `inputs`."""
    from tflm_planner.support.files import check_writable

    for i, path in enumerate(paths):
        if path.suffix not in suffixes:
            raise UsageError(f"report {path}: choose a name ending in {', '.join(suffixes)}")
        check_writable(path, force=True, inputs=(*inputs, *paths[:i]))


def render_all(
    subject: A, paths: Iterable[Path], renderers: Mapping[str, Callable[[A], str]]
) -> dict[Path, bytes]:
    """The reports to write at these paths, each in the format of its suffix."""
    return {path: renderers[path.suffix](subject).encode("utf-8", "replace") for path in paths}


def refuse_silence(*, with_json: bool = True) -> None:
    """Raise UsageError if --quiet is combined with an option that asks for output. with_json:
    whether the command has --json."""
    refuse_both("--quiet", "--verbose")
    if with_json:
        refuse_both("--quiet", "--json")
