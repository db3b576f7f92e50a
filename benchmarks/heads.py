"""Heads before and after, measured on real TFLM, for any models: a Markdown table.

    python benchmarks/heads.py FILES_OR_FOLDERS...

stock and planned are what TFLM reports; the predictions stand beside them where they differ.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tflm_planner import api
from tflm_planner.errors import PlannerError
from tflm_planner.report.document import Report


def models(arguments: list[str]) -> list[Path]:
    """All .tflite files named, or below the folders named."""
    found: list[Path] = []
    for path in map(Path, arguments):
        found += sorted(path.rglob("*.tflite")) if path.is_dir() else [path]
    return found


def head(predicted: int, measured: int | None) -> str:
    """The measured head; both when they differ."""
    if measured is None:
        return f"{predicted:,} (predicted)"
    return f"{measured:,}" if measured == predicted else f"{measured:,} (predicted {predicted:,})"


def row(path: Path, report: Report, seconds: float) -> str:
    """One line of the table."""
    allocation, order = report.allocation, report.order
    bound = max(order.lower_bound, 0)
    gap = report.after.head - bound
    proof = "optimal" if gap == 0 else f"gap {100 * gap / bound:.1f} %"
    proved = all(c.status == "equal" for c in report.checks)
    cells = [
        path.stem,
        f"{report.before.operators}",
        head(report.before.head, report.before.measured_head),
        head(report.after.head, report.after.measured_head),
        f"{100 * report.saved / max(report.before.head, 1):.1f} %",
        f"{bound:,}",
        proof,
        "changed" if order.changed else "kept",
        f"{len(allocation.aliases)}",
        "equal" if proved else "; ".join(f"{c.runtime} {c.status}" for c in report.checks),
        f"{report.seconds['plan']:.2f}",
        f"{seconds:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


COLUMNS = [
    "model", "operators", "stock TFLM head", "planned head", "saved", "lower bound", "proof",
    "order", "aliases", "outputs", "plan s", "in all s",
]  # fmt: skip


def main() -> None:
    """Print the table."""
    print(f"| {' | '.join(COLUMNS)} |")
    print(f"|{'---|' * len(COLUMNS)}")
    for path in models(sys.argv[1:]):
        started = time.monotonic()
        try:
            report = api.plan(path).report
        except PlannerError as error:
            print(f"| {path.stem} | {error} |")
            continue
        print(row(path, report, time.monotonic() - started), flush=True)


if __name__ == "__main__":
    main()
