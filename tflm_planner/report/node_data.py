"""Makes node data for Model Explorer: live bytes, scratch and tiles of each operator.

    {"main": {"results": {"0": {"value": 16240}, "1": ...}, "gradient": [...]}}

There is one document for each measure. A graph is identified by its name, and an operator by its
index in the graph, which is the id that Model Explorer gives it
(github.com/google-ai-edge/model-explorer, node_data_builder.py); a graph without a name is called
"main" or "subgraph_1", ... there. If graphs of a model share a name, indices are ambiguous. Their
operators are then identified by the name of their first result, and left out if that name is not
unique.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tflm_planner.model.ir import Graph, Model, Op
from tflm_planner.report.document import MapStep, MemoryMap
from tflm_planner.transforms.tile.boxes import box_in_name

Value = int | str
_GRADIENT = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#f28b9b"}]
"""Colours from few bytes to many."""


def node_data(model: Model, memory_map: MemoryMap) -> Mapping[str, Mapping[str, Any]]:
    """Measure -> document. live_bytes: bytes that must exist while an operator runs. scratch_bytes:
    scratch of its kernel. tile: which rows, columns or channels it computes. The last two have only
    the operators with scratch or tiles. Graphs that are never called have no data."""
    operators = list(_operators(model, memory_map))
    live = _document(operators, lambda _, step: step.live_bytes)
    scratch = _document(operators, lambda _, step: step.workspace_bytes or None)
    tiles = _document(
        operators, lambda op, _: box_in_name(op.outputs[0].name) if op.outputs else None
    )
    found = {
        "live_bytes": _with_gradient(live),
        "scratch_bytes": _with_gradient(scratch),
        "tile": {graph: {"results": results} for graph, results in tiles.items()},
    }
    return {measure: document for measure, document in found.items() if document}


_Operator = tuple[str, str, Op, MapStep]
"""(name of the graph, key of the node, operator, its step in the map)."""


def _operators(model: Model, memory_map: MemoryMap) -> Iterator[_Operator]:
    """Yield the operators that run, with the keys by which Model Explorer identifies them."""
    names = [_name(place, graph) for place, graph in enumerate(model.graphs)]
    for place, (name, graph) in enumerate(zip(names, model.graphs, strict=True)):
        steps = [step for step in memory_map.steps if step.graph == place]
        if len(steps) != len(graph.ops):
            continue  # nothing calls it
        alike = [other for other, its in zip(model.graphs, names, strict=True) if its == name]
        keys = _places(graph) if len(alike) == 1 else _names(graph, alike)
        for key, op, step in zip(keys, graph.ops, steps, strict=True):
            if key:
                yield name, key, op, step


def _name(place: int, graph: Graph) -> str:
    """The name that Model Explorer's flatbuffer reader (adapter 0.2.1) gives a graph."""
    return graph.name or (f"subgraph_{place}" if place else "main")


def _places(graph: Graph) -> list[str]:
    return [str(place) for place in range(len(graph.ops))]


def _names(graph: Graph, alike: Sequence[Graph]) -> list[str]:
    """The names of the first results of a graph's operators; "" for a name that is not unique among
    the graphs with the same name."""
    used = Counter(t.name for other in alike for op in other.ops for t in op.outputs)
    firsts = [op.outputs[0].name if op.outputs else "" for op in graph.ops]
    return [name if used[name] == 1 else "" for name in firsts]


def _document(
    operators: Sequence[_Operator], measure: Callable[[Op, MapStep], Value | None]
) -> dict[str, dict[str, dict[str, Value]]]:
    """Graph -> node -> value, for operators that have a value."""
    document: dict[str, dict[str, dict[str, Value]]] = {}
    for graph, key, op, step in operators:
        value = measure(op, step)
        if value is not None:
            document.setdefault(graph, {})[key] = {"value": value}
    return document


def _with_gradient(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        graph: {"results": results, "gradient": _GRADIENT} for graph, results in document.items()
    }
