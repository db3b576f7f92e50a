"""The command line of `inspect`: it parses arguments, calls `api` and prints.

The fields of `InspectArguments` are the command line: names, types, defaults, help.
"""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tflm_planner.cli.shared import (
    AsJson,
    Source,
    TargetName,
    exit_on_errors,
    print_json,
    takes_fields_of,
)
from tflm_planner.cli.without_effect import Need, refuse_both, refuse_without_effect
from tflm_planner.support import defaults

if TYPE_CHECKING:
    from tflm_planner.pipeline.inspection.inspect_model import Inspection
    from tflm_planner.tflm.target_kernels import TargetKernels


@dataclass(frozen=True)
class InspectArguments:
    """The command line of `inspect`, as it was given."""

    source: Source
    text: Annotated[
        bool, typer.Option("--text", help="The model's text form: one operator a line.")
    ] = False
    axes: Annotated[
        bool, typer.Option("--axes", help="The axes along which each cell can be split.")
    ] = False
    svg: Annotated[Path | None, typer.Option(help="Also draw the memory map.")] = None
    problem: Annotated[
        Path | None,
        typer.Option(help="Also write the planning problem as CSV, in MiniMalloc's columns."),
    ] = None
    node_data: Annotated[
        Path | None,
        typer.Option(
            help="Also write live bytes, scratch and tiles of operators for Model Explorer, a file "
            "each.",
            metavar="FOLDER",
        ),
    ] = None
    target: TargetName = defaults.TARGET
    as_json: AsJson = False

    def check(self) -> None:
        """Raise UsageError if options contradict each other, or if a file cannot be written."""
        from tflm_planner.support.files import check_writable

        refuse_both("--text", "--axes", "--json")
        drawn = (self.svg, self.problem, self.node_data)
        depends = any(path is not None for path in drawn) or not (self.text or self.axes)
        why = "the text and the axes of a model are the same everywhere; leave it out"
        refuse_without_effect([Need(("--target",), depends, why)])
        written = [path for path in (self.svg, self.problem) if path is not None]
        for number, path in enumerate(written):
            check_writable(path, force=True, inputs=(self.source, *written[:number]))


@takes_fields_of(InspectArguments)
def inspect_command(arguments: InspectArguments) -> None:
    """Show operators, live bytes, the peak and its tensors, and the limits."""
    with exit_on_errors():
        from tflm_planner.pipeline import read_only
        from tflm_planner.support.files import write_files
        from tflm_planner.tflm.target_kernels import kernels_of
        from tflm_planner.tflm.targets import load_target

        arguments.check()
        kernels = kernels_of(load_target(arguments.target))
        inspection = read_only.inspect(arguments.source, kernels)
        write_files(_files(inspection, arguments, kernels))
        _print_inspection(inspection, arguments, kernels.target.id)


def _files(
    inspection: Inspection, arguments: InspectArguments, kernels: TargetKernels
) -> dict[Path, bytes]:
    """The files to write, by path. Raises UsageError if one cannot be written."""
    files: dict[Path, bytes] = {}
    if arguments.svg is not None:
        from tflm_planner.report.svg.memory_map import memory_map_svg

        drawing = memory_map_svg(inspection.map, title=arguments.source.name)
        files[arguments.svg] = drawing.encode()
    if arguments.problem is not None:
        files[arguments.problem] = _rows(arguments.source, kernels)
    if arguments.node_data is not None:
        files |= _node_data(inspection, arguments.node_data, arguments.source)
    return files


def _node_data(inspection: Inspection, folder: Path, source: Path) -> dict[Path, bytes]:
    """A file for each measure, named after the model."""
    from tflm_planner.report.node_data import node_data
    from tflm_planner.support.files import check_writable, make_folder

    make_folder(folder)
    files: dict[Path, bytes] = {}
    for measure, document in node_data(inspection.model, inspection.map).items():
        path = folder / f"{source.stem}.{measure}.json"
        check_writable(path, force=True, inputs=(source,))
        files[path] = json.dumps(document, indent=1).encode()
    return files


def _rows(source: Path, kernels: TargetKernels) -> bytes:
    from tflm_planner.memory.minimalloc_csv import write_csv
    from tflm_planner.pipeline import api

    problem, plan = api.problem(source, api.MemoryOptions(kernels=kernels))
    rows = io.StringIO()
    write_csv(problem, rows, plan)
    return rows.getvalue().encode("utf-8", "backslashreplace")


def _print_inspection(inspection: Inspection, arguments: InspectArguments, target_id: str) -> None:
    """Print what was asked for: axes, text form, JSON, or the summary for people."""
    from tflm_planner.model.text import to_text
    from tflm_planner.report.json.document import inspection_to_json
    from tflm_planner.report.text.axes import axes_text
    from tflm_planner.report.text.inspection import render_inspection

    shown = inspection.map, inspection.limits, inspection.notes
    if arguments.axes:
        typer.echo(axes_text(inspection.model.main), nl=False)
    elif arguments.text:
        typer.echo(to_text(inspection.model), nl=False)
    elif arguments.as_json:
        print_json(inspection_to_json(*shown, inspection.arena.cannot_run))
    else:
        title = f"{arguments.source} on {target_id}"
        encoding = sys.stdout.encoding or "utf-8"
        sheet = render_inspection(
            title, *shown, cannot_run=inspection.arena.cannot_run, encoding=encoding
        )
        typer.echo(sheet)
