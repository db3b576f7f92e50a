"""Variants of networks, and the limits of a board.

It must not know how arenas are found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tflm_planner.codesign.chains.chain import Chain
from tflm_planner.codesign.chains.families import FAMILIES, Grid, check_depths, has_skips, variants
from tflm_planner.codesign.chains.sizes import Floors, Size, floors_of, size_of
from tflm_planner.codesign.networks.build import build
from tflm_planner.pipeline.options import check_slowdown
from tflm_planner.support import defaults
from tflm_planner.support.errors import UsageError
from tflm_planner.tflm.target import Target


@dataclass(frozen=True)
class Variant:
    """A network of a family. depth: 0 if it does not vary. floors: lower bounds of the head. make:
    makes the file of its model. notes: what it has otherwise than the user's model that it was made
    of."""

    name: str
    resolution: int
    width: float
    depth: int
    size: Size
    floors: Floors
    make: Callable[[], bytes]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Limits:
    """The limits that a network must keep."""

    target: Target
    """The target, which may be a board."""
    arena_limit: int
    """Bytes of arena."""
    flash: int | None
    """Bytes that its file may take. None: not limited."""
    slowdown: float
    """Instructions allowed with tiles, relative to the stock model."""
    stream_slowdown: float
    """The same if rows are streamed."""
    searches: int
    """Whole searches for tiles, at most, on each rung."""

    def fits(self, arena: int, file_bytes: int) -> bool:
        """Whether arena and file are both within the limits."""
        return arena <= self.arena_limit and (self.flash is None or file_bytes <= self.flash)


def limits_of(
    target: Target,
    arena_limit: int | None,
    slowdown: float | None,
    searches: int,
    flash: int | None = None,
) -> Limits:
    """The limits of a target's board. arena_limit: bytes that the arena may take; None for the
    board's SRAM. slowdown: instructions allowed, relative to the stock model; None for what
    `tflm-plan` allows tiles, and `tflm-plan stream-input` rows that are streamed. flash: bytes that
    the file may take; None for the board's flash. Raises UsageError if the target is not a board
    and there is no arena_limit, or for a slowdown below 1."""
    board = target.board
    if board is None and arena_limit is None:
        raise UsageError(
            f"{target.id} is no board, whose SRAM would be the limit; add --budget BYTES, or name "
            "a board (`tflm-plan targets` lists them)"
        )
    if arena_limit is None:
        arena_limit = 0 if board is None else board.sram
    if flash is None and board is not None:
        flash = board.flash
    allowed = (defaults.SLOWDOWN, defaults.STREAM_SLOWDOWN)
    if slowdown is not None:
        check_slowdown(slowdown)
        allowed = (slowdown, slowdown)
    return Limits(target, arena_limit, flash, *allowed, searches)


def variants_of(family: str, grid: Grid) -> list[Variant]:
    """All variants of a built-in family, sorted by multiplications, most first. Raises UsageError
    for an unknown family, for depths that it has not, and where it has no skips to remove."""
    if family not in FAMILIES:
        raise UsageError(f"family {family!r} is unknown; choose from {', '.join(FAMILIES)}")
    try:
        check_depths(FAMILIES[family], grid.depths)
    except ValueError as error:
        depths = ",".join(map(str, grid.depths))
        raise UsageError(f"--depths {depths} of {family}: {error}") from error
    if grid.plain and not has_skips(FAMILIES[family]):
        raise UsageError(f"--plain does nothing here: {family} has no skips; leave it out")
    by_network: dict[Chain, Variant] = {}  # different widths may round to the same network
    for resolution, width, depth, chain in variants(FAMILIES[family], grid):
        network = Chain("", chain.image, chain.layers)
        by_network.setdefault(network, variant_of_chain(chain, resolution, width, depth))
    return sorted(by_network.values(), key=lambda v: (-v.size.macs, -v.size.parameters, v.name))


def variant_of_chain(chain: Chain, resolution: int, width: float, depth: int) -> Variant:
    """The variant that a chain is."""
    return Variant(
        name=chain.name,
        resolution=resolution,
        width=width,
        depth=depth,
        size=size_of(chain),
        floors=floors_of(chain),
        make=partial(build, chain),
    )
