"""What keeps an arena above the limit of its firmware (L5): the head, or the tail.

    python benchmarks/gaps.py [--target cortex-m4/cmsis-nn] [--least 4]

Reads docs/tiers.md; nothing is searched. L5 is the head of rows that are streamed without
recomputation (L4) and the tail of the operators as they are. So an arena above it has a larger
head, or a tail that tiles, loops and the operators that serve them made longer, or both.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tiers_check import ALL, TABLE, bytes_in

L4, L5 = 14, 15
"""Columns of the table."""


@dataclass(frozen=True)
class Gap:
    """The smallest arena of a model, in bytes, and the limits beside it."""

    model: str
    arena: int
    head: int
    least_head: int
    least_arena: int

    @property
    def share(self) -> float:
        """The arena above its limit, as a share of the limit."""
        return self.arena / self.least_arena - 1

    @property
    def of_head(self) -> int:
        """Bytes of the head above the limit of heads."""
        return self.head - self.least_head

    @property
    def of_tail(self) -> int:
        """Bytes of the tail above that of the operators as they are."""
        return self.arena - self.head - (self.least_arena - self.least_head)


def gaps(target: str) -> Iterator[Gap]:
    """The rows of a target."""
    is_wanted = False
    for line in TABLE.read_text().splitlines():
        if line.startswith("#"):
            is_wanted = target.split("/")[0] in line
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if is_wanted and len(cells) > L5 and re.match(r"[\d,]+ \(", cells[ALL]):
            head = bytes_in(cells[ALL].partition("(")[2])
            yield Gap(
                cells[0], bytes_in(cells[ALL]), head, bytes_in(cells[L4]), bytes_in(cells[L5])
            )


def main() -> None:
    """Print the table, the largest gap first."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", default="cortex-m4/cmsis-nn")
    parser.add_argument("--least", type=float, default=4.0, help="per cent")
    given = parser.parse_args()
    print("| model | arena | L5 | gap | of it head | of it tail |\n|---|---|---|---|---|---|")
    for gap in sorted(gaps(given.target), key=lambda g: -g.share):
        if 100 * gap.share >= given.least:
            print(
                f"| {gap.model} | {gap.arena:,} | {gap.least_arena:,} | +{100 * gap.share:.0f} % "
                f"| {gap.of_head:+,} | {gap.of_tail:+,} |"
            )


if __name__ == "__main__":
    main()
