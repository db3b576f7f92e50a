"""The files of a run appear together, or none does; what was there before then stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import Run
from tests.models.small import narrow_rows
from tests.transforms.row_loops import chain
from tflm_planner.support.errors import UsageError
from tflm_planner.support.files import write_file, write_files


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}


@pytest.mark.parametrize("there", [{}, {"a": b"old"}, {"a": b"old", "b": b"older"}])
def test_all_or_none(tmp_path: Path, there: dict[str, bytes]) -> None:
    """The last cannot be renamed: a folder that is not empty has taken its place."""
    for name, data in there.items():
        (tmp_path / name).write_bytes(data)
    late = tmp_path / "late"
    late.mkdir()
    (late / "kept").touch()
    files = {tmp_path / "a": b"new", tmp_path / "b": b"newer", late: b"never"}
    with pytest.raises(UsageError, match="late"):
        write_files(files)
    assert contents(tmp_path) == there and (late / "kept").exists()


def test_nothing_appears_before_all_are_complete(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none"):
        write_files({tmp_path / "a": b"new", tmp_path / "none" / "b": b"new"})
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_between_two_renames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    (tmp_path / "a").write_bytes(b"old")
    rename = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if target.name == "b":
            raise kind
        return rename(self, target)

    with monkeypatch.context() as interrupted:
        interrupted.setattr(Path, "replace", replace)
        with pytest.raises(kind):
            write_files({tmp_path / "a": b"new", tmp_path / "b": b"new"})
    assert contents(tmp_path) == {"a": b"old"}


def test_all_are_written(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    write_files({tmp_path / "a": b"new", tmp_path / "b": b"newer"})
    write_file(tmp_path / "c", b"alone")
    write_files({})
    assert contents(tmp_path) == {"a": b"new", "b": b"newer", "c": b"alone"}


# --- the commands ---------------------------------------------------------------------------------


@pytest.fixture
def refuses_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that does not rename what is called "last" (a folder that came in between)."""
    rename = Path.replace

    def replace(self: Path, target: Path) -> Path:
        if target.stem == "last":
            raise PermissionError(1, "Operation not permitted")
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", replace)


@pytest.mark.usefixtures("refuses_last")
def test_a_model_without_its_report_is_not_written(tmp_path: Path, capsys) -> None:
    source, out = tmp_path / "in.tflite", tmp_path / "out.tflite"
    source.write_bytes(narrow_rows())
    options = ["--search", "none", "--no-verify", "--report", tmp_path / "last.json"]
    Run([source, out, *options], capsys).refused(2)
    assert {p.name for p in tmp_path.iterdir()} == {"in.tflite"}


@pytest.mark.usefixtures("refuses_last")
def test_a_front_without_a_back_is_not_written(tmp_path: Path, capsys) -> None:
    source, front, back = (tmp_path / f"{n}.tflite" for n in ("in", "front", "last"))
    source.write_bytes(chain((3, 1, 4), (3, 2, 4)))
    options = ["--search", "none", "--no-verify"]
    Run(["stream-input", source, front, back, *options], capsys).refused(2)
    assert {p.name for p in tmp_path.iterdir()} == {"in.tflite"}


@pytest.mark.usefixtures("refuses_last")
def test_a_drawing_without_its_problem_is_not_written(tmp_path: Path, capsys) -> None:
    source = tmp_path / "in.tflite"
    source.write_bytes(narrow_rows())
    options = ["--svg", tmp_path / "map.svg", "--problem", tmp_path / "last.csv"]
    Run(["inspect", source, *options], capsys).refused(2)
    assert {p.name for p in tmp_path.iterdir()} == {"in.tflite"}
