"""A graph of nodes and the tensors they read and write; the peak of live bytes of an order.

This module knows a DAG and bytes. It must not know TFLite, operators or offsets.

    node      0        1        2
    live   [in, a]  [a, b]   [b, out]      the peak is the largest column: what is live before
              |        |        |          a node (its operands too), plus what it writes and its
            in dies  a dies   b dies       workspace, minus what it absorbs

The bytes that are live between two nodes depend only on the *set* of nodes already run, never on
their order. All exact methods of this package rely on that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Absorb:
    """Memory of the operand `tensor` that a node's outputs reuse if the operand dies at this node.

    `saved` is the number of bytes by which this lowers the need of the node's step; at most the
    size of the tensor.
    """

    tensor: int
    saved: int


@dataclass(frozen=True, slots=True)
class Node:
    """An operator. All fields but `after` and `workspace` hold indices of tensors.

    `after`: nodes that must run before this one although no tensor connects them (side effects).
    `exclusive`: at most one absorb counts (in-place ADD); otherwise they add up (views of CONCAT).
    `workspace`: bytes live only during this node (scratch, the peak of a nested sub-graph).
    """

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    after: tuple[int, ...] = ()
    absorbs: tuple[Absorb, ...] = ()
    exclusive: bool = False
    workspace: int = 0


@dataclass(frozen=True)
class Dag:
    """Nodes in file order, which is a valid order, and the bytes of each tensor.

    Inputs live from before the first node to their last reader; an input without readers lives only
    during the first step. Outputs live until after the last node. A tensor that is neither read nor
    an output dies right after the node that writes it. Made by `of`, which checks the graph.
    """

    sizes: tuple[int, ...]
    nodes: tuple[Node, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    links: Links = field(repr=False, compare=False)
    """Writers, readers, predecessors and successors."""

    @staticmethod
    def of(
        sizes: tuple[int, ...], nodes: tuple[Node, ...],
        inputs: tuple[int, ...], outputs: tuple[int, ...],
    ) -> Dag:  # fmt: skip
        """The graph of these nodes; ValueError if it is invalid."""
        return Dag(sizes, nodes, inputs, outputs, Links.of(sizes, nodes, inputs, outputs))

    @property
    def is_free(self) -> bool:
        """Whether its nodes can run in more than one order: whether some node need not wait for the
        node before it."""
        return any(i and i - 1 not in before for i, before in enumerate(self.links.preds))

    def with_node_costs(self, nodes: tuple[Node, ...]) -> Dag:
        """The same graph with nodes that differ only in `absorbs`, `exclusive` and `workspace`."""
        return Dag(self.sizes, nodes, self.inputs, self.outputs, self.links)

    def with_nodes(self, nodes: tuple[Node, ...]) -> Dag:
        """The same tensors with other nodes."""
        return Dag.of(self.sizes, nodes, self.inputs, self.outputs)


@dataclass(frozen=True, slots=True)
class Links:
    """The edges of a `Dag`: which node writes and which read each tensor, which nodes wait for
    which."""

    writer: tuple[int, ...]
    """Node that writes each tensor; -1 for inputs."""
    readers: tuple[tuple[int, ...], ...]
    """Distinct nodes that read each tensor, in file order."""
    preds: tuple[tuple[int, ...], ...]
    succs: tuple[tuple[int, ...], ...]
    reads: tuple[tuple[int, ...], ...]
    """Distinct operands of each node."""
    outputs: frozenset[int]
    """Outputs of the graph: they never die."""
    start: int
    """Bytes live before the first node, without inputs that no node reads."""
    unread: int
    """Bytes of inputs that no node reads and that are no outputs: they live in the first step
    only."""

    @staticmethod
    def of(
        sizes: tuple[int, ...], nodes: tuple[Node, ...],
        inputs: tuple[int, ...], outputs: tuple[int, ...],
    ) -> Links:  # fmt: skip
        """Builds the links, and checks that file order is valid and that every operand exists."""
        writer = [-1] * len(sizes)
        existing = set(inputs)
        readers: list[list[int]] = [[] for _ in sizes]
        preds: list[tuple[int, ...]] = []
        succs: list[list[int]] = [[] for _ in nodes]
        reads = tuple(tuple(dict.fromkeys(node.reads)) for node in nodes)
        for i, node in enumerate(nodes):
            _check(i, node, sizes, existing)
            for t in reads[i]:
                readers[t].append(i)
            before = {writer[t] for t in reads[i]} | set(node.after)
            before.discard(-1)
            preds.append(tuple(sorted(before)))
            for p in preds[-1]:
                succs[p].append(i)
            for t in dict.fromkeys(node.writes):
                existing.add(t)
                writer[t] = i
        kept = frozenset(outputs)
        if not kept <= existing:
            raise ValueError(f"outputs {sorted(kept - existing)} are written by no node")
        idle = {t for t in inputs if not readers[t] and t not in kept}
        return Links(
            writer=tuple(writer),
            readers=tuple(tuple(r) for r in readers),
            preds=tuple(preds),
            succs=tuple(tuple(s) for s in succs),
            reads=reads,
            outputs=kept,
            start=sum(sizes[t] for t in {*inputs} - idle),
            unread=sum(sizes[t] for t in idle),
        )


def _check(i: int, node: Node, sizes: tuple[int, ...], existing: set[int]) -> None:
    """ValueError if node i is invalid given that only the tensors `existing` exist before it."""
    for t in node.reads:
        if t not in existing:
            raise ValueError(f"node {i} reads tensor {t}, which nothing before it writes")
    for t in node.writes:
        if t in existing:
            raise ValueError(f"node {i} writes tensor {t}, which exists already")
    if any(not 0 <= j < i for j in node.after):
        raise ValueError(f"node {i} must run after {node.after}: file order is not valid")
    if any(a.saved > sizes[a.tensor] for a in node.absorbs):
        raise ValueError(f"node {i} absorbs more of an operand than there is: {node}")


def is_valid(dag: Dag, order: Sequence[int]) -> bool:
    """Whether `order` runs every node once, each after all nodes that it depends on."""
    place = {node: i for i, node in enumerate(order)}
    if len(order) != len(dag.nodes) or len(place) != len(order):
        return False
    if any(not 0 <= node < len(dag.nodes) for node in place):
        return False
    preds = dag.links.preds
    return all(place[p] < place[node] for node in order for p in preds[node])


def absorbed_bytes(node: Node, dead: set[int]) -> int:
    """Bytes that a node saves if exactly the operands in `dead` die at it; each operand counts
    once."""
    saved = {a.tensor: a.saved for a in node.absorbs if a.tensor in dead}.values()
    return max(saved, default=0) if node.exclusive else sum(saved)


def steps(dag: Dag, order: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(bytes live during, bytes live after) for each step of a valid order."""
    links, sizes = dag.links, dag.sizes
    readers_left = [len(r) for r in links.readers]
    live, idle = links.start, links.unread
    for i in order:
        node = dag.nodes[i]
        dead: set[int] = set()
        for t in links.reads[i]:
            readers_left[t] -= 1
            if not readers_left[t] and t not in links.outputs:
                dead.add(t)
        written = set(node.writes)
        live += sum(sizes[t] for t in written)
        during = live + idle + node.workspace - absorbed_bytes(node, dead)
        idle = 0
        live -= sum(sizes[t] for t in dead)
        live -= sum(sizes[t] for t in written if not readers_left[t] and t not in links.outputs)
        yield during, live


def peak(dag: Dag, order: Sequence[int]) -> int:
    """The largest number of bytes live in any step of a valid order; without nodes, the bytes of
    the inputs."""
    links = dag.links
    return max((during for during, _ in steps(dag, order)), default=links.start + links.unread)
