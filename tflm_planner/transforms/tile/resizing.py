"""How a resize computes some rows: which rows of the operand its tile must read.

    wanted      . . [3 4 5 6) . . .        A tile knows only its own sizes. It must start where a
    tile        . [2 3 4 5 6 7) . .        result row lies on an operand row, and it reads as many
    operand     . [1   2   3) . . .        rows as keep the ratio. Its last rows are clamped and
                                           may be wrong; they are cut off again.

Every tile is checked row by row against the rows of the whole (`ops.resize`): it is correct, or it
is refused. It knows ranges; it must not change a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from tflm_planner.ops.axis_rules import Range
from tflm_planner.ops.resize import Resize
from tflm_planner.transforms.tile.boxes import NotTileableError
from tflm_planner.transforms.tile.windows import Form

_STEPS = 3
"""Number of aligned starts and ends to try beyond the nearest ones."""


@lru_cache(maxsize=4096)
def resize_form(resize: Resize, wanted: Range) -> Form:
    """The smallest tile that computes the rows `wanted` as the whole does. Raises NotTileableError
    if there is none."""
    best: Form | None = None
    for start in _starts(resize, wanted[0]):
        for form in _forms(resize, start, wanted[1]):
            smaller = form.rows < (resize.out if best is None else best.rows)
            if smaller and _is_right(resize, form, wanted):
                best = form
    if best is None:
        raise NotTileableError("no tile of a resized image has the rows and weights of the whole")
    return best


def _starts(resize: Resize, row: int) -> Iterator[int]:
    """Rows up to `row` that lie exactly on an operand row, the nearest first."""
    step = resize.ratio.denominator
    nearest = row // step * step
    yield from range(nearest, max(nearest - _STEPS * step, -1), -step)


def _forms(resize: Resize, start: int, end: int) -> Iterator[Form]:
    """Tiles that begin at `start` and reach `end`, with the ratio of the whole."""
    first = int(start * resize.ratio)
    spans = resize.align_corners and resize.out > 1  # corners map to corners: count gaps, not rows
    step = resize.ratio.denominator
    least = -(-(end - start - spans) // step) * step
    for length in range(max(least, step), least + (_STEPS + 1) * step, step):
        rows, read = length + spans, int(length * resize.ratio) + spans
        if first + read <= resize.size and read > 0:
            yield Form((start, start + rows), (first, first + read))
    if end > start:
        yield Form((start, resize.out), (first, resize.size))


def _is_right(resize: Resize, form: Form, wanted: Range) -> bool:
    low, high = form.read
    if form.out[0] > wanted[0] or form.out[1] < wanted[1] or not 0 <= low < high:
        return False
    tile = replace(resize, size=high - low, out=form.rows)
    for row in range(*wanted):
        mine, right = tile.taps(row - form.out[0]), resize.taps(row)
        if mine is None or right is None:
            return False
        if (mine[0] + low, mine[1] + low, mine[2]) != right:
            return False
    return True
