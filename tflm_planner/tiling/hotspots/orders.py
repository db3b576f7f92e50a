"""Finds hotspots of a graph, and orders that run each hotspot without interruption.

    n1 n2 n3 n4 --CONCATENATION--+-- project --> p      an operator that alone needs more than a
      (small)       (large)      +-- project --> q      cap, with neighbours that make the tensors
                  |<------ hotspot ----->|              small that enter and leave

A hotspot is what lies between the cheapest cuts before and after such operators. Its operators need
not be adjacent in the order that is best for the untiled model; so each hotspot becomes one node of
a smaller graph, whose best order is searched. Several caps, and several prices for each additional
operator, give several sets of hotspots. This module knows a DAG and bytes; it must not know what
operators do, nor what tiles cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflm_planner.memory.order import Dag
from tflm_planner.tiling.budget import DEFAULT_BUDGET, SearchBudget
from tflm_planner.tiling.hotspots.contraction import (
    ContractedOrder,
    ContractedRegion,
    best_contracted_order,
    close_groups,
)
from tflm_planner.tiling.hotspots.min_cut import MinimumCuts

Hotspots = tuple[frozenset[int], ...]
"""Disjoint sets of nodes."""


@dataclass(frozen=True)
class HotspotOrder:
    """An order around some hotspots, with an estimate of its peak."""

    peak: int
    """Estimated bytes, with the tiles of the hotspots."""
    optimistic: ContractedOrder
    """The order that is best for tiles that need as few bytes as is plausible."""

    @property
    def rank(self) -> tuple[int, int, int]:
        """Sort key; lowest for the most promising order."""
        sizes = sum(interval.size for interval in self.optimistic.intervals)
        return self.peak, self.optimistic.peak, sizes


def own_bytes(dag: Dag, n: int) -> int:
    """Bytes of an operator's operands, results and workspace, if nothing else lives."""
    node = dag.nodes[n]
    tensors = sum(dag.sizes[t] for t in {*node.reads, *node.writes})
    saved = [a.saved for a in node.absorbs]
    reused = max(saved, default=0) if node.exclusive else sum(saved)
    return tensors - reused + node.workspace


def find_hotspots(
    cuts: MinimumCuts, cap: int, price: int, budget: SearchBudget = DEFAULT_BUDGET
) -> list[frozenset[int]]:
    """Disjoint sets of nodes that contain every node that alone needs more than `cap` bytes; empty
    if there are none, or too many. price: bytes that each additional node costs."""
    dag = cuts.dag
    hotspots: list[frozenset[int]] = []
    seen: set[int] = set()
    for n in range(len(dag.nodes)):
        if n not in seen and own_bytes(dag, n) > cap:
            if len(hotspots) >= budget.hotspots_of_cap:
                return []
            hotspots.append(cuts.after([n], price) - cuts.before([n], price))
            seen |= hotspots[-1]
    return close_groups(dag, hotspots) if hotspots else []


def hotspot_sets(dag: Dag, head: int, budget: SearchBudget = DEFAULT_BUDGET) -> list[Hotspots]:
    """Hotspots for several caps and prices, without duplicates. head: bytes of the untiled
    model."""
    cuts = MinimumCuts(dag)
    sets: dict[Hotspots, None] = {}
    for share in budget.hotspot_caps:
        cap = int(head * share)
        for part in budget.hotspot_prices:
            hotspots = tuple(find_hotspots(cuts, cap, max(cap // part, 1), budget))
            if hotspots:
                sets[hotspots] = None
    return list(sets)


def estimate_order(
    dag: Dag,
    hotspots: Hotspots,
    halos: Sequence[int],
    most: int,
    budget: SearchBudget = DEFAULT_BUDGET,
) -> HotspotOrder | None:
    """An order in which these hotspots run without interruption; None if its estimate is not below
    `most` bytes. halos: bytes that each operator keeps from tile to tile."""
    peak = best_contracted_order(dag, _regions(dag, hotspots, halos, budget), budget).peak
    if peak >= most:
        return None
    # If tiles need less than assumed, the order around them should also have a lower peak.
    small_halos = [n // budget.hotspot_halo_share for n in halos]
    regions = _regions(dag, hotspots, small_halos, budget)
    return HotspotOrder(peak, best_contracted_order(dag, regions, budget))


def _regions(
    dag: Dag, hotspots: Sequence[frozenset[int]], halos: Sequence[int], budget: SearchBudget
) -> list[ContractedRegion]:
    """The hotspots with the bytes that their tiles are assumed to need."""
    return [
        ContractedRegion(
            nodes,
            max(own_bytes(dag, n) for n in nodes) // budget.hotspot_tile_share
            + sum(halos[n] for n in nodes),
        )
        for nodes in hotspots
    ]


__all__ = [
    "HotspotOrder",
    "Hotspots",
    "estimate_order",
    "find_hotspots",
    "hotspot_sets",
    "own_bytes",
]
