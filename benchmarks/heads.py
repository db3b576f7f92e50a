"""Before and after, predicted and measured on real TFLM, for any models: a Markdown table.

    python benchmarks/heads.py [--target T ...] [--no-overlap] [--no-verify] FILES_OR_FOLDERS...

`real` is the head that TFLM reports on this machine (x86-64, reference kernels): "=" when it is
as predicted there, before and after. `L3` is the floor of the head when results may trail
operands.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from tflm_planner.pipeline import api
from tflm_planner.report.document import ModelFigures, Report
from tflm_planner.support.errors import PlannerError

COLUMNS = [
    "model", "operators", "stock head", "planned head", "saved", "real", "lower bound", "proof",
    "L3", "stock arena", "planned arena", "order", "aliases", "trails", "outputs", "plan s",
    "all s",
]  # fmt: skip


def models(paths: list[Path]) -> list[Path]:
    """All .tflite files named, or below the folders named."""
    found: list[Path] = []
    for path in paths:
        found += sorted(path.rglob("*.tflite")) if path.is_dir() else [path]
    return found


def real(*sides: ModelFigures) -> str:
    """What TFLM reported here, against what was predicted for it."""
    shown: list[str] = []
    for side in sides:
        host = side.host
        if host.measured_head is None:
            return "-"
        exact = host.measured_head == host.predicted_head
        shown.append("=" if exact else f"{host.measured_head - host.predicted_head:+,}")
    return " ".join(shown)


def row(path: Path, report: Report, seconds: float) -> str:
    """One line of the table."""
    before, after, plan = report.before, report.after, report.allocation
    bound = plan.solution.lower_bound
    gap = after.head - bound
    if plan.solution.optimal or gap == 0:
        any_order = after.head == report.order.lower_bound
        proof = "optimal" if any_order else "optimal for its order"
    else:
        proof = f"gap {gap:,}"
    cells = [
        path.stem,
        f"{before.operators}",
        f"{before.head:,}",
        f"{after.head:,}",
        f"{100 * (before.head - after.head) / max(before.head, 1):.1f} %",
        real(before, after),
        f"{bound:,}",
        proof,
        f"{report.limits.overlap_bytes:,}",
        f"{before.arena.arena:,}",
        f"{after.arena.arena:,}",
        "changed" if report.order.changed else "kept",
        f"{len(plan.aliases)}",
        f"{len(plan.input_overlaps)}",
        "; ".join(f"{c.runtime} {c.status}" for c in report.checks) or "-",
        f"{report.seconds['plan']:.2f}",
        f"{seconds:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print a table for each target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--target", action="append")
    parser.add_argument("--no-overlap", action="store_true")
    parser.add_argument("--no-verify", action="store_true")
    given = parser.parse_args()
    for target in given.target or ["cortex-m4/cmsis-nn"]:
        print(f"\n{target}\n\n| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
        memory = api.MemoryOptions(
            kernels=api.kernels_of(api.load_target(target)), overlap=not given.no_overlap
        )
        options = api.PlanOptions(memory, verify=None if given.no_verify else api.VerifyOptions())
        for path in models(given.paths):
            started = time.monotonic()
            try:
                report = api.plan(path, options=options).report
                print(row(path, report, time.monotonic() - started), flush=True)
            except PlannerError as error:
                print(f"| {path.stem} | {error} |")


if __name__ == "__main__":
    main()
