"""Makes one or two operators of a chain of operators that move the elements of one tensor.

    x (111) --PAD 0, 1--> (112) --STRIDED_SLICE 1:--> (111) --pool of one pixel, stride 2--> y (56)
    x (111) --STRIDED_SLICE 1::2--> (55) --PAD 0, 1--> y (56)

Converters write such chains where a network shifts an image by a pixel and then leaves out every
second one (the factorised reductions of NASNet and DARTS): two copies of the whole image, of which
a quarter is used. Along each axis all of them say which element comes from where:

    y[i] = x[first + i * stride] for i inside a range, else the padding's value

so that a chain is one part with strides, and one PAD. It is written so if that takes no more
operators and fewer bytes, or fewer operators and no more bytes, and no kind of operator that the
chain has not. A 1x1 convolution that skips pixels ends a chain, too: its stride moves into the
part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tflm_planner.model.constants import integers
from tflm_planner.model.draft import Draft
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.model.number_formats import same_values
from tflm_planner.ops.axes import axis_map
from tflm_planner.ops.axis_rules import Range, Same, Slide
from tflm_planner.ops.roles import PADS
from tflm_planner.ops.window import COLUMNS, ROWS, picked_stride, reads_one_pixel, window_of
from tflm_planner.support.deferred import defer
from tflm_planner.support.words import count
from tflm_planner.transforms.fold_transpose import is_private

if TYPE_CHECKING:
    import numpy as np
else:
    np = defer("numpy")

_PARTS = "SLICE", "STRIDED_SLICE"
_MOST_AXES = 4
"""Axes that the kernels of PAD and SLICE support in every library."""


@dataclass(frozen=True)
class _Along:
    """One axis of a tensor whose elements come from another one: index i of `inside` from index
    `first + i * stride` of the other one, all other indices from padding. size: all of them."""

    first: int
    stride: int
    inside: Range
    size: int

    def then(self, begin: int, stride: int, size: int) -> _Along:
        """The axis after one more operator: its index i comes from index `begin + i * stride`."""
        low, high = (min(max(-(-(end - begin) // stride), 0), size) for end in self.inside)
        return _Along(self.first + begin * self.stride, self.stride * stride, (low, high), size)

    @property
    def begin(self) -> int:
        """The first index that is taken."""
        return self.first + self.inside[0] * self.stride

    @property
    def count(self) -> int:
        """How many indices are taken."""
        return self.inside[1] - self.inside[0]

    @property
    def pads(self) -> tuple[int, int]:
        """Indices of padding before and behind them."""
        return self.inside[0], self.size - self.inside[1]

    @property
    def end(self) -> int:
        """The index after the last one that is taken."""
        return self.begin + (self.count - 1) * self.stride + 1

    def reaches_end(self, indices: int) -> bool:
        """Whether no further stride would stay within so many indices."""
        return self.end - 1 + self.stride >= indices


def merge_moves(model: Model) -> list[str]:
    """Merge all chains of all graphs; returns a note if there were any."""
    merged = 0
    for graph in model.graphs:
        for op in list(graph.ops):
            merged += op in graph.ops and _merge(model, graph, op)
    chains = count(merged, "chain", "chains")
    return [f"merged {chains} of operators that move elements"] if merged else []


@dataclass(frozen=True)
class _Chain:
    """moves: operators that move elements, each of the one before it. reader: the only reader of
    the last one if that is a convolution that skips pixels, so that its stride belongs to the
    chain."""

    moves: tuple[Op, ...]
    reader: Op | None

    @property
    def source(self) -> Tensor:
        """The tensor of which elements are moved."""
        return _source(self.moves[0])

    @property
    def replaced(self) -> tuple[Op, ...]:
        """All operators of the chain."""
        return self.moves if self.reader is None else (*self.moves, self.reader)

    def axes(self) -> list[_Along]:
        """Where the elements of each axis come from, along the whole chain."""
        axes = [_Along(0, 1, (0, n), n) for n in self.source.shape or ()]
        for op in self.moves:
            steps, shape = _steps_of(op), op.outputs[0].shape or ()
            assert steps is not None
            axes = [a.then(*step, n) for a, step, n in zip(axes, steps, shape, strict=True)]
        if self.reader is not None:
            shape = self.reader.outputs[0].shape or ()
            for axis, stride in zip((ROWS, COLUMNS), self.reader.options.stride, strict=True):
                axes[axis] = axes[axis].then(0, stride, shape[axis])
        return axes


def _merge(model: Model, graph: Graph, last: Op) -> bool:
    """Merge the longest chain whose last move is `last`; False if there is none, or nothing to
    gain."""
    chain = _chain_to(model, graph, last)
    axes = chain.axes() if chain is not None else []
    if chain is None or not axes or any(axis.count < 1 for axis in axes):
        return False
    draft, reader, moved = Draft(model, graph), chain.reader, last.outputs[0]
    if reader is not None:
        moved = draft.tensor(moved, f"{moved.name}/picked", [axis.size for axis in axes])
    if not _Merged(draft, graph, chain, axes).draft_to(moved):
        return False
    if reader is not None:
        operands = [moved, *reader.inputs[1:]]
        draft.clone(reader, operands, list(reader.outputs), stride_h=1, stride_w=1)
    if not _is_better(draft.ops, chain):
        return False
    draft.commit(chain.replaced)
    return True


def _chain_to(model: Model, graph: Graph, last: Op) -> _Chain | None:
    """The chain whose last move is `last`; None if it is no move, or if another move follows."""
    if _steps_of(last) is None:
        return None
    moves, readers = [last], last.outputs[0].consumers
    follower = readers[0] if _has_one_reader(model, graph, last.outputs[0]) else None
    if follower is not None and _steps_of(follower) is not None:
        return None
    while _has_one_reader(model, graph, _source(moves[0])):
        before = _source(moves[0]).producer
        if before is None or _steps_of(before) is None:
            break
        moves.insert(0, before)
    return _Chain(tuple(moves), follower if follower and _skips_pixels(follower) else None)


def _has_one_reader(model: Model, graph: Graph, tensor: Tensor) -> bool:
    return len(tensor.consumers) == 1 and is_private(model, graph, tensor)


def _skips_pixels(op: Op) -> bool:
    """Whether an operator is a 1x1 convolution of integers with a stride."""
    window = window_of(op) if op.kind == "CONV_2D" else None
    if window is None or window.stride == (1, 1) or op.outputs[0].type_name == "float32":
        return False
    return reads_one_pixel(window)


def _steps_of(op: Op) -> list[tuple[int, int]] | None:
    """For each axis (begin, stride): index i of the result is index begin + i * stride of the
    operand, or padding. None for operators that do more, or that change the number of axes."""
    picks = picked_stride(op) is not None
    if op.kind not in (*_PARTS, *PADS) and not picks:
        return None
    source, result = _source(op), op.outputs[0]
    rank = len(source.shape or ())
    if source.is_constant or not same_values(source, result) or not 0 < rank <= _MOST_AXES:
        return None
    if rank != len(result.shape or ()) or min((*(source.shape or ()), *(result.shape or ()))) < 1:
        return None
    links = {link.out_axis: link for link in axis_map(op).links if link.operand == 0}
    if len(links) != rank or any(link.axis != axis for axis, link in links.items()):
        return None
    steps: list[tuple[int, int]] = []
    for axis in range(rank):
        rule = links[axis].rule
        if isinstance(rule, Same):
            steps.append((rule.shift, 1))
        elif isinstance(rule, Slide) and rule.kernel == 1:
            steps.append((-rule.pad, rule.stride))
        else:
            return None
    return steps


def _source(op: Op) -> Tensor:
    return op.operands()[0]


class _Merged:
    """Drafts a part and a PAD in place of a chain."""

    def __init__(self, draft: Draft, graph: Graph, chain: _Chain, axes: list[_Along]) -> None:
        self._draft, self._graph, self._chain, self._axes = draft, graph, chain, axes

    def draft_to(self, result: Tensor) -> bool:
        """Draft what makes `result`; False if the chain has no operator of a kind that can take the
        part, or pads with several values."""
        pads = [op for op in self._chain.moves if op.kind in PADS]
        if len(pads) > 1 and any(op.kind != "PAD" for op in pads):
            return False
        is_padded = any(any(axis.pads) for axis in self._axes)
        source, shape = self._chain.source, tuple(axis.count for axis in self._axes)
        is_whole = shape == source.shape and all(axis.stride == 1 for axis in self._axes)
        if is_whole and not is_padded:
            return False
        taken = result
        if is_padded:
            name = f"{source.name}/part"
            taken = source if is_whole else self._draft.tensor(source, name, shape)
        if not is_whole and not self._draft_part(taken):
            return False
        if is_padded:
            table = self._constant("pads", [axis.pads for axis in self._axes])
            self._draft.clone(pads[-1], [taken, table, *pads[-1].inputs[2:]], [result])
        return True

    def _draft_part(self, taken: Tensor) -> bool:
        """Draft the operator that takes the part; False if the chain has none that can."""
        kinds, axes = {op.kind for op in self._chain.moves}, self._axes
        source, strides = self._chain.source, [axis.stride for axis in axes]
        if "SLICE" in kinds and max(strides) == 1:
            begin = self._constant("begin", [axis.begin for axis in axes])
            size = self._constant("size", [axis.count for axis in axes])
            self._draft.op("SLICE", [source, begin, size], [taken])
            return True
        pools = [op for op in self._chain.moves if picked_stride(op) is not None]
        if pools and self._reaches_all():
            rows, columns = strides[ROWS], strides[COLUMNS]
            self._draft.clone(pools[0], [source], [taken], stride_h=rows, stride_w=columns)
            return picked_stride(self._draft.ops[-1]) is not None
        if "STRIDED_SLICE" not in kinds:
            return False
        begin = self._constant("begin", [axis.begin for axis in axes])
        to_end = [a.reaches_end(n) for a, n in zip(axes, source.shape or (), strict=True)]
        pairs = zip(axes, to_end, strict=True)
        end = self._constant("end", [0 if all_of_it else a.end for a, all_of_it in pairs])
        mask = sum(all_of_it << axis for axis, all_of_it in enumerate(to_end))
        steps = self._constant("strides", strides)
        self._draft.op("STRIDED_SLICE", [source, begin, end, steps], [taken], end_mask=mask)
        return True

    def _reaches_all(self) -> bool:
        """Whether the part begins at the first index of each axis, and goes to the end."""
        pairs = zip(self._axes, self._chain.source.shape or (), strict=True)
        return all(axis.begin == 0 and axis.reaches_end(n) for axis, n in pairs)

    def _constant(self, name: str, values: Sequence[object]) -> Tensor:
        """A constant of int32; one that the graph has, if it has an equal one: TFLM keeps some
        bytes for every tensor."""
        wanted = np.array(values, "<i4")
        for tensor in self._graph.tensors:
            known = integers(tensor) if tensor.shape == wanted.shape else None
            if tensor.type_name == "int32" and known == wanted.reshape(-1).tolist():
                return tensor
        return self._draft.constant(name, wanted, "int32")


def _is_better(merged: list[Op], chain: _Chain) -> bool:
    """Whether it takes fewer operators or fewer bytes between them, and not more of the other. A
    convolution that skipped pixels could write its result over its operand; where it reads all of
    a smaller one, the kernel may need both."""
    counts = len(merged), sum(op.outputs[0].nbytes for op in merged[:-1])
    before = len(chain.replaced), sum(op.outputs[0].nbytes for op in chain.replaced[:-1])
    if chain.reader is not None:
        counts = counts[0], counts[1] + chain.reader.outputs[0].nbytes
    return counts != before and all(n <= m for n, m in zip(counts, before, strict=True))
