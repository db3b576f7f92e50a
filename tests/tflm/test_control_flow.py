"""Loops in memory: swapped, doubled, nested, handed on and overwritten variables."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.fuzz.random_plans import case_of, judge, spoil
from tests.models.build import Net
from tests.models.random_loops import random_loops_model
from tests.models.small import swapping
from tests.placed_replay import replay_planned
from tests.transforms.row_loops import planned
from tests.transforms.tiled import quick_differences
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.tflm.kernels.scratch import reference_scratch
from tflm_planner.tflm.liveness import loop_pairs, planning_problem, timeline_of
from tflm_planner.transforms.attach_plan import carried_plan


@needs_tflm
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.mostly_slow(fast=2)
def test_random_loops_replay_and_compute_the_same(seed: int) -> None:
    data = random_loops_model(seed)
    made = planned(data, overlap=False, seconds=0.5).data
    assert replay_planned(made) == []
    assert quick_differences(data, made) == []


@needs_tflm
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.mostly_slow(fast=2)
def test_random_choices_replay_and_compute_the_same(seed: int) -> None:
    """IFs among loops and inside them, either branch; on TFLM, as LiteRT runs some of these
    models one way today and another way tomorrow."""
    data = random_loops_model(seed, choices=True)
    made = planned(data, overlap=False, seconds=0.5).data
    assert replay_planned(made) == []
    assert quick_differences(data, made, ("TFLM",)) == []


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.mostly_slow(fast=2)
def test_the_validator_is_never_laxer_than_the_replay_on_loops(seed: int) -> None:
    case = case_of(random_loops_model(seed, choices=seed % 2 == 1))
    rng = np.random.default_rng(seed)
    for _ in range(20):
        verdict, detail = judge(case, spoil(case.plan, case.problem, rng))
        assert not verdict.isupper(), detail


def test_what_is_handed_on_lies_where_it_lay_even_if_it_is_needed_later() -> None:
    model = read_model(planned(swapping(swapped=False), overlap=False).data)
    offsets = carried_plan(model)
    assert offsets is not None
    (loop,) = (op for op in model.ops() if op.kind == "WHILE")
    x, w = loop.inputs[1], loop.outputs[1]
    assert x is model.main.outputs[2]
    assert x is not None and offsets[x] == offsets[w]


def test_what_is_swapped_has_places_of_its_own() -> None:
    model = read_model(swapping(swapped=True))
    pairs = {(a.name, b.name) for a, b in loop_pairs(timeline_of(model, reference_scratch))}
    assert not {("v", "a"), ("w", "b"), ("b", "v"), ("a", "w"), ("x", "v")} & pairs
    assert replay_planned(planned(swapping(swapped=True), overlap=False).data) == []


def _choosing(*, doubled: bool) -> bytes:
    """x -> y -> z, IF(flag, y, z) -> w; a branch subtracts, or goes on with the second of the two,
    which with `doubled` come in by one door."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 64), scale=0.1)
    flag = graph.input("flag", (1,), "bool")
    y, z, w = (graph.tensor(n, (1, 64), scale=0.1) for n in "yzw")
    graph.op("LEAKY_RELU", [x], [y], "LeakyReluOptions", alpha=-0.9)
    graph.op("LEAKY_RELU", [y], [z], "LeakyReluOptions", alpha=0.5)
    then, other = net.graph("then"), net.graph("else")
    a, b = (then.input(n, (1, 64), scale=0.1) for n in "ab")
    c = then.tensor("c", (1, 64), scale=0.1)
    then.op("SUB", [a, b], [c], "SubOptions")
    then.outputs(c)
    d = other.input("d", (1, 64), scale=0.1)
    e = d if doubled else other.input("e", (1, 64), scale=0.1)
    if doubled:
        other.table.inputs.append(d)
    f = other.tensor("f", (1, 64), scale=0.1)
    other.op("LEAKY_RELU", [e], [f], "LeakyReluOptions", alpha=0.5)
    other.outputs(f)
    graph.op("IF", [flag, y, z], [w], "IfOptions",
             thenSubgraphIndex=then.index, elseSubgraphIndex=other.index)  # fmt: skip
    graph.outputs(w)
    return net.finish()


def test_branches_take_over_what_they_get() -> None:
    """Two values and a flag are all that this needs: no place for copies, none for results."""
    data = _choosing(doubled=False)
    made = planned(data, overlap=False)
    assert replay_planned(made.data) == []
    assert made.head == 2 * 64 + 16
    pairs = {
        (a.name, b.name) for a, b in loop_pairs(timeline_of(read_model(data), reference_scratch))
    }
    assert pairs == {("y", "a"), ("z", "b"), ("c", "w"), ("y", "d"), ("z", "e"), ("f", "w")}


def test_two_values_through_one_door_are_not_one() -> None:
    data = _choosing(doubled=True)
    pairs = {
        (a.name, b.name) for a, b in loop_pairs(timeline_of(read_model(data), reference_scratch))
    }
    assert not {("y", "d"), ("z", "d")} & pairs
    assert replay_planned(planned(data, overlap=False).data) == []


def test_scratch_still_avoids_what_tflm_counts() -> None:
    """Permissions to share at any distance are given to tensors, never to scratch."""
    model = read_model(random_loops_model(3))
    line = timeline_of(model, lambda op: [64] if op.kind == "SUB" else [])
    problem = planning_problem(line)
    scratch = range(len(line.planned), len(problem.buffers))
    assert len(scratch) and not any({o.first, o.second} & {*scratch} for o in problem.overlaps)


def test_a_report_lists_the_variables_that_lie_in_one_place() -> None:
    """The faces of a variable, by name, as the plan in the file has them."""
    report = api.plan(swapping(swapped=False), None, api.PlanOptions(verify=None)).report
    listed = [a for a in report.allocation.aliases if a.startswith("a loop's variable")]
    assert "a loop's variable in one place: x, v, c, a" in listed
    assert all("x, " not in a for a in _listed(swapped=True))


def _listed(*, swapped: bool) -> list[str]:
    result = api.plan(swapping(swapped=swapped), None, api.PlanOptions(verify=None))
    model = read_model(result.data)
    offsets = carried_plan(model)
    assert offsets is not None
    by_name = {t.name: offsets.get(t) for t in model.tensors() if t.name in "xyvwcdab"}
    found = [a for a in result.report.allocation.aliases if a.startswith("a loop's variable")]
    for words in found:
        names = words.split(": ")[1].split(", ")
        assert len({by_name[n] for n in names if n in by_name}) <= 1, words
    return found
