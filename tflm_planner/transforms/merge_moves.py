"""Makes one or two operators of a chain of operators that move the elements of one tensor.

    x (111) --PAD 0, 1--> (112) --STRIDED_SLICE 1:--> (111) --pool of one pixel, stride 2--> y (56)
    x (111) --STRIDED_SLICE 1::2--> (55) --PAD 0, 1--> y (56)

Converters write such chains where a network shifts an image by a pixel and then leaves out every
second one (the factorised reductions of NASNet and DARTS): two copies of the whole image, of which
a quarter is used. Along each axis all of them say which element comes from where:

    y[i] = x[first + i * stride] for i inside a range, else the padding's value

so that a chain is one part with strides, and one PAD. It is written so if that takes no more
operators and fewer bytes, or fewer operators and no more bytes, and no kind of operator that the
chain has not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tflm_planner.model.draft import Draft
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.model.number_formats import same_values
from tflm_planner.ops.axes import axis_map
from tflm_planner.ops.axis_rules import Range, Same, Slide
from tflm_planner.ops.roles import PADS
from tflm_planner.ops.window import COLUMNS, ROWS, picked_stride
from tflm_planner.support.deferred import defer
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


def merge_moves(model: Model) -> list[str]:
    """Merge all chains of all graphs; returns a note if there were any."""
    count = 0
    for graph in model.graphs:
        for op in list(graph.ops):
            if op in graph.ops and _merge(model, graph, op):
                count += 1
    return [f"merged {count} chains of operators that move elements"] if count else []


def _merge(model: Model, graph: Graph, last: Op) -> bool:
    """Merge the longest chain that ends with `last`; False if there is none, or nothing to gain."""
    chain = _chain_to(model, graph, last)
    if len(chain) < 2:
        return False
    axes = [_Along(0, 1, (0, n), n) for n in _source(chain[0]).shape or ()]
    for op in chain:
        steps, shape = _steps_of(op), op.outputs[0].shape or ()
        assert steps is not None
        axes = [a.then(*step, n) for a, step, n in zip(axes, steps, shape, strict=True)]
    if any(axis.count < 1 for axis in axes):
        return False
    draft = Draft(model, graph)
    if not _draft_merged(draft, chain, axes) or not _is_better(draft.ops, chain):
        return False
    draft.commit(chain)
    return True


def _chain_to(model: Model, graph: Graph, last: Op) -> list[Op]:
    """The operators that move elements, each of the one before it, up to `last`. Empty if another
    one goes on behind it."""
    chain: list[Op] = []
    op: Op | None = last
    while op is not None and op in graph.ops and _steps_of(op) is not None:
        chain.insert(0, op)
        source = _source(op)
        alone = len(source.consumers) == 1 and is_private(model, graph, source)
        op = source.producer if alone else None
    readers = last.outputs[0].consumers
    goes_on = len(readers) == 1 and is_private(model, graph, last.outputs[0])
    return [] if goes_on and _steps_of(readers[0]) is not None else chain


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


def _draft_merged(draft: Draft, chain: list[Op], axes: list[_Along]) -> bool:
    """Draft a part and a PAD, as far as they are needed; False if the chain has no operator of a
    kind that can take the part, or pads with several values."""
    source, result = _source(chain[0]), chain[-1].outputs[0]
    pads = [op for op in chain if op.kind in PADS]
    is_padded = any(any(axis.pads) for axis in axes)
    if (is_padded and len({op.kind for op in pads}) != 1) or (
        len(pads) > 1 and pads[0].kind != "PAD"
    ):
        return False
    shape = tuple(axis.count for axis in axes)
    taken = result if not is_padded else draft.tensor(source, f"{source.name}/part", shape)
    if shape == source.shape and all(axis.stride == 1 for axis in axes):
        if not is_padded:
            return False
        taken = source
    elif not _draft_part(draft, chain, axes, taken):
        return False
    if is_padded:
        table = draft.constant("pads", np.array([axis.pads for axis in axes], "<i4"), "int32")
        draft.clone(pads[-1], [taken, table, *pads[-1].inputs[2:]], [result])
    return True


def _draft_part(draft: Draft, chain: list[Op], axes: list[_Along], taken: Tensor) -> bool:
    """Draft the operator that takes the part; False if the chain has none that can."""
    source = _source(chain[0])
    kinds = {op.kind for op in chain}
    begin, strides = [axis.begin for axis in axes], [axis.stride for axis in axes]
    if "SLICE" in kinds and max(strides) == 1:
        size = [axis.count for axis in axes]
        draft.op("SLICE", [source, draft.integers("begin", begin), draft.integers("size", size)],
                 [taken])  # fmt: skip
        return True
    pools = [op for op in chain if picked_stride(op) is not None]
    whole = (
        axis.begin == 0 and axis.count == -(-n // axis.stride)
        for axis, n in zip(axes, source.shape or (), strict=True)
    )
    if pools and all(whole) and math.prod(strides) == strides[ROWS] * strides[COLUMNS]:
        draft.clone(pools[0], [source], [taken], stride_h=strides[ROWS], stride_w=strides[COLUMNS])
        return True
    if "STRIDED_SLICE" not in kinds:
        return False
    end = [axis.begin + (axis.count - 1) * axis.stride + 1 for axis in axes]
    places = [draft.integers(*of) for of in (("begin", begin), ("end", end), ("strides", strides))]
    draft.op("STRIDED_SLICE", [source, *places], [taken])
    return True


def _is_better(merged: list[Op], chain: list[Op]) -> bool:
    """Whether it takes fewer operators or fewer bytes between them, and not more of the other."""
    counts = len(merged), sum(op.outputs[0].nbytes for op in merged[:-1])
    before = len(chain), sum(op.outputs[0].nbytes for op in chain[:-1])
    return counts != before and all(n <= m for n, m in zip(counts, before, strict=True))
