"""A segment prepared for search: nodes fused where that is safe, states as bits of an int.

This module knows a DAG and bytes. A *state* is the set of blocks already run. A *block* is a
sequence of nodes that run one right after another. The cost of a block in a state depends only on
which of its operands die in it:

    rise, change = block.table[pattern of dying operands]
    peak in the block = bytes live before + rise;    bytes live after = before + change

Fusing two blocks keeps an optimal order. Proved for every bound T on the peak: if some order has no
step above T, then so has an order that runs the two blocks back to back. `live(S)`, the bytes live
after the set S, is a sum over tensors of size * [written in S] * [not all readers in S]. If other
blocks are added to S, a block frees no less, and its operands die no later.

*Late* (a, then b): only b waits for a, and a never lowers the live bytes. Move a to right before b.
The blocks in between now run with fewer live bytes, by a's change (>= 0), and lose no absorb,
because none of them absorbs an operand of a. By the test in `_can_move_late`, the rise of a at its
new place is at most the rise of b right after it, which b needed already.

*Early* (a, then b): b waits only for a, and b never raises the live bytes. Move b to right after a.
The blocks in between run with no more live bytes, and what they absorb dies no later. By the test
in `_can_move_early`, the rise of b at its new place is at most that of a.

*Views*: blocks that no block waits for, that write no bytes beyond those that they absorb, and
whose operands no other block reads, cost nothing whenever they run. All of them are fused into one
block, so that the blocks that write their operands can be twins (`twins.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush

from tflm_planner.memory.order.dag import Dag, absorbed_bytes
from tflm_planner.memory.order.twins import twins

WIDEST_FUSION = 6
"""A block with more shared operands than this is not fused: 2**6 patterns are tested for each."""


class FusedNodes:
    """Nodes that run back to back, and their cost (see the module)."""

    def __init__(self, dag: Dag, nodes: tuple[int, ...]) -> None:
        links, inside = dag.links, set(nodes)
        self.dag = dag
        self.nodes = nodes
        self.reads = tuple(dict.fromkeys(t for i in nodes for t in links.reads[i]))
        contested = {
            t for t in self.reads if not inside.issuperset(links.readers[t])
        } - links.outputs
        self.shared = tuple(
            t for t in self.reads if t in contested and links.writer[t] not in inside
        )
        """Operands whose death depends on the state: other blocks read them too."""
        self.undying = links.outputs | (contested - set(self.shared))
        """Tensors that never die in this block: outputs, and results that other blocks read."""
        self.table: dict[int, tuple[int, int]] = {}
        """(rise, change) by pattern; bit i says that `shared[i]` dies here."""

    def cost(self, pattern: int) -> tuple[int, int]:
        """(rise, change) when exactly the shared operands in `pattern` die in this block."""
        cost = self.table.get(pattern)
        if cost is None:
            cost = self.table[pattern] = self._simulate(pattern)
        return cost

    @property
    def every(self) -> int:
        """The pattern in which all shared operands die, which costs least; pattern 0 costs most."""
        return (1 << len(self.shared)) - 1

    def _simulate(self, pattern: int) -> tuple[int, int]:
        dag, links = self.dag, self.dag.links
        surviving = {t for i, t in enumerate(self.shared) if not pattern >> i & 1}
        last = {t: i for i in self.nodes for t in links.reads[i]}
        live = rise = 0
        for i in self.nodes:
            node, written = dag.nodes[i], set(dag.nodes[i].writes)
            dead = {t for t in links.reads[i] if last[t] == i} - surviving - self.undying
            live += sum(dag.sizes[t] for t in written)
            during = live + node.workspace - absorbed_bytes(node, dead)
            rise = during if i == self.nodes[0] else max(rise, during)
            live -= sum(dag.sizes[t] for t in dead)
            live -= sum(
                dag.sizes[t] for t in written if not links.readers[t] and t not in links.outputs
            )
        return rise, live


class BitGraph:
    """The blocks of one segment, numbered in file order; sets of blocks are masks of bits.

    With `shortcuts`, blocks are fused and twins (`twins.py`) run in file order; both preserve an
    optimal order. Without it, every node is a block and waits only for its operands.
    """

    def __init__(self, dag: Dag, *, shortcuts: bool = True) -> None:
        groups = Fuser(dag).run() if shortcuts else [(i,) for i in range(len(dag.nodes))]
        self.dag = dag
        self.blocks = [FusedNodes(dag, group) for group in groups]
        home = {i: b for b, group in enumerate(groups) for i in group}
        links = dag.links
        preds = [{home[p] for i in g for p in links.preds[i]} - {b} for b, g in enumerate(groups)]
        succs = [{home[s] for i in g for s in links.succs[i]} - {b} for b, g in enumerate(groups)]
        for first, second in twins(dag, groups, preds, succs) if shortcuts else ():
            preds[second].add(first)
            succs[first].add(second)
        self.preds = [_mask(p) for p in preds]
        self.succs = [tuple(sorted(s)) for s in succs]
        other_readers = [
            [_mask({home[r] for r in links.readers[t]} - {b}) for t in block.shared]
            for b, block in enumerate(self.blocks)
        ]
        self.rests = [
            tuple((1 << k, others) for k, others in enumerate(of_block))
            for of_block in other_readers
        ]
        """For each block (bit in pattern, blocks that must have run for that operand to die)."""
        self.sharers = [
            tuple((o | 1 << b, dag.sizes[t]) for t, o in zip(block.shared, others, strict=True))
            for b, (block, others) in enumerate(zip(self.blocks, other_readers, strict=True))
        ]
        """For each block and operand shared with others (mask of all its readers, its size)."""
        self.start = links.start
        self.everything = (1 << len(groups)) - 1
        self.ready = sum(1 << b for b, p in enumerate(self.preds) if not p)

    def cost(self, done: int, b: int) -> tuple[int, int]:
        """(rise, change) of block b in the state `done`."""
        pattern = 0
        for bit, rest in self.rests[b]:
            if rest & done == rest:
                pattern |= bit
        return self.blocks[b].cost(pattern)

    def after(self, done: int, ready: int, b: int) -> tuple[int, int]:
        """(state, ready blocks in it) after block b has run."""
        done |= 1 << b
        ready ^= 1 << b
        for s in self.succs[b]:
            if self.preds[s] & done == self.preds[s]:
                ready |= 1 << s
        return done, ready

    def order(self, blocks: Sequence[int]) -> tuple[int, ...]:
        """The nodes of a sequence of blocks."""
        return tuple(i for b in blocks for i in self.blocks[b].nodes)


def _mask(blocks: Iterable[int]) -> int:
    mask = 0
    for b in blocks:
        mask |= 1 << b
    return mask


class Fuser:
    """Fuses blocks of a segment until no fusion that is proved safe is left."""

    def __init__(self, dag: Dag) -> None:
        links = dag.links
        self.dag = dag
        self.blocks = {i: FusedNodes(dag, (i,)) for i in range(len(dag.nodes))}
        self.preds = {i: set(p) for i, p in enumerate(links.preds)}
        self.succs = {i: set(s) for i, s in enumerate(links.succs)}
        self.absorbers: dict[int, set[int]] = {}
        for i, node in enumerate(dag.nodes):
            for a in node.absorbs:
                self.absorbers.setdefault(a.tensor, set()).add(i)

    def run(self) -> list[tuple[int, ...]]:
        """The fused blocks, in a valid order."""
        work = deque(self.blocks)
        while work:
            a = work.popleft()
            if a not in self.blocks:
                continue
            for b in sorted(self.succs[a]):
                if self._can_move_late(a, b) or self._can_move_early(a, b):
                    self._fuse(a, b)
                    work.extend((*sorted(self.preds[a]), a))
                    break
        self._gather_views()
        return self._order_blocks()

    def _gather_views(self) -> None:
        idle = [
            b
            for b, block in self.blocks.items()
            if not self.succs[b] and not block.shared and block.cost(0) == (0, 0)
        ]
        for b in idle[1:]:
            self._fuse(idle[0], b)

    def _can_move_late(self, a: int, b: int) -> bool:
        first, second = self.blocks[a], self.blocks[b]
        if self.succs[a] != {b} or len(first.shared) > WIDEST_FUSION:
            return False
        apart = {*first.nodes, *second.nodes}
        for c in (*self.preds[a], *self.succs[b]):
            apart.update(self.blocks[c].nodes)
        if any(not apart.issuperset(self.absorbers.get(t, ())) for t in first.shared):
            return False
        least = second.cost(second.every)[0]
        costs = [first.cost(p) for p in range(first.every + 1)]
        return all(change >= 0 and rise <= change + least for rise, change in costs)

    def _can_move_early(self, a: int, b: int) -> bool:
        first, second = self.blocks[a], self.blocks[b]
        if self.preds[b] != {a} or len(first.shared) > WIDEST_FUSION:
            return False
        most, change = second.cost(0)
        costs = [first.cost(p) for p in range(first.every + 1)]
        return change <= 0 and all(c + most <= rise for rise, c in costs)

    def _fuse(self, a: int, b: int) -> None:
        self.blocks[a] = FusedNodes(self.dag, (*self.blocks[a].nodes, *self.blocks.pop(b).nodes))
        for p in self.preds.pop(b) - {a}:
            self.succs[p].discard(b)
            self.succs[p].add(a)
            self.preds[a].add(p)
        self.succs[a].discard(b)
        for s in self.succs.pop(b):
            self.preds[s].discard(b)
            self.preds[s].add(a)
            self.succs[a].add(s)

    def _order_blocks(self) -> list[tuple[int, ...]]:
        """Blocks in the order of their first nodes, as far as dependences allow."""
        waits = {b: len(p) for b, p in self.preds.items()}
        ready = [(min(self.blocks[b].nodes), b) for b, n in waits.items() if not n]
        heapify(ready)
        ordered: list[tuple[int, ...]] = []
        while ready:
            _, b = heappop(ready)
            ordered.append(self.blocks[b].nodes)
            for s in self.succs[b]:
                waits[s] -= 1
                if not waits[s]:
                    heappush(ready, (min(self.blocks[s].nodes), s))
        return ordered
