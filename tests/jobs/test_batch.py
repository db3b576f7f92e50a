"""Many models into a folder: one that fails is a row, what is done is not done again, and whatever
ends a run, the next one comes to the same."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from tests.cli.plain_plans import PLAIN
from tests.command import Run
from tests.conftest import CNN, ROOT
from tests.jobs.dask_workers import two_dask_workers
from tests.jobs.work import pid_of
from tests.models.small import narrow_rows
from tests.processes import posix_only
from tflm_planner.jobs.batch import Batch, names_of, options_digest, run_batch
from tflm_planner.jobs.batch_types import BatchRow
from tflm_planner.jobs.processes import LocalEngine
from tflm_planner.support.errors import UsageError

SCHEMA = json.loads((ROOT / "schema" / "batch.schema.json").read_text(encoding="utf-8"))
OPTIONS = " ".join(PLAIN)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A folder with two models and one that is none."""
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "cnn.tflite").write_bytes(CNN.read_bytes())
    (folder / "rows.tflite").write_bytes(narrow_rows())
    (folder / "damaged.tflite").write_bytes(b"junk")
    return folder


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    """`tflm-plan batch` in this process; the document that it prints."""

    def run(*arguments: object, code: int = 0) -> dict:
        done = Run(["batch", *arguments, "--json"], capsys)
        assert done.code == code, done.err
        document = json.loads(done.out)
        jsonschema.validate(document, SCHEMA)
        return document

    return run


def outcomes(document: dict) -> dict[str, str]:
    return {row["name"]: row["outcome"] for row in document["models"]}


def test_one_that_fails_does_not_end_the_others(models: Path, run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    document = run(models, "--out", out, "--options", f"--budget 200K {OPTIONS}", code=5)
    assert outcomes(document) == {"cnn": "fits", "damaged": "refused", "rows": "fits"}
    cnn, damaged, _ = document["models"]
    arenas = [cnn[f"arena_{which}"] for which in ("before", "after", "limit")]
    assert arenas == [122_012, 79_660, 204_800]
    assert cnn["verified"] and cnn["words"].startswith("FITS in 204,800 B")
    assert damaged["exit_code"] == 5 and "not a TFLite model" in damaged["words"]
    assert {p.name for p in out.iterdir()} == {
        "batch.sqlite", "cnn.planned.tflite", "cnn.html", "cnn.json", "rows.planned.tflite",
        "rows.html", "rows.json", "summary.txt", "summary.json", "summary.csv", "summary.html",
    }  # fmt: skip


@pytest.mark.slow
def test_the_plan_is_that_of_the_command_alone(models: Path, run, tmp_path: Path, capsys) -> None:
    out, alone = tmp_path / "out", tmp_path / "alone.tflite"
    model = models / "cnn.tflite"
    run(model, "--out", out, "--options", OPTIONS)
    assert Run([model, alone, *PLAIN], capsys).code == 0
    assert (out / "cnn.planned.tflite").read_bytes() == alone.read_bytes()
    report = json.loads((out / "cnn.json").read_text())
    paths = report["source"]["path"], report["destination"]["path"]
    assert paths == (str(model), "cnn.planned.tflite")
    commands = [rung["command"] for rung in report["ladder"]]
    plans = [c for c in commands if c.startswith(f"tflm-plan {model} ")]
    assert plans and all(str(out / "cnn.planned.tflite") in c for c in plans)


@pytest.mark.slow
def test_what_is_done_is_not_done_again(models: Path, run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = (models, "--out", out, "--options", OPTIONS)
    first = run(*arguments, code=5)
    before = {p: p.stat().st_mtime_ns for p in out.glob("*.planned.tflite")}
    assert run(*arguments, code=5) == first
    assert {p: p.stat().st_mtime_ns for p in out.glob("*.planned.tflite")} == before
    (out / "rows.planned.tflite").write_bytes(b"spoilt")
    (models / "damaged.tflite").write_bytes(narrow_rows())
    document = run(*arguments)
    assert outcomes(document) == {"cnn": "planned", "damaged": "planned", "rows": "planned"}
    changed = {p.name for p in before if p.stat().st_mtime_ns != before[p]}
    assert changed == {"rows.planned.tflite"}
    run(*arguments, "--fresh")
    assert all(p.stat().st_mtime_ns != t for p, t in before.items())


@pytest.mark.slow
def test_sets_of_options_are_told_apart(models: Path, run, tmp_path: Path) -> None:
    sets = ("--options", f"plain={OPTIONS}", "--options", f"tight=--budget 50K {OPTIONS}")
    document = run(models / "cnn.tflite", "--out", tmp_path / "out", *sets, code=3)
    assert outcomes(document) == {"cnn.plain": "planned", "cnn.tight": "does not fit"}
    assert document["models"][1]["options"] == f"--budget 50K {OPTIONS}"
    assert (tmp_path / "out" / "cnn.tight.planned.tflite").exists()  # the smallest, as alone


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--options", "--budget plenty"], "not understood"),
        (["--options", "--nonsense"], "--nonsense"),
        (["--options", "--report a.html"], "whole batch"),
        (["--options", "'"], "quotation"),
        (["--options", "a=--no-overlap", "--options", "a=--strip"], "two sets"),
        (["--options", "--search none --ops PAD"], "--ops does nothing here"),
        (["--fresh"], "no earlier run"),
    ],
)
def test_wrong_options_begin_nothing(options, words: str, tmp_path: Path, capsys) -> None:
    out = tmp_path / "out"
    assert words in Run(["batch", CNN, "--out", out, *options], capsys).refused(2)
    assert not out.exists() or not list(out.iterdir())


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path, capsys) -> None:
    (tmp_path / "letters.txt").write_text("mine")
    line = Run(["batch", CNN, "--out", tmp_path], capsys).refused(2)
    assert "something else" in line and len(list(tmp_path.iterdir())) == 1
    (tmp_path / "empty").mkdir()
    line = Run(["batch", tmp_path / "empty", "--out", tmp_path / "out"], capsys).refused(2)
    assert "no .tflite file" in line


def test_models_of_one_name_are_told_apart_by_their_folders() -> None:
    paths = [Path(p) for p in ("a/b/x.tflite", "c/b/x.tflite", "c/d/x.tflite", "y.tflite")]
    assert names_of(paths) == ["a-b-x", "c-b-x", "d-x", "y"]
    with pytest.raises(UsageError, match="named twice"):
        names_of([Path("a/x.tflite"), Path("a/../a/x.tflite")])


def test_no_model_overwrites_another_ones_files(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name in ("x/a-b.tflite", "x/a/b.tflite", "y/b.tflite", "z/summary.tflite"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(CNN.read_bytes())
    out = tmp_path / "out"
    twice = [tmp_path / name for name in ("x/a-b.tflite", "x/a/b.tflite", "y/b.tflite")]
    line = Run(["batch", *twice, "--out", out], capsys).refused(2)
    assert "would both be written as a-b.planned.tflite" in line
    line = Run(["batch", tmp_path / "z", "--out", out], capsys).refused(2)
    assert "would be those of the summary" in line


def test_help_is_no_set_of_options(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    done = Run(["batch", CNN, "--out", tmp_path / "out", "--options", "--help"], capsys)
    assert done.code == 2 and "that asks for help, and plans nothing" in done.err


def test_options_are_the_same_if_their_files_are(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text("a")
    words = [["--target", str(path)], [f"--target={path}"]]
    before = [options_digest(w) for w in words]
    assert [options_digest(w) for w in words] == before
    path.write_text("b")
    assert all(options_digest(w) != b for w, b in zip(words, before, strict=True))
    long = ["--ops", "PAD," * 100]  # longer than any name of a file
    assert options_digest(long) == options_digest(long)


def test_summaries_show_names_that_others_made(tmp_path: Path, run) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "=1+2 <b>'&.tflite").write_bytes(narrow_rows())
    out = tmp_path / "out"
    run(folder, "--out", out, "--options", OPTIONS)
    (row,) = csv.DictReader((out / "summary.csv").open())
    assert row["name"] == "'=1+2 <b>'&" and row["outcome"] == "planned"
    page = (out / "summary.html").read_text()
    assert "<b>" not in page
    body = page[page.index("<main>") : page.index("</main>") + 7]
    (link,) = ElementTree.fromstring(body).iter("a")
    assert link.get("href") == "%3D1%2B2%20%3Cb%3E%27%26.html"
    assert "1 planned" in (out / "summary.txt").read_text()


def test_the_gravest_outcome_gives_the_exit_code() -> None:
    def code(*codes: int) -> int:
        return Batch(tuple(BatchRow("", "", "", "planned", "", c) for c in codes)).exit_code

    assert [code(), code(0, 0), code(0, 3), code(3, 5), code(5, 4, 3), code(4, 1)] == [
        0, 0, 3, 5, 4, 1,
    ]  # fmt: skip
    assert Batch((), ("a",)).exit_code == 130


def start(*arguments: object) -> subprocess.Popen[str]:
    """The command as a process, as a shell starts it."""
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from tflm_planner.cli.app import main; main()"
    )
    command = [sys.executable, "-c", program, "batch", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )


@posix_only
@pytest.mark.long
def test_ctrl_c_keeps_what_is_done(models: Path, run, tmp_path: Path) -> None:
    out, whole = tmp_path / "out", tmp_path / "whole"
    arguments = (*(models / f"{n}.tflite" for n in ("damaged", "rows", "cnn")), "--workers", 1)
    process = start(*arguments, "--out", out, "--options", OPTIONS, "-v")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("2 of 3"):
            process.send_signal(signal.SIGINT)
            break
    shown, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert "not finished: cnn" in shown
    document = run(*arguments, "--out", out, "--options", OPTIONS, code=5)
    assert outcomes(document) == {"damaged": "refused", "rows": "planned", "cnn": "planned"}
    run(*arguments, "--out", whole, "--options", OPTIONS, code=5)
    for name in ("rows.planned.tflite", "cnn.planned.tflite"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.slow
def test_two_workers_of_a_cluster_one_killed(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    from tests.jobs.work import Task, square
    from tflm_planner.jobs.cluster import ClusterEngine

    killed: list[int] = []
    results: dict[int, object] = {}
    with two_dask_workers() as dask, ClusterEngine(dask.address) as engine:
        tasks = [Task(n, tmp_path, waits=n > 0) for n in range(12)]
        for number, result in engine.results(square, tasks):
            results[number] = result
            if not killed:
                while not (begun := list(tmp_path.glob("begun-[1-9]*-0-*"))):
                    time.sleep(0.05)
                killed = [pid_of(begun[0].name)]
                os.kill(killed[0], signal.SIGKILL)
                (tmp_path / "go").touch()
    assert results == {n: n * n for n in range(12)}
    assert killed[0] in {worker.pid for worker in dask.workers}
    assert len(list(tmp_path.glob("begun-*"))) > 12


@pytest.mark.slow
def test_a_worker_of_another_version_is_said(models: Path, tmp_path: Path) -> None:
    from dataclasses import replace

    from tflm_planner.jobs.batch import PlanJob
    from tflm_planner.pipeline import api

    options = api.PlanOptions(verify=None)
    job = PlanJob("rows", "rows", narrow_rows(), "", options, "")
    batch = run_batch(
        [replace(job, version="0.0.0")], tmp_path / "out", LocalEngine(1), lambda _: None
    )
    (row,) = batch.rows
    assert row.outcome == "failed" and "the job is of 0.0.0" in row.words
    (row,) = run_batch([job], tmp_path / "out", LocalEngine(1), lambda _: None).rows
    assert row.outcome == "planned"
