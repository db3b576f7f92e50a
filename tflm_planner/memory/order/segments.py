"""Gates, which every order passes; the segments between them; and lower bounds for all orders.

A *gate* is a node such that in every valid order the same nodes come before it and the same after
it. Segments between gates are solved separately: the bytes live at their borders do not depend on
the order.

    0 - 1 < 2 > 4 - 5        gates 0, 1, 4, 5; the pieces are [0] [1] [2, 3] [4] [5]
          < 3 >
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflm_planner.memory.order.dag import Absorb, Dag, Node, absorbed_bytes


def independent_ranges(dag: Dag) -> list[tuple[int, int]]:
    """Half-open ranges of nodes in file order; every order runs them one after another.

    Takes linear time: node i is a gate when it is the only sink among nodes 0..i (so all of them
    come before it) and the only source among the nodes from i on (so all of them come after it).
    """
    count, links = len(dag.nodes), dag.links
    sinks_lost, sources_lost = [0] * count, [0] * count
    for i in range(count):
        if links.succs[i]:
            sinks_lost[min(links.succs[i])] += 1
        if links.preds[i]:
            sources_lost[max(links.preds[i])] += 1
    sources = [0] * (count + 1)
    for i in reversed(range(count)):
        sources[i] = sources[i + 1] + 1 - sources_lost[i]
    ranges: list[tuple[int, int]] = []
    sinks = start = 0
    for i in range(count):
        sinks += 1 - sinks_lost[i]
        if sinks == 1 == sources[i]:
            ranges += [(start, i)] if start < i else []
            ranges.append((i, i + 1))
            start = i + 1
    return ranges + ([(start, count)] if start < count else [])


def live_at_boundaries(dag: Dag) -> list[int]:
    """Bytes live before each node of file order, and after the last; unread inputs do not count."""
    links = dag.links
    change = [0] * (len(dag.nodes) + 1)
    for t, size in enumerate(dag.sizes):
        readers, writer = links.readers[t], links.writer[t]
        if t in links.outputs:
            change[writer + 1] += size
        elif readers and (writer >= 0 or t in dag.inputs):
            change[writer + 1] += size
            change[readers[-1] + 1] -= size
    live, live_bytes = 0, list[int]()
    for c in change:
        live += c
        live_bytes.append(live)
    return live_bytes


def extract_range(dag: Dag, start: int, end: int, live: int) -> Dag:
    """Nodes [start, end) as a graph of their own; `live` bytes are live before them.

    All tensors that live across the segment and are not read in it become one tensor, which is both
    an input and an output. Unread inputs of the graph stay in the segment that has its first node.
    """
    links, nodes = dag.links, dag.nodes[start:end]
    touched = dict.fromkeys(t for n in nodes for t in (*n.reads, *n.writes))
    index = {t: i for i, t in enumerate(touched)}
    entering = [t for t in touched if links.writer[t] < start]
    leaving = [
        t
        for t in touched
        if t in links.outputs or (links.readers[t] and links.readers[t][-1] >= end)
    ]
    sizes = [dag.sizes[t] for t in touched]
    inputs, outputs = [index[t] for t in entering], [index[t] for t in leaving]
    beside = live - sum(dag.sizes[t] for t in entering)
    if beside:
        inputs.append(len(sizes))
        outputs.append(len(sizes))
        sizes.append(beside)
    if start == 0 and links.unread:
        inputs.append(len(sizes))
        sizes.append(links.unread)
    return Dag.of(
        tuple(sizes),
        tuple(_shift_range(node, index, start) for node in nodes),
        tuple(inputs),
        tuple(outputs),
    )


def _shift_range(node: Node, index: dict[int, int], start: int) -> Node:
    return Node(
        tuple(index[t] for t in node.reads),
        tuple(index[t] for t in node.writes),
        tuple(i - start for i in node.after if i >= start),
        tuple(Absorb(index[a.tensor], a.saved) for a in node.absorbs),
        node.exclusive,
        node.workspace,
    )


def peak_lower_bound(dag: Dag) -> int:
    """A lower bound on the peak of any order: the largest number of bytes that must be live, in
    every order, while one node runs.

    Exact at gates. A segment whose order is free is bounded by `segment_bound`.
    """
    return bound_of(dag, live_at_boundaries(dag), segments(dag))


def segments(dag: Dag) -> list[tuple[int, int, Dag]]:
    """The segments whose order is free: half-open ranges of nodes, each as a graph of its own."""
    ranges = [(start, end) for start, end in independent_ranges(dag) if end - start > 1]
    live = live_at_boundaries(dag) if ranges else []
    return [(start, end, extract_range(dag, start, end, live[start])) for start, end in ranges]


def bound_of(dag: Dag, live: Sequence[int], free: Sequence[tuple[int, int, Dag]]) -> int:
    """`peak_lower_bound`, given the bytes live between nodes and the segments."""
    best = max(live[0] + dag.links.unread, live[-1])
    inside = [False] * len(dag.nodes)
    for start, end, part in free:
        best = max(best, segment_bound(part))
        inside[start:end] = [True] * (end - start)
    return max([best, *(_gate_bytes(dag, i, live[i]) for i in range(len(inside)) if not inside[i])])


def _gate_bytes(dag: Dag, i: int, live: int) -> int:
    """Bytes live during gate i; `live` bytes are live before it."""
    links, node = dag.links, dag.nodes[i]
    dead = {t for t in links.reads[i] if links.readers[t][-1] == i and t not in links.outputs}
    written = sum(dag.sizes[t] for t in set(node.writes))
    idle = 0 if i else links.unread
    return live + written + idle + node.workspace - absorbed_bytes(node, dead)


def segment_bound(dag: Dag) -> int:
    """The largest need of a node, counting the tensors that live across it in every order.

    A tensor lives across node v in every order when it exists before v (its writer is an
    ancestor of v, or it is an input) and is needed after v (a reader descends from v, or it is
    an output). Takes quadratic time in the nodes, with bit sets.
    """
    links, count = dag.links, len(dag.nodes)
    before, after = [0] * count, [0] * count
    for i in range(count):
        for p in links.preds[i]:
            before[i] |= before[p] | 1 << p
    for i in reversed(range(count)):
        for s in links.succs[i]:
            after[i] |= after[s] | 1 << s
    need = [_node_bytes(dag, i, after[i]) for i in range(count)]
    everyone = (1 << count) - 1
    for t, size in enumerate(dag.sizes):
        writer = links.writer[t]
        across = after[writer] if writer >= 0 else everyone
        if t not in links.outputs:
            needed = 0
            for r in links.readers[t]:
                needed |= before[r]
            across &= needed
        for r in links.readers[t]:
            across &= ~(1 << r)
        for i in _bits(across):
            need[i] += size
    return max(need, default=0)


def _node_bytes(dag: Dag, i: int, after: int) -> int:
    """Bytes of operands, results and workspace of node i, minus the most that its results can
    absorb in any order."""
    links, node = dag.links, dag.nodes[i]
    dead = {
        t
        for t in links.reads[i]
        if t not in links.outputs and not any(after >> r & 1 for r in links.readers[t])
    }
    own = {*node.reads, *node.writes}
    return sum(dag.sizes[t] for t in own) + node.workspace - absorbed_bytes(node, dead)


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
