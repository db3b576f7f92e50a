"""What a runtime is asked to run is bounded by the file's size: loops, whatever they count to."""

from __future__ import annotations

import pytest

from tests.models.counted_loops import changing, counting
from tests.models.handmade_flow import if_else, while_in_if, while_loop
from tests.models.random_loops import random_loops_model
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.support.errors import ModelError
from tflm_planner.verification.terms.machine import Machine
from tflm_planner.verification.terms.mixing import Mixer
from tflm_planner.verification.terms.stores import Apart
from tflm_planner.verification.terms.values import Symbols
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


@pytest.mark.parametrize("seed", range(20))
def test_turns_are_those_of_the_proof(seed: int) -> None:
    model = read_model(random_loops_model(seed))
    mixer = Mixer()
    symbols = Symbols(mixer)
    seen = {"runs": 0}

    class Counted(Apart):
        def begin(self, op: object) -> None:
            seen["runs"] += 1

    inputs = [symbols.of_name(t.shape or (), t.name) for t in model.main.inputs]
    Machine(model, Counted(model, mixer, symbols)).run(inputs)
    runs = runs_of(model)
    assert sum(times * len(graph.ops) for graph, times in runs.times.items()) == seen["runs"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "data",
    [counting(10**9), changing("MUL", limit=10, step=1), changing("SUB", limit=10)],
    ids=["a billion turns", "for ever", "until it wraps"],
)
def test_a_loop_without_an_end_is_not_run(data: bytes) -> None:
    model = read_model(data)
    for runtime in ("LiteRT", "TFLM"):
        why = why_unfit(model, runtime)
        assert why is not None and "its loops run more than" in why and "turns counted" in why
    with pytest.raises(ModelError, match="its loops run more than"):
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
