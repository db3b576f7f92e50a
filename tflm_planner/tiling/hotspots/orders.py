"""Bulges: where a graph is fat between places where little lives, and orders that run them whole.

    n1 n2 n3 n4 --CONCATENATION--+-- project --> p      an operator that needs more than a cap by
       (thin)        (fat)       +-- project --> q      itself, with those around it that make its
                  |<------- bulge ------>|              ends thin: what may run in tiles
A bulge is what lies between the cheapest frontiers before and behind such operators. Operators of
one bulge need not be neighbours in any order that was made for the model as it is; so each bulge
becomes one node of a smaller graph, and the best order of that one is found. Several caps, and
several prices of an operator more, give several sets of bulges. It knows a DAG and bytes; it must
not know what operators do, nor what tiles cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tflm_planner.memory.order import Dag
from tflm_planner.tiling.hotspots.contraction import (
    ContractedOrder,
    ContractedRegion,
    best_contracted_order,
    close_groups,
)
from tflm_planner.tiling.hotspots.min_cut import MinimumCuts

_CAPS = tuple(Fraction(n, 16) for n in (12, 8, 6, 5, 4, 3, 2))
"""Heads that are aimed at, relative to the present one."""
_PRICES = (32, 64, 256, 1024)
"""What an operator more costs: one part in so many of the cap."""
_TILE = 16
"""Tiles are taken to need one part in so many of what their dearest operator does."""
_HOPE = 4
"""Halos may take one part in so many of what is kept at most."""
_MOST = 64
"""Operators that bulges are looked for around, at most, for each cap."""


Hotspots = tuple[frozenset[int], ...]
"""Disjoint sets of nodes."""


@dataclass(frozen=True)
class HotspotOrder:
    """peak: bytes that are guessed. hoped: the order, with what tiles may take at least."""

    peak: int
    hoped: ContractedOrder

    @property
    def rank(self) -> tuple[int, int, int]:
        """Of several, the most promising has the lowest."""
        return self.peak, self.hoped.peak, sum(end - first for first, end in self.hoped.spans)


def own_bytes(dag: Dag, n: int) -> int:
    """Bytes that an operator needs where nothing lives beside its operands and results, which
    takes over what it can of them."""
    node = dag.nodes[n]
    held = sum(dag.sizes[t] for t in {*node.reads, *node.writes})
    saved = [a.saved for a in node.absorbs]
    taken = max(saved, default=0) if node.exclusive else sum(saved)
    return held - taken + node.workspace


def find_hotspots(cuts: MinimumCuts, cap: int, price: int) -> list[frozenset[int]]:
    """Disjoint sets of nodes that hold every one that needs more than `cap` by itself."""
    dag = cuts.dag
    found: list[frozenset[int]] = []
    seen: set[int] = set()
    for n in range(len(dag.nodes)):
        if n not in seen and own_bytes(dag, n) > cap:
            if len(found) >= _MOST:
                return []
            found.append(cuts.behind([n], price) - cuts.before([n], price))
            seen |= found[-1]
    return close_groups(dag, found) if found else []


def hotspot_sets(dag: Dag, head: int) -> list[Hotspots]:
    """Bulges for several caps and prices. head: bytes of the graph as it is."""
    cuts = MinimumCuts(dag)
    sets: dict[Hotspots, None] = {}
    for share in _CAPS:
        cap = int(head * share)
        for part in _PRICES:
            bulges = tuple(find_hotspots(cuts, cap, max(cap // part, 1)))
            if bulges:
                sets[bulges] = None
    return list(sets)


def estimate_order(
    dag: Dag, bulges: Hotspots, halos: Sequence[int], most: int
) -> HotspotOrder | None:
    """An order in which these bulges run in one piece; None where it is not guessed to need less
    than `most` bytes. halos: bytes that each operator keeps from tile to tile."""
    peak = best_contracted_order(dag, _regions(dag, bulges, halos)).peak
    if peak >= most:
        return None
    # Tiles may take less than was guessed: what is around should then need less too.
    return HotspotOrder(
        peak, best_contracted_order(dag, _regions(dag, bulges, [n // _HOPE for n in halos]))
    )


def _regions(
    dag: Dag, bulges: Sequence[frozenset[int]], halos: Sequence[int]
) -> list[ContractedRegion]:
    """The bulges with what their tiles may take."""
    return [
        ContractedRegion(b, max(own_bytes(dag, n) for n in b) // _TILE + sum(halos[n] for n in b))
        for b in bulges
    ]


__all__ = [
    "HotspotOrder",
    "Hotspots",
    "estimate_order",
    "find_hotspots",
    "hotspot_sets",
    "own_bytes",
]
