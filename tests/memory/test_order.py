"""Orders: against brute force, against a naive simulation, and on graphs of known shape."""

from __future__ import annotations

import random
import subprocess
import sys
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory.network_dags import chain, darts, densenet, nasnet, randwire
from tflm_planner.memory.order import (
    Absorb,
    Dag,
    Node,
    best_order,
    file_order,
    is_valid,
    peak,
    peak_lower_bound,
    reverse_post_order,
)
from tflm_planner.memory.order.beam import beam_search, improve, renumber
from tflm_planner.memory.order.board import BitGraph
from tflm_planner.memory.order.clock import Clock
from tflm_planner.memory.order.exact import ExactSearch
from tflm_planner.memory.order.segments import extract_range, independent_ranges, live_at_boundaries
from tflm_planner.support.stopping import Stop

ROOT = Path(__file__).parents[2]


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
    return Dag(tuple(sizes), tuple(nodes), inputs, outputs)


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


@given(dags(6), st.randoms(use_true_random=False))
def test_peak_and_validity_agree_with_a_naive_simulation(dag: Dag, rng: object) -> None:
    order = list(range(len(dag.nodes)))
    rng.shuffle(order)  # type: ignore[attr-defined]
    assert is_valid(dag, order) == naive_valid(dag, tuple(order))
    if is_valid(dag, order):
        assert peak(dag, order) == naive_peak(dag, tuple(order))
    assert peak(dag, file_order(dag)) == naive_peak(dag, file_order(dag))
    assert is_valid(dag, reverse_post_order(dag))


@settings(max_examples=400, deadline=None)
@given(dags(6))
def test_exact_is_the_optimum_of_brute_force(dag: Dag) -> None:
    got, best = best_order(dag), optimum(dag)
    assert is_valid(dag, got.order)
    assert naive_peak(dag, got.order) == got.peak == best
    assert got.optimal
    assert got.lower_bound == best
    assert peak_lower_bound(dag) <= best


@settings(max_examples=60, deadline=None)
@given(dags(7, plain=True))
def test_exact_is_the_optimum_of_wider_plain_graphs(dag: Dag) -> None:
    assert best_order(dag).peak == optimum(dag)


@settings(max_examples=200, deadline=None)
@given(dags(12), st.booleans())
def test_search_with_and_without_shortcuts_finds_the_same_peak(dag: Dag, shortcuts: bool) -> None:
    """Fusion and twins on and off, commitment always on, against the plain recursion."""
    if dag.links.unread:
        return
    got = best_order(dag)
    search = ExactSearch(BitGraph(dag, shortcuts=shortcuts), level=0, ceiling=1 << 40)
    found = search.run(1 << 40, Clock())
    assert found.complete
    assert found.bound == got.peak == dynamic_programming(dag)


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
    return Dag(tuple(sizes), tuple(nodes), (0,), tuple(ends))


@settings(max_examples=300, deadline=None)
@given(tiled())
def test_twins_cost_nothing(dag: Dag) -> None:
    if not dag.links.unread:
        assert best_order(dag).peak == dynamic_programming(dag)


def test_equal_tiles_need_few_states() -> None:
    """n tiles between SLICE and CONCATENATION: about n states, not 2**n."""
    sizes, nodes = [256], list[Node]()
    for _ in range(64):
        sizes += [32, 64, 16]
        t = len(sizes)
        nodes += [Node((0,), (t - 3,)), Node((t - 3,), (t - 2,)), Node((t - 2,), (t - 1,))]
    ends = tuple(range(3, len(sizes), 3))
    sizes.append(1024)
    nodes.append(Node(ends, (len(sizes) - 1,), absorbs=tuple(Absorb(t, 16) for t in ends)))
    dag = Dag(tuple(sizes), tuple(nodes), (0,), (len(sizes) - 1,))
    breadth_first = Dag(
        dag.sizes,
        (*(nodes[3 * tile + k] for k in range(3) for tile in range(64)), nodes[-1]),
        dag.inputs,
        dag.outputs,
    )
    # The last two tiles are sliced before they are computed: that frees their operand.
    assert best_order(breadth_first).peak == best_order(dag).peak == 256 + 61 * 16 + 96
    assert states(breadth_first) < 500


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


@settings(max_examples=100, deadline=None)
@given(dags(9), st.sampled_from(["file", "rpo", "beam", "exact", "best"]), st.integers(0, 3))
def test_every_method_is_sound_and_repeats(dag: Dag, method: str, seed: int) -> None:
    got = best_order(dag, method=method, seed=seed)  # type: ignore[arg-type]
    assert is_valid(dag, got.order)
    assert got.lower_bound <= got.peak == peak(dag, got.order) <= peak(dag, file_order(dag))
    assert got.optimal == (got.peak == got.lower_bound)
    assert got.order == best_order(dag, method=method, seed=seed).order  # type: ignore[arg-type]
    if got.peak == peak(dag, file_order(dag)):
        assert got.order == file_order(dag)


@settings(max_examples=60, deadline=None)
@given(dags(9))
def test_beam_and_windows_keep_their_promises(dag: Dag) -> None:
    if dag.links.unread:
        return
    board, top = BitGraph(dag), peak(dag, file_order(dag))
    blocks = beam_search(board, width=4, floor=0, ceiling=top, seed=0, clock=Clock())
    if blocks is not None:
        assert is_valid(dag, board.order(blocks))
        assert peak(dag, board.order(blocks)) < top
    better = improve(dag, file_order(dag), floor=0, windows=(3, 5, 9), budget=100, clock=Clock())
    assert is_valid(dag, better)
    assert peak(dag, better) <= top
    assert peak(renumber(dag, better), file_order(dag)) == peak(dag, better)


@given(dags(9))
def test_pieces_cut_out_add_up_to_the_whole(dag: Dag) -> None:
    live = live_at_boundaries(dag)
    parts = [extract_range(dag, a, b, live[a]) for a, b in independent_ranges(dag)]
    assert sum(len(p.nodes) for p in parts) == len(dag.nodes)
    assert max(peak(p, file_order(p)) for p in parts) == peak(dag, file_order(dag))


def tall_then_small() -> Dag:
    """Two branches; the file runs the one that leaves much before the one that needs much.

    in 16 -> a 96 -> b 16 -.
         `-> c 80 -> d 64 --> out 16
    """
    nodes = (
        Node((0,), (1,)),
        Node((0,), (3,)),
        Node((1,), (2,)),
        Node((3,), (4,)),
        Node((2, 4), (5,)),
    )
    return Dag((16, 96, 16, 80, 64, 16), nodes, (0,), (5,))


def test_a_branch_is_run_to_its_end_before_the_next() -> None:
    dag = tall_then_small()
    got = best_order(dag)
    assert peak(dag, file_order(dag)) == 192
    assert got.order == (0, 2, 1, 3, 4)
    assert (got.peak, got.optimal) == (160, True)


def test_in_place_add_absorbs_the_larger_operand_once() -> None:
    absorbs = (Absorb(0, 64), Absorb(1, 64))
    for exclusive, expected in ((True, 128), (False, 64)):
        node = Node((0, 1), (2,), absorbs=absorbs, exclusive=exclusive)
        assert peak(Dag((64, 64, 64), (node,), (0, 1), (2,)), (0,)) == expected


def test_an_operand_that_lives_on_is_not_absorbed() -> None:
    nodes = (Node((0,), (1,), absorbs=(Absorb(0, 64),)), Node((0, 1), (2,)))
    assert peak(Dag((64, 64, 16), nodes, (0,), (2,)), (0, 1)) == 144


def test_an_unread_input_weighs_on_the_first_step_only() -> None:
    """The fat node must not come first though file order has it there."""
    nodes = (Node((), (1,), workspace=64), Node((), (2,)), Node((1, 2), (3,)))
    dag = Dag((64, 16, 16, 16), nodes, (0,), (3,))
    got = best_order(dag)
    assert peak(dag, (0, 1, 2)) == 144
    assert (got.order, got.peak, got.optimal) == ((1, 0, 2), 96, True)


@pytest.mark.parametrize(
    ("dag", "words"),
    [
        (Dag((16,), (Node((0,), ()),), (), ()), "nothing before it writes"),
        (Dag((16,), (Node((), (0,)),), (0,), ()), "exists already"),
        (Dag((16,), (Node((), ()),), (), (0,)), "written by no node"),
        (Dag((16,), (Node((0,), (), absorbs=(Absorb(0, 32),)),), (0,), ()), "more of an operand"),
        (Dag((), (Node((), (), after=(0,)),), (), ()), "file order is not valid"),
    ],
)
def test_an_unsound_graph_is_refused(dag: Dag, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        best_order(dag)


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(ValueError, match="choose best"):
        best_order(tall_then_small(), method="magic")  # type: ignore[arg-type]


def test_an_empty_graph_rests_on_its_inputs() -> None:
    got = best_order(Dag((16, 32), (), (0, 1), (1,)))
    assert (got.order, got.peak, got.optimal) == ((), 48, True)


def test_a_stop_keeps_the_best_so_far() -> None:
    stop = Stop()
    stop.interrupt()
    dag = tall_then_small()
    got = best_order(dag, stop=stop)
    assert is_valid(dag, got.order)
    assert got.lower_bound <= got.peak <= peak(dag, file_order(dag))


def test_progress_is_reported_in_bytes_that_close_in() -> None:
    seen: list[tuple[int, int]] = []
    best_order(tall_then_small(), on_progress=lambda high, low: seen.append((high, low)))
    assert seen[-1] == (160, 160)


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


@pytest.mark.slow
def test_the_states_of_stacked_cells_grow_with_their_number_only() -> None:
    small, large = states(nasnet(cells=2)), states(nasnet(cells=8))
    assert large < 6 * small < 6_000
    assert states(darts(cells=40)) < 2_000
    assert states(chain(10_000)) == states(densenet()) == 0


@pytest.mark.slow
def test_stacked_cells_are_solved_to_a_proved_optimum() -> None:
    for dag in (nasnet(), darts(), randwire("ws"), densenet()):
        got = best_order(dag)
        assert got.optimal
        assert got.peak == peak(dag, got.order)


def test_numba_stays_unloaded() -> None:
    code = (
        "import sys; from tflm_planner.memory.order import *\n"
        "best_order(Dag((16, 16), (Node((0,), (1,)),), (0,), (1,)))\n"
        "assert not {'numba', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_a_graph_is_free_when_it_has_a_second_order() -> None:
    chance = random.Random(3)
    seen = {True: 0, False: 0}
    for _ in range(300):
        count = chance.randint(1, 5)
        nodes = tuple(
            Node(tuple({chance.randrange(i + 1) for _ in range(chance.randint(1, 2))}), (i + 1,))
            for i in range(count)
        )
        dag = Dag((1,) * (count + 1), nodes, (0,), (count,))
        orders = sum(is_valid(dag, p) for p in permutations(range(count)))
        assert dag.is_free == (orders > 1)
        seen[dag.is_free] += 1
    assert min(seen.values()) > 20
