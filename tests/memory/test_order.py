"""Orders: against a naive simulation, by every method, and on graphs of known shape."""

from __future__ import annotations

import random
import subprocess
import sys
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.memory.random_dags import dags, naive_peak, naive_valid
from tflm_planner.memory.order import (
    Absorb,
    Dag,
    Node,
    best_order,
    file_order,
    is_valid,
    peak,
    reverse_post_order,
)
from tflm_planner.memory.order.beam import beam_search, improve, renumber
from tflm_planner.memory.order.clock import Clock
from tflm_planner.memory.order.fusing import BitGraph
from tflm_planner.memory.order.segments import extract_range, independent_ranges, live_at_boundaries
from tflm_planner.support.stopping import Stop

ROOT = Path(__file__).parents[2]


@given(dags(6), st.randoms(use_true_random=False))
def test_peak_and_validity_agree_with_a_naive_simulation(dag: Dag, rng: object) -> None:
    order = list(range(len(dag.nodes)))
    rng.shuffle(order)  # type: ignore[attr-defined]
    assert is_valid(dag, order) == naive_valid(dag, tuple(order))
    if is_valid(dag, order):
        assert peak(dag, order) == naive_peak(dag, tuple(order))
    assert peak(dag, file_order(dag)) == naive_peak(dag, file_order(dag))
    assert is_valid(dag, reverse_post_order(dag))


@pytest.mark.parametrize(
    "order", [(), (0,), (0, 1, 1), (0, 0), (0, 2), (-1, 0), (1, 0), (0, 1, 2)], ids=str
)
def test_an_order_has_every_node_once(order: tuple[int, ...]) -> None:
    """Two nodes, of which the second reads what the first writes."""
    dag = Dag.of((16, 16, 16), (Node((0,), (1,)), Node((1,), (2,))), (0,), (2,))
    assert is_valid(dag, (0, 1)) and not is_valid(dag, order)


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
    assume(not dag.links.unread)
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
    return Dag.of((16, 96, 16, 80, 64, 16), nodes, (0,), (5,))


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
        assert peak(Dag.of((64, 64, 64), (node,), (0, 1), (2,)), (0,)) == expected


def test_an_operand_that_lives_on_is_not_absorbed() -> None:
    nodes = (Node((0,), (1,), absorbs=(Absorb(0, 64),)), Node((0, 1), (2,)))
    assert peak(Dag.of((64, 64, 16), nodes, (0,), (2,)), (0, 1)) == 144


def test_an_unread_input_weighs_on_the_first_step_only() -> None:
    """The fat node must not come first though file order has it there."""
    nodes = (Node((), (1,), workspace=64), Node((), (2,)), Node((1, 2), (3,)))
    dag = Dag.of((64, 16, 16, 16), nodes, (0,), (3,))
    got = best_order(dag)
    assert peak(dag, (0, 1, 2)) == 144
    assert (got.order, got.peak, got.optimal) == ((1, 0, 2), 96, True)


@pytest.mark.parametrize(
    ("sizes", "nodes", "inputs", "outputs", "words"),
    [
        ((16,), (Node((0,), ()),), (), (), "nothing before it writes"),
        ((16,), (Node((), (0,)),), (0,), (), "exists already"),
        ((16,), (Node((), ()),), (), (0,), "written by no node"),
        ((16,), (Node((0,), (), absorbs=(Absorb(0, 32),)),), (0,), (), "more of an operand"),
        ((), (Node((), (), after=(0,)),), (), (), "file order is not valid"),
    ],
)
def test_an_unsound_graph_is_refused(
    sizes: tuple[int, ...], nodes: tuple[Node, ...],
    inputs: tuple[int, ...], outputs: tuple[int, ...], words: str,
) -> None:  # fmt: skip
    with pytest.raises(ValueError, match=words):
        Dag.of(sizes, nodes, inputs, outputs)


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(ValueError, match="choose best"):
        best_order(tall_then_small(), method="magic")  # type: ignore[arg-type]


def test_an_empty_graph_rests_on_its_inputs() -> None:
    got = best_order(Dag.of((16, 32), (), (0, 1), (1,)))
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


def test_numba_stays_unloaded() -> None:
    code = (
        "import sys; from tflm_planner.memory.order import *\n"
        "best_order(Dag.of((16, 16), (Node((0,), (1,)),), (0,), (1,)))\n"
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
        dag = Dag.of((1,) * (count + 1), nodes, (0,), (count,))
        orders = sum(is_valid(dag, p) for p in permutations(range(count)))
        assert dag.is_free == (orders > 1)
        seen[dag.is_free] += 1
    assert min(seen.values()) > 20
