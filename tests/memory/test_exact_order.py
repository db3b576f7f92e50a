"""The exact search for an order: against brute force, and in how many states."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.memory.network_dags import chain, darts, densenet, nasnet, randwire
from tests.memory.random_dags import dags, dynamic_programming, naive_peak, optimum, states, tiled
from tflm_planner.memory.order import (
    Absorb,
    Dag,
    Node,
    best_order,
    is_valid,
    peak,
    peak_lower_bound,
)
from tflm_planner.memory.order.clock import Clock
from tflm_planner.memory.order.exact import ExactSearch
from tflm_planner.memory.order.fusing import BitGraph


@settings(max_examples=400, deadline=None)
@given(dags(6))
def test_exact_is_the_optimum_of_brute_force(dag: Dag) -> None:
    got, best = best_order(dag), optimum(dag)
    assert is_valid(dag, got.order)
    assert naive_peak(dag, got.order) == got.peak == best
    assert got.optimal
    assert got.lower_bound == best
    assert peak_lower_bound(dag) <= best


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(dags(7, plain=True))
def test_exact_is_the_optimum_of_wider_plain_graphs(dag: Dag) -> None:
    assert best_order(dag).peak == optimum(dag)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(dags(12), st.booleans())
def test_search_with_and_without_shortcuts_finds_the_same_peak(dag: Dag, shortcuts: bool) -> None:
    """Fusion and twins on and off, commitment always on, against the plain recursion."""
    assume(not dag.links.unread)
    got = best_order(dag)
    search = ExactSearch(BitGraph(dag, shortcuts=shortcuts), level=0, ceiling=1 << 40)
    found = search.run(1 << 40, Clock())
    assert found.complete
    assert found.bound == got.peak == dynamic_programming(dag)


@settings(max_examples=300, deadline=None)
@given(tiled())
def test_twins_cost_nothing(dag: Dag) -> None:
    assume(not dag.links.unread)
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
    dag = Dag.of(tuple(sizes), tuple(nodes), (0,), (len(sizes) - 1,))
    breadth_first = Dag.of(
        dag.sizes,
        (*(nodes[3 * tile + k] for k in range(3) for tile in range(64)), nodes[-1]),
        dag.inputs,
        dag.outputs,
    )
    # The last two tiles are sliced before they are computed: that frees their operand.
    assert best_order(breadth_first).peak == best_order(dag).peak == 256 + 61 * 16 + 96
    assert states(breadth_first) < 500


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
