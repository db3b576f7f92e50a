"""Orders of synthetic networks: time, peak, bound, and whether the peak is proved smallest.

    PYTHONPATH=. python benchmarks/order.py [name ...]

The networks are those of `tests/memory/network_dags.py`.
"""

from __future__ import annotations

import sys
import time

from tests.memory.network_dags import NETWORKS
from tflm_planner.memory.order import (
    best_order,
    file_order,
    peak,
    reverse_post_order,
)


def main(names: list[str]) -> None:
    """Prints a row for each network."""
    print(
        f"{'network':<12} {'nodes':>6} {'file':>10} {'rpo':>10} {'best':>10} {'bound':>10} "
        f"{'gap':>7} {'method':<8} {'seconds':>8}"
    )
    for name in names or list(NETWORKS):
        dag = NETWORKS[name]()
        begin = time.perf_counter()
        got = best_order(dag)
        seconds = time.perf_counter() - begin
        gap = "optimal" if got.optimal else f"{got.peak / got.lower_bound - 1:.2%}"
        print(
            f"{name:<12} {len(dag.nodes):>6} {peak(dag, file_order(dag)):>10} "
            f"{peak(dag, reverse_post_order(dag)):>10} {got.peak:>10} {got.lower_bound:>10} "
            f"{gap:>7} {got.method:<8} {seconds:>8.3f}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
