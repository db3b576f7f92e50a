"""measure: the command on a virtual board with real TFLM, and the figures on a fake one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from tests.command import Run
from tests.conftest import CNN, PUBLISHED, ROOT, needs_tflm, shared_models
from tests.device.proxy import ModelFake, Proxy
from tests.models.handmade import MODELS
from tests.models.handmade_flow import while_loop
from tflm_planner.device.measuring.energy import metered_power, stated_power
from tflm_planner.device.measuring.events import events
from tflm_planner.device.measuring.measure import (
    STATEFUL_STEPS,
    MeasureOptions,
    keeps_state,
    measure,
    prediction_target,
)
from tflm_planner.device.measuring.measurement import Measurement
from tflm_planner.device.measuring.report import render, to_csv, to_html, to_json
from tflm_planner.device.protocol import messages as m
from tflm_planner.device.protocol.board import BoardAllocation, BoardClient, connect
from tflm_planner.device.protocol.framing import Frame, encode
from tflm_planner.device.protocol.line import SerialLine
from tflm_planner.device.protocol.link import Link
from tflm_planner.device.virtual.host_runtime import HostEngine
from tflm_planner.device.virtual.responder import Loaded, RunResult
from tflm_planner.device.virtual.virtual_board import VirtualBoard, virtual_capabilities
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.support.errors import UsageError
from tflm_planner.support.progress import silent
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.lean.pool import WritePool
from tflm_planner.tflm.targets import load_target
from tflm_planner.transforms.base import run

SCHEMA = json.loads((ROOT / "schema" / "measurement.schema.json").read_text())


@pytest.fixture(scope="module")
def board() -> Iterator[VirtualBoard]:
    with VirtualBoard() as found:
        yield found


@needs_tflm
def test_the_command(
    board: VirtualBoard, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reports = [tmp_path / f"m{suffix}" for suffix in (".json", ".csv", ".html")]
    options = [part for path in reports for part in ("--report", path)]
    done = Run(
        ["measure", CNN, "-p", board.port, "--runs", "3", "--power", "40", *options, "--json"],
        capsys,
    )
    assert done.code == 0, done.err
    found = json.loads(done.out)
    jsonschema.validate(found, SCHEMA)
    assert json.loads(reports[0].read_text()) == found
    for size in found["sizes"]:
        assert size["difference"] == 0, size
    assert [o["equal"] for o in found["outputs"]] == [True]
    assert found["board"]["virtual"]
    energy = found["energy"]
    assert not energy["measured"]
    assert energy["joules"] == pytest.approx(0.04 * found["latency"]["median_seconds"])
    assert reports[2].read_text().count("<script") == 1  # the page's own


@needs_tflm
def test_published_models_need_what_is_predicted(board: VirtualBoard) -> None:
    """The smallest arena by bisection through the protocol, to the byte."""
    for path in shared_models()[:5]:
        host = connect(SerialLine(board.port))
        found = measure(host, path.name, path.read_bytes(), MeasureOptions(runs=1), silent)
        host.close()
        assert not found.differs, path
        for figure in found.sizes[1:]:
            assert figure.difference == 0, (path, figure)
        assert abs(found.sizes[0].difference or 0) <= 16, path


@needs_tflm
def test_outputs_that_differ_are_told(
    board: VirtualBoard, capsys: pytest.CaptureFixture[str]
) -> None:
    def spoil(frame: Frame, count: int) -> list[bytes] | None:
        """One bit of an output is wrong on the board, and the CRC says so too."""
        if frame.type != m.Command.OUTPUT | m.REPLY:
            return None
        data = bytearray(frame.payload[m.OUTPUT_REPLY.size :])
        data[0] ^= 1
        head = m.OUTPUT_REPLY.pack(len(data), __import__("zlib").crc32(bytes(data)), 0)
        return [encode(Frame(frame.type, 0, frame.sequence, head + bytes(data)))]

    with Proxy(board, to_host=spoil) as proxy:
        done = Run(["measure", CNN, "-p", proxy.port, "--runs", "1"], capsys)
    assert done.code == 4
    assert "1 BYTES DIFFER" in done.out
    assert "the board's outputs are not those" in done.err


@needs_tflm
def test_a_model_too_big_and_an_operator_missing(capsys: pytest.CaptureFixture[str]) -> None:
    with VirtualBoard(virtual_capabilities(100_000)) as small:
        line = Run(["measure", CNN, "-p", small.port], capsys).refused(6)
        assert "room for 100,000 in RAM" in line
    says = virtual_capabilities()
    few = m.capabilities(
        [
            (tag, m.U32.pack(0) if tag == m.Tag.FLAGS else value)
            for tag, value in [*m.items_of(says), (m.Tag.OPERATOR, b"CONV_2D")]
        ]
    )
    with VirtualBoard(few) as strict:
        line = Run(["measure", CNN, "-p", strict.port], capsys).refused(6)
        assert "does not register" in line
        assert "SOFTMAX" in line
        assert "CONV_2D," not in line.replace("DEPTHWISE_CONV_2D", "")


@needs_tflm
def test_a_model_that_is_compiled_in_is_not_uploaded(capsys: pytest.CaptureFixture[str]) -> None:
    data = CNN.read_bytes()
    says = virtual_capabilities(200_000, {"other": b"x", "cnn": data})  # 127 KB + arena: too much
    with VirtualBoard(says, models=(b"x", data)) as small:
        done = Run(["measure", CNN, "-p", small.port, "--runs", "1", "-v"], capsys)
        assert done.code == 0, done.err
        assert "uploading" not in done.err
        assert "equal to TFLM here" in done.out


class Forgetful(HostEngine):
    """TFLM that is new at every Invoke, so that variables start again."""

    def __init__(self) -> None:
        super().__init__()
        self._last = b"", 0

    def load(self, data: bytes, arena: int) -> Loaded:
        self._last = data, arena
        return super().load(data, arena)

    def run(self, inputs: list[bytes], number: int) -> RunResult:
        super().load(*self._last)
        return super().run(inputs, number)


@needs_tflm
@pytest.mark.parametrize("name", ["call_once", "svdf"])
def test_a_sequence_of_inputs_is_fed_to_models_that_keep_state(
    name: str, board: VirtualBoard
) -> None:
    """What a model keeps reaches the next Invoke; a board that forgets it is found out then."""
    data = MODELS[name].make()
    host = connect(SerialLine(board.port))
    found = measure(host, name, data, MeasureOptions(runs=1), silent)
    alone = [
        measure(host, name, data, MeasureOptions(runs=1, seed=step, steps=1), silent).outputs[0]
        for step in range(STATEFUL_STEPS)
    ]
    host.close()
    assert found.steps == STATEFUL_STEPS and not found.differs
    assert all(check.equal for check in alone)
    assert found.outputs[0].crc != alone[-1].crc, "the last Invoke alone gives another output"
    assert "equal to TFLM here in 8 Invokes in a row" in render(found)
    engine = Forgetful()
    with VirtualBoard(engine=engine) as forgetful:
        host = connect(SerialLine(forgetful.port))
        wrong = measure(host, name, data, MeasureOptions(runs=1), silent)
        first = measure(host, name, data, MeasureOptions(runs=1, steps=1), silent)
        host.close()
    engine.close()
    assert wrong.differs and wrong.outputs[0].first_wrong == 1
    assert "first in Invoke 2 of 8" in render(wrong)
    assert not first.differs
    jsonschema.validate(to_json(wrong), SCHEMA)


@needs_tflm
def test_a_published_wake_word_is_fed_a_sequence(
    board: VirtualBoard, capsys: pytest.CaptureFixture[str]
) -> None:
    model = PUBLISHED / "okay_nabu.tflite"
    done = Run(
        ["measure", model, "-p", board.port, "--runs", "1", "--steps", "40", "--json"], capsys
    )
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["steps"] == 40
    assert [output["equal"] for output in found["outputs"]] == [True]


def test_models_that_keep_state() -> None:
    named = {name: keeps_state(read_model(model.make())) for name, model in MODELS.items()}
    assert named["call_once"] and named["svdf"] and named["lstm"]
    assert not keeps_state(read_model(while_loop()))
    assert not keeps_state(read_model(CNN.read_bytes()))


def test_no_board(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no such port" in Run(["measure", CNN, "-p", tmp_path / "none"], capsys).refused(6)
    Run(["measure", CNN, "-p", tmp_path / "none", "--report", "x.pdf"], capsys).refused(2)
    both = ["--power", "1", "--current", CNN]
    Run(["measure", CNN, "-p", tmp_path / "none", *both], capsys).refused(2)


def timed_on(data: bytes, ticks: list[int], log_room: int = 1000) -> Measurement:
    says = virtual_capabilities()
    with_operators = [
        (tag, m.U32.pack(m.Feature.ALL_OPERATORS | m.Feature.OPERATORS))
        if tag == m.Tag.FLAGS
        else (tag, m.U32.pack(log_room))
        if tag == m.Tag.LOG_ROOM
        else (tag, value)
        for tag, value in m.items_of(says)
    ]
    with VirtualBoard(m.capabilities(with_operators), ModelFake(data, ticks)) as board:
        host = connect(SerialLine(board.port))
        options = MeasureOptions(runs=5, compare=False)
        return measure(host, "model", data, options, silent)


def test_operators_are_timed_one_by_one() -> None:
    data = CNN.read_bytes()
    model = read_model(data)
    found = timed_on(data, [10 * (n + 1) for n in range(len(model.main.ops))])
    assert [o.index for o in found.operators] == list(range(len(model.main.ops)))
    for n, op in enumerate(found.operators):
        assert op.time.minimum == pytest.approx((n + 1) * 10 / 100_000_000)
        assert op.time.median == pytest.approx(((n + 1) * 10 + 2) / 100_000_000)
        assert op.time.spread == pytest.approx(4 / 100_000_000)
    assert sum(o.measured for o in found.operators) == pytest.approx(1)
    assert sum(o.predicted for o in found.operators) == pytest.approx(1)
    jsonschema.validate(to_json(found), SCHEMA)
    assert len(to_csv(found).splitlines()) == 6 + len(found.operators)
    assert "CONV_2D" in to_html(found)


@pytest.mark.parametrize("log_room", [1, 20, 40, 100])
def test_a_log_that_holds_few_runs_or_none(log_room: int) -> None:
    data = CNN.read_bytes()
    count = len(read_model(data).main.ops)
    found = timed_on(data, [5] * count, log_room)
    assert found.latency.runs == 5
    if log_room > count:
        assert len(found.operators) == count
    else:
        assert found.operators == ()
        assert any("log holds" in note or "does not time" in note for note in found.notes)


def test_operators_of_loops_are_added_up() -> None:
    """A WHILE's time includes its graphs'; its row does not."""
    data = while_loop()
    model = read_model(data)
    begun = events(model)
    assert begun is not None
    kinds = [op.kind for op in begun]
    assert kinds.count("WHILE") == 1
    assert kinds.count("LESS") == 4  # the condition once more than the body
    at = kinds.index("WHILE")
    inside = [n for n, op in enumerate(begun) if op not in model.main.ops]
    ticks = [10 * (n + 1) for n in range(len(begun))]
    ticks[at] = 5000 + sum(ticks[n] for n in inside)
    found = timed_on(data, ticks)
    rows = {o.operator: o for o in found.operators}
    assert rows["LESS"].runs == 4
    least = sum(ticks[n] for n, kind in enumerate(kinds) if kind == "LESS")
    assert rows["LESS"].time.minimum == pytest.approx(least / 100_000_000)
    # In run r the WHILE is r longer, and so is each of those inside it.
    assert rows["WHILE"].time.minimum == pytest.approx((5000 + 4 * (1 - len(inside))) / 100_000_000)
    assert rows["WHILE"].time.spread == pytest.approx(4 * (len(inside) - 1) / 100_000_000)


def test_models_whose_order_is_not_known() -> None:
    models = [read_model(model.make()) for model in MODELS.values()]
    assert any(events(model) is None for model in models)  # an IF
    for model in models:
        if not any(op.called_graphs() for op in model.ops()):
            assert events(model) == model.main.ops


class LeanBoard(BoardClient):
    """A board with lean firmware. asked: whether lean, and from which size on, at each trial."""

    def __init__(self, port: str) -> None:
        super().__init__(Link(SerialLine(port)))
        self.asked: list[tuple[bool, int]] = []

    def allocate(
        self, *, smallest: bool = False, lean: bool = False, step: int = 16, lowest: int = 0
    ) -> BoardAllocation:
        self.asked.append((lean, lowest))
        return replace(super().allocate(smallest=smallest, step=step, lowest=lowest), lean=lean)


def test_lean_firmware_is_measured_against_lean_predictions() -> None:
    model = read_model(CNN.read_bytes())
    run(model, WritePool())
    data = write_model(model)
    target = load_target("cortex-m4/cmsis-nn")
    options = MeasureOptions(runs=2, compare=False, target=target, lean=True)
    with VirtualBoard(virtual_capabilities(), ModelFake(data, [10])) as board:
        host = LeanBoard(board.port)
        found = measure(host, "model", data, options, silent)
        by_name = replace(options, target=load_target("cortex-m4/cmsis-nn+lean"), lean=False)
        again = measure(host, "model", data, by_name, silent)
    expected = arena_of(read_model(data), load_target("cortex-m4/cmsis-nn+lean"))
    assert found.lean and found.target == "cortex-m4/cmsis-nn+lean"
    assert [s.predicted for s in found.sizes[:3]] == [expected.arena, expected.head, expected.tail]
    assert again.lean and again.sizes == found.sizes
    assert all(lean for lean, _ in host.asked)
    lowest = host.asked[0][1]
    assert expected.arena // 2 < lowest < expected.arena  # not from nothing: TFLM may fault


def test_lean_is_not_predicted_for_other_kernels(board: VirtualBoard) -> None:
    with pytest.raises(UsageError, match="cannot be lean"):
        prediction_target(MeasureOptions(lean=True), connect(SerialLine(board.port)).says)


def test_power_of_a_meter(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    idle, busy = ["0,1000"] * 300, ["0,9000", "0,11000"] * 100
    path.write_text("\n".join(["Timestamp(ms),Current(uA)", *idle, *busy, *idle]))
    power = metered_power(path, 3.0)
    assert power.measured
    assert power.watts == pytest.approx(3.0 * 0.010)
    path.write_text("t,current [mA]\n" + "0,5\n" * 30)
    assert metered_power(path, 2.0).watts == pytest.approx(0.010)
    for text in ("", "a,b\n", "t,current\n1,x\n", "t,current\n" + "0,1\n" * 5, "c\n" + "-1\n" * 50):
        path.write_text(text)
        with pytest.raises(UsageError):
            metered_power(path, 3.0)
    with pytest.raises(UsageError):
        stated_power(0, "here")


@needs_tflm
@pytest.mark.slow
def test_predictions_for_unread_kernels_are_at_least(
    board: VirtualBoard, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    reports = tmp_path / "r.csv", tmp_path / "r.html"
    options = [word for path in reports for word in ("--report", path)]
    asked = ["measure", CNN, "-p", board.port, "--runs", "1", "--target", "esp32s3"]
    done = Run([*asked, *options], capsys)
    assert done.code == 0, done.err
    assert "about" in done.out and "ESP-NN" in done.out
    assert "about" in reports[0].read_text() and "about" in reports[1].read_text()
    found = json.loads(Run([*asked, "--json"], capsys).out)
    assert [size["bound"] for size in found["sizes"]] == ["about"] * 4
    schema = Path(__file__).parents[2] / "schema" / "measurement.schema.json"
    jsonschema.Draft202012Validator(json.loads(schema.read_text())).validate(found)
