"""The order of nodes with the smallest peak of live bytes.

    dag.py        the graph; the peak of an order
    segments.py   gates that cut it into independent segments; a lower bound
    baselines.py  file order, reverse post-order
    fusing.py     a segment as a graph of bits; its nodes fused into blocks
    twins.py      blocks that may be swapped
    exact.py      best-first search over the sets of nodes already run
    beam.py       beam search, and windows solved exactly
    solve.py      `best_order`

This package knows a DAG and bytes. It must not know TFLite.
"""

from tflm_planner.memory.order.baselines import file_order, reverse_post_order
from tflm_planner.memory.order.dag import Absorb, Dag, Node, is_valid, peak
from tflm_planner.memory.order.segments import peak_lower_bound
from tflm_planner.memory.order.solve import OrderMethod, OrderProgress, OrderResult, best_order

__all__ = [
    "Absorb",
    "Dag",
    "Node",
    "OrderMethod",
    "OrderProgress",
    "OrderResult",
    "best_order",
    "file_order",
    "is_valid",
    "peak",
    "peak_lower_bound",
    "reverse_post_order",
]
