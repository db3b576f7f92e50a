"""What a runtime is asked to run is bounded by the file's size: loops, whatever they count to."""

from __future__ import annotations

import pytest

from tests.models.build import Graph, Net
from tests.models.counted_loops import changing, counting
from tests.models.handmade_flow import if_else, while_in_if, while_loop
from tests.models.random_loops import random_loops_model
from tflm_planner.model.serde import read_model
from tflm_planner.ops.terms.mixing import Mixer
from tflm_planner.ops.terms.values import Symbols
from tflm_planner.pipeline import api
from tflm_planner.support.errors import ModelError
from tflm_planner.verification.terms.machine import Machine
from tflm_planner.verification.terms.stores import SeparateStore
from tflm_planner.verification.turns import Runs, runs_of
from tflm_planner.verification.workload import answer_limit, inputs_within, why_unfit


def by_name(data: bytes) -> tuple[Runs, dict[str, int]]:
    runs = runs_of(read_model(data))
    return runs, {graph.name: times for graph, times in runs.times.items()}


@pytest.mark.parametrize(
    ("data", "times"),
    [
        (while_loop(), {"main": 1, "condition": 4, "body": 3}),
        (changing("MUL", limit=1 << 20), {"main": 1, "test": 21, "body": 20}),
        (if_else(), {"main": 1, "then": 1, "else": 1}),
        (while_in_if(), {"main": 1, "then": 1, "then/condition": 3, "then/body": 2, "else": 1}),
    ],
    ids=["counted", "doubled", "both branches", "in a branch"],
)
def test_graphs_run_as_often_as_their_conditions_say(data: bytes, times: dict[str, int]) -> None:
    runs, found = by_name(data)
    assert found == times
    assert runs.decided and not runs.too_many


@pytest.mark.parametrize(
    ("data", "operators", "last"),
    [(while_loop(), 3 + 4 + 3 * 2, "RELU"), (changing("MUL", limit=100), 1 + 8 + 7, "WHILE")],
    ids=["counted", "doubled"],
)
def test_exactly_so_many_operators_may_run(data: bytes, operators: int, last: str) -> None:
    model = read_model(data)
    enough, short = runs_of(model, operators), runs_of(model, operators - 1)
    assert (enough.too_many, enough.most) == (False, operators)
    assert (short.too_many, short.most) == (True, operators - 1)
    assert enough.longest is None
    loop = short.longest
    assert (loop and loop.kind) == ("WHILE" if last == "WHILE" else None), "which was under way"


@pytest.mark.parametrize("flag", [True, False])
def test_a_branch_that_is_known_not_to_run_does_not_count(flag: bool) -> None:
    """IF(flag): a loop to a limit that is handed over, behind something else."""
    runs, found = by_name(loop_in_a_branch(flag=flag, limit=5))
    assert runs.decided
    assert found == ({"main": 1, "then": 1, "test": 6, "body": 5} if flag else _OTHER)


_OTHER = {"main": 1, "else": 1}


def loop_in_a_branch(*, flag: bool, limit: int) -> bytes:
    """IF(flag, x, limit): the limit, counted to; or x."""
    net = Net()
    main, then, other, test, body = (
        net.graph(name) for name in ("main", "then", "else", "test", "body")
    )

    def ports(graph: Graph) -> tuple[int, int]:
        return graph.input("a", (1,), "int32"), graph.input("n", (1,), "int32")

    i, n = ports(test)
    goes_on = test.tensor("goes_on", (1,), "bool")
    test.op("LESS", [i, n], [goes_on], "LessOptions")
    test.outputs(goes_on)
    i, n = ports(body)
    more = body.tensor("more", (1,), "int32")
    body.op("ADD", [i, body.constant("one", [1])], [more], "AddOptions")
    body.outputs(more, n)
    _, n = ports(then)
    ends = [then.tensor(name, (1,), "int32") for name in ("end", "m")]
    called = {"condSubgraphIndex": test.index, "bodySubgraphIndex": body.index}
    then.op("WHILE", [then.constant("zero", [0]), n], ends, "WhileOptions", **called)
    then.outputs(ends[0])
    other.outputs(ports(other)[0])
    x, y = main.input("x", (1,), "int32"), main.tensor("y", (1,), "int32")
    operands = [main.constant("flag", [flag], "bool"), x, main.constant("limit", [limit])]
    called = {"thenSubgraphIndex": then.index, "elseSubgraphIndex": other.index}
    main.op("IF", operands, [y], "IfOptions", **called)
    main.outputs(y)
    return net.finish()


def test_an_operand_that_is_left_out_is_not_known() -> None:
    model = read_model(if_else())
    model.main.ops[1].inputs[0] = None
    assert sum(runs_of(model).times.values()) == 3, "both branches may run"


@pytest.mark.parametrize("seed", range(20))
def test_turns_are_those_of_the_proof(seed: int) -> None:
    model = read_model(random_loops_model(seed))
    mixer = Mixer()
    symbols = Symbols(mixer)
    seen = {"runs": 0}

    class Counted(SeparateStore):
        def begin(self, op: object) -> None:
            seen["runs"] += 1

    inputs = [symbols.of_name(t.shape or (), t.name) for t in model.main.inputs]
    Machine(model, Counted(model, mixer, symbols)).run(inputs)
    runs = runs_of(model)
    assert sum(times * len(graph.ops) for graph, times in runs.times.items()) == seen["runs"]


@pytest.mark.slow
@pytest.mark.mostly_long(short=1)
@pytest.mark.parametrize(
    "data",
    [counting(10**9), changing("MUL", limit=10, step=1), changing("SUB", limit=10)],
    ids=["a billion turns", "for ever", "until it wraps"],
)
def test_a_loop_without_an_end_is_not_run(data: bytes) -> None:
    model = read_model(data)
    for runtime in ("LiteRT", "TFLM"):
        why = why_unfit(model, runtime)
        assert why is not None and "its loops run more than" in why
        assert "turns counted (in WHILE 'end')" in why and "fewer turns" in why
    with pytest.raises(ModelError, match=r"its loops run more than .*--no-verify writes it"):
        api.plan(data, None)


def test_an_input_that_decides_a_loop_may_take_half_a_minute() -> None:
    model = read_model(changing("ADD", limit=None))
    assert not runs_of(model).decided
    assert why_unfit(model, "TFLM") is None
    assert answer_limit(model, 300.0) == 30.0
    assert answer_limit(model, 7.0) == 7.0
    assert answer_limit(read_model(counting(3)), 300.0) == 300.0


def test_what_a_turn_makes_counts_with_every_turn() -> None:
    """A megabyte a turn, for ten thousand turns."""
    many, few = (read_model(counting(n, elements=1 << 20)) for n in (10_000, 3))
    assert why_unfit(few, "TFLM") is None
    why = why_unfit(many, "TFLM")
    assert why is not None and "its loops make" in why and "bytes of activations" in why
    assert inputs_within(few, 8, 1 << 40) > inputs_within(
        read_model(counting(100, elements=1 << 20)), 8, 1 << 40
    )
