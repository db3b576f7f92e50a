"""How an operator computes a box of its result: which boxes it reads, and with which padding.

    result     |......[a,b)......|        SAME of a tile knows only the tile's own borders, so
    operand  pp|...[------)......|pp      it is right where these are the image's; else the tile
                 halo      halo           is computed VALID, padded by PAD, or with a few rows
                                          more than wanted, which are cut off again ("waste").

It knows boxes and operators; it must not change a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tflm_planner.ir import Op, Tensor
from tflm_planner.ops.axes import ELEMENT_WISE, AxisMap, Range, Repeat, Slide, axis_map
from tflm_planner.ops.constants import integers
from tflm_planner.ops.window import window_of
from tflm_planner.passes.base import RefusedError

Box = tuple[Range, ...]
"""A range for each axis. Ranges of wasted rows may leave the tensor on either side."""
Border = Literal["pad", "waste"]
BORDERS: tuple[Border, ...] = ("pad", "waste")
SAME, VALID = 0, 1
_POOLS = ("AVERAGE_POOL_2D", "MAX_POOL_2D")
_PLAIN = ELEMENT_WISE | {"SOFTMAX", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "BATCH_MATMUL"}


class NotTileableError(RefusedError):
    """Why an operator cannot be computed in boxes; the text follows "not tiled: "."""

    prefix = "not tiled"


@dataclass(frozen=True)
class Recipe:
    """out: the box that is computed; it holds the one wanted. reads: box of each operand, None
    for those left out. padding: the padding option of a sliding window. pads: what PAD puts
    around the box of operand 0, by axis; None without PAD."""

    out: Box
    reads: tuple[Box | None, ...]
    padding: int | None = None
    pads: tuple[Range, ...] | None = None


def full_box(tensor: Tensor) -> Box:
    """All of a tensor."""
    return tuple((0, n) for n in tensor.shape or ())


def hull(boxes: Sequence[Box]) -> Box:
    """The smallest box around all of them."""
    return tuple(
        (min(r[0] for r in axis), max(r[1] for r in axis)) for axis in zip(*boxes, strict=True)
    )


def extents(box: Box) -> tuple[int, ...]:
    """The shape of a box."""
    return tuple(high - low for low, high in box)


def inside(inner: Box, outer: Box) -> bool:
    """Whether a box lies in another one."""
    return all(o[0] <= i[0] and i[1] <= o[1] for i, o in zip(inner, outer, strict=True))


def recipe(op: Op, wanted: Box, border: Border = "pad") -> Recipe:
    """How `op` computes the box `wanted` of its only result.

    `border`: what to do where the padding of a window is not that of a whole tile. Raises
    NotTileableError.
    """
    if len(op.outputs) != 1:
        raise NotTileableError(f"{op.label} has {len(op.outputs)} results")
    (result,) = op.outputs
    cut = [a for a, r in enumerate(wanted) if r != (0, (result.shape or ())[a])]
    if not cut:
        return Recipe(wanted, tuple(None if t is None else full_box(t) for t in op.inputs))
    links = axis_map(op)
    for axis in cut:
        if not links.links_of(axis):
            raise NotTileableError(_mixed(op, axis))
    _check_kind(op, wanted, cut)
    reads = _reads(op, links, wanted)
    if window_of(op) is not None:
        return _window_recipe(op, links, wanted, reads, border)
    if op.kind in ("PAD", "PADV2"):
        return _pad_recipe(op, links, wanted, reads)
    if op.kind == "CONCATENATION":
        return Recipe(wanted, tuple(None if _is_empty(r) else r for r in reads))
    return Recipe(wanted, reads)


def _mixed(op: Op, axis: int) -> str:
    names = {1: "rows", 2: "columns", 3: "channels"} if len(op.outputs[0].shape or ()) == 4 else {}
    return f"{op.label} mixes {names.get(axis, f'axis {axis}')}"


def _check_kind(op: Op, wanted: Box, cut: list[int]) -> None:
    if op.outputs[0].quantization is not None:
        scale = op.outputs[0].quantization.scale
        if scale is not None and len(scale) > 1:
            raise NotTileableError(f"the result of {op.label} is quantised per channel")
    known = _PLAIN | {"CONCATENATION", "PAD", "PADV2", "SLICE", "RESHAPE", "FULLY_CONNECTED"}
    if op.kind not in known and window_of(op) is None:
        if op.kind in ("MEAN", "SUM"):
            return
        raise NotTileableError(f"{op.label} has no tiled form")
    if op.kind == "CONCATENATION" and getattr(op.options, "fusedActivationFunction", 0):
        raise NotTileableError(f"{op.label} has a fused activation")
    if op.kind == "DEPTHWISE_CONV_2D" and 3 in cut:
        times = int(op.options.depthMultiplier)
        if wanted[3][0] % times or wanted[3][1] % times:
            raise NotTileableError(
                f"{op.label} has a depth multiplier of {times}: channels are cut at its multiples"
            )


def _is_empty(box: Box | None) -> bool:
    return box is None or any(low >= high for low, high in box)


def _reads(op: Op, links: AxisMap, wanted: Box) -> tuple[Box | None, ...]:
    reads: list[list[Range] | None] = [None if t is None else list(full_box(t)) for t in op.inputs]
    for link in links.links:
        operand, box = op.inputs[link.operand], reads[link.operand]
        if operand is not None and box is not None:
            size = (operand.shape or ())[link.axis]
            whole = wanted[link.out_axis] == (0, (op.outputs[0].shape or ())[link.out_axis])
            if not whole or not isinstance(link.rule, Repeat):
                box[link.axis] = link.rule.needs(wanted[link.out_axis], size)
    return tuple(None if box is None else tuple(box) for box in reads)


# --- sliding windows ---


@dataclass(frozen=True, slots=True)
class _Form:
    """One axis of a window: rows computed, rows read, and what PAD must add."""

    out: Range
    read: Range
    pads: Range = (0, 0)

    @property
    def rows(self) -> int:
        return self.out[1] - self.out[0]


def _window_recipe(
    op: Op, links: AxisMap, wanted: Box, reads: tuple[Box | None, ...], border: Border
) -> Recipe:
    data = op.inputs[0]
    assert data is not None
    valid: list[_Form] = []
    sames: list[_Form] = []
    same = True
    for axis in (1, 2):
        (link,) = links.links_of(axis)
        size = (data.shape or ())[axis]
        assert isinstance(link.rule, Slide)
        valid.append(_as_valid(link.rule, wanted[axis], size))
        found = _as_same(link.rule, wanted[axis], size)
        same = same and found is not None
        sames += [found] if found else []
    padless = all(f.pads == (0, 0) for f in valid)
    exact = same and all(f.out == wanted[1 + i] for i, f in enumerate(sames))
    if padless:
        return _with_forms(reads, wanted, valid, VALID)
    if same and (exact or border == "waste" or op.kind in _POOLS):
        return _with_forms(reads, wanted, sames, SAME)
    if op.kind in _POOLS:
        raise NotTileableError(f"{op.label} has a border that no padding gives")
    return _with_forms(reads, wanted, valid, VALID)


def _with_forms(
    reads: tuple[Box | None, ...], wanted: Box, forms: list[_Form], padding: int
) -> Recipe:
    data = reads[0]
    assert data is not None
    box = (data[0], forms[0].read, forms[1].read, data[3])
    out = (wanted[0], forms[0].out, forms[1].out, wanted[3])
    pads = ((0, 0), forms[0].pads, forms[1].pads, (0, 0))
    some = any(p != (0, 0) for p in pads)
    return Recipe(out, (box, *reads[1:]), padding, pads if some else None)


def _as_valid(slide: Slide, wanted: Range, size: int) -> _Form:
    low, high = slide.unclipped(wanted)
    if low >= size or high <= 0:
        raise NotTileableError("a tile would lie in the padding alone")
    read = max(low, 0), min(high, size)
    return _Form(wanted, read, (read[0] - low, high - read[1]))


def _as_same(slide: Slide, wanted: Range, size: int) -> _Form | None:
    """The least wasteful tile that SAME computes right in the wanted rows; None: there is none."""
    low, high = slide.unclipped(wanted)
    best: _Form | None = None
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
    """Ends to try: a few rows more than needed may make SAME pad as it must."""
    yield from range(least, min(size, least + 2 * slide.stride + slide.reach) + 1)


def _same_form(slide: Slide, start: int, first: int, last: int, pad: int) -> _Form | None:
    """SAME over rows [first, last), if it pads `pad` rows above them."""
    rows = last - first
    count = -(-rows // slide.stride)
    total = max(0, (count - 1) * slide.stride + slide.reach - rows)
    return _Form((start, start + count), (first, last)) if total // 2 == pad else None


def _pad_recipe(op: Op, links: AxisMap, wanted: Box, reads: tuple[Box | None, ...]) -> Recipe:
    """PAD of a tile: less padding, or none."""
    values, box = integers(op.inputs[1]), reads[0]
    assert values is not None and box is not None
    if _is_empty(box):
        raise NotTileableError(f"a tile would lie in the padding of {op.label} alone")
    pads: list[Range] = []
    for axis, (low, high) in enumerate(wanted):
        start = low - values[2 * axis]
        pads.append((box[axis][0] - start, high - values[2 * axis] - box[axis][1]))
    return replace(Recipe(wanted, reads), pads=tuple(pads))
