"""What verification says of runtimes that break, and of results that do."""

from __future__ import annotations

import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CNN, needs_tflm
from tests.models.build import Net
from tests.models.handmade import MODELS
from tests.models.registry import IMAGE, SCALE, conv, relu, start
from tests.models.small import One
from tests.processes import kill_children, posix_only, started_children  # noqa: F401 (a fixture)
from tflm_planner.model.serde import read_model
from tflm_planner.ops.window import ROWS
from tflm_planner.pipeline import api
from tflm_planner.support.errors import ModelError
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion
from tflm_planner.verification import VerifyOptions, verify
from tflm_planner.verification import compare as compare_module
from tflm_planner.verification.session import (
    RuntimeFailureError,
    RuntimeTimeoutError,
    Session,
)


class Crashing(Session):
    """The runtime of the result is killed at its first invoke."""

    def __init__(self, runtime: str, model: Path, **more: Any) -> None:
        super().__init__(runtime, model, **more)
        self.model = model

    def send(self, values: list[Any]) -> None:
        if self.model.stem == "result":
            assert kill_children(str(self.model), signal.SIGSEGV) == 1
        super().send(values)


class CrashingEverywhere(Crashing):
    """The runtime of the original is killed too, when it ends."""

    def crash(self) -> str | None:
        kill_children(str(self.model), signal.SIGABRT)
        return super().crash()


@posix_only
@pytest.mark.usefixtures("started_children")
@pytest.mark.parametrize(
    "session, status, reason",
    [
        (Crashing, "different", "fails where the original runs"),
        (CrashingEverywhere, "cannot run original", "its own memory"),
    ],
)
def test_a_crash_is_the_results_fault_unless_the_original_crashes_too(
    session: type[Session], status: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A runtime that damages its own memory on the original says nothing of the result."""
    monkeypatch.setattr(compare_module, "Session", session)
    data = CNN.read_bytes()
    (check,) = verify(data, data, VerifyOptions(inputs=2, runtimes=("LiteRT",))).checks
    assert check.status == status and reason in check.detail


class Silent(Session):
    """The runtime of the result gives so many answers (the first is that it has loaded), then none
    in time."""

    answers = 0

    def __init__(self, runtime: str, model: Path, **more: Any) -> None:
        super().__init__(runtime, model, **more)
        self.left = self.answers if model.stem == "result" else 1000

    def receive(self) -> Any:
        self.left -= 1
        if self.left < 0:
            raise RuntimeTimeoutError("no answer within 1 s")
        return super().receive()


class SilentLater(Silent):
    """It loads, and answers once."""

    answers = 2


@pytest.mark.parametrize("session", [Silent, SilentLater])
def test_a_result_that_does_not_answer_in_time_is_no_difference(
    session: type[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine may be busy: that must decide nothing."""
    monkeypatch.setattr(compare_module, "Session", session)
    data = CNN.read_bytes()
    with pytest.raises(ModelError, match="nothing is proved"):
        verify(data, data, VerifyOptions(inputs=2, runtimes=("LiteRT",)))


class OriginalEnds(Session):
    """The runtime of the original is killed at its third input."""

    def __init__(self, runtime: str, model: Path, **more: Any) -> None:
        super().__init__(runtime, model, **more)
        self.model, self.left = model, 2

    def send(self, values: list[Any]) -> None:
        if self.model.stem == "original" and self.left == 0:
            assert kill_children(str(self.model), signal.SIGSEGV) == 1
        self.left -= 1
        with suppress(RuntimeFailureError):  # what is sent may meet the end
            super().send(values)


@posix_only
@pytest.mark.usefixtures("started_children")
def test_an_original_that_ends_early_is_compared_so_far_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compare_module, "Session", OriginalEnds)
    data = CNN.read_bytes()
    (check,) = verify(data, data, VerifyOptions(inputs=5, runtimes=("LiteRT",))).checks
    assert (check.status, check.inputs) == ("equal", 2)
    assert "stopped at" in check.detail and "SIGSEGV" in check.detail


@needs_tflm
@pytest.mark.parametrize("runtime", ["LiteRT", "TFLM"])
def test_outputs_that_never_change_are_told(runtime: str) -> None:
    """Equality proves nothing then."""

    def times(factor: int) -> bytes:
        net, graph, x = start()
        y = graph.tensor("y", IMAGE, scale=SCALE)
        graph.op("MUL", [x, graph.constant("c", [factor], "int8", scale=0.5)], [y], "MulOptions")
        graph.outputs(y)
        return net.finish()

    options = VerifyOptions(inputs=3, runtimes=(runtime,))
    for factor, vary in ((0, False), (2, True)):
        (check,) = verify(times(factor), times(factor), options).checks
        assert (check.status, check.outputs_vary) == ("equal", vary), factor


@needs_tflm
@pytest.mark.parametrize("runtime", ["LiteRT", "TFLM"])
def test_a_session_that_ends_well_did_not_crash(runtime: str) -> None:
    with Session(runtime, CNN, arena=1 << 22, outputs=1, time_limit=60) as session:
        session.describe()
        assert session.crash() is None
        with pytest.raises(RuntimeFailureError, match="exit code 0"):
            session.receive()


@needs_tflm
@pytest.mark.parametrize("runtime", ["LiteRT", "TFLM"])
def test_every_output_is_compared(runtime: str) -> None:
    """The first is equal, and the last is not."""

    def two(last: str) -> bytes:
        net, graph, x = start()
        graph.outputs(conv(graph, x, IMAGE, "a"), conv(graph, x, IMAGE, last))  # other filters
        return net.finish()

    options = VerifyOptions(inputs=2, runtimes=(runtime,))
    (check,) = verify(two("b"), two("longer"), options).checks
    assert check.status == "different" and "output 1" in check.detail
    (check,) = verify(two("b"), two("b"), options).checks
    assert check.status == "equal"


@needs_tflm
def test_the_arena_has_room_for_the_original_too() -> None:
    """x and what was made of it on the way, which the result leaves out: four million bytes."""

    def relu_of(*, by_way_of: int) -> bytes:
        one = One((1, 64))
        x = one.x
        if by_way_of:
            wide, x = one.tensor((1, by_way_of)), one.tensor((1, 64))
            pads = one.graph.constant("pads", [[0, 0], [0, by_way_of - 64]])
            one.graph.op("PAD", [one.x, pads], [wide], "PadOptions")
            one.graph.op("SLICE", [wide, one.integers(0, 0), one.integers(1, 64)], [x])
        return one.finish((x, (1, 64)))

    options = VerifyOptions(inputs=2, runtimes=("TFLM",))
    (check,) = verify(relu_of(by_way_of=1 << 22), relu_of(by_way_of=0), options).checks
    assert check.status == "equal", check


def test_models_with_other_outputs_are_not_compared() -> None:
    with pytest.raises(ModelError, match="different"):
        verify(MODELS["chain"].make(), CNN.read_bytes())


@needs_tflm
def test_a_difference_in_the_dialect_is_located_not_taken_for_damage() -> None:
    """A view that nothing writes is no damage to a file that is compared."""

    def two(name: str) -> bytes:
        net, graph, x = start()
        y = conv(graph, x, IMAGE, name)  # by its length other filters
        graph.outputs(conv(graph, relu(graph, y, IMAGE), IMAGE, "last"))
        return net.finish()

    bands = api.TilePermission(by_hand=(TiledRegion((0, 1, 2), (Split(ROWS, 2),)),))
    made = api.plan(two("a"), None, api.PlanOptions(tiles=bands, verify=None)).data
    assert read_model(made, dialect=True).has_views
    (check,) = verify(two("longer"), made, VerifyOptions(inputs=2, runtimes=("TFLM",))).checks
    assert check.status == "different", check
    (check,) = verify(two("a"), made, VerifyOptions(inputs=2, runtimes=("TFLM",))).checks
    assert check.status == "equal", check


def test_what_litert_computes_wrong_proves_nothing() -> None:
    """SUM of int16: TFLM alone is asked, and no report is asked for."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 4, 6), "int16", scale=0.01)
    y = graph.tensor("y", (1, 4, 1), "int16", scale=0.01)
    graph.op("SUM", [x, graph.constant("axes", [2])], [y], "ReducerOptions", keepDims=True)
    graph.outputs(y)
    check = next(c for c in verify(net.finish(), net.finish()).checks if c.runtime == "LiteRT")
    assert (
        check.status == "cannot run original"
        and "known to compute SUM of int16 wrong" in check.detail
    )


def test_no_runtime_is_asked_to_hold_what_no_microcontroller_holds() -> None:
    """Files of a few hundred bytes may declare any size."""
    net, graph, x = start((1, 1 << 15, 1 << 13, 1))
    graph.outputs(relu(graph, x, (1, 1 << 15, 1 << 13, 1)))
    started = time.monotonic()
    checks = verify(net.finish(), net.finish()).checks
    assert all("too large to be run here" in c.detail for c in checks)
    assert time.monotonic() - started < 5


def test_a_small_file_that_takes_long_is_compared_on_fewer_inputs() -> None:
    """Four tensors of four million elements in a kilobyte."""
    shape = (1, 2048, 2048, 1)
    net, graph, x = start(shape)
    for _ in range(3):
        x = relu(graph, x, shape)
    graph.outputs(x)
    (check,) = verify(net.finish(), net.finish(), VerifyOptions(runtimes=("LiteRT",))).checks
    assert (check.status, check.inputs) == ("equal", 4) and "not on 8" in check.detail


def test_a_planned_file_for_tflm_alone_is_no_original_and_is_told_so() -> None:
    """Also where no operator writes what the application reads."""
    tiles, source = api.TilePermission(workers=1), MODELS["branches_of_different_depth"].make()
    made = api.plan(source, None, api.PlanOptions(tiles=tiles, verify=None)).data
    assert any(t.is_view for t in read_model(made, dialect=True).main.outputs)
    with pytest.raises(ModelError, match=r"graph output 'joined' .*\(then give the original model"):
        verify(made, source)


def test_an_original_that_was_stripped_for_tflm_is_said_to_be() -> None:
    memory = api.MemoryOptions(strip="unread by TFLM")
    made = api.plan(CNN, None, api.PlanOptions(memory, verify=None)).data
    (check,) = verify(made, CNN.read_bytes(), VerifyOptions(runtimes=("LiteRT",))).checks
    assert check.status in ("cannot run original", "not available")
    assert "it is stripped for TFLM" in check.detail or "not installed" in check.detail


@needs_tflm
def test_a_result_whose_data_tflm_does_not_read_is_told_so() -> None:
    """TFLM would compute with whatever lies there; no operator is at fault."""
    net, graph, x = start()
    graph.outputs(conv(graph, x, IMAGE))
    behind = MODELS["data_behind_the_flatbuffer"].make()
    (check,) = verify(net.finish(), behind, VerifyOptions(runtimes=("TFLM",))).checks
    assert check.status == "different" and check.culprit is None
    assert "in the result, TFLM reads no data outside of the flatbuffer ('conv/filter')" in (
        check.detail
    )
