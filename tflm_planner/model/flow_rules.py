"""Checks operators that call sub-graphs: a graph must take as many tensors as the operator passes
and return as many as the operator expects. Runtimes copy these tensors one by one, unchecked.
"""

from __future__ import annotations

from tflm_planner.model.ir import Graph, Op
from tflm_planner.model.operator_rules import Fault


def _signature_fault(graph: Graph, given: int, expected: int) -> Fault:
    """What is wrong if a graph does not have `given` inputs and `expected` outputs."""
    if (len(graph.inputs), len(graph.outputs)) == (given, expected):
        return None
    return (
        f"calls the graph {graph.name!r} with {given} tensors and expects {expected} back, but it "
        f"takes {len(graph.inputs)} and returns {len(graph.outputs)}"
    )


def _first_fault(op: Op, name: str, given: int, expected: int) -> Fault:
    graphs = op.graphs.get(name, [])
    return next((fault for g in graphs if (fault := _signature_fault(g, given, expected))), None)


def loop(op: Op) -> Fault:
    """WHILE: an iteration returns what the next one takes; the condition returns one tensor."""
    carried = len(op.inputs)
    if carried != len(op.outputs):
        return f"carries {carried} tensors from turn to turn, but has {len(op.outputs)} results"
    return _first_fault(op, "condSubgraphIndex", carried, 1) or _first_fault(
        op, "bodySubgraphIndex", carried, carried
    )


def branches(op: Op) -> Fault:
    """IF: both graphs take all operands except the condition."""
    if not op.inputs:
        return "has no condition"
    given, expected = len(op.inputs) - 1, len(op.outputs)
    return _first_fault(op, "thenSubgraphIndex", given, expected) or _first_fault(
        op, "elseSubgraphIndex", given, expected
    )


def start(op: Op) -> Fault:
    """CALL_ONCE: the graph only sets variables, so it takes and returns nothing."""
    return _first_fault(op, "initSubgraphIndex", 0, 0)


def composite(op: Op) -> Fault:
    """STABLEHLO_COMPOSITE: the graph takes all operands, and returns all results."""
    return _first_fault(op, "decompositionSubgraphIndex", len(op.inputs), len(op.outputs))
