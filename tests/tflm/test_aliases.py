"""Tensors that hold the same bytes: which pairs, at which distances, and how bytes are counted."""

from __future__ import annotations

from tests.models.build import Graph, Net
from tflm_planner.model.serde import read_model
from tflm_planner.tflm.aliases import classes_of, copies, equal_tensors
from tflm_planner.tflm.liveness import planning_problem, timeline_of

ROW = 16


def rows(graph: Graph, name: str, count: int) -> int:
    return graph.tensor(name, (1, count, 4, 4), scale=0.1)


def cut(graph: Graph, x: int, name: str, first: int, count: int) -> int:
    """SLICE rows; a row has 16 bytes."""
    made = rows(graph, name, count)
    begin = graph.constant(f"{name}_begin", [0, first, 0, 0])
    size = graph.constant(f"{name}_size", [1, count, 4, 4])
    graph.op("SLICE", [x, begin, size], [made], "SliceOptions", version=2)
    return made


def relu(graph: Graph, x: int, name: str, count: int) -> int:
    made = rows(graph, name, count)
    graph.op("RELU", [x], [made])
    return made


def halves_that_overlap():
    """X of 8 rows; A = rows 0-5, B = rows 3-8; both through RELU; Y = A' rows and B joined."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 8, 4, 4), scale=0.1)
    a, b = cut(graph, x, "a", 0, 5), cut(graph, x, "b", 3, 5)
    c, d = relu(graph, a, "c", 5), relu(graph, b, "d", 5)
    y = rows(graph, "y", 10)
    graph.op("CONCATENATION", [c, b], [y], "ConcatenationOptions", axis=1, version=2)
    graph.outputs(y, d)
    return read_model(net.finish())


def pairs(model):
    found = {(p.first.name, p.second.name, p.distance // ROW) for p in equal_tensors(model.ops())}
    return {(a, b, d) if a < b else (b, a, -d) for a, b, d in found}


def test_parts_of_one_tensor_are_equal_where_they_overlap():
    assert pairs(halves_that_overlap()) == {
        ("a", "x", 0), ("b", "x", -3), ("a", "b", 3), ("c", "y", 0), ("b", "y", -5),
    }  # fmt: skip


def test_equality_does_not_travel_through_a_part_of_both():
    """X and Y both contain B, but nothing says that they agree beside it."""
    assert not {p for p in pairs(halves_that_overlap()) if {"x", "y"} == set(p[:2])}


def test_views_of_a_living_tensor_are_permitted_and_intruders_are_not():
    model = halves_that_overlap()
    line = timeline_of(model, lambda _: ())
    problem = planning_problem(line)
    index = {b.name: i for i, b in enumerate(problem.buffers)}
    assert problem.may_share(index["x"], index["b"], 3 * ROW)
    assert not problem.may_share(index["x"], index["b"], 4 * ROW)
    assert problem.may_share(index["a"], index["b"], 3 * ROW)
    # In place over A while B, which shares rows with A, is still needed: C against B decides.
    assert problem.may_share(index["a"], index["c"], 0)
    assert not problem.may_share(index["b"], index["c"], -3 * ROW)


def test_bytes_are_counted_once():
    model = halves_that_overlap()
    names = {t.name: t for t in model.tensors() if not t.is_constant}
    views = [view for op in model.ops() for view in copies(op)]
    classes = classes_of([(t, t.nbytes) for t in names.values()], views)
    size = {n: sum(classes.sizes[c] for c in classes.of[t]) // ROW for n, t in names.items()}
    assert size == {"x": 8, "a": 5, "b": 5, "c": 5, "d": 5, "y": 10}
    shared = set(classes.of[names["a"]]) & set(classes.of[names["b"]])
    assert sum(classes.sizes[c] for c in shared) == 2 * ROW
    assert sum(classes.sizes) == (8 + 5 + 5) * ROW
