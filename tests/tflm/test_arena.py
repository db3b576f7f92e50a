from collections.abc import Callable
from typing import Any

import pytest

from tests.call_counts import assert_near_linear
from tests.conftest import published
from tests.models import handmade  # noqa: F401  (fills the registry)
from tests.models.build import Net
from tests.models.generator import random_model
from tests.models.handmade import MODELS as HANDMADE
from tests.tflm.custom_models import MODELS as OPERATORS
from tests.tflm.recorded_arenas import TARGETS, records
from tests.tflm.registered import BUILTIN, CUSTOM
from tests.tflm.wheel import Wheel, assert_needs
from tflm_planner.model.serde import read_model
from tflm_planner.tflm.arena.predict import PARTS, Arena, arena_of, head_of
from tflm_planner.tflm.kernels.operator_allocations import OPERATORS as KNOWN
from tflm_planner.tflm.targets import all_targets, load_target
from tflm_planner.transforms.attach_plan import carried_plan


def predicted(data: bytes, target: str) -> Arena:
    model = read_model(data)
    return arena_of(model, load_target(target), carried_plan(model))


@pytest.mark.parametrize("record", records(), ids=lambda r: f"{r['target']}-{r['model']}")
def test_every_measured_figure_is_exact(record: dict[str, Any]) -> None:
    arena = predicted(published(record["model"]), TARGETS[record["target"]])
    found = (arena.head, arena.tail, arena.arena)
    assert found == (record["head"], record["tail"], record["min_arena"])
    if "tail_breakdown" in record:
        assert arena.tail_parts == record["tail_breakdown"]
        assert arena.need_plan == record["need_plan"]
        assert arena.need_prepare == record["need_prepare"]
        asked = [size for size, *_ in record["scratch"]]
        assert [s.size for s in arena.scratch] == asked


def test_every_target_was_measured() -> None:
    assert {r["target"] for r in records()} == {*TARGETS}


def measured(data: bytes, size: int) -> tuple[int, int] | None:
    """Head and tail that the wheel prints, in a child process; None if it does not work."""
    host = Wheel(data)
    try:
        return host.run(size)
    finally:
        host.close()


WHEEL_MODELS: dict[str, Callable[[], bytes]] = {
    **{f"operator {name}": make for name, make in OPERATORS.items() if name != "ethos_u"},
    **{f"hand-made {name}": made.make for name, made in HANDMADE.items() if made.runs_on_tflm},
    "random 1": lambda: random_model(1),
    "random 15": lambda: random_model(15),
}


@pytest.mark.parametrize("name", WHEEL_MODELS)
@pytest.mark.mostly_slow(fast=12)
def test_the_wheel_agrees(name: str) -> None:
    """Head, tail and the smallest arena, 0 bytes off; with the outputs of a large one."""
    pytest.importorskip("tflite_micro")
    data = WHEEL_MODELS[name]()
    arena = predicted(data, "x86-64/wheel")
    assert arena.warnings == ()
    assert_needs(data, arena)


def test_every_operator_that_tflm_registers_has_an_entry_and_a_model() -> None:
    kinds = {op.kind for make in OPERATORS.values() for op in read_model(make()).ops()}
    for made in HANDMADE.values():
        if made.runs_on_tflm:
            kinds |= {op.kind for op in read_model(made.make()).ops()}
    registered = {*BUILTIN.split(), *CUSTOM.split()}
    assert registered == KNOWN
    assert registered <= kinds


@pytest.mark.parametrize("target", all_targets())
def test_parts_sum_up_on_every_target(target: str) -> None:
    for make in (HANDMADE["svdf"].make, HANDMADE["if_else"].make, OPERATORS["conv_int8_3x3_1"]):
        arena = predicted(make(), target)
        assert set(arena.tail_parts) == set(PARTS)
        assert sum(arena.tail_parts.values()) == arena.tail
        assert arena.arena <= max(arena.used, arena.need_plan, arena.need_prepare) + 16
        assert 15 <= arena.alignment_slack < 48


def test_head_alone_is_the_same() -> None:
    model = read_model(random_model(3))
    target = load_target("cortex-m4/cmsis-nn")
    assert head_of(model, target) == arena_of(model, target).head


def test_an_operator_without_an_entry_is_an_upper_bound_and_a_warning() -> None:
    model = read_model(HANDMADE["custom_operator"].make())
    arena = arena_of(model, load_target("cortex-m4/cmsis-nn"))
    assert any("no entry" in warning for warning in arena.warnings)
    words = [4 * sum(t.elements for t in (*op.operands(), *op.outputs)) for op in model.ops()]
    assert [s.size for s in arena.scratch] == words


def test_known_operators_give_no_warning() -> None:
    assert predicted(random_model(7), "cortex-m4/cmsis-nn").warnings == ()
    assert "unknown" in predicted(random_model(7), "cortex-m4/unknown").warnings[0]


def test_a_plan_decides_the_head() -> None:
    model = read_model(HANDMADE["chain"].make())
    target = load_target("cortex-m4/reference")
    free = arena_of(model, target)
    apart = {}
    for t in model.tensors():
        if not t.is_constant:
            apart[t] = 4096 * len(apart)
    planned = arena_of(model, target, apart)
    assert planned.head > 4096 > free.head
    assert planned.tail == free.tail


@pytest.mark.parametrize(
    ("placed", "in_tail", "confused"),
    [("", 2, False), ("a", 0, True), ("b", 2, False), ("ab", 0, False)],
)
def test_tflm_looks_variables_up_in_the_first_graph(
    placed: str, in_tail: int, confused: bool
) -> None:
    """Each of two graphs has a variable with index 1. TFLM asks for the place of both what it
    knows of the first graph's: a place for that one alone leaves the other one without memory."""
    net = Net()
    for name in "ab":
        graph = net.graph(name)
        x = graph.input(f"x{name}", (1, 16), scale=0.1)
        graph.tensor(name, (1, 64), scale=0.1, isVariable=True)
        y = graph.tensor(f"y{name}", (1, 16), scale=0.1)
        graph.op("RELU", [x], [y])
        graph.outputs(y)
    model = read_model(net.finish())
    offsets = {t: 64 * i for i, t in enumerate(model.tensors()) if t.name in {*placed}}
    arena = arena_of(model, load_target("cortex-m4/reference"), offsets)
    assert arena.tail_parts["variables"] == 64 * in_tail
    said = [w for w in arena.warnings if "gets no memory" in w]
    assert len(said) == confused
    assert all("'b'" in w and "'a' of the first sub-graph" in w for w in said)


@pytest.mark.slow
def test_the_work_is_near_linear_in_the_operators() -> None:
    target = load_target("cortex-m4/cmsis-nn")

    def chain(length: int):
        net = Net()
        graph = net.graph()
        last = graph.input("x", (1, 16), scale=0.1)
        for i in range(length):
            result = graph.tensor(f"t{i}", (1, 16), scale=0.1)
            graph.op("RELU", [last], [result])
            last = result
        graph.outputs(last)
        model = read_model(net.finish())
        return lambda: arena_of(model, target)

    arena = chain(2_000)()
    assert arena.arena > arena.used  # the planner's own memory decides
    assert_near_linear(chain, 500, 2_000)
