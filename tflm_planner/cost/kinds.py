"""Types that the modules of this package share. It must not know operators."""

from __future__ import annotations

from dataclasses import dataclass, field

Counts = dict[str, int]
"""How often each piece of a kernel's code runs."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a kernel for one operator. path: which kernel. macs: multiplications of the
    mathematical operation, including those with padding. typed: whether the cost depends on the
    element type. in_place: the counts that remain if the bytes are already where they must be."""

    path: str
    counts: Counts
    macs: int
    typed: bool = True
    in_place: Counts = field(default_factory=Counts)


def times(counts: Counts, factor: int) -> Counts:
    """What runs `factor` times."""
    return {name: value * factor for name, value in counts.items()}


def ceil_div(count: int, size: int) -> int:
    """How many pieces of `size` hold `count`, the last one filled up."""
    return -(-count // size)
