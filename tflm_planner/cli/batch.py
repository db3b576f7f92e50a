"""The command line of `batch`: it parses arguments, calls `jobs` and prints.

The fields of `BatchArguments` are the command line: names, types, defaults, help.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tflm_planner.cli.plan import PlanArguments
from tflm_planner.cli.shared import (
    AsJson,
    Quiet,
    Verbose,
    exit_on_errors,
    refuse_silence,
    show_progress,
    takes_fields_of,
    width_of,
)
from tflm_planner.cli.without_effect import RecordingCommand, refuse_both, was_given
from tflm_planner.support import defaults
from tflm_planner.support.cores import usable_cores
from tflm_planner.support.errors import UsageError

if TYPE_CHECKING:
    from tflm_planner.jobs.batch import PlanJob
    from tflm_planner.pipeline.api import PlanOptions

_NAMED = re.compile(r"([A-Za-z0-9][\w.-]*)=(?=-|$)")
"""Matches the `NAME=` at the beginning of a named set of options."""
_OF_THE_BATCH = ("--report", "--json", "--quiet", "--verbose", "--force")


@dataclass(frozen=True)
class BatchArguments:
    """The command line of `batch`, as it was given."""

    sources: Annotated[
        list[Path],
        typer.Argument(
            readable=False, metavar="MODELS...", help="The .tflite models, or folders with models."
        ),
    ]
    out: Annotated[
        Path,
        typer.Option(
            help="Where planned models, their reports and the summary are written. The same "
            "folder again: what is missing is done.",
            metavar="FOLDER",
        ),
    ]
    options: Annotated[
        list[str] | None,
        typer.Option(
            help="Options of tflm-plan for each model, e.g. '--target nano33ble'; may be repeated, "
            "also with names: 'lean=--firmware lean'.",
            metavar="WORDS",
        ),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="Models that are planned at once.", show_default="one a core, at most 8"
        ),
    ] = None
    address: Annotated[
        str | None,
        typer.Option(
            help="Of a Dask scheduler whose workers plan them.", metavar="TCP://HOST:PORT"
        ),
    ] = None
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Forget what an earlier run in the folder did.")
    ] = False
    as_json: AsJson = False
    quiet: Quiet = False
    verbose: Verbose = False

    @property
    def processes(self) -> int:
        """Processes on this machine, if models are planned here."""
        return self.workers or min(defaults.WORKERS, usable_cores())

    def jobs(self) -> list[PlanJob]:
        """One job for each model and set of options. Raises UsageError."""
        from tflm_planner.jobs.batch import (
            PLANNED,
            PlanJob,
            check_names,
            model_paths,
            names_of,
            options_digest,
        )
        from tflm_planner.support.files import read_file

        paths = model_paths(self.sources)
        sets = list(_option_sets(self.options or [""]))
        jobs: list[PlanJob] = []
        for path, stem in zip(paths, names_of(paths), strict=True):
            data = read_file(path)
            for suffix, words in sets:
                name = f"{stem}.{suffix}" if suffix else stem
                options = _plan_options(path, self.out / f"{name}{PLANNED}", words)
                digest = options_digest(words)
                jobs.append(PlanJob(name, str(path), data, shlex.join(words), options, digest))
        check_names(jobs)
        return jobs


@takes_fields_of(BatchArguments)
def batch_command(arguments: BatchArguments) -> None:
    """Plan many models, or one with many sets of options, into a folder with a summary. One that
    fails does not end the others; Ctrl-C keeps what is done, and the same command goes on."""
    with exit_on_errors():
        refuse_silence()
        refuse_both("--workers", "--address")
        refuse_both("--json", "--verbose")
        from tflm_planner.jobs.batch import run_batch
        from tflm_planner.jobs.batch_report import SUMMARIES, batch_json, render_batch
        from tflm_planner.jobs.engines import engine_at
        from tflm_planner.support.files import write_files

        jobs = arguments.jobs()
        needed = ("tflm_planner.pipeline.api",)
        quiet = arguments.quiet or arguments.as_json
        with (
            show_progress(quiet, arguments.verbose) as on_progress,
            engine_at(arguments.address, arguments.processes, needed) as engine,
        ):
            batch = run_batch(jobs, arguments.out, engine, on_progress, fresh=arguments.fresh)
        summaries = {arguments.out / name: make(batch) for name, make in SUMMARIES.items()}
        write_files({path: text.encode("utf-8", "replace") for path, text in summaries.items()})
        if arguments.as_json:
            typer.echo(batch_json(batch), nl=False)
        elif not arguments.quiet:
            typer.echo(render_batch(batch, width_of(sys.stdout)), nl=False)
        if batch.exit_code:
            raise typer.Exit(batch.exit_code)


def _option_sets(given: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """The sets of options, each with its name: the given one, else its number, or "" for a single
    set without a name. Raises UsageError if two sets have the same name."""
    names: set[str] = set()
    for place, text in enumerate(given):
        named = _NAMED.match(text)
        name = named[1] if named else str(place + 1) if len(given) > 1 else ""
        if name in names:
            raise UsageError(f"two sets of options are called {name!r}")
        names.add(name)
        try:
            yield name, shlex.split(text[named.end() :] if named else text)
        except ValueError as error:
            raise UsageError(f"--options {text!r}: {error}") from error


def _plan_options(source: Path, destination: Path, words: Sequence[str]) -> PlanOptions:
    """The options of `tflm-plan SOURCE DESTINATION WORDS`. Raises UsageError, also for options that
    apply to the batch as a whole."""
    parsed: list[PlanOptions] = []
    parser = typer.Typer(add_completion=False)

    @parser.command(cls=RecordingCommand)
    @takes_fields_of(PlanArguments)
    def parse(arguments: PlanArguments) -> None:  # pyright: ignore[reportUnusedFunction]
        for option in _OF_THE_BATCH:
            if was_given(option):
                raise UsageError(f"{option} is for the whole batch, not for a set of options")
        options = arguments.options()
        if options.tiles is not None and not was_given("--workers"):
            # Models are planned side by side; the result is the same.
            options = replace(options, tiles=replace(options.tiles, workers=1))
        parsed.append(options)

    try:
        parser([*words, "--", str(source), str(destination)], standalone_mode=False)
    except Exception as error:
        says = getattr(error, "format_message", None)  # of click, which typer has under two names
        if says is None:
            raise
        raise UsageError(f"--options {shlex.join(words)!r}: {says()}") from error
    if not parsed:  # --help has printed it
        raise UsageError(f"--options {shlex.join(words)!r}: that asks for help, and plans nothing")
    return parsed[0]
