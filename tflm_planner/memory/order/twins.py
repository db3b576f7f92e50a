"""Regions of a segment that can be swapped without changing any cost: tiles, parallel branches.

          .-> b1 -> c1 -.             {b1, c1} and {b2, c2} are twins when they read, need and
    a ----+-> b2 -> c2 -+-> join      write alike: only orders with b1 before b2 and c1 before
          '-> b3 -> c3 -'             c2 must be searched, O(n**2) states instead of 3**n

A region is a block with all blocks that every path reaches through it (its subtree of the
dominator tree), so two regions are nested or disjoint. Twins have the same predecessors and
successors, and agree node by node in file order; swapping them is then an automorphism of the
segment. So only the number of twins in each inner state matters, not which twins: whenever one of
several in the same inner state advances, let it be the first in the file. As long as regions are
chains, later twins then never overtake earlier ones. Hence, for each place in the chain with which
a region begins, some optimal order runs the blocks at that place in the file order of the twins.
A swap of outer regions moves inner twins along in their order, and swaps of disjoint regions
commute.

This module knows blocks and a DAG. It must not know costs: regions that agree cost the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise

from tflm_planner.memory.order.dag import Dag


def twins(
    dag: Dag,
    blocks: Sequence[tuple[int, ...]],
    preds: Sequence[set[int]],
    succs: Sequence[set[int]],
) -> list[tuple[int, int]]:
    """(b, c): blocks at the same place of two twins that are adjacent in file order; an optimal
    order runs b before c."""
    families: dict[Hashable, list[list[int]]] = {}
    candidates: dict[Hashable, list[int]] = {}
    for b, group in enumerate(blocks):
        sizes = tuple(dag.sizes[t] for i in group for t in dag.nodes[i].writes)
        candidates.setdefault((frozenset(preds[b]), len(group), sizes), []).append(b)
    home = {i: b for b, group in enumerate(blocks) for i in group}
    for alike in candidates.values():
        if len(alike) > 1:
            for b in alike:
                region = _region(b, preds, succs)
                portrait = _portrait(dag, blocks, preds, succs, region, home)
                families.setdefault(portrait, []).append(_trunk(region, preds, succs))
    return [
        pair
        for family in families.values()
        for trunk, next_trunk in pairwise(family)
        for pair in zip(trunk, next_trunk, strict=True)
    ]


def _region(root: int, preds: Sequence[set[int]], succs: Sequence[set[int]]) -> list[int]:
    """The root and all blocks that can only be reached through it, in file order."""
    inside, work = {root}, [root]
    while work:
        for s in succs[work.pop()]:
            if s not in inside and preds[s] <= inside:
                inside.add(s)
                work.append(s)
    return sorted(inside)


def _trunk(region: list[int], preds: Sequence[set[int]], succs: Sequence[set[int]]) -> list[int]:
    """The chain of blocks with which a region begins, up to its first fork."""
    chain, inside = region[:1], set(region)
    while True:
        following = succs[chain[-1]] & inside
        if len(following) != 1 or preds[min(following)] != {chain[-1]}:
            return chain
        chain += following


def _portrait(
    dag: Dag,
    blocks: Sequence[tuple[int, ...]],
    preds: Sequence[set[int]],
    succs: Sequence[set[int]],
    region: list[int],
    home: dict[int, int],
) -> Hashable:
    """A description of a region, with its own blocks and tensors numbered from 0; twins have equal
    ones."""
    links = dag.links
    place = {b: k for k, b in enumerate(region)}
    nodes = [i for b in region for i in blocks[b]]
    own = {t: k for k, t in enumerate(t for i in nodes for t in dag.nodes[i].writes)}

    def name(t: int) -> tuple[bool, int]:
        return (True, own[t]) if t in own else (False, t)

    shape = tuple(
        (
            len(blocks[b]),
            frozenset((p in place, place.get(p, p)) for p in preds[b]),
            frozenset((s in place, place.get(s, s)) for s in succs[b]),
        )
        for b in region
    )
    work = tuple(
        (
            tuple(sorted(map(name, links.reads[i]))),
            tuple(sorted(map(name, dag.nodes[i].writes))),
            tuple(sorted((name(a.tensor), a.saved) for a in dag.nodes[i].absorbs)),
            dag.nodes[i].exclusive,
            dag.nodes[i].workspace,
        )
        for i in nodes
    )
    results = tuple(
        (dag.sizes[t], t in links.outputs, _use(dag, home, links.readers[t], t, place)) for t in own
    )
    return shape, work, results


def _use(
    dag: Dag, home: dict[int, int], readers: Sequence[int], tensor: int, region: dict[int, int]
) -> Hashable:
    """Which nodes outside the region read a result, and how many of its bytes they absorb.

    Where all readers lie in one block outside, only that block is named: it costs the same
    whichever twin wrote the tensor, as fused nested CONCATENATIONs do not distinguish their
    operands.
    """
    blocks = {home[r] for r in readers}
    if len(blocks) == 1 and not blocks & region.keys():
        return blocks.pop()
    return tuple(
        (r, tuple(sorted(a.saved for a in dag.nodes[r].absorbs if a.tensor == tensor)))
        for r in readers
        if home[r] not in region
    )
