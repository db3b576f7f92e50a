"""Computes values only at the pixels that are read.

A 1x1 convolution with a stride of 2 reads one pixel in four. Such convolutions begin a stage of a
residual network: on the skip, and in some networks beside it. Two rewrites use that:

    lifted       t --CONV 1x1--> p --ADD--> x --CONV 1x1, stride 2--> y      all readers of x skip
                                 q --/                                       the same pixels
    to           t --CONV 1x1, stride 2--> p' --ADD--> x' --CONV 1x1--> y    a quarter of p and x,
                           q --pick, stride 2--> q' --/                      and of the work

    held back    x --CONV 1x1, stride 2--> y                                 something else reads
                 x --CONV 3x3--> ...                                         all of x
    to           x --pick, stride 2--> x' --CONV 1x1--> y                    x' is smaller than y:
                 x --CONV 3x3--> ...                                         less lives beside it

A *pick* copies pixels: a pool whose window is one pixel, which most firmware has, or STRIDED_SLICE.
Every value that is left comes of the same sums as before, so that no bit changes. Whether fewer
bytes of tensors are worth a pick, which is an operator more, is for the search to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from tflm_planner.model.draft import Draft
from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.model.options import VALID_PADDING
from tflm_planner.ops.axes import ELEMENT_WISE, axis_map
from tflm_planner.ops.axis_rules import Same
from tflm_planner.ops.window import COLUMNS, ROWS, Window, picked_stride, reads_one_pixel, window_of
from tflm_planner.tflm.kernels import adds_pixels_alike

PickKind = Literal["MAX_POOL_2D", "AVERAGE_POOL_2D", "STRIDED_SLICE"]
PICKS: Sequence[PickKind] = get_args(PickKind)
"""Kinds of operators that can pick pixels, the best first: kernels of averages ask for scratch, and
STRIDED_SLICE copies element by element."""
Stride = tuple[int, int]
"""Rows and columns from one pixel that is read to the next."""
_ALL: Stride = (1, 1)
_TYPES = ("int8", "int16")
"""Kernels may round sums of floating-point numbers otherwise where they compute fewer pixels."""


@dataclass(frozen=True)
class Subsample:
    """Rewrites the main graph; see the module. pick: the kind of operator that picks pixels; None:
    only what needs no pick is rewritten."""

    pick: PickKind | None = None

    def apply(self, model: Model) -> list[str]:
        """See `transforms.base.Transform`."""
        return list(_steps(model, self.pick))


def _steps(model: Model, pick: PickKind | None) -> Iterator[str]:
    """Rewrite until nothing is left to rewrite, with a note for each step. A step moves a stride
    towards the inputs or takes it off a convolution, so that there is an end."""
    while (note := _lift_one(model, pick) or _hold_one_back(model, pick)) is not None:
        yield note


def _lift_one(model: Model, pick: PickKind | None) -> str | None:
    """Compute one value at fewer pixels, if there is one, the last one first."""
    for op in reversed(model.main.ops):
        tensor = op.outputs[0] if len(op.outputs) == 1 else None
        stride = None if tensor is None else _stride_of_readers(model, tensor)
        if tensor is None or stride is None:
            continue
        lift = _Lift(model, stride, pick)
        if lift.of(tensor):
            return f"{op.label} is computed at the pixels that are read, 1 in {_among(stride)}"
    return None


def _hold_one_back(model: Model, pick: PickKind | None) -> str | None:
    """Make one value from the pixels that it needs, if they take fewer bytes than it does."""
    if pick is None:
        return None
    for tensor in filter(_is_image, model.main.tensors):
        by_stride: dict[Stride, list[Op]] = {}
        for op in tensor.consumers:
            stride = _skipping_stride(op, tensor)
            if stride is not None and picked_stride(op) is None:
                by_stride.setdefault(stride, []).append(op)
        for stride, readers in by_stride.items():
            if len(readers) < len(tensor.consumers) and _hold_back(
                model, pick, tensor, stride, readers
            ):
                names = " and ".join(op.label for op in readers)
                return (
                    f"{names} can wait: the pixels that are read are picked, 1 in {_among(stride)}"
                )
    return None


def _hold_back(
    model: Model, pick: PickKind, tensor: Tensor, stride: Stride, readers: list[Op]
) -> bool:
    draft = Draft(model, model.main)
    small = _smaller(draft, tensor, stride)
    if small.nbytes >= sum(op.outputs[0].nbytes for op in readers):
        return False
    _draft_pick(draft, pick, tensor, small, stride)
    for op in readers:
        _draft_unskipping(draft, op, small)
    draft.commit(readers)
    return True


class _Lift:
    """Computes a value at the pixels that its readers read."""

    def __init__(self, model: Model, stride: Stride, pick: PickKind | None) -> None:
        self._stride = stride
        self._pick: PickKind | None = pick
        self._graph, self._draft = model.main, Draft(model, model.main)
        self._outside = _outside(model)
        self._replaced: list[Op] = []
        self._merged = 0

    def of(self, tensor: Tensor) -> bool:
        """Rewrite; False, with nothing changed, if that is not possible, or saves no work but that
        of operators on single elements."""
        picks = [op for op in tensor.consumers if picked_stride(op) is not None]
        if len(picks) > 1:
            return False
        target = picks[0].outputs[0] if picks else _smaller(self._draft, tensor, self._stride)
        readers = list(tensor.consumers)
        if not self._compute(tensor, target, readers) or not self._merged:
            return False
        for op in readers:
            if op not in picks:
                _draft_unskipping(self._draft, op, target)
        self._draft.commit([*self._replaced, *readers])
        return True

    def _compute(self, tensor: Tensor, target: Tensor, readers: list[Op]) -> bool:
        """Draft what computes `target`, the pixels of `tensor`, which only `readers` read."""
        op = tensor.producer
        if op is None or len(op.outputs) != 1 or tensor in self._outside:
            return False
        if any(reader not in readers for reader in tensor.consumers):
            return False
        window = window_of(op)
        if window is not None:
            return self._merge(op, window, target)
        images = _images_of(op)
        if images is None:
            return False
        parts = {t: self._part_of(t, op) for t in images}
        if None in parts.values():
            return False
        self._draft.clone(op, [parts.get(t, t) if t else None for t in op.inputs], [target])
        self._replaced.append(op)
        return True

    def _merge(self, op: Op, window: Window, target: Tensor) -> bool:
        """Draft a window with a stride that skips what is not read; not if padding would then begin
        elsewhere, or bits depend on which pixels are computed together."""
        if not window.undilated or not adds_pixels_alike(op):
            return False
        rows, columns = (a * b for a, b in zip(window.stride, self._stride, strict=True))
        drafted = self._draft.clone(op, list(op.inputs), [target], stride_h=rows, stride_w=columns)
        skipping = window_of(drafted)
        if skipping is None or skipping.pad != window.pad:
            self._draft.ops.remove(drafted)
            return False
        self._replaced.append(op)
        self._merged += 1
        return True

    def _part_of(self, tensor: Tensor, reader: Op) -> Tensor | None:
        """The pixels of an operand of `reader`: computed alone where nothing else reads it, else
        picked."""
        small = _smaller(self._draft, tensor, self._stride)
        if self._compute(tensor, small, [reader]):
            return small
        if self._pick is None:
            return None
        _draft_pick(self._draft, self._pick, tensor, small, self._stride)
        return small


def _stride_of_readers(model: Model, tensor: Tensor) -> Stride | None:
    """The stride of all readers of a tensor, if all skip the same pixels."""
    if not _is_image(tensor) or tensor in _outside(model):
        return None
    strides = {_skipping_stride(op, tensor) for op in tensor.consumers}
    return strides.pop() if len(strides) == 1 else None


def _skipping_stride(op: Op, tensor: Tensor) -> Stride | None:
    """The stride of an operator that reads single pixels of `tensor` and skips others; else
    None."""
    window = window_of(op) if op.kind == "CONV_2D" else None
    if window is None:
        stride = picked_stride(op)
    else:
        stride = window.stride if reads_one_pixel(window) else None
    return None if op.inputs[0] is not tensor or stride == _ALL else stride


def _images_of(op: Op) -> list[Tensor] | None:
    """The images that an operator combines pixel by pixel; None for other operators."""
    if op.kind not in ELEMENT_WISE or not _is_image(op.outputs[0]):
        return None
    links = axis_map(op)
    by_pixel: list[set[int]] = []
    for axis in (ROWS, COLUMNS):
        of_axis = links.links_of(axis)
        if any(link.axis != axis or link.rule != Same() for link in of_axis):
            return None
        by_pixel.append({link.operand for link in of_axis})
    images = by_pixel[0] | by_pixel[1]
    if by_pixel[0] != by_pixel[1] or not images:
        return None
    found = [op.inputs[i] for i in sorted(images)]
    shape = op.outputs[0].shape
    whole = all(t is not None and not t.is_constant and _is_image(t) for t in found)
    same = all(t is not None and (t.shape or ())[:3] == (shape or ())[:3] for t in found)
    return list(dict.fromkeys(t for t in found if t is not None)) if whole and same else None


def _is_image(tensor: Tensor) -> bool:
    shape = tensor.shape or ()
    return (
        len(shape) == 4 and min(shape) > 0 and tensor.type_name in _TYPES and not tensor.is_variable
    )


def _outside(model: Model) -> set[Tensor]:
    """What the application reads or writes."""
    ends = {t for s in model.signatures for _, t in (*s.inputs, *s.outputs)}
    return ends | {*model.main.inputs, *model.main.outputs}


def _smaller(draft: Draft, tensor: Tensor, stride: Stride) -> Tensor:
    """A tensor for the pixels of another one that are read."""
    batch, height, width, channels = tensor.shape or (0, 0, 0, 0)
    shape = batch, -(-height // stride[0]), -(-width // stride[1]), channels
    return draft.tensor(tensor, f"{tensor.name}/picked", shape)


def _draft_pick(
    draft: Draft, kind: PickKind, tensor: Tensor, small: Tensor, stride: Stride
) -> None:
    if kind == "STRIDED_SLICE":
        begin = draft.integers("begin", [0, 0, 0, 0])
        end = draft.integers("end", tensor.shape or ())
        strides = draft.integers("strides", [1, *stride, 1])
        draft.op(kind, [tensor, begin, end, strides], [small])
        return
    draft.op(
        kind, [tensor], [small], padding=VALID_PADDING, stride_h=stride[0], stride_w=stride[1],
        filter_height=1, filter_width=1,
    )  # fmt: skip


def _draft_unskipping(draft: Draft, op: Op, small: Tensor) -> None:
    """A reader that finds its pixels side by side."""
    draft.clone(op, [small, *op.inputs[1:]], list(op.outputs), stride_h=1, stride_w=1)


def _among(stride: Stride) -> int:
    return stride[0] * stride[1]
