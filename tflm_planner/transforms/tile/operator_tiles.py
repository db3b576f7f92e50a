"""How an operator computes a box of its result: which boxes it reads, with which options.

    CONV_2D      window and padding of the tile (`windows`), a part of the filters
    PAD          less padding, or none
    SLICE, SPLIT nothing to compute: the box is a box of the operand
    RESIZE_*     more rows than needed, so that the ratio stays the same (`resizing`)

It knows boxes and operators; it must not change a model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tflm_planner.model.constants import integers
from tflm_planner.model.ir import Op, Tensor
from tflm_planner.model.number_formats import same_values
from tflm_planner.model.options import VALID_PADDING
from tflm_planner.ops.axes import ELEMENT_WISE, ROW_WISE, AxisMap, axis_map, strides_of
from tflm_planner.ops.axis_rules import Range, Repeat, Scatter, Slide, Stretch
from tflm_planner.ops.roles import PADS, SPLITS
from tflm_planner.ops.window import COLUMNS, CONVOLUTIONS, POOLS, ROWS, window_of
from tflm_planner.tflm.kernels import adds_pixels_alike, computes_part, computes_single_row
from tflm_planner.transforms.tile.boxes import Box, NotTileableError, extents, full_box, is_empty
from tflm_planner.transforms.tile.resizing import resize_form
from tflm_planner.transforms.tile.windows import (
    AHEAD,
    BORDERS,
    Border,
    Form,
    Sliding,
    scatter_form,
    window_forms,
)


@dataclass(frozen=True)
class TileForm:
    """How an operator computes a box of its result.

    out: the box that is computed, which contains the wanted one. reads: the box of each operand,
    None for operands left out. options: (name, value) of changed options. pads: what PAD adds
    around the box of operand 0, by axis; None without PAD. constants: (operand, integers that
    replace it). moved: index of an operand if the result is a box of it, so that nothing is
    computed.
    """

    out: Box
    reads: tuple[Box | None, ...]
    options: tuple[tuple[str, Any], ...] = ()
    pads: tuple[Range, ...] | None = None
    constants: tuple[tuple[int, tuple[Any, ...]], ...] = ()
    moved: int | None = None


def tile_form(op: Op, result: Tensor, wanted: Box, border: Border = "pad") -> TileForm:
    """How `op` computes the box `wanted` of one of its results.

    `border`: what to do if the padding of a window differs from that of the whole image. Raises
    NotTileableError.
    """
    index = _index(op, result)
    cut = [a for a, r in enumerate(wanted) if r != (0, (result.shape or ())[a])]
    if not cut and len(op.outputs) == 1:
        return TileForm(wanted, tuple(None if t is None else full_box(t) for t in op.inputs))
    form = _FORMS.get(op.kind)
    if form is None:
        raise NotTileableError(f"{op.label} has no tiled form")
    links = axis_map(op)
    for axis in cut:
        if not links.links_of(axis, index):
            raise NotTileableError(_why_mixed(op, result, axis))
    _check_scales(op, result, wanted, cut)
    plain = TileForm(wanted, boxes_read(op, result, wanted))
    return form(_Wanted(op, result, links, cut, border), plain)


def _index(op: Op, result: Tensor) -> int:
    return next(i for i, t in enumerate(op.outputs) if t is result)


@dataclass(frozen=True)
class _Wanted:
    """The box that is requested. cut: the axes of which only a part is requested."""

    op: Op
    result: Tensor
    links: AxisMap
    cut: list[int]
    border: Border

    def rule(self, axis: int) -> Any:
        """The rule of an axis that depends on one operand only."""
        (link,) = self.links.links_of(axis)
        return link.rule

    def size(self, axis: int) -> int:
        """The length of the operand's axis to which an axis of the result corresponds."""
        (link,) = self.links.links_of(axis)
        operand = self.op.inputs[link.operand]
        assert operand is not None, "linked to nothing"
        return (operand.shape or ())[link.axis]


def _why_mixed(op: Op, result: Tensor, axis: int) -> str:
    names = {1: "rows", 2: "columns", 3: "channels"} if len(result.shape or ()) == 4 else {}
    return f"{op.label} mixes {names.get(axis, f'axis {axis}')}"


def _check_scales(op: Op, result: Tensor, wanted: Box, cut: Sequence[int]) -> None:
    if result.quantization.is_per_channel:
        raise NotTileableError(f"the result of {op.label} is quantised per channel")
    if op.kind == "DEPTHWISE_CONV_2D" and 3 in cut:
        times = op.options.depth_multiplier
        if wanted[3][0] % times or wanted[3][1] % times:
            raise NotTileableError(
                f"{op.label} has a depth multiplier of {times}: channels are cut at its multiples"
            )
    if op.kind == "FULLY_CONNECTED" and _loses_channels(op, wanted):
        raise NotTileableError(
            f"{op.label} is quantised per channel, and one channel by itself would be scaled as if "
            "it were not, which rounds otherwise: tiles have two channels at least"
        )


def _loses_channels(op: Op, wanted: Box) -> bool:
    """Whether a part of a FULLY_CONNECTED that is quantised per channel would no longer be so: TFLM
    goes by the number of scales (micro/kernels/fully_connected_common.cc:76 of tflite-micro
    90b983c). It multiplies two scales as floats where one stands for all channels
    (lite/kernels/kernel_util.cc:334), and as doubles where each has its own
    (fully_connected_common.cc:126)."""
    filters = op.inputs[1]
    low, high = wanted[-1]
    return filters is not None and filters.quantization.is_per_channel and high - low == 1


def boxes_read(op: Op, result: Tensor, wanted: Box) -> tuple[Box | None, ...]:
    """The box of each operand on which a box of a result depends; the whole operand if that is not
    known."""
    index, links = _index(op, result), axis_map(op)
    reads: list[list[Range] | None] = [None if t is None else list(full_box(t)) for t in op.inputs]
    for link in (k for k in links.links if k.result == index):
        operand, box = op.inputs[link.operand], reads[link.operand]
        if operand is not None and box is not None:
            size = (operand.shape or ())[link.axis]
            is_full_axis = wanted[link.out_axis] == (0, (result.shape or ())[link.out_axis])
            if not is_full_axis or not isinstance(link.rule, Repeat):
                box[link.axis] = link.rule.needs(wanted[link.out_axis], size)
    for pick in (p for p in links.picks if p.result == index):
        box = reads[pick.operand]
        if box is not None:
            box[pick.axis] = pick.indices
    return tuple(None if box is None else tuple(box) for box in reads)


# --- forms: how each kind completes a form that has only `out` and `reads` ---


def _as_it_is(_: _Wanted, plain: TileForm) -> TileForm:
    return plain


def _window(asked: _Wanted, plain: TileForm) -> TileForm:
    op, window = asked.op, window_of(asked.op)
    if window is None:
        raise NotTileableError(f"{op.label} has no tiled form")
    whole, part = (window.batch, window.channels[0]), _images_and_channels(plain)
    if not (computes_part(op, *whole) and computes_part(op, *part)):
        raise NotTileableError(f"{op.label} in such parts is computed wrong by CMSIS-NN")
    if {ROWS, COLUMNS} & {*asked.cut} and not adds_pixels_alike(op):
        raise NotTileableError(f"{op.label} has sums that CMSIS-NN wraps around in some pixels")
    axes: list[Sliding] = []
    for axis in (1, 2):
        rule = asked.rule(axis)
        assert isinstance(rule, Slide)
        axes.append(Sliding(rule, plain.out[axis], asked.size(axis), axis not in asked.cut))
    padding_forms = window_forms(axes, asked.border, is_pool=op.kind in POOLS)
    if padding_forms is None:
        raise NotTileableError(f"{op.label} has a border that no padding gives")
    forms, padding = padding_forms
    _check_single_rows(asked.op, forms, padding)
    tile = _with_forms(plain, 0, forms)
    pads = ((0, 0), forms[0].pads, forms[1].pads, (0, 0))
    has_pads = any(p != (0, 0) for p in pads)
    return replace(tile, options=(("padding", padding),), pads=pads if has_pads else None)


def _images_and_channels(form: TileForm) -> tuple[int, int]:
    """How many images and channels of operand 0 a form reads."""
    data = form.reads[0]
    assert data is not None
    batch, _, _, channels = extents(data)
    return batch, channels


def _check_single_rows(op: Op, forms: list[Form], padding: int) -> None:
    """Raise NotTileableError if the tile is a single row that CMSIS-NN would compute wrongly."""
    window = window_of(op)
    rows, width = (f.read[1] - f.read[0] + sum(f.pads) for f in forms)
    if window is None or rows > 1:
        return
    out, reach = forms[1].rows, (window.kernel[1] - 1) * window.dilation[1] + 1
    total = max((out - 1) * window.stride[1] + reach - width, 0)
    if not computes_single_row(op, width, out, 0 if padding == VALID_PADDING else total // 2):
        raise NotTileableError(f"{op.label} cannot be computed row by row by CMSIS-NN")


def _with_forms(plain: TileForm, operand: int, forms: list[Form]) -> TileForm:
    """The form with rows and columns as in `forms`; batch and channels are unchanged."""
    data = plain.reads[operand]
    assert data is not None
    reads = list(plain.reads)
    reads[operand] = (data[0], forms[0].read, forms[1].read, data[3])
    out = (plain.out[0], forms[0].out, forms[1].out, plain.out[3])
    return replace(plain, out=out, reads=tuple(reads))


def _transposed_convolution(asked: _Wanted, plain: TileForm) -> TileForm:
    """If rows or columns are cut: compute all rows to which the operand's rows add, without
    padding."""
    if {1, 2} & {*asked.cut}:
        forms: list[Form] = []
        for axis in (1, 2):
            rule = asked.rule(axis)
            assert isinstance(rule, Scatter)
            forms.append(scatter_form(rule, plain.out[axis], asked.size(axis)))
        plain = replace(_with_forms(plain, 2, forms), options=(("padding", VALID_PADDING),))
    return replace(plain, constants=((0, extents(plain.out)),))


def _resize(asked: _Wanted, plain: TileForm) -> TileForm:
    forms: list[Form] = []
    for axis in (1, 2):
        wanted = plain.out[axis]
        if axis in asked.cut:
            rule = asked.rule(axis)
            assert isinstance(rule, Stretch)
            forms.append(resize_form(rule.resize, wanted))
        else:
            size = (asked.op.inputs[0].shape or ())[axis] if asked.op.inputs[0] else 0
            forms.append(Form(wanted, (0, size)))
    tile = _with_forms(plain, 0, forms)
    return replace(tile, constants=((1, (forms[0].rows, forms[1].rows)),))


def _tile_of_pad(asked: _Wanted, plain: TileForm) -> TileForm:
    """PAD with less padding, or no operator at all."""
    op, box = asked.op, plain.reads[0]
    values = integers(op.inputs[1])
    assert values is not None and box is not None
    if is_empty(box):
        raise NotTileableError(f"a tile would lie in the padding of {op.label} alone")
    pads: list[Range] = []
    for axis, (low, high) in enumerate(plain.out):
        start = low - values[2 * axis]
        pads.append((box[axis][0] - start, high - values[2 * axis] - box[axis][1]))
    if all(p == (0, 0) for p in pads) and _same_values(op.inputs[0], asked.result):
        return replace(plain, moved=0)
    return replace(plain, constants=((1, tuple(pads)),))


def _tile_of_slice(asked: _Wanted, plain: TileForm) -> TileForm:
    """SLICE from an operand that is cut to what is wanted."""
    if _same_values(asked.op.inputs[0], asked.result):
        return replace(plain, moved=0)
    return replace(plain, constants=((1, (0,) * len(plain.out)), (2, extents(plain.out))))


def _tile_of_strided_slice(asked: _Wanted, plain: TileForm) -> TileForm:
    strides, box = strides_of(asked.op), plain.reads[0]
    assert strides is not None and box is not None
    plainly = all(stride == 1 and not vanishes for _, stride, vanishes in strides)
    if plainly and _same_values(asked.op.inputs[0], asked.result):
        return replace(plain, moved=0)
    changed = ((1, (0,) * len(box)), (2, extents(box)))
    unmasked = () if asked.op.options.is_absent else (("begin_mask", 0), ("end_mask", 0))
    return replace(plain, constants=changed, options=unmasked)


def _split(asked: _Wanted, plain: TileForm) -> TileForm:
    data = SPLITS[asked.op.kind].data
    if not _same_values(asked.op.inputs[data], asked.result):
        raise NotTileableError(f"{asked.op.label} has results of another scale")
    return replace(plain, moved=data)


def _tile_of_unpack(_: _Wanted, plain: TileForm) -> TileForm:
    return replace(plain, options=(("num", 1),))


def _tile_of_concatenation(asked: _Wanted, plain: TileForm) -> TileForm:
    """CONCATENATION of the operands that have a part in the box; a single one is the box itself."""
    if asked.op.options.activation:
        raise NotTileableError(f"{asked.op.label} has a fused activation")
    reads = tuple(None if is_empty(r) else r for r in plain.reads)
    left = [i for i, r in enumerate(reads) if r is not None]
    if len(left) == 1 and _same_values(asked.op.inputs[left[0]], asked.result):
        return replace(plain, reads=reads, moved=left[0])
    return replace(plain, reads=reads)


def _tile_of_reshape(asked: _Wanted, plain: TileForm) -> TileForm:
    shape = extents(plain.out)
    constants = ((1, shape),) if len(asked.op.inputs) > 1 else ()
    if asked.op.options.new_shape is None:
        return replace(plain, constants=constants)
    return replace(plain, constants=constants, options=(("new_shape", tuple(shape)),))


def _tile_of_squeeze(asked: _Wanted, plain: TileForm) -> TileForm:
    """Name the removed axes, because axes that have length 1 only in the tile must stay."""
    data, options = asked.op.inputs[0], asked.op.options
    if data is None or options.squeezed_axes:
        return plain
    if options.is_absent:
        raise NotTileableError(f"{asked.op.label} does not say which axes vanish")
    squeezed = tuple(a for a, n in enumerate(data.shape or ()) if n == 1)
    return replace(plain, options=(("squeeze_dims", squeezed),))


def _same_values(operand: Tensor | None, result: Tensor) -> bool:
    return operand is not None and same_values(operand, result)


_FORMS: dict[str, Callable[[_Wanted, TileForm], TileForm]] = {
    **dict.fromkeys(ELEMENT_WISE | ROW_WISE, _as_it_is),
    **dict.fromkeys(
        ("EXPAND_DIMS", "TRANSPOSE", "BATCH_MATMUL", "FULLY_CONNECTED", "MEAN", "SUM", "PACK"),
        _as_it_is,
    ),
    **dict.fromkeys((*CONVOLUTIONS, *POOLS), _window),
    **dict.fromkeys(PADS, _tile_of_pad),
    **dict.fromkeys(SPLITS, _split),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), _resize),
    "TRANSPOSE_CONV": _transposed_convolution,
    "CONCATENATION": _tile_of_concatenation,
    "RESHAPE": _tile_of_reshape,
    "SQUEEZE": _tile_of_squeeze,
    "SLICE": _tile_of_slice,
    "STRIDED_SLICE": _tile_of_strided_slice,
    "UNPACK": _tile_of_unpack,
}  # fmt: skip

__all__ = ["AHEAD", "BORDERS", "Border", "TileForm", "boxes_read", "tile_form"]
