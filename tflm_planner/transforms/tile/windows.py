"""How sliding windows compute a box: with which padding, and how many rows more than wanted.

    result     |......[a,b)......|        SAME in a tile knows only the tile's own borders, so it
    operand  pp|...[------)......|pp      is correct only if these are the image's borders. Other
                 halo      halo           tiles are computed with VALID and padded by PAD, or with
                                          a few rows more, which are cut off again ("waste").

Transposed convolutions scatter: a tile computes everything to which some rows add, without padding;
the rows to which neighbouring tiles also add are cut off. It knows ranges; it must not change a
model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from tflm_planner.model.options import SAME_PADDING, VALID_PADDING
from tflm_planner.ops.axis_rules import Range, Scatter, Slide
from tflm_planner.transforms.tile.boxes import NotTileableError

Border = Literal["pad", "waste", "ahead", "once"]
"""What to do if SAME is wrong for a tile. "pad": PAD around what the tile reads. "waste": compute
more rows than wanted. If halos are kept, blocks can be padded before they are joined (`tiler`), so
that no row is padded twice: "ahead" does so only if all readers need the same padding, "once"
always, which keeps more bytes live."""
AHEAD: tuple[Border, ...] = ("ahead", "once")
BORDERS: tuple[Border, ...] = ("pad", "waste", *AHEAD)


@dataclass(frozen=True, slots=True)
class Form:
    """A tile along one axis of a window: rows computed, rows read, and rows that PAD must add."""

    out: Range
    read: Range
    pads: Range = (0, 0)

    @property
    def rows(self) -> int:
        """Rows that are computed."""
        return self.out[1] - self.out[0]


@dataclass(frozen=True, slots=True)
class Sliding:
    """One axis of a window. wanted: rows of the result that are requested. size: rows of the
    operand. whole: whether all rows of the result are requested."""

    rule: Slide
    wanted: Range
    size: int
    whole: bool = False


def window_forms(
    axes: list[Sliding], border: Border, *, is_pool: bool
) -> tuple[list[Form], int] | None:
    """Forms of all axes, with the padding option that they share. Pools cannot be padded by PAD,
    because they would count its zeros. None: no padding is correct for the border of a pool."""
    valid = [_as_valid(a) for a in axes]
    if all(f.pads == (0, 0) for f in valid):
        return valid, VALID_PADDING
    sames = [form for a in axes if (form := _as_same(a)) is not None]
    same = len(sames) == len(axes)
    exact = same and all(f.out == a.wanted for f, a in zip(sames, axes, strict=True))
    if same and (exact or border == "waste" or is_pool):
        return sames, SAME_PADDING
    return None if is_pool else (valid, VALID_PADDING)


def scatter_form(rule: Scatter, wanted: Range, size: int) -> Form:
    """The tile of a transposed convolution along one axis: all rows to which the operand's rows
    add. Raises NotTileableError if nothing adds to some wanted row."""
    low, high = rule.needs(wanted, size)
    if low >= high:
        raise NotTileableError("a tile lies where nothing is added")
    start = low * rule.stride - rule.pad
    end = (high - 1) * rule.stride - rule.pad + rule.kernel
    if start > wanted[0] or end < wanted[1]:
        raise NotTileableError("a tile has rows to which nothing is added")
    return Form((start, end), (low, high))


def _as_valid(axis: Sliding) -> Form:
    low, high = axis.rule.unclipped_range(axis.wanted)
    if low >= axis.size or high <= 0:
        raise NotTileableError("a tile would lie in the padding alone")
    read = max(low, 0), min(high, axis.size)
    pads = read[0] - low, high - read[1]
    if axis.whole and high < axis.size < high + axis.rule.stride:
        read = read[0], axis.size  # keep the rows that no window reads, so that nothing is cut off
    return Form(axis.wanted, read, pads)


@lru_cache(maxsize=1 << 14)
def _as_same(axis: Sliding) -> Form | None:
    """The tile with the fewest additional rows for which SAME computes the wanted rows correctly;
    None if there is none."""
    slide, wanted, size = axis.rule, axis.wanted, axis.size
    low, high = slide.unclipped_range(wanted)
    best: Form | None = None
    for skip in range(-(-slide.reach // slide.stride) + 2):
        origin = (wanted[0] - skip) * slide.stride - slide.pad
        for pad in range(slide.reach):
            first = origin + pad
            if not 0 <= first <= max(low, 0):
                continue
            for last in _ends(max(min(high, size), first + 1), size, slide):
                form = _same_form(slide, wanted[0] - skip, first, last, pad)
                if form is None or form.out[1] < wanted[1]:
                    continue
                if best is None or form.rows < best.rows:
                    best = form
    return best


def _ends(least: int, size: int, slide: Slide) -> Iterator[int]:
    """Ends of the rows to read that are tried: with a few more rows, SAME may pad correctly."""
    yield from range(least, min(size, least + 2 * slide.stride + slide.reach) + 1)


def _same_form(slide: Slide, start: int, first: int, last: int, pad: int) -> Form | None:
    """SAME over rows [first, last), if it pads `pad` rows above them."""
    rows = last - first
    count = -(-rows // slide.stride)
    total = max(0, (count - 1) * slide.stride + slide.reach - rows)
    return Form((start, start + count), (first, last)) if total // 2 == pad else None


__all__ = [
    "AHEAD", "BORDERS", "Border", "Form", "Sliding", "scatter_form",
    "window_forms",
]  # fmt: skip
