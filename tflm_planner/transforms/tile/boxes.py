"""Boxes: parts of tensors, with one range for each axis.

    (0, 1) (12, 24) (0, 48) (0, 8)       rows 12 to 23 of a 1 x 48 x 48 x 8 image

It knows shapes; it must not know operators.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise

from tflm_planner.model.ir import Tensor
from tflm_planner.ops.axis_rules import Range
from tflm_planner.support.units import ALIGNMENT
from tflm_planner.transforms.base import TransformRefusedError

Box = tuple[Range, ...]
"""A range for each axis. If rows are computed and dropped, it may extend beyond the tensor."""


class NotTileableError(TransformRefusedError):
    """The reason why an operator cannot be computed in boxes; the text follows "not tiled: "."""

    prefix = "not tiled"


def full_box(tensor: Tensor) -> Box:
    """The box of a whole tensor."""
    return tuple((0, n) for n in tensor.shape or ())


def hull(boxes: Sequence[Box]) -> Box:
    """The smallest box that contains all boxes."""
    return tuple(
        (min(r[0] for r in axis), max(r[1] for r in axis)) for axis in zip(*boxes, strict=True)
    )


def extents(box: Box) -> tuple[int, ...]:
    """The shape of a box."""
    return tuple(high - low for low, high in box)


def grow(box: Box, pads: Sequence[Range]) -> Box:
    """A box with a border added around it."""
    return tuple((r[0] - p[0], r[1] + p[1]) for r, p in zip(box, pads, strict=True))


def is_empty(box: Box | None) -> bool:
    """Whether a box contains no element, or is None."""
    return box is None or any(low >= high for low, high in box)


def along(box: Box, axis: int, ranges: Sequence[Range]) -> list[Box]:
    """The boxes that `box` is cut into along one axis."""
    return [(*box[:axis], r, *box[axis + 1 :]) for r in ranges]


def cuts(size: int, parts: int, unit: int = 1, growth: int = 0) -> list[Range]:
    """An axis of `size` elements cut into `parts` ranges that start at multiples of `unit`. The
    last range may be smaller, and there may be fewer ranges if the axis is short, or if they grow
    fast, as edges are rounded down. growth: the last range is larger than the mean by so many per
    cent, and the first smaller; from range to range they grow by the same amount."""
    units = -(-size // unit)
    parts = min(parts, units)
    steps = max(parts - 1, 1)
    edges = list[int]()
    for k in range(parts + 1):
        hundredths = 100 * k * steps - growth * k * (parts - k)  # of an edge's place, times parts
        edges.append(min(units * hundredths // (100 * parts * steps) * unit, size))
    return [(a, b) for a, b in pairwise(edges) if a < b]


def view_unit(tensor: Tensor, axis: int) -> int:
    """The smallest number of steps along an axis whose bytes are a multiple of 16, so that parts
    can be views; 1 if parts along the axis are not contiguous."""
    shape = tensor.shape or ()
    if math.prod(shape[:axis]) != 1:
        return 1
    step = math.prod(shape[axis + 1 :]) * tensor.nbytes // max(tensor.elements, 1)
    return ALIGNMENT // math.gcd(ALIGNMENT, step) if step else 1


def is_run(full: Box, box: Box) -> bool:
    """Whether the bytes of a box are contiguous in the whole tensor."""
    sizes = extents(full)
    cut = [a for a, r in enumerate(box) if r != full[a]]
    return len(cut) == 1 and math.prod(sizes[: cut[0]]) == 1


def box_name(tensor: Tensor, box: Box, what: str = "") -> str:
    """A name for the part of a tensor in a box."""
    full = full_box(tensor)
    cut = [f"{'nhwc'[a] if len(box) == 4 else a}{r[0]}:{r[1]}"
           for a, r in enumerate(box) if len(full) != len(box) or r != full[a]]  # fmt: skip
    return "/".join(p for p in (tensor.name, ",".join(cut), what) if p)


def box_in_name(name: str) -> str | None:
    """The innermost box in a name made by `box_name`, as in "h0:10,w4:8"; None if there is none."""
    cuts = re.findall(r"/((?:[nhwc\d]\d+:\d+)(?:,[nhwc\d]\d+:\d+)*)(?=/|$)", name)
    return cuts[-1] if cuts else None


def whole_name(name: str) -> str:
    """The name of the whole tensor, from a name made by `box_name`; other names are unchanged."""
    return re.split(r"/(?:[nhwc\d]\d+:\d+)(?:,[nhwc\d]\d+:\d+)*(?=/|$)", name, maxsplit=1)[0]
