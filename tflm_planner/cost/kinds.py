"""Words that the modules of this package share. It must not know operators."""

from __future__ import annotations

from dataclasses import dataclass, field

Counts = dict[str, int]
"""How often each piece of a kernel's code runs."""


@dataclass(frozen=True, slots=True)
class Work:
    """What an operator makes a kernel do. path: which kernel. macs: multiplications that its
    mathematics asks for, positions in the padding included. typed: whether what the kernel takes
    depends on the type of elements. in_place: the counts that are left where the bytes lie where
    they go already."""

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
