"""Which graphs of a model can run, and from where they are entered."""

from __future__ import annotations

from collections.abc import Iterable

from tflm_planner.model.ir import Graph, Model


def reachable(roots: Iterable[Graph]) -> list[Graph]:
    """The graphs that running `roots` may enter, each once."""
    entered: dict[Graph, None] = {}
    stack = list(roots)
    while stack:
        graph = stack.pop()
        if graph not in entered:
            entered[graph] = None
            stack += [called for op in graph.ops for called in op.called_graphs()]
    return list(entered)


def entry_graphs(model: Model) -> list[Graph]:
    """Graphs besides the main one that a signature offers and the main graph does not reach."""
    run_by_main = set(reachable([model.main]))
    offered = dict.fromkeys(s.graph for s in model.signatures)
    return [g for g in offered if g not in run_by_main]
