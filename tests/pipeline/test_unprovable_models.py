"""What no runtime here could prove is refused before the search, and only that."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import CNN, needs_tflm
from tests.models.build import Net
from tests.models.handmade import MODELS
from tests.models.small import one_operator
from tests.transforms.row_loops import chain
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.pipeline import prove as proving
from tflm_planner.pipeline.runtime_failures import is_of_this_machine
from tflm_planner.support.errors import ModelError
from tflm_planner.tflm.refusals import cannot_run
from tflm_planner.tflm.targets import HOST_RUNTIME, load_target
from tflm_planner.verification import VerifyOptions, why_unable
from tflm_planner.verification.session import RuntimeTimeoutError, Session

pytestmark = needs_tflm
DEFAULT_TILES = api.StreamOptions().tiles


class SearchedError(Exception):
    """The search was begun."""


def until_searched(step: str) -> None:
    """A listener to progress that ends a call where it does more than ask the runtimes."""
    if not step.startswith(("running the model on", "looking where a model of")):
        raise SearchedError(step)


def maximum_of_int16() -> bytes:
    """TFLM has REDUCE_MAX, and prepares it, but runs it for int8 and float only. Its axes do not
    lie side by side, so that it is no MAX_POOL_2D either."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 8, 4, 2), "int16", scale=0.1)
    y, z = (graph.tensor(n, s, "int16", scale=0.1) for n, s in (("y", (1, 8, 4, 2)), ("z", (1, 4))))
    axes = graph.constant("axes", np.array([1, 3]))
    graph.op("LEAKY_RELU", [x], [y], "LeakyReluOptions", alpha=0.5)
    graph.op("REDUCE_MAX", [y, axes], [z], "ReducerOptions", version=2)
    graph.outputs(z)
    return net.finish()


def with_a_new_axis(*, own: bool = False) -> bytes:
    """STRIDED_SLICE that adds an axis, which LiteRT runs, while TFLM's Prepare fails. own: behind
    it stands an operator that TFLM lacks."""
    net = Net()
    graph = net.graph()
    x, y = graph.input("x", (4, 4), "float32"), graph.tensor("y", (1, 4, 4), "float32")
    limits = [graph.constant(f"c{i}", [n, n]) for i, n in enumerate((0, 4, 1))]
    graph.op("STRIDED_SLICE", [x, *limits], [y], "StridedSliceOptions", newAxisMask=1)
    if own:
        z = graph.tensor("z", (1, 4, 4), "float32")
        graph.op("SIGN", [y], [z])
        y = z
    graph.outputs(y)
    return net.finish()


def test_what_tflm_does_not_run_is_not_planned_without_a_search_either() -> None:
    """Also where no rule tells."""
    data = with_a_new_axis()
    assert cannot_run(read_model(data), load_target(HOST_RUNTIME)) == []
    with pytest.raises(ModelError, match="TFLM cannot run the model") as refused:
        api.plan(data)
    said = str(refused.value)
    assert refused.value.exit_code == 5 and "STRIDED_SLICE 'y' of float32" in said
    assert "nothing was written" in said and "--no-verify" in said and "--portable" not in said
    with pytest.raises(ModelError, match="TFLM cannot run the model"):
        stream(data, api.VerifyOptions(), tiles=None)


@pytest.mark.parametrize(
    ("data", "proof"),
    [
        (with_a_new_axis(), None),
        (with_a_new_axis(), VerifyOptions(runtimes=("LiteRT",))),
        (with_a_new_axis(), VerifyOptions(arena=64)),  # it may be want of memory
        (with_a_new_axis(own=True), VerifyOptions()),  # the firmware's own
    ],
)
def test_what_may_run_on_boards_is_planned(data: bytes, proof: VerifyOptions | None) -> None:
    assert api.plan(data, options=api.PlanOptions(verify=proof)).data


def test_what_newer_tflm_alone_refuses_is_planned_for_older() -> None:
    """The TFLM that is installed here is newer."""
    net = Net()
    graph = net.graph()
    x, y = graph.input("x", (4, 8), scale=0.5), graph.tensor("y", (0, 8), scale=0.5)
    begin, size = graph.constant("begin", [0, 0]), graph.constant("size", [0, 8])
    graph.op("SLICE", [x, begin, size], [y])
    z = graph.tensor("z", (4, 8), scale=0.5)
    graph.op("RELU", [x], [z])
    graph.outputs(z, y)
    data = net.finish()
    old = api.MemoryOptions(kernels=api.kernels_of(load_target("arduino-2023")))
    assert not api.plan(data, options=api.PlanOptions(old)).report.cannot_run
    with pytest.raises(ModelError, match="a result of 0 x 8"):
        api.plan(data)


@pytest.mark.parametrize("why", ["MemoryError", "(SIGKILL)", "Failed to get registration from"])
def test_what_only_this_machine_lacks_is_told_from_what_the_model_is(why: str) -> None:
    assert is_of_this_machine(f"it failed: {why} ...")
    assert not is_of_this_machine("Node RELU (number 0) failed to prepare with status 1")


def tiled(**permission: bool) -> api.PlanOptions:
    return api.PlanOptions(tiles=api.TilePermission(**permission))


def test_what_tflm_does_not_run_is_refused_before_the_search() -> None:
    with pytest.raises(ModelError, match="TFLM cannot run the model") as refused:
        api.plan(maximum_of_int16(), None, tiled(), until_searched)
    assert "REDUCE_MAX 'z' (number 1)" in str(refused.value) and "--portable" in str(refused.value)


@pytest.mark.slow
def test_what_litert_can_prove_is_searched() -> None:
    for options in (tiled(dialect=False), api.PlanOptions(tiles=api.TilePermission(), verify=None)):
        with pytest.raises(SearchedError):
            api.plan(maximum_of_int16(), None, options, until_searched)


def test_splits_of_what_nothing_proves_are_refused_unless_nothing_is_to_be_proved() -> None:
    with pytest.raises(ModelError, match=r"no runtime here can run the model.*--no-verify"):
        stream(MODELS["strings"].make(), api.VerifyOptions())
    for proof in (api.VerifyOptions(), None):  # terms prove what no runtime knows
        with pytest.raises(ModelError, match="cannot be streamed"):
            stream(one_operator("CUSTOM", "Mystery"), proof)


def test_what_no_runtime_knows_is_planned_where_terms_prove_it() -> None:
    with pytest.raises(SearchedError):
        api.plan(one_operator("CUSTOM", "Mystery"), None, tiled(), until_searched)
    with pytest.raises(ModelError, match="type string"):
        api.plan(MODELS["strings"].make(), None, tiled(), until_searched)


def stream(
    data: bytes,
    proof: api.VerifyOptions | None,
    tiles: api.TilePermission | None = DEFAULT_TILES,
) -> None:
    options = api.StreamOptions(verify=proof, tiles=tiles)
    api.stream_input(data, None, options, on_progress=until_searched)


@pytest.mark.slow
def test_operators_that_tflm_does_not_know_are_tiled_as_litert_can_prove() -> None:
    """They may be the firmware's own."""
    data, tiles = one_operator("SIGN"), api.TilePermission(max_slowdown=1.3)
    found = proving.check_provable(data, read_model(data), tiles, VerifyOptions(), lambda _: None)
    assert found == api.TilePermission(max_slowdown=1.3, dialect=False)
    assert (
        proving.check_provable(data, read_model(data), None, VerifyOptions(), lambda _: None)
        is None
    )


@pytest.mark.parametrize("data", [CNN.read_bytes(), chain((3, 1, 4)), MODELS["while_loop"].make()])
def test_what_runs_is_searched(data: bytes) -> None:
    with pytest.raises(SearchedError):
        api.plan(data, None, tiled(), until_searched)
    assert why_unable(data, "TFLM") is None


def test_whoever_computes_for_long_was_not_refused() -> None:
    assert why_unable(maximum_of_int16(), "TFLM", VerifyOptions(time_limit=0.0)) is None


def test_no_answer_is_told_from_a_refusal() -> None:
    session = Session("TFLM", CNN, arena=1 << 22, outputs=1, time_limit=0.5)
    with session, pytest.raises(RuntimeTimeoutError, match="no answer within"):
        session.describe()
        session.receive()  # nothing was asked
    assert why_unable(CNN.read_bytes(), "TFLM", VerifyOptions(runtimes=("LiteRT",))) == "not asked"
