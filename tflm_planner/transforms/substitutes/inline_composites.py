"""Writes the operators of a STABLEHLO_COMPOSITE in its place.

    PyTorch's converter: x --STABLEHLO_COMPOSITE aten.avg_pool2d.default--> y
    its sub-graph:       x --TRANSPOSE--> --AVERAGE_POOL_2D--> --TRANSPOSE--> y

TFLM has no such operator; LiteRT runs the sub-graph. This module must not know memory.
"""

from __future__ import annotations

from tflm_planner.model.draft import Draft
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.model.options import DECOMPOSITION
from tflm_planner.support.words import count
from tflm_planner.transforms.substitutes.each import replace_each


def inline_composites(model: Model) -> list[str]:
    """Replace all, innermost first; returns a note if there were any."""
    replaced = 0
    while more := replace_each(model, _replace):
        replaced += more
    if not replaced:
        return []
    composites = count(replaced, "STABLEHLO_COMPOSITE", "STABLEHLO_COMPOSITEs")
    return [f"{composites}, which TFLM lacks, written as the operators inside"]


def _replace(model: Model, graph: Graph, op: Op) -> bool:
    """Write one as what it is composed of; False if it is another operator, or that is
    impossible."""
    inner = decomposition_of(op)
    if inner is None or inner is graph or not _can_be_inlined(op, inner):
        return False
    draft = Draft(model, graph)
    inside = [*zip(inner.inputs, op.operands(), strict=True)]
    twins = dict([*inside, *zip(inner.outputs, op.outputs, strict=True)])

    def twin(tensor: Tensor) -> Tensor:
        if tensor not in twins:
            name, shape = f"{op.outputs[0].name}/{tensor.name}", tensor.shape or ()
            is_value = not tensor.is_constant
            twins[tensor] = draft.tensor(tensor, name, shape) if is_value else draft.same(tensor)
        return twins[tensor]

    for part in inner.ops:
        operands = [None if t is None else twin(t) for t in part.inputs]
        draft.clone(part, operands, [twin(t) for t in part.outputs])
    draft.commit([op])
    return True


def decomposition_of(op: Op) -> Graph | None:
    """The graph that a composite stands for; None for any other operator, or if it names none."""
    graphs = op.graphs.get(DECOMPOSITION, []) if op.kind == "STABLEHLO_COMPOSITE" else []
    return graphs[0] if len(graphs) == 1 else None


def _can_be_inlined(op: Op, inner: Graph) -> bool:
    """Whether each result is made inside, once, of operands that are as the graph declares them,
    and nothing inside calls another graph or has state."""
    ends = [
        *zip(inner.inputs, op.inputs, strict=True), *zip(inner.outputs, op.outputs, strict=True)
    ]  # fmt: skip
    if any(b is None or not _is_alike(a, b) for a, b in ends):
        return False
    if len({*inner.inputs}) < len(inner.inputs) or len({*inner.outputs}) < len(inner.outputs):
        return False
    if any(t.producer is None for t in inner.outputs):
        return False
    tensors = {t for part in inner.ops for t in (*part.operands(), *part.outputs)}
    calls = any(part.graphs or part.intermediates for part in inner.ops)
    return not calls and not any(t.is_variable for t in tensors)


def _is_alike(a: Tensor, b: Tensor) -> bool:
    same = a.quantization.means_the_same(b.quantization)
    return (a.type, a.shape or ()) == (b.type, b.shape or ()) and same
