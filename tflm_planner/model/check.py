"""Checks whether a model could run, to find damaged files and faulty transforms.

It checks calls of sub-graphs, shapes and data of tensors, options and operands of operators, that
a tensor has one producer, and that nothing is read before it is written. It must not change models,
nor know TFLM.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from tflm_planner.model.check_operators import check_operands
from tflm_planner.model.ir import ETHOS_U, Graph, Model, Tensor, quote
from tflm_planner.model.schema import element_bits
from tflm_planner.support.errors import ModelError

LARGEST_TENSOR = 1 << 31
"""Bytes. A declared size of this or more cannot be meant for a microcontroller."""
MOST_AXES = 32
"""No kernel takes more than 8 axes; a shape with more than this is damaged."""
MOST_SCOPES = 100_000
"""Largest number of operators of a graph, where the operators of a called graph count again at
every call: TFLM visits each of them when it plans."""
DEEPEST_CALLS = 64
"""Largest depth of nested control flow. TFLM recurses once for each level."""
_DAMAGED_OR_PLANNED = (
    "the file is damaged, or it was rewritten for TFLM with views that lie over other tensors "
    "(then give the original model)"
)


def check(model: Model) -> None:
    """Raise ModelError unless the model could run: see the functions below."""
    if not model.graphs:
        raise ModelError("empty model: it has no sub-graph; export it again")
    _check_calls(model)
    total = 0
    for graph in model.graphs:
        total += _check_tensors(graph)
        check_operands(graph)
        _check_order(graph)
    if total >= LARGEST_TENSOR:  # an offset in a plan has 31 bits
        raise ModelError(
            f"the model's tensors declare {total:,} bytes in all; the file is damaged, or not "
            "meant for a microcontroller"
        )


def _check_calls(model: Model) -> None:
    """Check that control flow refers to graphs of this model, and that no graph calls itself."""
    owned = set(model.graphs)
    state: dict[Graph, bool] = {}  # graph -> True while its calls are being walked
    stack: list[tuple[Graph, Iterator[Graph]]] = []
    scopes: dict[Graph, int] = {}

    def enter(graph: Graph) -> None:
        if graph not in owned:
            raise ModelError(f"sub-graph {quote(graph.name)} is called but not part of the model")
        if state.get(graph):
            raise ModelError(
                f"sub-graph {quote(graph.name)} calls itself; TFLM cannot run recursion"
            )
        if graph not in state:
            state[graph] = True
            stack.append((graph, iter([c for op in graph.ops for c in op.called_graphs()])))

    for root in model.graphs:
        enter(root) if root not in state else None
        while stack:
            graph, calls = stack[-1]
            called = next(calls, None)
            if called is None:
                state[graph] = False
                scopes[graph] = _scopes(graph, scopes)
                stack.pop()
            else:
                enter(called)
            if len(stack) > DEEPEST_CALLS:
                raise ModelError(f"control flow is nested more than {DEEPEST_CALLS} levels deep")


def _scopes(graph: Graph, scopes_of: dict[Graph, int]) -> int:
    """Number of operators that a graph runs, including those of the graphs that it calls."""
    scopes = len(graph.ops) + sum(1 + scopes_of[c] for op in graph.ops for c in op.called_graphs())
    if scopes > MOST_SCOPES:
        raise ModelError(
            f"sub-graph {quote(graph.name)} runs {scopes:,} operators when its calls are followed; "
            f"more than {MOST_SCOPES:,} cannot be planned"
        )
    return scopes


def _check_tensors(graph: Graph) -> int:
    """Check shapes and data. Returns the bytes of all tensors that are not constant, counting at
    least one byte for each element."""
    total = 0
    for t in graph.tensors:
        shape = t.shape or ()
        if len(shape) > MOST_AXES:
            raise ModelError(f"damaged model: tensor {quote(t.name)} has {len(shape)} axes")
        if shape and min(shape) < 0:
            raise ModelError(
                f"tensor {quote(t.name)} has the dynamic or negative shape {list(t.shape or ())}; "
                "TFLM needs fixed shapes: export the model with a fixed input shape"
            )
        elements, bits = math.prod(shape), element_bits(t.type) or 0
        nbytes = -(-elements * bits // 8)
        if nbytes >= LARGEST_TENSOR:
            raise ModelError(
                f"tensor {quote(t.name)} of shape {list(t.shape or ())} declares {nbytes:,} "
                "bytes; the file is damaged, or not meant for a microcontroller"
            )
        data = t.buffer.data
        if data is not None and 0 < data.size < nbytes and t.raw.sparsity is None:
            raise ModelError(
                f"damaged model: constant tensor {quote(t.name)} needs {nbytes:,} bytes, "
                f"its buffer holds {data.size:,}"
            )
        if not t.is_constant:
            total += elements * max(bits, 8) // 8
    return total


def _check_order(graph: Graph) -> None:
    """Check that a tensor has at most one producer, that nothing is read before it is written, and
    that `producer` and `consumers` are consistent."""
    writers: dict[Tensor, int] = {}
    inputs = set(graph.inputs)
    for i, op in enumerate(graph.ops):
        for t in op.outputs:
            if t in writers:
                raise ModelError(
                    f"tensor {quote(t.name)} is written by operators {writers[t]} and {i} "
                    f"({op.label}); a tensor has one producer: export the model again"
                )
            if t.is_constant or t in inputs:
                what = "a constant" if t.is_constant else "a graph input"
                raise ModelError(f"operator {i} ({op.label}) writes {quote(t.name)}, {what}")
            writers[t] = i
    for i, op in enumerate(graph.ops):
        for t in op.outputs:
            assert t.producer is op, f"producers of {op.label} out of step"
        for t in op.inputs:
            if t is None:
                continue
            writer = writers.get(t)
            assert writer is None or op in t.consumers, (
                f"consumers of {quote(t.name)} are out of step"
            )
            if writer is not None and writer >= i:
                raise ModelError(
                    f"operator {i} ({op.label}) reads {quote(t.name)}, which operator {writer} "
                    "writes only later: the graph is cyclic or its operators are out of order"
                )
            if writer is None and not _has_value(t, inputs):
                reads = f"operator {i} ({op.label}) reads {quote(t.name)}, which nothing writes"
                raise ModelError(f"{reads}; {_DAMAGED_OR_PLANNED}")
    for t in graph.outputs:
        if t not in writers and not _has_value(t, inputs):
            output = f"graph output {quote(t.name)} is written by no operator"
            raise ModelError(f"{output}; {_DAMAGED_OR_PLANNED}")
    assert len(set(graph.ops)) == len(graph.ops), "an operator is listed twice"


def _has_value(tensor: Tensor, inputs: set[Tensor]) -> bool:
    return (
        tensor.is_constant
        or tensor in inputs
        or tensor.is_variable
        or tensor.is_view
        or tensor.nbytes == 0
        or {op.kind for op in tensor.consumers} == {ETHOS_U}  # the NPU's own memory
    )
