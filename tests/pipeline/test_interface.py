"""The public Python interface: what the package exports, its examples, and what it refuses."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tflm_planner as tp
from tests.conftest import CNN, ROOT
from tests.models.small import narrow_rows
from tflm_planner.pipeline.interface import functions, results, tile


@pytest.mark.slow
def test_the_examples_say_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = [doctest.testmod(module) for module in (functions, results, tile)]
    assert sum(result.attempted for result in done) >= 20
    assert not any(result.failed for result in done)


def test_every_public_name_is_there() -> None:
    for name in tp.__all__:
        assert getattr(tp, name) is not None
    assert {*tp.__all__} <= {*dir(tp)}
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = tp.nothing_of_the_kind


def test_importing_the_package_loads_nothing_heavy() -> None:
    script = (
        "import sys, tflm_planner; "
        "print([m for m in ('numpy', 'numba', 'ai_edge_litert') if m in sys.modules])"
    )
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    assert run.stdout.strip() == "[]", run.stderr


def test_functions_stay_functions_when_packages_are_loaded() -> None:
    import tflm_planner.verification.compare

    assert callable(tp.verify) and callable(tp.plan) and callable(tp.arena)
    assert tflm_planner.verification.compare.verify is not tp.verify


def test_save_writes_once_and_never_over_the_source(tmp_path: Path) -> None:
    source = tmp_path / "in.tflite"
    source.write_bytes(CNN.read_bytes())
    planned = tp.plan(source, tile=None, verify=False)
    assert planned.save(tmp_path / "out.tflite").read_bytes() == planned.data
    with pytest.raises(tp.UsageError, match="exists"):
        planned.save(tmp_path / "out.tflite")
    planned.save(tmp_path / "out.tflite", force=True)
    with pytest.raises(tp.UsageError, match="input"):
        planned.save(source, force=True)
    assert source.read_bytes() == CNN.read_bytes()


@pytest.mark.slow
def test_the_interface_writes_what_the_command_writes(tmp_path: Path) -> None:
    out = tmp_path / "out.tflite"
    command = [sys.executable, "-c", "from tflm_planner.cli.app import main; main()"]
    options = ["--ops", "SLICE", "--max-slowdown", "1.05", "--no-verify", "-q"]
    source = tmp_path / "in.tflite"
    source.write_bytes(narrow_rows(16))
    subprocess.run([*command, str(source), str(out), *options], check=True, cwd=ROOT)
    tile = tp.Tile(max_slowdown=1.05, operators=["slice"])
    assert tp.plan(source, tile=tile, verify=False).data == out.read_bytes()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: tp.plan(CNN, target="nano34ble", verify=False), "nano33ble"),
        (lambda: tp.plan(CNN, tile=tp.Tile(max_slowdown=0.5), verify=False), "below 1"),
        (lambda: tp.plan(CNN, tile=tp.Tile(operators="some"), verify=False), "own"),  # type: ignore[arg-type]
        (
            lambda: tp.plan(CNN, tile=tp.Tile(operators=["nosuch"]), verify=False),
            "no operator NOSUCH",
        ),
        (lambda: tp.plan(CNN, firmware="Lean", tile=None, verify=False), "unknown"),  # type: ignore[arg-type]
        (lambda: tp.plan(CNN, budget=0, tile=None, verify=False), "holds no arena"),
        (lambda: tp.plan(CNN, seed=-1, tile=None, verify=False), "negative"),
        (lambda: tp.verify(CNN, CNN, inputs=0), "prove nothing"),
        (lambda: tp.verify(CNN, CNN, seed=-1), "negative"),
        (lambda: tp.stream_input(CNN, rows=0, verify=False), "1 row or more"),
        (lambda: tp.stream_input(CNN, rows=3, tile=None, verify=False), "`rows` 3"),
        (lambda: tp.stream_input(CNN, end=-1, verify=False), "counted from 0"),
        (lambda: tp.plan(CNN, budget="a lot", verify=False), "a lot"),
        (lambda: tp.plan(CNN, firmware="thin", verify=False), "`firmware` 'thin' is unknown"),  # type: ignore[arg-type]
        (lambda: tp.plan(CNN, time_limit=0, verify=False), "time limit 0"),
        (lambda: tp.plan(CNN, workers=0, verify=False), "0 workers"),
        (
            lambda: tp.plan(
                CNN, target=tp.load_target("esp32s3/esp-nn-1.2.3"), firmware="lean", verify=False
            ),
            "cannot be lean",
        ),
    ],
)
def test_wrong_calls_say_what_is_wrong(wrong, words: str) -> None:
    with pytest.raises(tp.UsageError, match=words):
        wrong()


def unproved() -> tp.Planned:
    return tp.plan(CNN, tile=None, verify=False)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: tp.plan(CNN, tile=True), "`tile` is True: give a Tile, or None"),
        (lambda: tp.plan(CNN, tile=1.1), "`tile` is 1.1: give a Tile, or None"),
        (lambda: tp.Tile(max_slowdown="1.1"), "`max_slowdown` is '1.1': give a number"),
        (lambda: tp.Tile(operators=[1]), "`operators` is [1]: give 'own', 'all', a list"),
        (lambda: tp.Tile(operators=7), "`operators` is 7: give 'own', 'all', a list"),
        (lambda: tp.arena(None), "`model` is None: give the path of a .tflite file, or its bytes"),
        (lambda: tp.verify(CNN, bytearray(9)), "`result` is bytearray(b'"),
        (lambda: tp.inspect(CNN, target=4), "`target` is 4: give the id of a target"),
        (lambda: tp.plan(CNN, seed=1.5), "`seed` is 1.5: give an int"),
        (lambda: tp.plan(CNN, budget=True), "`budget` is True: give bytes as an int"),
        (lambda: tp.plan(CNN, budget=64.5), "`budget` is 64.5: give bytes as an int"),
        (lambda: tp.plan(CNN, time_limit="9"), "`time_limit` is '9': give seconds"),
        (lambda: tp.plan(CNN, on_progress=None), "`on_progress` is None: give a function"),
        (lambda: tp.plan(CNN, workers=0, tile=None), "0 workers cannot search"),
        (lambda: tp.plan(CNN, inputs=0, verify=False), "0 inputs prove nothing"),
        (lambda: tp.stream_input(CNN, end="3"), "`end` is '3': give an int or None"),
        (lambda: tp.stream_input(CNN, max_slowdown=None), "`max_slowdown` is None: give a number"),
        (lambda: tp.plan(CNN, verify="no"), "`verify` is 'no': give True or False"),
        (lambda: tp.plan(CNN, strip=1), "`strip` is 1: give True or False"),
        (lambda: tp.stream_input(CNN, verify=None), "`verify` is None: give True or False"),
        (lambda: tp.Tile(portable="yes"), "`portable` is 'yes': give True or False"),
        (lambda: unproved().save("x", force="y"), "`force` is 'y': give True or False"),
    ],
)
def test_wrong_types_say_what_is_expected(wrong, words: str) -> None:
    with pytest.raises(tp.UsageError, match=re.escape(words)):
        wrong()


def test_whatever_acts_as_a_number_or_a_path_is_taken() -> None:
    tile = tp.Tile(max_slowdown=np.float32(1.0), operators=frozenset())
    planned = tp.plan(
        os.fspath(CNN), tile=tile, budget=np.int64(200_000), seed=np.uint8(0), verify=False
    )
    assert planned.report.fits


@pytest.mark.long
def test_firmware_permits_operators_unless_they_are_named() -> None:
    source = narrow_rows(16)
    by_word = tp.plan(source, firmware="more-ops", verify=False)
    by_tile = tp.plan(source, tile=tp.Tile(operators="all"), verify=False)
    own = tp.plan(source, firmware="more-ops", tile=tp.Tile(operators="own"), verify=False)
    assert by_word.data == by_tile.data
    assert own.data == tp.plan(source, verify=False).data
    assert by_word.report.after.arena.bytes < own.report.after.arena.bytes


def test_lean_counts_whether_the_target_is_a_name_or_an_object() -> None:
    by_name = tp.plan(CNN, target="nano33ble", firmware="lean", tile=None, verify=False)
    target = tp.load_target("nano33ble")
    by_object = tp.plan(CNN, target=target, firmware="lean", tile=None, verify=False)
    assert by_object.data == by_name.data
    fat = tp.plan(CNN, target=target, tile=None, verify=False)
    assert by_object.report.after.arena.bytes < fat.report.after.arena.bytes


def test_what_is_returned_can_be_named() -> None:
    assert isinstance(tp.arena(CNN), tp.Arena)
    assert isinstance(tp.inspect(CNN), tp.Inspection)
    assert tp.arena(CNN).bytes == tp.arena(CNN).arena


def test_results_are_one_line_in_a_notebook() -> None:
    """The bytes of files would flood it."""
    assert repr(unproved()) == "<Planned cnn_int8.tflite: 122,012 B -> 79,660 B>"
    unread = tp.plan(CNN.read_bytes(), target="cortex-m4/unknown", tile=None, verify=False)
    assert re.fullmatch(r"<Planned model: at least [\d,]+ B -> at least [\d,]+ B>", repr(unread))
    pair = tp.stream_input(CNN, end=0, tile=None, verify=False)
    sizes = f"{pair.bytes_before:,} B -> {pair.bytes_after:,} B"
    assert repr(pair) == f"<StreamedInput cnn_int8: {sizes}>"
    assert repr(tp.inspect(CNN)) == "<Inspection: 36 operators, arena 122,012 B>"
    same = tp.verify(CNN, CNN, inputs=1)
    said = ", ".join(f"{check.runtime} {check.status}" for check in same.checks)
    assert repr(same) == f"<Equality: terms equal, {said}>" and isinstance(same, tp.Equality)


def test_a_search_ends_after_the_time_limit() -> None:
    planned = tp.plan(CNN, time_limit=1e-6, workers=1, verify=False)
    assert planned.report.stopped == "time limit"


def test_a_damaged_model_is_a_model_error() -> None:
    with pytest.raises(tp.ModelError):
        tp.arena(b"nothing like a model")


@pytest.mark.slow
def test_a_streamed_pair_is_saved_as_three_files(tmp_path: Path) -> None:
    pair = tp.stream_input(CNN, end=0, tile=None, verify=False)
    files = [tmp_path / name for name in ("front.tflite", "back.tflite", "strips.h")]
    pair.save(*files)
    assert files[0].read_bytes() == pair.front
    assert files[1].read_bytes() == pair.back
    assert "kTurns" in files[2].read_text()
    with pytest.raises(tp.UsageError, match="different"):
        pair.save(tmp_path / "a", tmp_path / "a")


def test_a_pair_is_not_written_over_its_model(tmp_path: Path) -> None:
    """And a name that is no word of C++ is refused only where a header is asked for."""
    source = tmp_path / "___.tflite"
    source.write_bytes(Path(CNN).read_bytes())
    pair = tp.stream_input(source, end=0, tile=None, verify=False)
    with pytest.raises(tp.UsageError, match="input"):
        pair.save(source, tmp_path / "back.tflite", force=True)
    pair.save(tmp_path / "front.tflite", tmp_path / "back.tflite")
    with pytest.raises(tp.UsageError, match="`force=True`"):
        pair.save(tmp_path / "front.tflite", tmp_path / "back.tflite")
    with pytest.raises(tp.UsageError, match="identifier"):
        pair.save(tmp_path / "front.tflite", tmp_path / "back.tflite", tmp_path / "x.h", force=True)
