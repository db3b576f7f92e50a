"""Life spans and placements against what real TFLM planned, buffer by buffer."""

from __future__ import annotations

import pytest

from tests.conftest import published
from tests.models.handmade import MODELS
from tests.models.registry import IMAGE, add, conv, relu, start
from tests.tflm.recorded_arenas import records
from tflm_planner.model.serde import read_model
from tflm_planner.support.errors import ModelError
from tflm_planner.tflm import greedy
from tflm_planner.tflm.kernels.scratch import reference_scratch
from tflm_planner.tflm.liveness import (
    legal_in_place,
    planned_bytes,
    planning_problem,
    timeline_of,
)
from tflm_planner.tflm.placement import placement_requests


def line_of(name: str):
    model = read_model(MODELS[name].make())
    return model, timeline_of(model, reference_scratch)


def truth_records() -> list[dict]:
    return [r for r in records() if r["target"] == "x86-ref"]


@pytest.mark.parametrize("record", truth_records(), ids=lambda r: r["model"])
def test_every_buffer_as_tflm_places_it(record):
    """Size, offset, first and last use of every tensor and scratch buffer."""
    model = read_model(published(record["model"]))
    line = timeline_of(model, reference_scratch)
    requests = placement_requests(line, {})
    offsets = greedy.place(requests)
    assert greedy.head(requests, offsets) == record["head"]
    mine = [
        (size, offset, r.first, r.last)
        for r, offset, size in zip(
            requests,
            offsets,
            [planned_bytes(t) for t in line.planned] + [s.size for s in line.scratch],
            strict=True,
        )
    ]
    theirs = [(size, offset, first, last) for _, _, size, offset, first, last, _ in record["plan"]]
    tensors = len(line.planned)
    assert mine[:tensors] == theirs[:tensors]
    for (_, *placed), (size, *real) in zip(mine[tensors:], theirs[tensors:], strict=True):
        assert placed == real, f"scratch of {size} bytes"


def test_a_body_lives_inside_its_caller():
    model, line = line_of("while_loop")
    loop = next(op for op in model.main.ops if op.kind == "WHILE")
    ((start, end),) = line.scopes[loop]
    inside = [t for body in loop.called_graphs() for t in body.tensors if t in line.spans]
    around = [t for t in (*loop.operands(), *loop.outputs) if t in line.spans]
    assert inside and around
    for tensor in inside:
        span = line.span(tensor)
        assert start < span.first <= span.last <= end
    for tensor in around:
        assert line.span(tensor).first <= start and line.span(tensor).last >= end


def test_a_graph_called_twice_lives_from_first_to_last_call():
    model, line = line_of("one_subgraph_called_twice")
    calls = [op for op in model.main.ops if op.kind == "IF"]
    first, last = line.scopes[calls[0]][0], line.scopes[calls[-1]][0]
    for graph in model.graphs[1:]:
        for op in graph.ops:
            assert len(line.scopes[op]) == 2
            for tensor in op.outputs:
                span = line.span(tensor)
                assert first[0] < span.first and span.last <= last[1]
                assert span.first <= first[1] and span.last >= last[0]


PLANNED = [name for name in MODELS if name != "strings"]


def test_tflm_plans_no_strings():
    """The one hand-made model that has no life spans, so that it is none of `PLANNED`."""
    with pytest.raises(ModelError, match="type string"):
        line_of("strings")


@pytest.mark.parametrize("name", PLANNED)
def test_no_result_lies_in_an_operand_that_is_needed_later(name: str):
    """A graph output must survive, even when the operator that could reuse it is the last."""
    model, line = line_of(name)
    kept = {t for g in model.graphs for t in g.outputs}
    for sharing in legal_in_place(line):
        assert sharing.operand not in kept
        assert sharing.operand.consumers[-1] is sharing.result.producer


def test_results_lie_in_operands_that_end_there():
    """RELU reads what ADD reads after it; another RELU reads an output of the graph."""
    net, graph, x = start()
    a = conv(graph, x, IMAGE, "a")
    b = relu(graph, a, IMAGE, "b")
    c = add(graph, a, b, IMAGE, "c")
    graph.outputs(c, relu(graph, c, IMAGE, "d"))
    line = timeline_of(read_model(net.finish()), reference_scratch)
    pairs = {(s.operand.name, s.result.name) for s in legal_in_place(line)}
    assert pairs == {("a", "c"), ("b", "c")}


def test_scratch_has_room_in_every_plan():
    _, line = line_of("lstm")
    problem = planning_problem(line)
    assert len(problem.buffers) == len(line.planned) + len(line.scratch) > len(line.planned)
