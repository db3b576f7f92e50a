"""Operators with side effects keep their order against each other, whatever order is looked for."""

from __future__ import annotations

import random

import pytest

from tests.models.handmade import MODELS
from tests.models.registry import IMAGE, start
from tflm_planner.memory.order import Dag, OrderResult
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model
from tflm_planner.ops import has_side_effects
from tflm_planner.pipeline import api
from tflm_planner.transforms.reorder import Reorder

WITH_EFFECTS = sorted(name for name in ("call_once", "svdf", "while_in_if") if name in MODELS)


def any_order(seed: int):
    """A search that takes any operator of those that may run next; with seed 0 always the last."""
    rng = random.Random(seed)

    def search(dag: Dag) -> OrderResult:
        left, order = set(range(len(dag.nodes))), list[int]()
        while left:
            ready = [i for i in sorted(left) if not {*dag.links.preds[i]} & left]
            order.append(ready[-1] if seed == 0 else rng.choice(ready))
            left.remove(order[-1])
        return OrderResult(tuple(order), 0, 0, False, "any")

    return search


def states() -> bytes:
    """Three operators with states of their own on one input: no tensor orders them."""
    net, graph, x = start()
    results = []
    for i in range(3):
        state = graph.tensor(f"state{i}", IMAGE, scale=0.1)
        graph.table.tensors[state].isVariable = True
        y = graph.tensor(f"y{i}", IMAGE, scale=0.1)
        graph.op("ADD", [x, state], [y], "AddOptions", version=2)
        results.append(y)
    graph.outputs(*results)
    return net.finish()


def effects(model: Model) -> list[list[str]]:
    return [[op.label for op in g.ops if has_side_effects(op)] for g in model.graphs]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["states", *WITH_EFFECTS])
def test_side_effects_keep_their_order(name: str, seed: int) -> None:
    model = read_model(states() if name == "states" else MODELS[name].make())
    before = effects(model)
    Reorder(any_order(seed), api.kernels_of().scratch_of).apply(model)
    assert effects(model) == before


def test_without_side_effects_other_orders_are_found() -> None:
    """That the search above does change orders."""
    net, graph, x = start()
    results = [graph.tensor(f"y{i}", IMAGE, scale=0.1) for i in range(3)]
    for y in results:
        graph.op("ADD", [x, x], [y], "AddOptions", version=2)
    graph.outputs(*results)
    model = read_model(net.finish())
    before = [op.label for op in model.main.ops]
    Reorder(any_order(0), api.kernels_of().scratch_of).apply(model)
    assert [op.label for op in model.main.ops] == before[::-1]
