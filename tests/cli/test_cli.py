"""The command line from outside: exit codes, what is printed where, what is left on disk."""

from __future__ import annotations

import json
import os
import resource
import stat
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from tests.command import Run
from tests.fuzz.shell import COMMAND, call
from tests.models.handmade import MODELS
from tests.models.small import narrow_rows
from tests.transforms.row_loops import chain
from tflm_planner.cli import choices
from tflm_planner.cli.plan import PlanArguments
from tflm_planner.pipeline.options import ALLOCATORS, ENDS, ORDERS
from tflm_planner.tiling.search import OBJECTIVES

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="uses /proc and /dev")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A small model in a folder of its own."""
    path = tmp_path / "in.tflite"
    path.write_bytes(narrow_rows())
    return path


PLAIN = ("--search", "none")
"""Order and plan alone: tiles are not what these tests are about."""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    """The command in this process; plans without tiles."""

    def run(*arguments: object) -> Run:
        plain = () if arguments[0] in ("verify", "inspect") else PLAIN
        return Run([*arguments, *plain], capsys)

    return run


def files(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()}


# --- exit codes ---------------------------------------------------------------------------------


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
    from tests.fuzz.mutations import packed
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


# --- paths --------------------------------------------------------------------------------------


def test_paths_that_cannot_be_read(model: Path, tmp_path: Path, run) -> None:
    out = tmp_path / "out.tflite"
    assert "no such file" in run(tmp_path / "missing.tflite", out).refused(2)
    assert "is a directory" in run(tmp_path, out).refused(2)
    assert "too long" in run("x" * 5000, out).refused(2)
    assert "cannot read" in run(model / "below", out).refused(2)
    for verb in ("inspect", "verify"):
        missing = [tmp_path / "missing.tflite"] * (1 + (verb == "verify"))
        assert "no such file" in run(verb, *missing).refused(2)


def test_paths_that_cannot_be_written(model: Path, tmp_path: Path, run) -> None:
    assert "is a directory" in run(model, tmp_path).refused(2)
    assert "no folder" in run(model, tmp_path / "none" / "out.tflite").refused(2)
    assert "too long" in run(model, tmp_path / ("x" * 300)).refused(2)
    assert "no folder" in run(model, model / "out.tflite").refused(2)
    assert files(tmp_path) == {"in.tflite"}


@LINUX
def test_devices_are_neither_read_nor_replaced(model: Path, tmp_path: Path, run) -> None:
    """/dev/zero never ends; --force onto /dev/null would make a file of it, for root."""
    out = tmp_path / "out.tflite"
    assert "not a regular file" in run("/dev/zero", out).refused(2)
    assert "not a regular file" in run(model, "/dev/null", "--force", "--no-verify").refused(2)
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "not a regular file" in run(pipe, out).refused(2)


@LINUX
def test_a_folder_that_takes_no_files(model: Path, run) -> None:
    run(model, "/proc/out.tflite", "--no-verify").refused(2)


def test_input_and_output_must_differ(model: Path, tmp_path: Path, run) -> None:
    link, before = tmp_path / "link.tflite", model.read_bytes()
    link.symlink_to(model)
    for out in (model, link, tmp_path / "." / "in.tflite"):
        assert "input" in run(model, out, "--force").refused(2)
    assert model.read_bytes() == before
    for report in (model, tmp_path / "out.json"):
        out = tmp_path / "out.json"
        done = run(model, out, "--no-verify", "--report", report)
        assert done.code == 2, done.err
        assert model.read_bytes() == before
    assert run("inspect", model, "--svg", model).code == 2
    assert model.read_bytes() == before


def test_an_output_that_is_there_stays_without_force(model: Path, tmp_path: Path, run) -> None:
    out = tmp_path / "out.tflite"
    out.write_bytes(b"precious")
    assert "--force" in run(model, out, "--no-verify").refused(2)
    assert out.read_bytes() == b"precious"
    assert run(model, out, "--no-verify", "--force").code == 0
    assert out.read_bytes() != b"precious"


def _no_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (400, 400))


@LINUX
@pytest.mark.parametrize("options", [["--no-verify"], ["--inputs", "2"]])
def test_a_full_disk(model: Path, tmp_path: Path, options: list[str]) -> None:
    """No file may grow beyond 400 bytes: the output, and what the runtimes read, do not fit."""
    out = tmp_path / "out.tflite"
    out.write_bytes(b"precious")
    warm = call([str(model), str(tmp_path / "warm.tflite"), "--no-verify", *PLAIN])
    assert warm.returncode == 0  # compiled code is cached now, and not written again
    (tmp_path / "warm.tflite").unlink()
    done = call([str(model), str(out), "--force", *options, *PLAIN], before=_no_room)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("tflm-plan: error: cannot write ")
    assert files(tmp_path) == {"in.tflite", "out.tflite"}
    assert out.read_bytes() == b"precious"


# --- what is printed ----------------------------------------------------------------------------


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
    from tests.fuzz.mutations import packed
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
    import subprocess

    from tests.fuzz.shell import COMMAND

    with subprocess.Popen(
        [*COMMAND, "inspect", str(model)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        error = process.stderr.read().decode()
    assert "Traceback" not in error
    assert "internal" not in error


# --- streamed input -----------------------------------------------------------------------------


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
    assert "cannot end" in run("stream-input", model, front, back, "--end", 99).refused(2)
    assert "below 1" in run("stream-input", model, front, back, "--max-slowdown", 0.5).refused(2)
    model.write_bytes(MODELS["unused_input"].make())
    assert "inputs" in run("stream-input", model, front, back).refused(5)
    assert files(tmp_path) == {"in.tflite"}


# --- what the options come to -------------------------------------------------------------------


def test_every_option_of_plan_reaches_its_place(tmp_path: Path) -> None:
    given = PlanArguments(
        Path("in"), tmp_path / "out", budget="1K", target="cortex-m7/cmsis-nn", tflm="2025-06",
        firmware="lean", order="rpo", allocator="greedy", time_limit=3.0, seed=4, no_overlap=True,
        strip=True, max_slowdown=1.2, ops="+pad,SLICE", search="motes", objective="head",
        workers=3, inputs=5, force=True,
    )  # fmt: skip
    options = given.options()
    search, tiles = options.search, options.tiles
    assert options.budget == 1024 and options.force and options.verify is not None
    assert (options.verify.seed, options.verify.inputs) == (4, 5)
    assert search.kernels.target.id == "cortex-m7/cmsis-nn+lean"
    assert search.kernels.target.tflm == "2025-06"
    assert (search.order, search.allocator, search.time_limit, search.seed) == (
        "rpo", "greedy", 3.0, 4,
    )  # fmt: skip
    assert not search.overlap and search.strip == "unread by TFLM"
    assert tiles is not None and tiles.dialect
    assert (tiles.overhead, tiles.method, tiles.objective, tiles.workers) == (
        1.2, "motes", "head", 3,
    )  # fmt: skip
    assert tiles.new_kinds == {"PAD", "SLICE"}
    assert tiles.tiles
    plain = PlanArguments(Path("in")).options()
    assert plain.tiles is not None and plain.tiles.new_kinds == frozenset()
    assert (plain.tiles.overhead, plain.search.strip, plain.ends) == (1.1, "nothing", "keep")
    more = PlanArguments(Path("in"), firmware="more-ops").options().tiles
    assert more is not None and more.new_kinds is None
    respelled = PlanArguments(Path("in"), search="spellings", max_slowdown=1.01).options().tiles
    assert respelled is not None and not respelled.tiles and respelled.overhead == 1.01
    bare = PlanArguments(Path("in"), search="none", strip=True, portable=True).options()
    assert bare.search.strip == "unread" and bare.tiles is None


def test_the_words_of_help_are_those_that_are_known() -> None:
    """`choices` has them once more, so that help loads nothing heavy."""
    assert set(get_args(choices.Order)) == set(ORDERS)
    assert set(get_args(choices.Allocator)) == set(ALLOCATORS)
    assert get_args(choices.Ends) == ENDS
    assert get_args(choices.Objective) == OBJECTIVES


def test_the_output_is_named_after_the_input(run, model: Path, tmp_path: Path) -> None:
    assert run(model, "--no-verify", "-q").code == 0
    assert files(tmp_path) == {"in.tflite", "in.planned.tflite"}
    assert "exists" in run(model, "--no-verify", "-q").refused(2)
    assert run(model, "--no-verify", "-q", "--force").code == 0


def test_a_model_through_a_pipe(model: Path, tmp_path: Path) -> None:
    """From stdin to stdout: the report is on stderr then."""
    options = ["--no-verify", *PLAIN]
    done = subprocess.run(
        [*COMMAND, "-", "-", *options], input=model.read_bytes(), capture_output=True, check=True
    )
    assert files(tmp_path) == {"in.tflite"}
    assert call([str(model), str(tmp_path / "out"), "-q", *options]).returncode == 0
    assert done.stdout == (tmp_path / "out").read_bytes()
    assert b"kTensorArenaSize" in done.stderr
    refused = subprocess.run([*COMMAND, "-"], input=b"", capture_output=True, check=False)
    assert refused.returncode == 2 and b"say where to write" in refused.stderr
    both = subprocess.run(
        [*COMMAND, "-", "-", "--json"], input=b"", capture_output=True, check=False
    )
    assert both.returncode == 2 and b"--report FILE.json" in both.stderr


def test_strip_writes_a_smaller_file(run, model: Path, tmp_path: Path) -> None:
    plain, small = tmp_path / "plain.tflite", tmp_path / "small.tflite"
    assert run(model, plain, "-q").code == 0
    assert run(model, small, "--strip", "--portable", "-q").code == 0
    assert small.stat().st_size < plain.stat().st_size


def test_an_unknown_version_is_refused(run, model: Path, tmp_path: Path) -> None:
    line = run(model, tmp_path / "out.tflite", "--tflm", "soon").refused(2)
    assert "soon" in line and "2025-06" in line
