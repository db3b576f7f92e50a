"""Lets BATCH_MATMUL read its operands in the layout that its kernel uses.

    k --TRANSPOSE(0,2,3,1)--> k' --BATCH_MATMUL(adj_y=0)--    TFLM keeps a transposed k'
    k --TRANSPOSE(0,2,1,3)--> k' --BATCH_MATMUL(adj_y=1)--    ... and now none

The kernel computes with the right operand transposed and the left one as it is. If the flags say
otherwise, it keeps a transposed copy of the operand in the tail, for every BATCH_MATMUL of every
tile (tflite-micro, kernels/batch_matmul.cc). If a TRANSPOSE makes the operand, it can make it in
the right layout at once. The sums are the same, in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflm_planner.model.constants import integers
from tflm_planner.model.draft import Draft
from tflm_planner.model.edit import drop_views, resize, set_option
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.model.number_formats import same_values
from tflm_planner.support.words import count

_SIDES = ((0, "adj_x", False), (1, "adj_y", True))
"""(operand, its flag, the value of the flag with which no copy is needed)."""


def fold_transposes(model: Model) -> list[str]:
    """Make the operands in the right layout where that is possible; a note if there were any."""
    folded = 0
    for graph in model.graphs:
        for op in [op for op in graph.ops if op.kind == "BATCH_MATMUL" and len(op.inputs) == 2]:
            folded += sum(_fold_operand(model, graph, op, *side) for side in _SIDES)
    if not folded:
        return []
    operands = count(folded, "operand", "operands")
    return [f"{operands} of BATCH_MATMUL made transposed: TFLM keeps no copies"]


def _fold_operand(model: Model, graph: Graph, op: Op, side: int, flag: str, best: bool) -> bool:
    """Make one operand in the right layout; False if it already is, or if that is impossible."""
    operand = op.inputs[side]
    if op.options.is_absent or op.options.transposes[side] is best or operand is None:
        return False
    maker = operand.producer
    order = None if maker is None or maker.kind != "TRANSPOSE" else integers(maker.inputs[1])
    if maker is None or order is None or not _is_free(model, graph, op, operand):
        return False
    rank = len(operand.shape or ())
    if rank < 2 or len(order) != rank or maker.inputs[0] is None:
        return False
    _make(model, graph, maker, operand, [*order[:-2], order[-1], order[-2]])
    set_option(op, flag, best)
    return True


def _is_free(model: Model, graph: Graph, op: Op, operand: Tensor) -> bool:
    """Whether only `op` reads a tensor, and only once, so that its layout may change."""
    alone = operand.consumers == [op] and sum(t is operand for t in op.inputs) == 1
    return alone and is_private(model, graph, operand)


def is_private(model: Model, graph: Graph, tensor: Tensor) -> bool:
    """Whether a tensor is neither variable nor a graph output nor in a signature, and has no scales
    per axis, so that nothing outside the graph depends on its shape."""
    offered = any(tensor is t for s in model.signatures for _, t in (*s.inputs, *s.outputs))
    return (
        not any(tensor is t for t in graph.outputs)
        and not offered
        and not tensor.is_variable
        and not tensor.quantization.is_per_channel
    )


def _make(model: Model, graph: Graph, maker: Op, result: Tensor, order: Sequence[int]) -> None:
    """Let a TRANSPOSE make its result in another order of axes; drop it if that order changes
    nothing."""
    source = maker.inputs[0]
    assert source is not None
    draft = Draft(model, graph)
    draft.clone(maker, [source, draft.integers("order", order)], [result])
    draft.commit([maker])
    resize(result, tuple((source.shape or ())[axis] for axis in order))
    if list(order) == sorted(order) and same_values(source, result):
        drop_views(model, graph, draft.ops, merge=True)
