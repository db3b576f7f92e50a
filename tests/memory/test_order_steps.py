"""The steps that an order search is made of, each alone: gates, bounds, fusions, twins, beams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.memory.random_dags import dags, naive_peak, optimum
from tflm_planner.memory.order import Absorb, Dag, Node, best_order, file_order, is_valid, peak
from tflm_planner.memory.order.beam import beam_search, improve
from tflm_planner.memory.order.clock import Clock
from tflm_planner.memory.order.exact import ExactSearch
from tflm_planner.memory.order.fusing import BitGraph
from tflm_planner.memory.order.segments import (
    independent_ranges,
    live_at_boundaries,
    segment_bound,
)
from tflm_planner.memory.order.twins import twins


def branches(*sizes: Sequence[int], source: int = 16) -> Dag:
    """From one input of `source` bytes, branches of nodes that each write so many bytes, joined by
    a node that writes one. The file runs all first nodes, then all second ones, and so on."""
    table, nodes, ends = [source], list[Node](), [0] * len(sizes)
    for place in range(max(map(len, sizes))):
        for b, branch in enumerate(sizes):
            if place < len(branch):
                nodes.append(Node((ends[b],), (len(table),)))
                ends[b] = len(table)
                table.append(branch[place])
    nodes.append(Node(tuple(ends), (len(table),)))
    return Dag.of((*table, 1), tuple(nodes), (0,), (len(table),))


# --- gates and bounds ---


def closure(dag: Dag) -> list[set[int]]:
    """Of each node, all that must run before it."""
    before: list[set[int]] = []
    for preds in dag.links.preds:
        before.append({*preds, *(q for p in preds for q in before[p])})
    return before


@settings(deadline=None)
@given(dags(9))
def test_a_gate_is_before_or_after_every_other_node(dag: Dag) -> None:
    before, count = closure(dag), len(dag.nodes)
    gates = [
        i
        for i in range(count)
        if all(j == i or j in before[i] or i in before[j] for j in range(count))
    ]
    ranges = independent_ranges(dag)
    assert [start for start, end in ranges if end - start == 1] == gates
    assert [i for start, end in ranges for i in range(start, end)] == [*range(count)]
    edges = [0, *(end for _, end in ranges)]
    assert [start for start, _ in ranges] == edges[:-1] and all(a < b for a, b in ranges)


@settings(deadline=None)
@given(dags(7))
def test_what_lives_between_two_nodes_is_what_was_written_and_is_still_read(dag: Dag) -> None:
    links, live = dag.links, live_at_boundaries(dag)
    assert len(live) == len(dag.nodes) + 1
    for i, nbytes in enumerate(live):
        there = [
            t
            for t in range(len(dag.sizes))
            if (t in dag.inputs if links.writer[t] < 0 else links.writer[t] < i)
            and (t in dag.outputs or any(r >= i for r in links.readers[t]))
        ]
        assert nbytes == sum(dag.sizes[t] for t in there)


def test_the_bound_of_a_segment_has_what_lives_across_a_node_in_every_order() -> None:
    """A skip of 32 bytes across the second node: 64 operand + 64 result + 32.

    in 1 -> a 32 -> b 64 -> c 64 -> join(a, c, d) 1, and d 8 that nothing holds in a place
    """
    nodes = (
        Node((0,), (1,)),
        Node((1,), (2,)),
        Node((2,), (3,)),
        Node((0,), (4,)),
        Node((1, 3, 4), (5,)),
    )
    dag = Dag.of((1, 32, 64, 64, 8, 1), nodes, (0,), (5,))
    assert segment_bound(dag) == 64 + 64 + 32
    assert optimum(dag) == 64 + 64 + 32 + 1, "where the input is still read, or d is there"


@settings(deadline=None)
@given(dags(7, plain=True), st.integers(0, 6))
def test_the_bound_of_a_segment_is_that_of_its_fattest_node(plain: Dag, fat: int) -> None:
    """Each with its own tensors, its workspace, and the tensors that are written before it and read
    after it, whatever the order."""
    nodes = [replace(n, workspace=500 * (i == fat)) for i, n in enumerate(plain.nodes)]
    dag = plain.with_node_costs(tuple(nodes))
    before, links = closure(dag), dag.links

    def lives_across(t: int, node: int) -> bool:
        is_there = links.writer[t] in before[node] or (links.writer[t] < 0 and t in dag.inputs)
        is_needed = t in dag.outputs or any(node in before[r] for r in links.readers[t])
        return is_there and is_needed

    needs = [
        node.workspace
        + sum(
            size
            for t, size in enumerate(dag.sizes)
            if t in (*node.reads, *node.writes) or lives_across(t, i)
        )
        for i, node in enumerate(dag.nodes)
    ]
    assert segment_bound(dag) == max(needs)


# --- fusions ---


def test_a_node_that_only_takes_the_place_of_its_operand_is_run_at_once() -> None:
    """Each branch ends in a node that writes as much as it frees, needs no more beside it than the
    one before it did, and has two readers: so that it can only be moved early."""
    nodes = (
        Node((0,), (1,), workspace=64),
        Node((1,), (2,)),
        Node((0,), (3,), workspace=64),
        Node((3,), (4,)),
        Node((2, 4), (5,)),
        Node((2, 4), (6,)),
    )
    dag = Dag.of((64, 16, 16, 16, 16, 1, 1), nodes, (0,), (5, 6))
    groups = [block.nodes for block in BitGraph(dag).blocks]
    assert (0, 1) in groups and (2, 3) in groups
    assert best_order(dag).peak == optimum(dag)


# --- twins ---


def unfused(dag: Dag) -> list[tuple[int, int]]:
    """Twins of a graph whose blocks are its nodes."""
    links = dag.links
    blocks = [(i,) for i in range(len(dag.nodes))]
    return twins(dag, blocks, [set(p) for p in links.preds], [set(s) for s in links.succs])


def test_twins_keep_their_order_at_each_place_of_their_chains() -> None:
    dag = branches([16, 32, 8], [16, 32, 8], [16, 32, 8])
    pairs = {(place + b, place + b + 1) for place in (0, 3, 6) for b in (0, 1)}
    assert set(unfused(dag)) == pairs


def test_branches_that_differ_in_one_place_are_no_twins() -> None:
    assert unfused(branches([16, 32, 8], [16, 48, 8])) == []


@pytest.mark.parametrize("saved", [0, 8, 16])
def test_branches_of_which_a_join_absorbs_another_share_are_no_twins(saved: int) -> None:
    """Two joins read both branches; the first one takes over all of one, and `saved` of the
    other."""
    join = Node((1, 2), (3,), absorbs=(Absorb(1, 16), Absorb(2, saved)))
    nodes = (Node((0,), (1,)), Node((0,), (2,)), join, Node((1, 2), (4,)))
    dag = Dag.of((16, 16, 16, 32, 16), nodes, (0,), (3, 4))
    assert bool(unfused(dag)) == (saved == 16)


# --- beams and windows ---


def wide() -> Dag:
    """Five branches that grow and shrink; file order keeps all of them at their largest."""
    return branches([80, 8], [64, 16], [96, 8], [32, 24], [48, 8])


def test_a_wide_beam_finds_the_best_order() -> None:
    dag = wide()
    top, best = peak(dag, file_order(dag)), best_order(dag).peak
    assert best < top
    board = BitGraph(dag)
    blocks = beam_search(board, width=64, floor=0, ceiling=top, seed=0, clock=Clock())
    assert blocks is not None and peak(dag, board.order(blocks)) == best


def test_a_beam_of_which_nothing_stays_below_the_ceiling_has_no_order() -> None:
    dag = wide()
    best = best_order(dag).peak
    assert (
        beam_search(BitGraph(dag), width=64, floor=0, ceiling=best, seed=0, clock=Clock()) is None
    )


def test_windows_lower_a_peak_until_none_does() -> None:
    dag = wide()
    order = improve(dag, file_order(dag), floor=0, windows=(4, 16), budget=1000, clock=Clock())
    assert is_valid(dag, order)
    assert peak(dag, order) == naive_peak(dag, order) == best_order(dag).peak


def test_windows_leave_an_order_alone_that_is_low_enough() -> None:
    """Even if a lower one is to be had, and whether its peak is below the floor or on it."""
    dag = wide()
    top = peak(dag, file_order(dag))
    for floor in (top, top + 1):
        same = improve(
            dag, file_order(dag), floor=floor, windows=(4, 16), budget=1000, clock=Clock()
        )
        assert same == file_order(dag)


def test_a_longer_window_is_tried_where_a_short_one_changes_nothing() -> None:
    """One node by itself has no second order."""
    dag = wide()
    for windows in ((1, 16), (1, 2, 16)):
        order = improve(dag, file_order(dag), floor=0, windows=windows, budget=1000, clock=Clock())
        assert peak(dag, order) == best_order(dag).peak


# --- commitments of the exact search ---


def last_readers(count: int, readers: int, size: int) -> Dag:
    """So many inputs of `size` bytes, each with so many readers that write 8 bytes each, and a node
    that reads what all of them wrote."""
    nodes = [Node((t,), (count + readers * t + k,)) for t in range(count) for k in range(readers)]
    ends = tuple(range(count, count + len(nodes)))
    nodes.append(Node(ends, (), workspace=1000))
    sizes = (*[size] * count, *[8] * len(ends))
    return Dag.of(sizes, tuple(nodes), tuple(range(count)), ())


@pytest.mark.parametrize(("readers", "size"), [(2, 16), (2, 32), (3, 24), (4, 64)])
def test_the_last_readers_of_a_tensor_are_run_together_where_that_frees_memory(
    readers: int, size: int
) -> None:
    """Six tensors: one set of readers after the other, not every mixture of them (3**6 and more).
    The last node needs more than the level, so that all states below it are looked at."""
    dag = last_readers(6, readers, size)
    board = BitGraph(dag, shortcuts=False)
    search = ExactSearch(board, level=6 * size + 8 * readers, ceiling=1 << 20)
    found = search.run(1 << 20, Clock())
    assert found.complete and found.states <= 10
    assert found.bound == 8 * 6 * readers + 1000


def test_readers_that_write_more_than_their_operand_frees_are_not_run_together() -> None:
    """None of them is a choice that can be made once for all, and each mixture is looked at."""
    board = BitGraph(last_readers(4, 2, 8), shortcuts=False)
    found = ExactSearch(board, level=4 * 8 + 8 * 8, ceiling=1 << 20).run(1 << 20, Clock())
    assert found.complete and found.states == 3**4


# --- which of them made an order ---


def test_beams_find_an_order_that_depth_first_does_not() -> None:
    """Depth first runs the branches as the file has them, of which the one that shrinks, and so
    should be first, is the last."""
    dag = branches([16, 48], [32, 40], [64, 16], source=64)
    by_depth, beams = best_order(dag, method="rpo"), best_order(dag, method="beam")
    assert beams.peak < by_depth.peak
    assert (beams.method, beams.peak) == ("beam", optimum(dag))


def test_an_order_is_named_after_what_made_it() -> None:
    """File order where nothing is better; else the first method that reached the peak, though later
    ones reach it too."""
    chain = branches([16, 32, 8])
    assert best_order(chain).method == "file"
    dag = branches([80, 8], [64, 8])
    found = {m: best_order(dag, method=m) for m in ("file", "rpo", "beam", "best", "exact")}  # type: ignore[arg-type]
    assert found["file"].method == "file"
    heights = {m: (r.method, r.peak) for m, r in found.items() if m != "file"}
    assert set(heights.values()) == {("rpo", optimum(dag))}
    assert found["file"].peak > optimum(dag)


def test_beams_are_not_credited_with_an_order_that_they_did_not_better() -> None:
    """The bound is below what is possible, so that beams are tried, and find nothing lower."""
    dag = branches([48, 32], [40, 24], [32, 24], source=8)
    found = best_order(dag, method="beam")
    assert found.peak == optimum(dag) > found.lower_bound
    assert found.method == "rpo"
