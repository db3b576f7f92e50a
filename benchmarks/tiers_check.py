"""Whether a change of the search made a row of docs/tiers.md worse.

    python benchmarks/tiers_check.py MODELS... [--target cortex-m4/cmsis-nn] [--most 0.5]

One search with all operators for each model, which begins with the one without new operators.
Prints the arena of both beside the table's; a row that is worse by more than `--most` per cent is
marked, and the exit code is then 1. Nothing is run on a runtime (`benchmarks/tiers.py` does that,
and measures the rest of a row). The zoo's models are made by `python -m zoo.make NAMES --out DIR`.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

from tflm_planner.pipeline import api

TABLE = Path(__file__).parent.parent / "docs" / "tiers.md"
OWN, ALL = 5, 7
"""Columns of the table."""


def recorded(target: str) -> dict[str, tuple[int, int]]:
    """Model -> arena with the firmware's operators and with all, as the table of a target has
    them."""
    rows: dict[str, tuple[int, int]] = {}
    is_wanted = False
    for line in TABLE.read_text().splitlines():
        if line.startswith("#"):
            is_wanted = target.split("/")[0] in line
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if is_wanted and len(cells) > ALL and re.match(r"[\d,]+", cells[OWN]):
            rows[cells[0]] = bytes_in(cells[OWN]), bytes_in(cells[ALL])
    return rows


def bytes_in(cell: str) -> int:
    """The first number of a cell."""
    match = re.match(r"[\d,]+", cell)
    assert match, cell
    return int(match.group().replace(",", ""))


def searched(path: Path, target: str) -> tuple[int, int]:
    """Arena with the firmware's operators, and with all."""
    memory = api.MemoryOptions(kernels=api.kernels_of(api.load_target(target)))
    tiles = api.TilePermission(operators=api.AllowedOperators.ALL, workers=2)
    options = api.PlanOptions(memory, tiles=tiles, verify=None)
    report = api.plan(path.read_bytes(), options=options).report
    assert report.front is not None, "there was a search"
    own = min(p.size for p in report.front.points if not p.added)
    return own, report.after.arena.arena


def main() -> int:
    """Print the rows; 1 if one is worse."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--target", default="cortex-m4/cmsis-nn")
    parser.add_argument("--most", type=float, default=0.5, help="per cent")
    given = parser.parse_args()
    known, worse = recorded(given.target), 0
    for path in given.models:
        started = time.monotonic()
        cells: list[str] = []
        for name, found, before in zip(
            ("own", "all"), searched(path, given.target), known.get(path.stem, (0, 0)), strict=True
        ):
            change = 100 * (found / before - 1) if before else 0.0
            is_worse = change > given.most
            worse += is_worse
            cells.append(f"{name} {found:,} ({change:+.2f} %{', WORSE' if is_worse else ''})")
        print(path.stem, *cells, f"{time.monotonic() - started:.0f} s", flush=True)
    return int(worse > 0)


if __name__ == "__main__":
    sys.exit(main())
