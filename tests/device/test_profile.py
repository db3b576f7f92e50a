"""Profiles: operators alone, measured on a board, and the search that uses them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.command import Run
from tests.conftest import CNN, needs_tflm
from tests.device.profile_rows import BOARD, M4, cnn_rows, form, row
from tests.device.proxy import Fake, Proxy
from tests.models.handmade import MODELS
from tests.models.small import Chain
from tests.short_searches import short_search
from tflm_planner.cost import Watch, latency_of, measured_of, profile_target, with_source
from tflm_planner.cost.case import Case
from tflm_planner.device.profiling.database import (
    BoardRow,
    LatencyRow,
    ProfileDatabase,
    operator_text,
)
from tflm_planner.device.profiling.profile import Shapes, profile, profiled_target
from tflm_planner.device.profiling.single_operator import can_stand_alone, single
from tflm_planner.device.protocol import messages as m
from tflm_planner.device.protocol.framing import Frame
from tflm_planner.device.protocol.line import LineError
from tflm_planner.device.protocol.link import Timing
from tflm_planner.device.protocol.station import Station
from tflm_planner.device.virtual.host_runtime import HostEngine
from tflm_planner.device.virtual.responder import RefusedRequest
from tflm_planner.device.virtual.virtual_board import VirtualBoard, virtual_capabilities
from tflm_planner.model.clone import clone
from tflm_planner.model.extract import extract_interval
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.support.errors import UsageError
from tflm_planner.support.progress import silent
from tflm_planner.tflm.targets import load_target

QUICK = Timing(answer=0.2, repeats=2, patience=0.5, greeting=0.5)


@needs_tflm
def test_every_operator_runs_alone_and_is_the_same_case() -> None:
    engine = HostEngine()
    tried = 0
    for name, handmade in MODELS.items():
        try:
            engine.load(handmade.make(), 1 << 22)
        except RefusedRequest:
            continue  # TFLM refuses the whole model too
        for op in read_model(handmade.make()).ops():
            if not can_stand_alone(op):
                continue
            tried += 1
            data = single(op)
            (alone,) = read_model(data).main.ops
            assert alone.kind == op.kind
            if all(t.type_name not in ("int32", "int64") or t.is_constant for t in op.operands()):
                assert form(alone) == form(op), name
            engine.load(data, 1 << 22)
            engine.run(engine.fill(1), 1)
    engine.close()
    assert tried > 50


def test_taking_an_operator_out_leaves_the_model_as_it_is() -> None:
    from tflm_planner.model.serde import write_model

    model = read_model(CNN.read_bytes())
    before = write_model(model)
    for op in model.ops():
        single(op)
    assert write_model(model) == before


def test_control_flow_and_state_are_left_out() -> None:
    shapes = Shapes()
    for handmade in MODELS.values():
        shapes.add_model(handmade.make())
    assert {"WHILE", "IF", "SVDF"} <= set(shapes.left_out)
    assert not {case.kind for case in shapes.models} & {"WHILE", "IF", "CALL_ONCE", "VAR_HANDLE"}
    assert len({operator_text(case) for case in shapes.models}) == len(shapes.models)


def test_what_stands_for_readers_is_told_by_no_name() -> None:
    """The search's own operator is not measured; one of a file is, whatever it calls its result."""
    model = read_model(CNN.read_bytes())
    part = clone(extract_interval(model, model.main.ops[:2], ()))
    *_, stand_in = part.main.ops
    for tensor in model.tensors():
        tensor.name = stand_in.outputs[0].name
    shapes, expected = Shapes(), Shapes()
    for op in part.main.ops:
        shapes.add(op)
    for op in model.main.ops[:2]:
        expected.add(op)
    assert shapes.models and shapes.models.keys() == expected.models.keys()
    assert not shapes.left_out and not expected.left_out


def test_a_watch_hears_every_operator_whose_cost_is_asked() -> None:
    model, heard = read_model(CNN.read_bytes()), []
    latency_of(model, with_source(M4, Watch(heard.append)))
    assert heard == list(model.ops())


@pytest.fixture
def fake() -> Iterator[tuple[VirtualBoard, Fake]]:
    engine = Fake()
    with VirtualBoard(virtual_capabilities(), engine) as board:
        yield board, engine


def cnn_shapes() -> Shapes:
    shapes = Shapes()
    shapes.add_model(CNN.read_bytes())
    return shapes


def test_what_is_known_is_not_measured_again(fake, tmp_path: Path) -> None:
    board, _ = fake
    shapes = cnn_shapes()
    with (
        ProfileDatabase(tmp_path / "p.db", create=True) as db,
        Station(board.port, 115200, QUICK) as station,
    ):
        done = profile(station, shapes, db, 3, False, silent)
        assert (done.measured, done.known) == (len(shapes.models), 0)
        done = profile(station, shapes, db, 3, False, silent)
        assert (done.measured, done.known) == (0, len(shapes.models))
        done = profile(station, shapes, db, 3, True, silent)
        assert done.measured == len(shapes.models)


def test_what_the_board_refuses_is_told_and_the_rest_measured(fake, tmp_path: Path) -> None:
    board, engine = fake
    shapes = cnn_shapes()
    load = engine.load

    def picky(data: bytes, arena: int):
        if read_model(data).main.ops[0].kind == "SOFTMAX":
            raise RefusedRequest(m.Error.OPERATOR_MISSING, 0, "SOFTMAX")
        return load(data, arena)

    engine.load = picky
    with (
        ProfileDatabase(tmp_path / "p.db", create=True) as db,
        Station(board.port, 115200, QUICK) as station,
    ):
        done = profile(station, shapes, db, 3, False, silent)
        assert len(done.failed) == 1
        assert "SOFTMAX is not registered" in done.failed[0]
        assert done.measured == len(shapes.models) - 1


def test_an_operator_that_resets_the_board_is_left_out(fake, tmp_path: Path) -> None:
    board, engine = fake
    shapes = cnn_shapes()
    bad = next(d for c, d in shapes.models.items() if c.kind == "SOFTMAX")
    engine.on_run = lambda: board.reset(3) if engine.data == bad else None
    lost = Timing(answer=0.2, repeats=2, patience=0.5, greeting=0.5)

    def drop(frame: Frame, count: int):
        """A board that is reset in Invoke does not answer it."""
        dying = engine.data == bad and frame.type == m.Command.INVOKE | m.REPLY
        return [] if dying and frame.status == m.DONE else None

    with (
        Proxy(board, to_host=drop) as proxy,
        ProfileDatabase(tmp_path / "p.db", create=True) as db,
        Station(proxy.port, 115200, lost) as station,
    ):
        done = profile(station, shapes, db, 3, False, silent)
        assert len(done.failed) == 1
        assert "reset" in done.failed[0]
        assert station.retries >= 1
        assert done.measured == len(shapes.models) - 1


def test_interrupted_keeps_what_was_measured(fake, tmp_path: Path) -> None:
    board, _ = fake

    def interrupt(message: str) -> None:
        if message.startswith("measuring 6 "):
            raise KeyboardInterrupt

    with (
        ProfileDatabase(tmp_path / "p.db", create=True) as db,
        Station(board.port, 115200, QUICK) as station,
    ):
        done = profile(station, cnn_shapes(), db, 3, False, interrupt)
        assert done.interrupted
        (kept_on,) = db.boards()
        assert done.measured == len(list(db.latencies(kept_on))) == 5


def test_unplugged_keeps_what_was_measured(fake, tmp_path: Path) -> None:
    board, _ = fake

    def pull(frame: Frame, count: int):
        if frame.type == m.Command.ALLOCATE and count == 7:
            proxy.unplug()

    with ProfileDatabase(tmp_path / "p.db", create=True) as db:
        with Proxy(board, to_board=pull) as proxy:
            station = Station(proxy.port, 115200, QUICK, comes_back=0.3)
            with station, pytest.raises(LineError):
                profile(station, cnn_shapes(), db, 3, False, silent)
        (kept_on,) = db.boards()
        assert len(list(db.latencies(kept_on))) == 5  # two of the seven were chains


def database(path: Path, rows: dict[Case, LatencyRow], board: BoardRow = BOARD) -> ProfileDatabase:
    db = ProfileDatabase(path, create=True)
    db.add(board, rows.values())
    return db


def test_measured_operators_cost_what_was_measured(tmp_path: Path) -> None:
    rows = cnn_rows()
    with database(tmp_path / "p.db", rows) as db:
        target = profiled_target(M4, db)
    model = read_model(CNN.read_bytes())
    for cost in latency_of(model, target).by_op:
        ns = rows[form(cost.op)].minimum_ns
        assert cost.each.instructions == pytest.approx(ns * 0.064, abs=1)
    assert latency_of(model, target).clock == 64_000_000
    device = measured_of(target)
    assert device is not None and device.held_out is not None
    # These latencies are the built-in model's, scaled: it must find that out.
    assert device.held_out.most < 0.05


def test_shapes_not_measured_are_fitted(tmp_path: Path) -> None:
    model = read_model(CNN.read_bytes())
    rows = cnn_rows()
    hidden = list(rows)[::4]
    with database(tmp_path / "p.db", {c: r for c, r in rows.items() if c not in hidden}) as db:
        target = profiled_target(M4, db)
    for cost in latency_of(model, target).by_op:
        if form(cost.op) in hidden:
            wanted = rows[form(cost.op)].minimum_ns * 0.064
            assert cost.each.instructions == pytest.approx(wanted, rel=0.1)
            assert cost.each.estimated


def test_a_fit_to_a_device_that_is_unlike_the_built_in_one() -> None:
    """Latencies with another law for convolutions: fitted, where there are enough."""
    model = read_model(CNN.read_bytes())
    cases = {form(op): op for op in model.ops()}
    law = {c: 5_000.0 + 3.0 * c.result.elements for c in cases}
    target = profile_target(M4, "odd", "", 1_000_000, law)
    device = measured_of(target)
    assert device is not None and device.held_out is not None
    assert device.held_out.count == len(cases)
    assert 0 <= device.held_out.median <= device.held_out.most


def test_which_board_of_a_database(tmp_path: Path) -> None:
    rows = cnn_rows()
    other = BoardRow("c", "Cortex-M7", "cmsis-nn", "current", "1", "cortex-m7/cmsis-nn", 1, False)
    with database(tmp_path / "p.db", rows) as db:
        newer = BoardRow(*[*(getattr(BOARD, n) for n in BOARD.__slots__[:4]), "2", *(getattr(BOARD, n) for n in BOARD.__slots__[5:])])  # noqa: E501  # fmt: skip
        case = next(iter(rows))
        db.add(newer, [row(operator_text(case), 1e6, "2030")])
        target = profiled_target(load_target("cortex-m7/cmsis-nn"), db)  # the only one there is
        assert measured_of(target).exact[case] == pytest.approx(64_000)  # the later firmware's
        db.add(other, [row(operator_text(case), 1)])
        assert measured_of(profiled_target(M4, db)).name == "b"
        with pytest.raises(UsageError, match="several boards"):
            profiled_target(load_target("cortex-m55/cmsis-nn"), db)
    with ProfileDatabase(tmp_path / "e.db", create=True) as empty, pytest.raises(UsageError):
        profiled_target(M4, empty)


@needs_tflm
@pytest.mark.slow
def test_profile_and_plan_through_a_virtual_board(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model is small and the search ends by counting, however busy the machine is."""
    small = partial(api.TilePermission, search_budget=short_search(300))
    monkeypatch.setattr(api, "TilePermission", small)
    path, out, model = (tmp_path / name for name in ("p.db", "out.tflite", "in.tflite"))
    chain = Chain((1, 12, 12, 4))
    chain.conv(16, 3)
    chain.conv(4, 1)
    model.write_bytes(chain.finish())
    with VirtualBoard() as board:
        done = Run(
            ["profile", model, "-p", board.port, "--db", path, "--runs", "3", "--tiles",
             "--time-limit", "300", "--export", tmp_path / "p.csv"],
            capsys,
        )  # fmt: skip
    assert done.code == 0, done.err
    measured = len((tmp_path / "p.csv").read_text().splitlines()) - 1
    assert measured > 4  # tiles too
    done = Run(
        [model, out, "--profile", path, "-t", "x86-64/wheel", "--inputs", "2", "--json",
         "--time-limit", "2"],
        capsys,
    )  # fmt: skip
    assert done.code == 0, done.err
    notes = json.loads(done.out)["notes"]
    assert any("profile of virtual" in note and "held out" in note for note in notes)


def test_the_command_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    db = tmp_path / "p.db"
    assert "nothing to do" in Run(["profile", "--db", db], capsys).refused(2)
    assert not db.exists()
    Run(["profile", CNN, "--db", db, "-p", tmp_path / "none"], capsys).refused(6)
    Run(["profile", "--db", db, "--export", tmp_path / "p.txt"], capsys).refused(2)
    none = ["--profile", tmp_path / "none.db"]
    assert "no profile" in Run([CNN, tmp_path / "o.tflite", *none], capsys).refused(2)
