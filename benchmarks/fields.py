"""Peak memory by the field it is won in, as MOTES's figure 8 (a): heads, model by model.

    python benchmarks/fields.py [--target T] [--svg docs/fields.svg] MODELS...
    python benchmarks/fields.py --table ROWS.md --svg docs/fields.svg      draws what was printed

    stock      TFLM plans by itself
    order      operators ordered, tensors packed, nothing shared: HMCOS's field
    patches    the first n operators in p x p patches, the others as they are, in the file's order:
               TinyEngine's field; the best p and n of those that add at most 10 % MACs (theirs)
    all        our search, all operators, at most 5 % more instructions (MOTES's delta)

The input is counted. Every result of the last column was proved on the real runtimes; where the
target is this machine's own (`x86-64/wheel`), the head shown is the one TFLM reported.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from chart import Bars, bars
from tiers import apart, fresh

from tflm_planner.model.serde import read_model
from tflm_planner.ops.macs import total_macs
from tflm_planner.pipeline import api
from tflm_planner.pipeline.inspection.inspect_model import inspect_model
from tflm_planner.report.document import Report
from tflm_planner.support.errors import PlannerError
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.tiling.estimate.schedule import LinearSchedule
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.evaluate.evaluation import evaluate
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.transforms.base import run
from tflm_planner.transforms.regions import Regions
from tflm_planner.transforms.schedules import Effort
from tflm_planner.transforms.tile.tile import Patch

KIB = 1024
FIELDS = ("stock", "order", "patches", "all")
COLUMNS = ["model", *FIELDS, "KiB", "instructions", "MACs", "proved", "seconds"]
SIDES = (2, 3, 4, 6)
"""Patches per side."""
MOST_MACS = 1.10
_STAGES = 10
"""Ends of the patch stage that are tried, at narrow places."""


def patches_alone(data: bytes, on: TargetKernels, known: int) -> int:
    """The lowest head with one patch stage; `known` without."""
    model = fresh(data, merges=False)
    options = TilingOptions(on, on.input_overlaps_of, operators=api.AllowedOperators.ALL)
    schedule = LinearSchedule(model, range(len(model.main.ops)), options)
    high = max(range(len(schedule)), key=lambda k: schedule.live_bytes[k])
    ends = [end for end in schedule.narrow_positions if end > 0]
    near = sorted(ends, key=lambda end: abs(end - high))[:_STAGES]
    best, before = known, total_macs(model.ops())
    for end in near:
        for side in SIDES:
            region = Patch(side, end).region(model.main)
            made = fresh(data, merges=False)
            run(made, Regions((region,)))
            if total_macs(made.ops()) > MOST_MACS * before:
                break  # more patches recompute more
            found = evaluate(model, Candidate((region,), False, effort=Effort.CLIMB), options)
            best = min(best, found.head) if found else best
    return best


def everything(data: bytes, on: TargetKernels, given: argparse.Namespace) -> Report:
    """Our search, and its proof."""
    tiles = api.TilePermission(
        max_slowdown=given.max_slowdown,
        operators=api.AllowedOperators.ALL,
        objective="head",
        workers=given.workers,
    )
    memory = api.MemoryOptions(kernels=on, time_limit=given.time_limit)
    options = api.PlanOptions(memory, tiles=tiles, verify=api.VerifyOptions(inputs=2))
    return api.plan(data, options=options).report


def row(path: Path, on: TargetKernels, given: argparse.Namespace) -> tuple[list[int], str]:
    """Heads by field, and a line of the table."""
    data = path.read_bytes()
    stock = inspect_model(read_model(data), on).arena.head
    order = min(stock, apart(data, on, merges=False)[0].head)
    patches = patches_alone(data, on, stock)
    started = time.monotonic()
    report = everything(data, on, given)
    host = report.after.host
    real = host.measured_head == host.predicted_head and report.verified
    heads = [stock, order, patches, report.after.head]
    assert report.front is not None
    slowdown = next(p.slowdown for p in report.front.points if p.role == "chosen")
    macs = report.after.macs / max(report.before.macs, 1)
    cells = [path.stem, *(f"{h:,}" for h in heads), f"{heads[-1] / KIB:.0f}"]
    cells += [f"{100 * (ratio - 1):+.1f} %" for ratio in (slowdown, macs)]
    cells += ["yes" if real else "NO", f"{time.monotonic() - started:.0f}"]
    return heads, f"| {' | '.join(cells)} |"


def printed(table: Path) -> list[tuple[str, list[float]]]:
    """Model and heads in KiB of each row that was printed before."""
    rows = [line.strip("| \n").split(" | ") for line in table.read_text("utf-8").splitlines()]
    return [
        (cells[0], [int(c.replace(",", "")) / KIB for c in cells[1 : len(FIELDS) + 1]])
        for cells in rows
        if len(cells) == len(COLUMNS) and cells[0] != COLUMNS[0]
    ]


def main() -> None:
    """Print the table; draw it if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--target", default="x86-64/wheel")
    parser.add_argument("--max-slowdown", type=float, default=1.05)
    parser.add_argument("--time-limit", type=float, default=None)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--svg", type=Path)
    given = parser.parse_args()
    on = api.kernels_of(api.load_target(given.target))
    groups = printed(given.table) if given.table else []
    if given.models:
        print(f"{given.target}\n\n| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    for path in given.models:
        try:
            heads, said = row(path, on, given)
        except PlannerError as error:
            print(f"| {path.stem} | {error} |", flush=True)
            continue
        groups.append((path.stem, [h / KIB for h in heads]))
        print(said, flush=True)
    if given.svg and groups:
        limits = (("320 KiB", 320.0), ("256 KiB", 256.0))
        given.svg.write_text(bars(Bars("Peak memory (head)", "KiB", FIELDS, groups, limits)))


if __name__ == "__main__":
    main()
