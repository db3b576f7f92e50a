"""One arena for several models, and two for one: what TFLM on an emulated Cortex-M4 needed.

Recorded once: smallest arenas by bisection, models allocated in this order by one MicroAllocator;
invoked in turn, six rounds, all gave the outputs that each gives alone.
"""

from __future__ import annotations

import pytest

from tests.conftest import published
from tests.models.build import Net
from tests.models.handmade import MODELS
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.support.errors import ModelError, UsageError
from tflm_planner.tflm.arena.predict import arena_of, common_arena
from tflm_planner.tflm.targets import load_target

M4 = load_target("cortex-m4/cmsis-nn")
KWS, NABU, VWW = "kws_ref_model.tflite", "okay_nabu.tflite", "vww_96_int8.tflite"


def made(*names: str) -> list[bytes]:
    return [MODELS[name].make() for name in names]


@pytest.mark.parametrize(
    ("names", "measured"),
    [
        (("call_once", "per_tensor_weights", "batch_of_three"), 2496),
        (("batch_of_three", "same_operand_twice", "call_once"), 2492),
        (("batch_of_three", "call_once", "call_once"), 2796),
    ],
)
def test_small_models_in_one_arena(names: tuple[str, ...], measured: int) -> None:
    found = api.common_arena(made(*names), M4)
    assert found.arena == measured
    assert found.bound == "exact" and found.reserved == measured
    assert sum(found.tails) == found.tail
    assert found.resource_variables == tuple(2 * (name == "call_once") for name in names)


@pytest.mark.parametrize(
    ("names", "measured"),
    [((KWS, NABU), 37_288), ((NABU, KWS), 37_296)],
)
def test_published_models_in_one_arena(names: tuple[str, ...], measured: int) -> None:
    assert api.common_arena([published(name) for name in names], M4).arena == measured


@pytest.mark.parametrize(
    ("name", "persistent", "rest"),
    [(KWS, 6_848, 16_000), (NABU, 14_608, 5_040), (VWW, 27_008, 73_728)],
)
def test_published_models_in_two_arenas(name: str, persistent: int, rest: int) -> None:
    assert api.split_arena(published(name), M4) == (persistent, rest)


def test_two_arenas_hold_a_small_model() -> None:
    assert api.split_arena(*made("call_once"), M4) == (800, 432)
    assert api.split_arena(*made("call_once"), load_target("arduino-2023")) is None
    assert api.split_arena(*made("call_once"), load_target("x86-64/wheel")) is None


def test_one_model_alone_needs_what_it_needs() -> None:
    for name in ("chain", "call_once", "svdf", "while_loop"):
        model = read_model(MODELS[name].make())
        assert common_arena([(model, None)], M4).arena == arena_of(model, M4).arena


def test_a_variable_in_the_head_would_be_written_over() -> None:
    model = read_model(MODELS["svdf"].make())
    plan = {t: 0 for t in model.tensors() if t.is_variable}
    assert plan
    with pytest.raises(ModelError, match="model 2 keeps its variable"):
        common_arena([(model, None), (model, plan)], M4)


def test_a_model_that_cannot_run_shares_nothing() -> None:
    with pytest.raises(ModelError, match="model 2 cannot run"):
        api.common_arena(made("chain", "dynamic_range"), M4)


@pytest.mark.parametrize("target", ["arduino-2023", "x86-64/wheel", "cortex-m4/cmsis-nn+lean"])
def test_firmware_on_which_nobody_saw_it_is_refused(target: str) -> None:
    with pytest.raises(UsageError, match="several models is known for current TFLM"):
        api.common_arena(made("chain", "chain"), load_target(target))


def test_variables_listed_elsewhere_take_no_room() -> None:
    model = read_model(MODELS["call_once"].make())
    with_list, without = (arena_of(model, M4, variables_apart=apart) for apart in (False, True))
    assert with_list.resource_variables == without.resource_variables == 2
    assert without.tail_parts["resource_vars"] == 0
    assert 0 < with_list.tail - without.tail <= with_list.tail_parts["resource_vars"] + 16


@pytest.mark.parametrize(
    ("names", "stored"),
    [("a", 1), ("aa", 1), ("ab", 2), ("aba", 2)],
)
def test_the_first_assignment_of_a_variable_makes_its_memory(names: str, stored: int) -> None:
    """Bytes beside those of the operators, each of which keeps as much as any other of its kind."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 64), scale=0.1)
    for place, name in enumerate(names):
        handle = graph.tensor(f"handle{place}", (1,), "resource")
        options = {"container": "", "sharedName": name}
        graph.op("VAR_HANDLE", [], [handle], "VarHandleOptions", **options)
        graph.op("ASSIGN_VARIABLE", [handle, x], [], "AssignVariableOptions")
    y = graph.tensor("y", (1, 64), scale=0.1)
    graph.op("RELU", [x], [y])
    graph.outputs(y)
    arena = arena_of(read_model(net.finish()), M4)
    assert arena.tail_parts["op_prepare"] == 64 * stored


def test_the_room_that_a_field_log_names() -> None:
    """ "Requested: 19440, available 11876", of an arena of 26,080 bytes on an ESP32-S3: what the
    tail took then, before the structures of inputs and outputs."""
    model = read_model(published(NABU))
    found = arena_of(model, load_target("esp32s3/esp-nn-1.2.1"), variables_apart=True)
    assert found.head == 19_440
    assert 26_080 - (found.tail - found.tail_parts["io_tensors"]) == 11_876
