"""The command line of `measure`: it parses arguments, calls `device` and prints.

The fields of `MeasureArguments` are the command line: names, types, defaults, help.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tflm_planner.cli.boards import (
    DEFAULT_BAUD,
    DEFAULT_PATIENCE,
    DEFAULT_RUNS,
    Baud,
    BoardModel,
    BoardTarget,
    Patience,
    Port,
    RunCount,
    open_station,
)
from tflm_planner.cli.choices import Library
from tflm_planner.cli.shared import (
    AsJson,
    Quiet,
    Seed,
    Verbose,
    check_reports,
    exit_on_errors,
    print_json,
    refuse_silence,
    render_all,
    show_progress,
    takes_fields_of,
)
from tflm_planner.cli.without_effect import Need, refuse_both, refuse_without_effect
from tflm_planner.support import defaults
from tflm_planner.support.errors import OutputsDifferError

if TYPE_CHECKING:
    from tflm_planner.device.measuring.energy import Power
    from tflm_planner.device.measuring.measure import MeasureOptions
    from tflm_planner.device.measuring.measurement import Measurement


@dataclass(frozen=True)
class MeasureArguments:
    """The command line of `measure`, as it was given."""

    source: BoardModel
    port: Port = None
    baud: Baud = DEFAULT_BAUD
    target: BoardTarget = None
    runs: RunCount = DEFAULT_RUNS
    seed: Seed = defaults.SEED
    steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            help="Invokes in a row, each with other inputs, to compare outputs of: 8 where the "
            "model keeps state, else 1.",
        ),
    ] = None
    firmware: Annotated[
        Library, typer.Option(help="The board's own allocation, or with its lean library.")
    ] = "as-is"
    no_compare: Annotated[
        bool, typer.Option("--no-compare", help="Do not run TFLM here to compare outputs.")
    ] = False
    power: Annotated[
        float | None, typer.Option(help="The board's active power in mW, for energy (estimate).")
    ] = None
    current: Annotated[
        Path | None, typer.Option(help="CSV of a current meter, for energy (measured).")
    ] = None
    volts: Annotated[float, typer.Option(help="Supply voltage, with --current.")] = 3.3
    report: Annotated[
        list[Path] | None,
        typer.Option(help="Also write a report: .json, .csv or .html; may be repeated."),
    ] = None
    timeout: Patience = DEFAULT_PATIENCE
    as_json: AsJson = False
    quiet: Quiet = False
    verbose: Verbose = False

    def check(self) -> None:
        """Raise UsageError if options contradict each other, or if a report cannot be written."""
        from tflm_planner.device.measuring.report import RENDERERS

        refuse_silence()
        refuse_both("--power", "--current")
        why = "it is the voltage beside a meter's currents; add --current FILE"
        refuse_without_effect([Need(("--volts",), self.current is not None, why)])
        check_reports(self.report or [], RENDERERS, (self.source,))

    def options(self) -> MeasureOptions:
        """What the command line asks for. Raises UsageError."""
        from tflm_planner.device.measuring.measure import MeasureOptions
        from tflm_planner.tflm.targets import load_target

        target = None if self.target is None else load_target(self.target)
        compare = not self.no_compare
        lean = self.firmware == "lean"
        power = self._power()
        return MeasureOptions(
            runs=self.runs,
            seed=self.seed,
            target=target,
            lean=lean,
            compare=compare,
            power=power,
            steps=self.steps,
        )

    def _power(self) -> Power | None:
        """The board's power, from the record of a current meter or as a given figure; None if
        neither was given."""
        from tflm_planner.device.measuring.energy import metered_power, stated_power

        if self.current is not None:
            return metered_power(self.current, self.volts)
        return None if self.power is None else stated_power(self.power, "--power")


@takes_fields_of(MeasureArguments)
def measure_command(arguments: MeasureArguments) -> None:
    """Measure a model on a board, beside what was predicted: arena, latency, stack, outputs."""
    with exit_on_errors():
        from tflm_planner.device.measuring.report import RENDERERS, render, to_json
        from tflm_planner.support.files import read_file, write_files

        arguments.check()
        data = read_file(arguments.source)
        measurement = _measure(data, arguments, arguments.options())
        write_files(render_all(measurement, arguments.report or [], RENDERERS))
        if arguments.as_json:
            print_json(to_json(measurement))
        elif not arguments.quiet:
            typer.echo(render(measurement), nl=False)
        if measurement.differs:
            raise OutputsDifferError(
                "the board's outputs are not those of TFLM here: a plan for another kernel "
                "library, or kernels that compute otherwise (measure the original model to tell)"
            )


def _measure(data: bytes, arguments: MeasureArguments, options: MeasureOptions) -> Measurement:
    from tflm_planner.device.measuring.measure import measure

    name = arguments.source.name
    with (
        show_progress(arguments.quiet, arguments.verbose) as on_progress,
        open_station(arguments.port, arguments.baud, arguments.timeout, on_progress) as station,
    ):
        measurement: Measurement = station.run(
            lambda board: measure(board, name, data, options, on_progress)
        )
    return measurement
