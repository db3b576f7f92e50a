"""The command line: parses, calls `api`, prints. Nothing else.

Heavy modules are imported inside the commands: `tflm-plan --help` answers in a blink.
Exit codes: 0 done (and within budget), 1 internal, 2 usage, 3 over budget (best effort written),
4 outputs differ (nothing written), 5 unsupported or damaged model, 6 no board, or one that fails.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tflm_planner import __version__, cli_device, cli_strips
from tflm_planner.cli_shared import (
    AsJson,
    Inputs,
    Quiet,
    Seed,
    TargetName,
    Verbose,
    operator_kinds,
)  # fmt: skip
from tflm_planner.cli_shared import errors_as_exit_codes as _errors_as_exit_codes
from tflm_planner.cli_shared import print_json as _print_json
from tflm_planner.cli_shared import progress as _progress
from tflm_planner.errors import ModelError, OutputsDifferError, UsageError

DEFAULT_TARGET = "cortex-m4/cmsis-nn"

if TYPE_CHECKING:
    from tflm_planner.report.document import Report

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Makes TensorFlow Lite models fit microcontrollers: same bits, a fraction of the SRAM.\n\n"
    "tflm-plan IN.tflite OUT.tflite plans a model; the verb 'plan' may be left out.",
    epilog="Exit codes: 0 done, 1 internal error, 2 wrong usage, 3 over budget (best effort "
    "written), 4 outputs differ (nothing written), 5 unsupported or damaged model, 6 no board, or "
    "one that fails.",
)

DEFAULT_VERB = "plan"
_GLOBAL_OPTIONS = {"-h", "--help", "--version"}


def main() -> None:
    """Entry point: `tflm-plan in out` means `tflm-plan plan in out`."""
    arguments = sys.argv[1:]
    verbs = {command.name for command in app.registered_commands}
    if arguments and arguments[0] not in verbs | _GLOBAL_OPTIONS:
        arguments.insert(0, DEFAULT_VERB)
    app(arguments, prog_name="tflm-plan")


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


@app.command(DEFAULT_VERB)
def plan_command(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The .tflite model.")],
    destination: Annotated[Path, typer.Argument(metavar="OUT", help="The model to write.")],
    budget: Annotated[
        str | None, typer.Option(help="Bytes the arena may take, e.g. 256K; exit code 3 if not.")
    ] = None,
    target: TargetName = DEFAULT_TARGET,
    order: Annotated[
        str, typer.Option(help="Operator order: best, exact, beam, rpo or file.")
    ] = "best",
    allocator: Annotated[
        str, typer.Option(help="Offsets: best, greedy, local, exact or cpsat.")
    ] = "best",
    time_limit: Annotated[float, typer.Option(help="Seconds to search at most.")] = 60.0,
    seed: Seed = 0,
    no_overlap: Annotated[
        bool, typer.Option("--no-overlap", help="Share memory only as every kernel allows.")
    ] = False,
    dilate: Annotated[
        bool,
        typer.Option("--dilate", help="Let 1x1 convolutions overlap on CMSIS-NN, slower."),
    ] = False,
    tile: Annotated[
        bool, typer.Option("--tile", help="Also compute parts of the model in tiles.")
    ] = False,
    overhead: Annotated[
        float, typer.Option("--latency-overhead", help="With --tile: instructions allowed, x.")
    ] = 1.10,
    portable: Annotated[
        bool,
        typer.Option("--portable", help="With --tile: a graph that every TFLite runtime runs."),
    ] = False,
    ops: Annotated[
        str,
        typer.Option(help="With --tile: operators the firmware may have to add, or 'all'."),
    ] = "",
    search: Annotated[
        str,
        typer.Option(help="With --tile: regions (best partition) or motes (its beam search)."),
    ] = "regions",
    objective: Annotated[
        str, typer.Option(help="With --tile: lower the whole arena, or the head alone.")
    ] = "arena",
    workers: Annotated[
        int, typer.Option(min=1, help="With --tile: processes; the result is the same.")
    ] = 2,
    patch: Annotated[
        str | None,
        typer.Option(help="p,n or p,nb: p x p patches over the first n operators (or blocks)."),
    ] = None,
    split: Annotated[
        list[str] | None,
        typer.Option(help="By hand, e.g. 2-7:rows=4,halo=merge or 3:sum=2; may be repeated."),
    ] = None,
    allow_inexact: Annotated[
        bool,
        typer.Option("--allow-inexact", help="Let --split split sums: outputs may NOT be equal."),
    ] = False,
    profile: Annotated[
        Path | None,
        typer.Option(help="With --tile: latencies of a board, from tflm-plan profile."),
    ] = None,
    lean: Annotated[
        bool, typer.Option("--lean", help="For firmware with the lean library: target+lean.")
    ] = False,
    report: Annotated[
        list[Path] | None,
        typer.Option(help="Also write a report: .json, .csv, .html or .svg; may be repeated."),
    ] = None,
    inputs: Inputs = 8,
    no_verify: Annotated[
        bool, typer.Option("--no-verify", help="Write without proving equality.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Write a model that computes the same bits in less memory, proved before it is written."""
    with _errors_as_exit_codes():
        from tflm_planner import api
        from tflm_planner.tiled_by_hand import by_hand
        from tflm_planner.units import parse_size

        reports = report or []
        for path in reports:
            _check_report(path, source, destination)
        options = api.PlanOptions(
            api.SearchOptions(
                _one_of("order", order),
                allocator,
                time_limit,
                seed,
                machine=api.machine(
                    cli_device.with_profile(api.load_target(target, lean=lean), profile)
                ),
                overlap=not no_overlap,
                dilate=dilate,
            ),
            budget=None if budget is None else parse_size(budget),
            verify=None if no_verify else api.VerifyOptions(seed=seed, inputs=inputs),
            force=force,
            tiles=api.TilePermission(
                overhead,
                dialect=not portable,
                new_kinds=operator_kinds(ops),
                by_hand=by_hand(patch, split or ()),
                inexact=allow_inexact,
                method=_one_of("search", search),
                objective=_one_of("objective", objective),
                workers=workers,
            )
            if tile or patch or split
            else None,
        )
        with _progress(quiet, verbose) as say:
            result = api.plan(source, destination, options, say)
        for path in reports:
            _write_report(path, result.report)
        _print_report(result.report, as_json=as_json, quiet=quiet)
        if not result.report.within_budget:
            raise typer.Exit(3)


@app.command("inspect")
def inspect_command(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The .tflite model.")],
    text: Annotated[
        bool, typer.Option("--text", help="The model's text form: one operator a line.")
    ] = False,
    axes: Annotated[
        bool, typer.Option("--axes", help="The axes along which each cell can be split.")
    ] = False,
    svg: Annotated[Path | None, typer.Option(help="Also draw the memory map.")] = None,
    problem: Annotated[
        Path | None,
        typer.Option(help="Also write the planning problem as CSV, in MiniMalloc's columns."),
    ] = None,
    target: TargetName = DEFAULT_TARGET,
    as_json: AsJson = False,
) -> None:
    """Show operators, live bytes, the peak and its tensors, and the limits."""
    with _errors_as_exit_codes():
        from tflm_planner import api, ir_text
        from tflm_planner.files import check_writable, write_file
        from tflm_planner.planning.minimalloc_csv import write_csv
        from tflm_planner.report.json_document import inspection_to_json
        from tflm_planner.report.memory_map_svg import memory_map_svg
        from tflm_planner.report.text import render_inspection

        for path in (svg, problem):
            if path is not None:
                check_writable(path, force=True, inputs=(source,))
        on = api.machine(api.load_target(target))
        options = api.SearchOptions(time_limit=20.0, machine=on)
        seen = api.inspect(source, options)
        if svg is not None:
            write_file(svg, memory_map_svg(seen.map, title=source.name).encode())
        if problem is not None:
            rows = io.StringIO()
            posed, placed = api.problem(source, options)
            write_csv(posed, rows, placed)
            write_file(problem, rows.getvalue().encode("utf-8", "backslashreplace"))
        if axes:
            from tflm_planner.report.axes_text import axes_text

            typer.echo(axes_text(seen.model.main), nl=False)
        elif text:
            typer.echo(ir_text.to_text(seen.model), nl=False)
        elif as_json:
            _print_json(inspection_to_json(seen.map, seen.limits, seen.notes))
        else:
            encoding = sys.stdout.encoding or "utf-8"
            shown = render_inspection(
                f"{source} on {on.target.id}", seen.map, seen.limits, seen.notes, encoding=encoding
            )
            typer.echo(shown)


@app.command("arena")
def arena_command(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The .tflite model.")],
    target: TargetName = DEFAULT_TARGET,
    as_json: AsJson = False,
) -> None:
    """Say how large tensor_arena must be on a target, to the byte, planned model or not."""
    with _errors_as_exit_codes():
        from tflm_planner import api
        from tflm_planner.report.arena_text import render_arena
        from tflm_planner.report.json_document import arena_to_json

        on = api.load_target(target)
        found = api.arena(source, on)
        if as_json:
            _print_json(arena_to_json(found, on))
        else:
            typer.echo(render_arena(source.name, found, on), nl=False)


@app.command("targets")
def targets_command(as_json: AsJson = False) -> None:
    """List the targets and boards that --target knows."""
    with _errors_as_exit_codes():
        from tflm_planner.report.targets_text import render_targets, targets_to_json
        from tflm_planner.tflm.targets import all_boards, all_targets

        if as_json:
            _print_json(targets_to_json(all_targets(), all_boards()))
        else:
            typer.echo(render_targets(all_targets(), all_boards()), nl=False)


@app.command("verify")
def verify_command(
    original: Annotated[Path, typer.Argument(metavar="A", help="The original model.")],
    result: Annotated[Path, typer.Argument(metavar="B", help="The model to compare with it.")],
    seed: Seed = 0,
    inputs: Inputs = 8,
    allow_inexact: Annotated[
        bool,
        typer.Option("--allow-inexact", help="Accept small differences, and say how small."),
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Compare two models bit by bit on LiteRT's reference kernels and on real TFLM."""
    with _errors_as_exit_codes():
        from tflm_planner import api
        from tflm_planner.report.json_document import verdict_to_json
        from tflm_planner.report.text import check_sentence

        with _progress(quiet, verbose) as say:
            tolerance = api.Tolerance() if allow_inexact else None
            options = api.VerifyOptions(seed=seed, inputs=inputs, tolerance=tolerance)
            verdict = api.check_equal(original, result, options, say)
        if as_json:
            _print_json(verdict_to_json(verdict))
        elif not quiet:
            for check in verdict.checks:
                typer.echo(f"{check.runtime}: {check_sentence(check)}")
        if verdict.differs:
            raise OutputsDifferError("the models compute different outputs")
        if not verdict.proved:
            raise ModelError("no runtime could run both models; see above")


cli_device.add_to(app)
cli_strips.add_to(app)


def _one_of(option: str, value: str) -> Any:
    """The value of a choice, checked by the class that it is for."""
    if not value.isidentifier():
        raise UsageError(f"--{option} {value!r} is not understood; see --help")
    return value


def _print_report(report: Report, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        from tflm_planner.report.json_document import to_json

        _print_json(to_json(report))
    elif not quiet:
        from tflm_planner.report.text import render_report

        typer.echo(render_report(report, encoding=sys.stdout.encoding or "utf-8"))


def _check_report(path: Path, source: Path, destination: Path) -> None:
    from tflm_planner.files import check_writable
    from tflm_planner.report.render import RENDERERS

    if path.suffix not in RENDERERS:
        raise UsageError(f"report {path}: choose a name ending in {', '.join(RENDERERS)}")
    check_writable(path, force=True, inputs=(source, destination))


def _write_report(path: Path, report: Report) -> None:
    from tflm_planner.files import write_file
    from tflm_planner.report.render import RENDERERS

    write_file(path, RENDERERS[path.suffix](report).encode("utf-8", "replace"))
