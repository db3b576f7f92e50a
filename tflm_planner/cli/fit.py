"""The command line of `fit`: it parses arguments, calls `codesign` and prints.

The fields of `FitArguments` are the command line: names, types, defaults, help.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from tflm_planner.cli.shared import (
    AsJson,
    TargetName,
    Verbose,
    exit_on_errors,
    print_json,
    show_progress,
    takes_fields_of,
    width_of,
)
from tflm_planner.cli.without_effect import Need, refuse_both, refuse_without_effect
from tflm_planner.support import defaults
from tflm_planner.support.errors import UsageError

if TYPE_CHECKING:
    from tflm_planner.codesign.chains.families import Grid
    from tflm_planner.codesign.fitting.largest import Fits
    from tflm_planner.codesign.fitting.variants import Limits, Variant
    from tflm_planner.tflm.target import Target

N = TypeVar("N", int, float)


@dataclass(frozen=True)
class FitArguments:
    """The command line of `fit`, as it was given."""

    family: Annotated[
        str | None,
        typer.Option(
            help="mobilenet_v1, mobilenet_v2, mobilenet_v3_small, mcunet_like, ds_cnn, resnet8 or "
            "resnet20."
        ),
    ] = None
    build: Annotated[
        str | None,
        typer.Option(
            help="Your own family: a function (resolution, width, depth) that makes a Keras model; "
            "width is 1 and depth 0 without --widths and --depths. Needs TensorFlow, and "
            "--resolutions.",
            metavar="FILE.py:FUNCTION",
        ),
    ] = None
    target: TargetName = defaults.TARGET
    budget: Annotated[
        str | None,
        typer.Option(help="Bytes that the arena may take, e.g. 60K; else the board's SRAM."),
    ] = None
    flash: Annotated[
        str | None,
        typer.Option(help="Bytes that the file may take, e.g. 512K; else the board's flash."),
    ] = None
    max_slowdown: Annotated[
        float | None,
        typer.Option(
            help="Instructions that tiles and streamed rows may take, relative to neither; else "
            f"{defaults.SLOWDOWN:g} and {defaults.STREAM_SLOWDOWN:g}."
        ),
    ] = None
    resolutions: Annotated[
        str, typer.Option(help="Rows of the input to try, e.g. 96,128.", metavar="N,...")
    ] = ""
    widths: Annotated[
        str, typer.Option(help="Factors of the channels to try, e.g. 0.35,0.5.", metavar="X,...")
    ] = ""
    depths: Annotated[
        str, typer.Option(help="Layers to try, where a family varies them.", metavar="N,...")
    ] = ""
    classes: Annotated[
        int | None, typer.Option(min=2, help="Classes; else those of the family's data set.")
    ] = None
    plain: Annotated[
        bool, typer.Option("--plain", help="The same networks without skips: what skips cost.")
    ] = False
    searches: Annotated[
        int, typer.Option(min=0, help="Whole searches for tiles, at most, on each rung.")
    ] = 6
    svg: Annotated[
        Path | None,
        typer.Option(help="Draw multiplications against arena into this file.", metavar="FILE"),
    ] = None
    write: Annotated[
        Path | None,
        typer.Option(help="Write the networks of the table, untrained, here.", metavar="FOLDER"),
    ] = None
    as_json: AsJson = False
    verbose: Verbose = False

    def grid(self) -> Grid:
        """The resolutions, widths and depths to vary. Raises UsageError."""
        from tflm_planner.codesign.chains.families import Grid

        return Grid(
            _numbers("--resolutions", self.resolutions, int),
            _numbers("--widths", self.widths, float),
            _numbers("--depths", self.depths, int),
            self.classes,
            self.plain,
        )

    def variants(self, target: Target, on_progress: Callable[[str], None]) -> list[Variant]:
        """The networks to try. Raises UsageError."""
        from tflm_planner.codesign.fitting.user_build import user_variants
        from tflm_planner.codesign.fitting.variants import variants_of

        if self.build is not None:
            return user_variants(self.build, self.grid(), target, on_progress)
        if self.family is None:
            raise UsageError("which networks? add --family NAME, or --build FILE.py:FUNCTION")
        return variants_of(self.family, self.grid())

    def networks(self, fits: Fits) -> dict[Path, bytes]:
        """The files of the largest networks that fit, by path; empty if --write was not given.
        Raises UsageError where other files would be lost."""
        from tflm_planner.support.files import holds

        best = [rung.best.variant for rung in fits.rungs if rung.best is not None]
        folder = self.write
        files = {} if folder is None else {folder / f"{v.name}.tflite": v.make() for v in best}
        for path, data in files.items():
            if path.exists() and not holds(path, data):
                raise UsageError(
                    f"{path} exists, and is another model, perhaps your trained one; write to "
                    "another folder, or move it away"
                )
        return files

    @property
    def name(self) -> str:
        """The name of the family, for reports."""
        return self.family or self.build or ""

    def limits(self, target: Target) -> Limits:
        """The limits that a network must keep. Raises UsageError."""
        from tflm_planner.codesign.fitting.variants import limits_of

        arena, flash = _bytes(self.budget), _bytes(self.flash)
        return limits_of(target, arena, self.max_slowdown, self.searches, flash)


@takes_fields_of(FitArguments)
def fit_command(arguments: FitArguments) -> None:
    """Show the largest networks of a family that fit a board: as they are, planned, tiled."""
    with exit_on_errors():
        refuse_both("--json", "--verbose")
        refuse_both("--family", "--build")
        refuse_without_effect([Need(("--classes",), arguments.build is None, "it is for --family")])
        from tflm_planner.codesign.fitting.fit_svg import fit_svg
        from tflm_planner.codesign.fitting.fit_text import render_fits
        from tflm_planner.codesign.fitting.fit_types import fits_to_json
        from tflm_planner.codesign.fitting.largest import fit
        from tflm_planner.support.files import check_writable, make_folder, write_files
        from tflm_planner.tflm.targets import load_target

        if arguments.svg is not None:
            check_writable(arguments.svg, force=True, inputs=())
        target = load_target(arguments.target)
        limits = arguments.limits(target)
        if arguments.write is not None:
            make_folder(arguments.write)
            check_writable(arguments.write / "any.tflite", force=True)
        with show_progress(arguments.as_json, arguments.verbose) as on_progress:
            fits = fit(arguments.name, arguments.variants(target, on_progress), limits, on_progress)
        if arguments.as_json:
            print_json(fits_to_json(fits, arguments.write))
        else:
            typer.echo(render_fits(fits, width_of(sys.stdout), arguments.write), nl=False)
        files = {} if arguments.svg is None else {arguments.svg: fit_svg(fits).encode()}
        write_files(files | arguments.networks(fits))
        if all(rung.best is None for rung in fits.rungs):
            raise typer.Exit(3)


def _bytes(size: str | None) -> int | None:
    """A size such as 60K in bytes; None if none was given. Raises UsageError."""
    from tflm_planner.support.units import parse_size

    return None if size is None else parse_size(size)


def _numbers(option: str, words: str, kind: Callable[[str], N]) -> tuple[N, ...]:
    """The numbers in a list such as "96,128"; "" gives an empty tuple. Raises UsageError if a word
    is not a number, or if a number is not above 0 and below 10,000."""
    try:
        numbers = tuple(kind(word) for word in words.split(",") if word.strip())
    except ValueError as error:
        what = "whole numbers" if kind is int else "numbers"
        raise UsageError(f"{option} {words!r}: write {what} with commas between") from error
    if words and not numbers:
        raise UsageError(f"{option} {words!r}: no number is in it")
    if not all(0 < number < 10_000 for number in numbers):
        raise UsageError(f"{option} {words!r}: numbers must be above 0 and below 10,000")
    return numbers
