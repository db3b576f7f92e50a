"""Paths that the command is given: what it refuses, and what is left on disk."""

from __future__ import annotations

import os
import resource
import stat
from pathlib import Path

import pytest

from tests.cli.plain_plans import LINUX, PLAIN, files
from tests.fuzz.shell import call


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
@pytest.mark.mostly_long(short=1)
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
