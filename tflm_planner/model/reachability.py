"""Which graphs of a model can run, and which of them are entry points."""

from __future__ import annotations

from collections.abc import Iterable

from tflm_planner.model.ir import Graph, Model


def reachable(roots: Iterable[Graph]) -> list[Graph]:
    """`roots` and the graphs that running them may enter, each once."""
    entered: dict[Graph, None] = {}
    stack = list(roots)
    while stack:
        graph = stack.pop()
        if graph not in entered:
            entered[graph] = None
            stack += [called for op in graph.ops for called in op.called_graphs()]
    return list(entered)


def entry_graphs(model: Model) -> list[Graph]:
    """Graphs that a signature offers and that the main graph neither is nor reaches."""
    run_by_main = set(reachable([model.main]))
    offered = dict.fromkeys(s.graph for s in model.signatures)
    return [g for g in offered if g not in run_by_main]
