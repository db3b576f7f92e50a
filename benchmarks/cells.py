"""Writes a small irregular network, for ablations of what only large models have: four cells in
the manner of NASNet-A (five nodes of two branches each), 129 operators on 32x32x8 and less.

    PYTHONPATH=. python benchmarks/cells.py cells.tflite

NASNet itself (`zoo/cells.py`) takes hours where this takes minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.models.build import Graph
from tests.models.registry import SCALE, add, conv, relu, start

Shape = tuple[int, int, int, int]
Branch = tuple[str, int]
NODES: tuple[tuple[Branch, Branch], ...] = (
    (("h", 2), ("p", 1)), (("p", 2), ("p", 1)), (("h", 1), ("p", 0)), (("p", 1), ("h", 1)),
    (("h", 2), ("h", 0)),
)  # fmt: skip
"""The two branches of each node: "h", the cell before, or "p", the one before that; and how many
convolutions follow."""
STAGES = (1, 1, 2)
"""Cells between two poolings."""


def _pooled(graph: Graph, x: int, shape: Shape, name: str) -> int:
    half = (1, shape[1] // 2, shape[2] // 2, shape[3])
    result = graph.tensor(name, half, scale=SCALE, zero=3)
    window: dict[str, Any] = {"strideH": 2, "strideW": 2, "filterHeight": 2, "filterWidth": 2}
    graph.op("MAX_POOL_2D", [x], [result], "Pool2DOptions", version=2, padding=0, **window)
    return result


def _cell(graph: Graph, inputs: dict[str, int], shape: Shape, name: str) -> int:
    nodes: list[int] = []
    for i, branches in enumerate(NODES):
        ends: list[int] = []
        for j, (source, convolutions) in enumerate(branches):
            x = inputs[source]
            for k in range(convolutions):
                rectified = relu(graph, x, shape, f"r{name}{i}{j}{k}")
                x = conv(graph, rectified, shape, f"c{name}{i}{j}{k}")
            ends.append(x)
        nodes.append(add(graph, ends[0], ends[1], shape, f"n{name}{i}"))
    total = nodes[0]
    for i, node in enumerate(nodes[1:]):
        total = add(graph, total, node, shape, f"s{name}{i}")
    return total


def cells(size: int = 32, depth: int = 8) -> bytes:
    """The network, on an image of `size` rows."""
    shape: Shape = (1, size, size, depth)
    net, graph, x = start(shape)
    before = last = conv(graph, x, shape, "stem")
    number = 0
    for stage, count in enumerate(STAGES):
        for _ in range(count):
            made = _cell(graph, {"p": before, "h": last}, shape, str(number))
            before, last, number = last, made, number + 1
        if stage + 1 < len(STAGES):
            before = _pooled(graph, before, shape, f"pp{stage}")
            last = _pooled(graph, last, shape, f"ph{stage}")
            shape = (1, shape[1] // 2, shape[2] // 2, depth)
    graph.outputs(last)
    return net.finish()


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(cells())
