"""Tries a rewrite of one operator on every operator of a model."""

from __future__ import annotations

from collections.abc import Callable

from tflm_planner.model.ir import Graph, Model, Op


def replace_each(model: Model, replace: Callable[[Model, Graph, Op], bool]) -> int:
    """How many operators `replace` has replaced; it says False of those that it leaves."""
    return sum(replace(model, graph, op) for graph in model.graphs for op in list(graph.ops))
