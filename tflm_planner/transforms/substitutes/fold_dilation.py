"""Writes dilated convolutions as such, which converters take apart where the batch was left free.

    (1, 16, 16, 8) --SPACE_TO_BATCH_ND 2, 2--> (4, 10, 10, 8) --CONV_2D 3x3, VALID--> (4, 8, 8, 4)
                   --BATCH_TO_SPACE_ND 2, 2--> (1, 16, 16, 4)
    (1, 16, 16, 8) --CONV_2D 3x3, SAME, dilation 2--> (1, 16, 16, 4)

The parts hold every second row and column, so that a window on one of them is a window of the whole
with a dilation: the same products, added in the same order. In a row of pixels, RESHAPEs lie
between. Where padding is neither that of SAME nor that of VALID, a PAD makes it.

TFLM's SPACE_TO_BATCH_ND pads with whatever lies in memory: nobody writes the `output_offset` of its
parameters (space_to_batch_nd.cc of tflite-micro 90b983c, unchanged since 2021). One that pads and
stays is therefore written as PAD and one that does not. This module must not know memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflm_planner.model.constants import integers
from tflm_planner.model.draft import Draft
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.model.number_formats import same_values
from tflm_planner.model.options import SAME_PADDING, VALID_PADDING
from tflm_planner.ops.roles import RESHAPES
from tflm_planner.ops.window import Window, window_of
from tflm_planner.support.words import count
from tflm_planner.transforms.fold_transpose import is_private

Sides = tuple[int, int]
"""Rows and columns, or what lies before and behind."""

_CONVOLUTIONS = "CONV_2D", "DEPTHWISE_CONV_2D"
_MOST = 1 << 16
"""Rows of padding or of a block above which a file is damaged: no image here has as many."""


def fold_dilations(model: Model) -> list[str]:
    """Write all that can be; returns notes if there were any."""
    folded = padded = 0
    for graph in model.graphs:
        for op in [op for op in graph.ops if op.kind == "SPACE_TO_BATCH_ND"]:
            if _fold(model, graph, op):
                folded += 1
            elif _pad_apart(model, graph, op):
                padded += 1
    notes: list[str] = []
    if folded:
        convolutions = count(folded, "convolution", "convolutions")
        notes.append(f"{convolutions} between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND dilated")
    if padded:
        notes.append(
            f"{padded} SPACE_TO_BATCH_ND padded by a PAD before: TFLM's kernel pads with what lies "
            "in memory"
        )
    return notes


@dataclass(frozen=True)
class _Dilated:
    """A convolution of the parts of an image. chain: from SPACE_TO_BATCH_ND to BATCH_TO_SPACE_ND.
    window: of the convolution. pads: rows and columns of padding, before and behind, that the
    dilated convolution reads. in_rows: whether pixels of a row are rows of the convolution."""

    chain: tuple[Op, ...]
    convolution: Op
    window: Window
    block: Sides
    pads: tuple[Sides, Sides]
    in_rows: bool

    @property
    def reach(self) -> Sides:
        """How many rows and columns a dilated window reaches beyond its first."""
        rows, columns = ((k - 1) * b for k, b in zip(self.window.kernel, self.block, strict=True))
        return rows, columns

    @property
    def is_same(self) -> bool:
        """Whether the padding is that of SAME."""
        return all(
            pads == (reach // 2, reach - reach // 2)
            for pads, reach in zip(self.pads, self.reach, strict=True)
        )

    @property
    def is_valid(self) -> bool:
        """Whether there is no padding."""
        return self.pads == ((0, 0), (0, 0))


def _fold(model: Model, graph: Graph, op: Op) -> bool:
    """Write the convolution behind a SPACE_TO_BATCH_ND as a dilated one; False if that is
    impossible."""
    dilated = _dilated_behind(model, graph, op)
    if dilated is None:
        return False
    _Writer(model, graph, dilated).write()
    return True


def _dilated_behind(model: Model, graph: Graph, op: Op) -> _Dilated | None:
    chain = [op]
    while chain[-1].kind != "BATCH_TO_SPACE_ND":
        made = chain[-1].outputs[0]
        if len(made.consumers) != 1 or not is_private(model, graph, made):
            return None
        reader = made.consumers[0]
        if reader.inputs[0] is not made or len(reader.outputs) != 1:
            return None
        if reader.kind not in (*RESHAPES, *_CONVOLUTIONS, "BATCH_TO_SPACE_ND"):
            return None
        chain.append(reader)
    convolutions = [each for each in chain[1:-1] if each.kind in _CONVOLUTIONS]
    if len(convolutions) != 1:
        return None
    (convolution,) = convolutions
    window, first, last = window_of(convolution), _Partition.of(op), _Partition.of(chain[-1])
    if window is None or first is None or last is None or first.block != last.block:
        return None
    is_plain = window.stride == window.dilation == (1, 1) and window.pad == (0, 0)
    if not is_plain or convolution.options.padding == SAME_PADDING or not _only_reshaped(chain):
        return None
    return _with_padding(tuple(chain), convolution, window, first, last)


def _only_reshaped(chain: Sequence[Op]) -> bool:
    """Whether the RESHAPEs of a chain add and remove an axis of one row or one column alone, those
    of images none, and all else keeps its numbers."""
    for op in chain:
        data, result = op.inputs[0], op.outputs[0]
        if data is None or data.shape is None or result.shape is None:
            return False
        if op.kind in RESHAPES and not _adds_an_axis(data.shape, result.shape):
            return False
        if op.kind not in _CONVOLUTIONS and not same_values(data, result):
            return False
    return True


def _adds_an_axis(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether shapes are equal, or one of them is (images, pixels, channels) and the other has an
    axis of 1 beside the pixels."""
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    if (len(short), len(long)) != (3, 4):
        return False
    images, pixels, channels = short
    return long in ((images, 1, pixels, channels), (images, pixels, 1, channels))


@dataclass(frozen=True)
class _Partition:
    """The numbers of a SPACE_TO_BATCH_ND or BATCH_TO_SPACE_ND. edges: what is padded or cropped,
    before and behind, along each axis of `block`."""

    block: tuple[int, ...]
    edges: tuple[Sides, ...]

    @classmethod
    def of(cls, op: Op) -> _Partition | None:
        """Those of an operator; None if they are unknown."""
        block, edges = (integers(t) for t in op.inputs[1:3])
        if block is None or edges is None or len(edges) != 2 * len(block) or not block:
            return None
        pairs = zip(edges[::2], edges[1::2], strict=True)
        return cls(tuple(block), tuple(pairs))


def _with_padding(
    chain: tuple[Op, ...], convolution: Op, window: Window, first: _Partition, last: _Partition
) -> _Dilated | None:
    """With the padding that is left of both ends: the first result is that of the first window
    that is not cropped."""
    before, after = chain[0].inputs[0], chain[-1].outputs[0]
    sizes = before and before.shape, after.shape
    if sizes[0] is None or sizes[1] is None or len(sizes[0]) != len(sizes[1]):
        return None
    axes = len(sizes[0]) - 2
    if axes not in (1, 2) or len(first.block) != axes:
        return None
    if axes == 2 and any(op.kind in RESHAPES for op in chain):
        return None
    pads: list[Sides] = []
    where = [0, 1] if axes == 2 else [0 if window.input[1] == 1 < window.input[0] else 1]
    for axis, side in enumerate(where):
        reach = (window.kernel[side] - 1) * first.block[axis]
        low = first.edges[axis][0] - last.edges[axis][0]
        high = sizes[1][1 + axis] - sizes[0][1 + axis] + reach - low
        pads.append((low, high))
    if min(map(min, pads)) < 0 or max(*first.block, *map(max, pads)) > _MOST:
        return None
    block = dict(zip(where, first.block, strict=True))
    padding = dict(zip(where, pads, strict=True))
    if any(window.kernel[side] > 1 for side in (0, 1) if side not in block):
        return None
    return _Dilated(
        chain, convolution, window,
        (block.get(0, 1), block.get(1, 1)),
        (padding.get(0, (0, 0)), padding.get(1, (0, 0))),
        in_rows=where == [0],
    )  # fmt: skip


class _Writer:
    """Writes a dilated convolution in place of a chain."""

    def __init__(self, model: Model, graph: Graph, dilated: _Dilated) -> None:
        self._dilated, self._draft = dilated, Draft(model, graph)

    def write(self) -> None:
        """Write it."""
        dilated, draft = self._dilated, self._draft
        data, result = dilated.chain[0].inputs[0], dilated.chain[-1].outputs[0]
        assert data is not None
        image, resized = self._as_image(data), self._as_image(result)
        current = self._reshaped(data, image)
        if not (dilated.is_same or dilated.is_valid):
            current = self._padded(current)
        made = result if result.shape == resized else draft.tensor(result, result.name, resized)
        draft.clone(
            dilated.convolution,
            [current, *dilated.convolution.inputs[1:]],
            [made],
            dilation_h_factor=dilated.block[0],
            dilation_w_factor=dilated.block[1],
            padding=SAME_PADDING if dilated.is_same else VALID_PADDING,
        )
        if made is not result:
            draft.reshape(made, result)
        draft.commit(dilated.chain)

    def _as_image(self, tensor: Tensor) -> tuple[int, ...]:
        """The shape of a tensor, with the axis of one row or one column that the convolution asks
        for."""
        shape = tensor.shape or ()
        if len(shape) == 4:
            return shape
        before = 2 if self._dilated.in_rows else 1
        return (*shape[:before], 1, *shape[before:])

    def _reshaped(self, data: Tensor, shape: tuple[int, ...]) -> Tensor:
        if data.shape == shape:
            return data
        image = self._draft.tensor(data, f"{data.name}/image", shape)
        self._draft.reshape(data, image)
        return image

    def _padded(self, image: Tensor) -> Tensor:
        pads = ((0, 0), *self._dilated.pads, (0, 0))
        return _pad(self._draft, image, pads)


def _pad(draft: Draft, data: Tensor, pads: Sequence[Sides]) -> Tensor:
    """A tensor with this padding, and the drafted PAD that makes it."""
    shape = [n + low + high for n, (low, high) in zip(data.shape or (), pads, strict=True)]
    padded = draft.tensor(data, f"{data.name}/padded", shape)
    draft.op("PAD", [data, draft.integers("padding", pads)], [padded])
    return padded


def _pad_apart(model: Model, graph: Graph, op: Op) -> bool:
    """Write a SPACE_TO_BATCH_ND that pads as PAD and one that does not; False if it does not pad,
    or if that is unknown."""
    blocks, data = _Partition.of(op), op.inputs[0]
    if blocks is None or data is None or not any(map(any, blocks.edges)):
        return False
    axes = len(data.shape or ())
    if axes < 1 + len(blocks.block) or not same_values(data, op.outputs[0]):
        return False
    draft = Draft(model, graph)
    rest = axes - 1 - len(blocks.block)
    padded = _pad(draft, data, ((0, 0), *blocks.edges, *[(0, 0)] * rest))
    none = draft.integers("none", [(0, 0)] * len(blocks.block))
    draft.clone(op, [padded, op.inputs[1], none], list(op.outputs))
    draft.commit([op])
    return True
