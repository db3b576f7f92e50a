"""Random graphs of operators, and slow but obviously right answers about their orders."""

from __future__ import annotations

from itertools import permutations

from hypothesis import strategies as st

from tflm_planner.memory.order import Absorb, Dag, Node, file_order, peak, peak_lower_bound
from tflm_planner.memory.order.clock import Clock
from tflm_planner.memory.order.exact import ExactSearch
from tflm_planner.memory.order.fusing import BitGraph
from tflm_planner.memory.order.segments import extract_range, independent_ranges, live_at_boundaries


@st.composite
def dags(draw: st.DrawFn, most: int = 7, *, plain: bool = False) -> Dag:
    """Random graphs with everything a node can have; `plain`: tensors only."""
    count = draw(st.integers(1, most))
    size = st.integers(0, 6).map(lambda k: 16 * k)
    inputs = tuple(range(draw(st.integers(0, 2))))
    sizes = [draw(size) for _ in inputs]
    nodes: list[Node] = []
    for i in range(count):
        known = list(range(len(sizes)))
        reads = tuple(draw(st.lists(st.sampled_from(known), max_size=3))) if known else ()
        writes = tuple(len(sizes) + k for k in range(draw(st.sampled_from([0, 1, 1, 1, 1, 2]))))
        sizes += [draw(size) for _ in writes]
        if plain:
            nodes.append(Node(reads, writes))
            continue
        after = tuple(draw(st.lists(st.integers(0, i - 1), max_size=1))) if i else ()
        room = sum(sizes[t] for t in writes)
        absorbs: list[Absorb] = []
        for t in dict.fromkeys(reads):  # all together save no more than is written
            if draw(st.booleans()):
                absorbs.append(Absorb(t, draw(st.integers(0, min(sizes[t], room) // 16)) * 16))
                room -= absorbs[-1].saved
        workspace = draw(st.sampled_from([0, 0, 16, 64]))
        nodes.append(Node(reads, writes, after, tuple(absorbs), draw(st.booleans()), workspace))
    outputs = tuple(draw(st.lists(st.sampled_from(range(len(sizes))), max_size=2))) if sizes else ()
    return Dag.of(tuple(sizes), tuple(nodes), inputs, outputs)


@st.composite
def tiled(draw: st.DrawFn) -> Dag:
    """Copies of one random region between a fork and a join; now and then one copy differs."""
    pattern = draw(dags(3, plain=draw(st.booleans())))
    copies = draw(st.integers(2, 3))
    sizes, nodes, ends = [draw(st.sampled_from([16, 64]))], list[Node](), list[int]()
    for _ in range(copies):
        tensors, offset = dict.fromkeys(pattern.inputs, 0), len(nodes)
        odd = 16 * draw(st.sampled_from([0, 0, 0, 1]))
        for i, n in enumerate(pattern.nodes):
            for t in n.writes:
                tensors[t] = len(sizes)
                sizes.append(pattern.sizes[t] + odd)
            nodes.append(
                Node(
                    tuple(tensors[t] for t in n.reads) or (0,) * (i == 0),
                    tuple(tensors[t] for t in n.writes),
                    tuple(offset + j for j in n.after),
                    tuple(
                        Absorb(tensors[a.tensor], min(a.saved, sizes[tensors[a.tensor]]))
                        for a in n.absorbs
                    ),
                    n.exclusive,
                    n.workspace,
                )
            )
        ends += [tensors[t] for t in pattern.outputs]
    if draw(st.booleans()):
        saved = draw(st.sampled_from([0, 16]))
        whole = tuple(dict.fromkeys(ends))
        absorbs = tuple(Absorb(t, min(saved, sizes[t])) for t in whole)
        nodes.append(Node((*whole, 0), (len(sizes),), (), absorbs, draw(st.booleans())))
        sizes.append(sum(sizes[t] for t in whole))
        ends = [len(sizes) - 1]
    elif draw(st.booleans()) and len(ends) > 1:
        # Nested views, fused by the search: operands of different inner ones may be twins.
        half = len(ends) // 2
        for group in (ends[:half], ends[half:], [len(sizes), len(sizes) + 1]):
            reads = tuple(dict.fromkeys(group))
            nodes.append(Node(reads, (len(sizes),), (), tuple(Absorb(t, sizes[t]) for t in reads)))
            sizes.append(sum(sizes[t] for t in reads))
        ends = [len(sizes) - 1]
    return Dag.of(tuple(sizes), tuple(nodes), (0,), tuple(ends))


def naive_peak(dag: Dag, order: tuple[int, ...]) -> int:
    """Life spans tensor by tensor, then the sum of each step: nothing incremental, no sharing."""
    when = {node: step for step, node in enumerate(order)}
    spans: dict[int, tuple[int, int]] = {}
    for t in range(len(dag.sizes)):
        starts = [when[i] for i, n in enumerate(dag.nodes) if t in n.writes]
        reads = [when[i] for i, n in enumerate(dag.nodes) if t in n.reads]
        start = 0 if t in dag.inputs else starts[0]
        end = len(order) if t in dag.outputs else max([start, *reads])
        spans[t] = start, end
    worst = 0
    for step, i in enumerate(order):
        node = dag.nodes[i]
        total = sum(dag.sizes[t] for t, (a, b) in spans.items() if a <= step <= b)
        saved = [
            a.saved for a in node.absorbs if spans[a.tensor][1] == step and a.tensor in node.reads
        ]
        total -= (max(saved, default=0) if node.exclusive else sum(saved)) - node.workspace
        worst = max(worst, total)
    return worst


def naive_valid(dag: Dag, order: tuple[int, ...]) -> bool:
    ready, done = set(dag.inputs), set[int]()
    for i in order:
        node = dag.nodes[i]
        if not (ready.issuperset(node.reads) and done.issuperset(node.after)):
            return False
        ready.update(node.writes)
        done.add(i)
    return True


def optimum(dag: Dag) -> int:
    """The smallest peak over all permutations that are valid."""
    orders = permutations(range(len(dag.nodes)))
    return min(naive_peak(dag, order) for order in orders if naive_valid(dag, order))


def dynamic_programming(dag: Dag) -> int:
    """The optimum by the plain recursion over sets of nodes, without any shortcut."""
    board = BitGraph(dag, shortcuts=False)
    best = {0: (0, board.ready, board.start)}
    for _ in dag.nodes:
        after: dict[int, tuple[int, int, int]] = {}
        for done, (worst, ready, live) in best.items():
            for b in range(len(dag.nodes)):
                if ready >> b & 1:
                    rise, change = board.cost(done, b)
                    now, free = board.after(done, ready, b)
                    high = max(worst, live + rise)
                    if now not in after or high < after[now][0]:
                        after[now] = high, free, live + change
        best = after
    return best[board.everything][0]


def states(dag: Dag) -> int:
    """States that the exact search needs for all segments above the lower bound."""
    live, total, bound = live_at_boundaries(dag), 0, peak_lower_bound(dag)
    for start, end in independent_ranges(dag):
        part = extract_range(dag, start, end, live[start])
        top = peak(part, file_order(part))
        if end - start > 1 and top > bound:
            found = ExactSearch(BitGraph(part), level=bound, ceiling=top).run(1 << 20, Clock())
            assert found.complete
            total += found.states
    return total
