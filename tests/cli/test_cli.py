"""The command line from outside: exit codes, and what is printed where."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.plain_plans import PLAIN, files
from tests.fuzz.shell import COMMAND, call
from tests.models.handmade import MODELS
from tests.transforms.row_loops import chain


def test_a_model_is_planned_proved_and_written(model: Path, tmp_path: Path) -> None:
    """The real process, with the runtimes."""
    done = call([str(model), str(tmp_path / "out.tflite"), "--inputs", "2", *PLAIN])
    assert done.returncode == 0, done.stderr
    assert files(tmp_path) == {"in.tflite", "out.tflite"}
    done = call(["verify", str(model), str(tmp_path / "out.tflite"), "--inputs", "2", "--json"])
    assert done.returncode == 0, done.stderr
    json.loads(done.stdout)


@pytest.mark.slow
def test_over_budget_is_3_and_written(model: Path, tmp_path: Path, run) -> None:
    out = tmp_path / "out.tflite"
    done = run(model, out, "--budget", "16", "--no-verify")
    assert done.code == 3
    assert out.exists()


@pytest.mark.slow
def test_different_outputs_are_4(tmp_path: Path) -> None:
    a, b = tmp_path / "a.tflite", tmp_path / "b.tflite"
    data = MODELS["chain"].make()
    a.write_bytes(data)
    from tests.fuzz.seeds import packed
    from tests.models.build import schema

    other = schema.ModelT.InitFromPackedBuf(data, 0)
    weights = max((b for b in other.buffers if b.data is not None), key=lambda b: len(b.data))
    weights.data = weights.data ^ 0x55
    b.write_bytes(packed(other))
    done = call(["verify", str(a), str(b), "--inputs", "2"])
    assert done.returncode == 4, done.stderr
    assert "Traceback" not in done.stderr


def test_a_damaged_model_is_5(tmp_path: Path, run) -> None:
    path, out = tmp_path / "in.tflite", tmp_path / "out.tflite"
    path.write_bytes(MODELS["chain"].make()[:300])
    assert "damaged model" in run(path, out).refused(5)
    assert "damaged model" in run("inspect", path).refused(5)
    assert "damaged model" in run("verify", path, path, "--json").refused(5)
    assert files(tmp_path) == {"in.tflite"}


@pytest.mark.parametrize(
    "options",
    [
        ["--budget", "many"],
        ["--order", "fastest"],
        ["--order", "--"],
        ["--allocator", "none"],
        ["--time-limit", "0"],
        ["--time-limit", "nan"],
        ["--time-limit", "-1"],
        ["--report", "report.pdf"],
        ["--report", "nowhere/report.json"],
        ["--seed", "-1"],
        ["--inputs", "0"],
        ["--unknown"],
        ["--target", "cortex-m99"],
    ],
)
def test_wrong_options_are_2_and_nothing_is_written(
    model: Path, tmp_path: Path, run, options: list[str]
) -> None:
    done = run(model, tmp_path / "out.tflite", *options)
    assert done.code == 2, done.err
    assert done.out == ""
    assert "Traceback" not in done.err
    assert files(tmp_path) == {"in.tflite"}


@pytest.mark.parametrize(
    "options",
    [
        ["--time-limit", "inf"],
        ["--seed", "99999999999999999999"],
        ["--inputs", "999999999999"],
        ["--budget", "0"],
        ["--budget", "99999999M"],
        ["--time-limit", "0.001"],
    ],
)
@pytest.mark.slow
def test_extreme_options_do_no_harm(model: Path, tmp_path: Path, run, options: list[str]) -> None:
    done = run(model, tmp_path / "out.tflite", "--no-verify", *options)
    assert done.code in (0, 2, 3), done.err
    assert (tmp_path / "out.tflite").exists() == (done.code != 2)


def test_json_is_one_document_and_nothing_else(model: Path, tmp_path: Path, run) -> None:
    done = run(model, tmp_path / "out.tflite", "--no-verify", "--json")
    assert json.loads(done.out)
    assert done.err == ""
    done = run("inspect", model, "--json")
    assert json.loads(done.out)
    assert done.err == ""
    done = run(model, tmp_path / "b.tflite", "--no-verify", "--json", "--verbose")
    assert json.loads(done.out)


def test_quiet_says_nothing(model: Path, tmp_path: Path, run) -> None:
    done = run(model, tmp_path / "out.tflite", "--no-verify", "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")


@pytest.mark.parametrize("name", [b"a\nb", b"\x1b[31m\x07", b"\xff\xfe", "\u202e".encode()])
def test_names_in_a_model_cannot_forge_output(tmp_path: Path, run, name: bytes) -> None:
    from tests.fuzz.seeds import packed
    from tests.models.build import Net

    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 4))
    y = graph.tensor("y", (1, 4))
    graph.custom("odd", [x], [y], b"")
    graph.outputs(y)
    graph.table.name = graph.table.tensors[y].name = net.model.operatorCodes[0].customCode = name
    path = tmp_path / "in.tflite"
    path.write_bytes(packed(net.model))
    for arguments in (["inspect", path], ["inspect", path, "--text"], ["inspect", path, "--json"]):
        done = run(*arguments)
        assert done.code == 0, done.err
        assert all(line.isprintable() for line in done.out.splitlines()), done.out
        assert "a\nb" not in done.out
    done = run(path, tmp_path / "out.tflite", "--no-verify")
    assert done.code == 0, done.err
    assert all(line.isprintable() for line in done.out.splitlines()), done.out


def test_a_reader_that_goes_away(model: Path) -> None:
    """`tflm-plan inspect m | head -1`: no traceback."""

    with subprocess.Popen(
        [*COMMAND, "inspect", str(model)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        error = process.stderr.read().decode()
    assert "Traceback" not in error
    assert "internal" not in error


@pytest.mark.slow
def test_stream_input_writes_front_back_and_header(run, tmp_path: Path) -> None:
    model = tmp_path / "net.tflite"
    model.write_bytes(chain((3, 1, 8), (3, 2, 8), (1, 1, 16), (3, 2, 8), size=32))
    front, back, header = (tmp_path / n for n in ("front.tflite", "back.tflite", "net.h"))
    arguments = ("stream-input", model, front, back, "--header", header, "--time-limit", 5)
    done = run(*arguments, "--inputs", 2, "--json")
    document = json.loads(done.out)
    assert done.code == 0 and document["sram_before"] == 3196
    assert document["sram"] == document["front"]["persistent"] + document["back"]["arena"]
    assert document["verified"] and "namespace net_strips" in header.read_text()
    before = {p: p.read_bytes() for p in (front, back, header)}
    assert "exists" in run(*arguments).refused(2)
    assert {p: p.read_bytes() for p in before} == before
    again = run(*arguments, "--force", "--end", 1, "--inputs", 2)
    assert again.code == 0 and "splitting does not pay" in again.out  # for so small an image
    assert "2 operators of the model (to number 1)" in again.out
    assert "AddGather" in again.out and "yes, the pair computes the same bits" in again.out


def test_stream_input_refuses(run, model: Path, tmp_path: Path) -> None:
    front, back = tmp_path / "front.tflite", tmp_path / "back.tflite"
    assert "different files" in run("stream-input", model, front, front).refused(2)
    assert "there are operators 0 to 1" in run(
        "stream-input", model, front, back, "--end", 99
    ).refused(2)
    assert "below 1" in run("stream-input", model, front, back, "--max-slowdown", 0.5).refused(2)
    model.write_bytes(MODELS["unused_input"].make())
    assert "inputs" in run("stream-input", model, front, back).refused(5)
    assert files(tmp_path) == {"in.tflite"}
