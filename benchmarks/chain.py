"""How time grows with the number of operators.

    PYTHONPATH=. python benchmarks/chain.py 1000 3000 10000      order and plan: RELU and ADD
    PYTHONPATH=. python benchmarks/chain.py --tiles 5 10 20 40    the search of tiles and loops, all
                                                                 operators allowed: so many
                                                                 inverted bottlenecks

Seconds of the search are those of all processors together, so that other work does not count.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from tests.models.build import Graph, Net
from tests.transforms.row_loops import chain as windows
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.tiling.permissions import search_by_permission
from tflm_planner.tiling.search import TilingOptions


def chain(length: int) -> bytes:
    """A model of `length` operators, sizes varying, with a residual ADD at every fifth."""
    rng = np.random.default_rng(0)
    net = Net("a long chain")
    graph = net.graph()
    shape: tuple[int, ...] = (1, 8, 8, 4)
    x = graph.input("x", shape, scale=0.05)
    skip = x
    for i in range(length):
        y = graph.tensor(f"t{i}", shape, scale=0.05)
        if i % 5 == 4:
            graph.op("ADD", [x, skip], [y], "AddOptions", version=2)
            skip = y
        else:
            graph.op("RELU", [x], [y], version=2)
        x = y
        if i % 100 == 99:  # another size now and then
            x, shape = resized(graph, x, shape, int(rng.integers(1, 16)))
            skip = x
    graph.outputs(x)
    return net.finish()


def resized(
    graph: Graph, x: int, shape: tuple[int, ...], channels: int
) -> tuple[int, tuple[int, ...]]:
    """The tensor with more channels, padded, or with fewer, cut off; and its shape."""
    wanted = *shape[:-1], channels
    y = graph.tensor(f"{channels} of {x}", wanted, scale=0.05)
    if channels > shape[-1]:
        amounts = graph.constant(f"amounts{y}", [[0, 0]] * 3 + [[0, channels - shape[-1]]])
        graph.op("PAD", [x, amounts], [y], "PadOptions")
    else:
        parts = graph.constant(f"begin{y}", [0] * 4), graph.constant(f"size{y}", wanted)
        graph.op("SLICE", [x, *parts], [y], "SliceOptions")
    return y, wanted


def bottlenecks(blocks: int) -> bytes:
    """So many blocks of three convolutions, wide in the middle; every fourth has a stride of 2,
    the first three times."""
    layers = [
        layer
        for k in range(blocks)
        for layer in ((1, 1, 24), (3, 2 if k % 4 == 3 and k < 12 else 1, 24), (1, 1, 8))
    ]
    return windows(*layers, size=64)


def planned(length: int) -> None:
    """One line: a plan without tiles."""
    data = chain(length)
    started = time.monotonic()
    report = api.plan(data, options=api.PlanOptions(verify=None)).report
    seconds = time.monotonic() - started
    print(
        f"{report.after.operators:>9,}  {seconds:7.2f}  {1000 * seconds / length:11.3f}  "
        f"{report.after.head:>8,}  {report.allocation.solution.lower_bound:,}"
    )


def searched(blocks: int) -> None:
    """One line: a search."""
    data, on = bottlenecks(blocks), api.kernels_of()
    operators = len(read_model(data).main.ops)
    options = TilingOptions(on, on.input_overlaps_of, operators=api.AllowedOperators.ALL)
    started = time.process_time()
    found = search_by_permission(data, options).result
    seconds = time.process_time() - started
    plain = max(t.bytes for t in found.front)
    print(
        f"{operators:>9,}  {seconds:7.2f}  {1000 * seconds / operators:11.1f}  "
        f"{found.best.bytes:>8,}  {plain:,}  {found.evaluated:,}",
        flush=True,
    )


def main() -> None:
    """Print seconds and milliseconds per operator for each length."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lengths", nargs="*", type=int)
    parser.add_argument("--tiles", action="store_true")
    given = parser.parse_args()
    last = "arena  without  tried" if given.tiles else "   head  bound"
    print(f"{'operators':>9}  {'seconds':>7}  {'ms/operator':>11}  {last}")
    for length in given.lengths or ([5, 10, 20, 40] if given.tiles else [1000, 3000, 10000]):
        (searched if given.tiles else planned)(length)


if __name__ == "__main__":
    main()
