"""How planning time grows with the number of operators: synthetic chains of RELU and ADD.

python benchmarks/chain.py 1000 3000 10000
"""

from __future__ import annotations

import sys
import time

import numpy as np

from tests.models.build import Net
from tflm_planner import api


def chain(length: int) -> bytes:
    """A model of `length` operators, sizes varying, with a residual ADD at every fifth."""
    rng = np.random.default_rng(0)
    net = Net("a long chain")
    graph = net.graph()
    shape = (1, 8, 8, 4)
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
            shape = (1, 8, 8, int(rng.integers(1, 16)))
            z = graph.tensor(f"pad{i}", shape, scale=0.05)
            amounts = graph.constant(f"amounts{i}", [[0, 0], [0, 0], [0, 0], [0, 0]])
            graph.op("MIRROR_PAD", [x, amounts], [z], "MirrorPadOptions")
            x = skip = z
    graph.outputs(x)
    return net.finish()


def main() -> None:
    """Print seconds and seconds per operator for each length."""
    print(f"{'operators':>9}  {'plan s':>7}  {'ms/operator':>11}  {'head':>8}  bound")
    for length in map(int, sys.argv[1:] or ["1000", "3000", "10000"]):
        data = chain(length)
        started = time.monotonic()
        report = api.plan(data, options=api.PlanOptions(verify=None)).report
        seconds = time.monotonic() - started
        print(
            f"{report.after.operators:>9,}  {seconds:7.2f}  {1000 * seconds / length:11.3f}  "
            f"{report.after.head:>8,}  {report.allocation.lower_bound:,}"
        )


if __name__ == "__main__":
    main()
