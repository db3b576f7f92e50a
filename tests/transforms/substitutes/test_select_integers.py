"""Choices of integers as sums of products: TFLM runs them, and every number is the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tests.transforms.substitutes.cleaning import cleaned, kinds_but_reshapes
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline import api
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.transforms.attach_plan import AttachPlan
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.verification import VerifyOptions, verify
from tflm_planner.verification.terms import prove_by_terms

ROWS = 20


def words(table: str = "int8", added: int = ROWS, *, added_is_read: bool = False) -> bytes:
    """Keras' Embedding of 6 words in a table of 20 rows of 4: a negative word counts from the
    table's end. added: what is added to a negative word. added_is_read: the sum is an output."""
    net = Net()
    graph = net.graph()
    word = graph.input("word", (1, 6), "int32")
    negative, sum_, place = (
        graph.tensor(n, (1, 6), t) for n, t in (("n", "bool"), ("s", "int32"), ("p", "int32"))
    )
    zero, rows = graph.constant("zero", np.array(0)), graph.constant("rows", np.array(added))
    for scalar in (zero, rows):
        graph.table.tensors[scalar].shape = []
    graph.op("LESS", [word, zero], [negative], "LessOptions")
    graph.op("ADD", [word, rows], [sum_], "AddOptions")
    graph.op("SELECT_V2", [negative, sum_, word], [place], "SelectV2Options")
    scale: dict[str, Any] = {} if table == "float32" else {"scale": 0.05}
    numbers = np.random.default_rng(2).integers(-99, 99, (ROWS, 4))
    data = graph.constant("table", numbers, table, **scale)
    found = graph.tensor("found", (1, 6, 4), table, **scale)
    graph.op("GATHER", [data, place], [found], "GatherOptions")
    graph.outputs(found, *([sum_] if added_is_read else []))
    return net.finish()


Shape = tuple[int, ...]


def choice(test: Shape, chosen: Shape, otherwise: Shape, **swapped: bool) -> bytes:
    """The larger or the smaller of two numbers, told by a test of two others. swapped: with
    `swapped=True` the other one."""
    net = Net()
    graph = net.graph()
    first, second = graph.input("first", test, "int32"), graph.input("second", test, "int32")
    a, b = graph.input("a", chosen, "int32"), graph.input("b", otherwise, "int32")
    less = graph.tensor("less", test, "bool")
    result = graph.tensor("result", np.broadcast_shapes(test, chosen, otherwise), "int32")
    graph.op("LESS", [first, second], [less], "LessOptions")
    branches = [b, a] if swapped.get("swapped") else [a, b]
    graph.op("SELECT_V2", [less, *branches], [result], "SelectV2Options")
    graph.outputs(result)
    return net.finish()


def status(original: bytes, result: bytes) -> str:
    return prove_by_terms(read_model(original), read_model(result)).status


@needs_tflm
@pytest.mark.parametrize("operators", [None, api.AllowedOperators.ALL])
@pytest.mark.parametrize("table", ["int8", "float32"])
def test_an_embedding_of_keras_is_planned_and_proved(
    table: str, operators: api.AllowedOperators | None
) -> None:
    data = words(table)
    assert "SELECT_V2" in " ".join(api.arena(data).cannot_run)
    tiles = None if operators is None else api.TilePermission(operators=operators, workers=1)
    made = api.plan(data, None, api.PlanOptions(tiles=tiles))
    assert made.report.verified and {c.status for c in made.report.checks} == {"equal"}
    assert made.report.terms is not None and made.report.terms.status == "equal"
    assert kinds_but_reshapes(made.data) == ["LESS", "CAST", "MUL", "ADD", "GATHER"]
    equality = api.check_equal(data, made.data)
    assert equality.equal and equality.proved


@needs_tflm
def test_negative_words_are_found_from_the_end() -> None:
    """Which the words 0 and 1 of the comparison do not show."""
    from ai_edge_litert.interpreter import Interpreter
    from tflite_micro import runtime

    data = words("float32")
    given = np.array([[0, -1, 19, -20, -7, 3]], np.int32)
    original: Any = Interpreter(model_content=data)
    original.allocate_tensors()
    original.set_tensor(original.get_input_details()[0]["index"], given)
    original.invoke()
    expected = original.get_tensor(original.get_output_details()[0]["index"])
    planned: Any = runtime.Interpreter.from_bytes(api.plan(data).data, arena_size=1 << 16)
    planned.set_input(given, 0)
    planned.invoke()
    assert np.array_equal(expected, planned.get_output(0))
    assert len(np.unique(expected[0], axis=0)) == 4  # -20 is 0, and -1 is 19


@needs_tflm
@pytest.mark.parametrize(
    "shapes",
    [((2, 3), (2, 3), (2, 3)), ((), (2, 3), (2, 3)), ((2, 1), (1, 3), (2, 3)), ((2, 3), (), ())],
)
def test_any_two_numbers_may_be_chosen_from(shapes: tuple[Shape, Shape, Shape]) -> None:
    data = choice(*shapes)
    result = cleaned(data)
    assert sorted(set(kinds_but_reshapes(result))) == ["ADD", "CAST", "LESS", "LOGICAL_NOT", "MUL"]
    assert status(data, result) == "equal"
    checks = verify(data, result, VerifyOptions(inputs=9)).checks
    assert [c.status for c in checks] == ["equal", "equal"], checks


def test_terms_tell_choices_apart() -> None:
    assert status(words(), cleaned(words())) == "equal"
    assert status(words(), words(added=ROWS - 1)) == "different"
    assert status(words(), cleaned(words(added=ROWS - 1))) == "different"
    shapes: tuple[Shape, Shape, Shape] = (2, 3), (2, 3), (2, 3)
    assert status(choice(*shapes), cleaned(choice(*shapes, swapped=True))) == "different"


def test_a_sum_that_is_read_stays() -> None:
    result = cleaned(words(added_is_read=True))
    assert sorted(kinds_but_reshapes(result)) == ["ADD", "ADD", "CAST", "GATHER", "LESS", "MUL"]
    assert status(words(added_is_read=True), result) == "equal"


def test_a_limited_sum_is_no_sum() -> None:
    """An ADD with RELU adds other numbers than those of the choice."""
    model = read_model(words())
    add = next(op for op in model.ops() if op.kind == "ADD")
    add.options = add.options.changed(fused_activation_function=1)
    data = write_model(model)
    result = cleaned(data)
    assert kinds_but_reshapes(result).count("MUL") == 2
    assert status(data, result) == "equal"


def test_other_types_and_damaged_shapes_stay() -> None:
    model = read_model(choice((2, 3), (2, 3), (2, 3)))
    model.main.outputs[0].shape = (2, 4)
    run(model, Normalize())
    assert [op.kind for op in model.ops()] == ["LESS", "SELECT_V2"]


def chosen_from_constants(*, test_is_known: bool, added: bool = False) -> bytes:
    """A mask of constants, or of an input, over numbers of which one is known."""
    net = Net()
    graph = net.graph()
    a = graph.input("a", (2, 3), "int32")
    mask = np.array([[True, False, True], [False, False, True]])
    test = graph.constant("t", mask, "bool") if test_is_known else graph.input("t", (2, 3), "bool")
    b, result = graph.constant("b", [[0, 1, 7], [8, 0, 1]]), graph.tensor("r", (2, 3), "int32")
    chosen, otherwise = b, a
    if added:
        chosen, otherwise = graph.tensor("sum", (2, 3), "int32"), a
        graph.op("ADD", [a, b], [chosen], "AddOptions")
    graph.op("SELECT_V2", [test, chosen, otherwise], [result], "SelectV2Options")
    graph.outputs(result)
    return net.finish()


@needs_tflm
@pytest.mark.parametrize("added", [True, False])
@pytest.mark.parametrize("test_is_known", [True, False])
def test_constants_may_be_chosen_and_choose(test_is_known: bool, added: bool) -> None:
    data = chosen_from_constants(test_is_known=test_is_known, added=added)
    made = api.plan(data)
    assert made.report.verified and {c.status for c in made.report.checks} == {"equal"}
    assert api.check_equal(data, made.data).proved


def test_choices_of_bools_stay() -> None:
    net = Net()
    graph = net.graph()
    tests = [graph.input(name, (2, 3), "bool") for name in "tab"]
    y = graph.tensor("y", (2, 3), "bool")
    graph.op("SELECT_V2", tests, [y], "SelectV2Options")
    graph.outputs(y)
    assert kinds_but_reshapes(cleaned(net.finish())) == ["SELECT_V2"]


def test_what_lies_where_the_sum_was_is_seen() -> None:
    """A plan that overwrites the sum before it is chosen computes something else."""
    net = Net()
    graph = net.graph()
    word, other = (graph.input(name, (1, 8), "int32") for name in ("word", "other"))
    below = graph.tensor("below", (1, 8), "bool")
    sum_, square, place, y = (
        graph.tensor(name, (1, 8), "int32") for name in ("sum", "square", "place", "y")
    )
    graph.op("LESS", [word, graph.constant("zero", [0])], [below], "LessOptions")
    graph.op("ADD", [word, graph.constant("rows", [ROWS])], [sum_], "AddOptions")
    graph.op("MUL", [other, other], [square], "MulOptions")
    graph.op("SELECT_V2", [below, sum_, word], [place], "SelectV2Options")
    graph.op("ADD", [place, square], [y], "AddOptions")
    graph.outputs(y)
    data = net.finish()
    apart = {"word": 0, "other": 32, "below": 64, "sum": 80, "square": 176, "place": 112, "y": 144}
    for square_at, expected in ((176, "equal"), (apart["sum"], "different")):
        model = read_model(data)
        offsets = {**apart, "square": square_at}
        AttachPlan({t: offsets[t.name] for t in model.tensors() if t.name in offsets}).apply(model)
        proof = prove_by_terms(read_model(data), read_model(write_model(model)), kernels_of(None))
        assert proof.status == expected, proof


@needs_tflm
def test_a_file_is_equal_to_itself() -> None:
    """Though TFLM runs neither."""
    equality = api.check_equal(words(), words())
    assert equality.equal and equality.proved
    assert {c.runtime: c.status for c in equality.runtimes.checks}["TFLM"] == "cannot run original"
