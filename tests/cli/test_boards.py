"""`compare` and `check` from outside: every board, whatever is given as a model."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from tests.command import Run
from tests.conftest import CNN, PUBLISHED, ROOT, published_path
from tests.models.handmade import MODELS
from tests.models.small import narrow_rows
from tflm_planner.pipeline import api
from tflm_planner.report.comparison import Cell
from tflm_planner.tflm.targets import all_boards, boards_like, kernel_twin, load_target


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    return lambda *arguments: Run([*arguments], capsys)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "in.tflite"
    path.write_bytes(narrow_rows())
    return path


def follows(document: str, name: str) -> dict:
    schema = json.loads((ROOT / "schema" / f"{name}.schema.json").read_text())
    found = json.loads(document)
    jsonschema.Draft202012Validator(schema).validate(found)
    return found


# --- compare ------------------------------------------------------------------------------------


def test_every_board_has_the_figures_of_arena_and_plan(model: Path, run) -> None:
    found = follows(run("compare", model, "--json").out, "comparison")
    assert [row["board"] for row in found["boards"]] == [*all_boards()]
    planned: dict[object, int] = {}
    for row in found["boards"]:
        target = load_target(row["board"])
        stock, plan, lean = row["rungs"]
        arena = api.arena(model, target)
        assert (stock["arena"], stock["bound"]) == (arena.arena, arena.bound)
        if (twin := kernel_twin(target)) not in planned:
            memory = api.MemoryOptions(kernels=api.kernels_of(target))
            report = api.plan(model, None, api.PlanOptions(memory, verify=None)).report
            planned[twin] = report.after.arena.arena
        assert plan["arena"] == planned[twin]
        assert plan["margin"] == row["sram"] - plan["arena"]
        assert (lean["arena"] is None) == ("esp-nn" in target.kernels)
    assert len(planned) < len(found["boards"]) / 2


def test_a_board_of_unknown_firmware_is_never_said_to_fit(model: Path, run) -> None:
    found = follows(run("compare", model, "--boards", "espressif", "--json").out, "comparison")
    assert found["boards"]
    for row in found["boards"]:
        assert all(way["fits"] is None for way in row["rungs"])
        assert "release of ESP-NN" in row["rungs"][0]["warnings"][0]
    shown = run("compare", model, "--boards", "esp32s3").out
    assert ">=" in shown and "? [1]" in shown and "+" not in shown
    known = run("compare", model, "--boards", "esp32s3", "--kernels", "esp-nn-1.2.3").out
    assert ">=" not in known.partition("Bytes of arena")[0] and "+" in known


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("dynamic_range", "cannot run [1]"),
        ("custom_operator", "? [1]"),
        ("unknown_operator", "? [1]"),
        ("no_operators", "+"),
        ("already_planned", "+"),
        ("variant_tensors", "?"),
    ],
)
def test_what_cannot_be_said_has_words_in_its_cell(
    name: str, words: str, tmp_path: Path, run
) -> None:
    path = tmp_path / "in.tflite"
    path.write_bytes(MODELS[name].make())
    done = run("compare", path, "-t", "nano33ble", "-t", "cortex-m4/unknown")
    assert done.code == 0 and words in done.out, done.out
    follows(run("compare", path, "-t", "pico", "--json").out, "comparison")


def test_a_target_without_a_board_has_figures_alone(model: Path, run) -> None:
    (row,) = json.loads(run("compare", model, "-t", "cortex-m7/cmsis-nn", "--json").out)["boards"]
    assert (row["board"], row["sram"], row["rungs"][0]["fits"]) == (None, None, None)
    assert row["rungs"][0]["arena"] > 0


def test_a_cell_fits_where_all_of_it_does() -> None:
    board = all_boards()["unor4"]
    fitting = Cell("stock", board.sram, file_bytes=board.flash)
    assert fitting.fits(board) is True and fitting.margin(board) == 0
    assert Cell("stock", board.sram, "at least").fits(board) is None
    assert Cell("stock", board.sram + 1, "at least").fits(board) is False
    assert Cell("stock", board.sram + 1, "about").fits(board) is None
    assert Cell("stock", board.sram + 1).fits(board) is False
    assert Cell("lean", board.sram + 1, at_most=True).fits(board) is None
    assert Cell("stock", 1, file_bytes=board.flash + 1).fits(board) is False
    assert Cell("stock").fits(board) is None and Cell("stock", 1).fits(None) is None


@pytest.mark.slow
def test_a_deep_comparison_has_all_columns(model: Path, run) -> None:
    model.write_bytes(MODELS["chain"].make())
    done = run("compare", model, "-t", "nano33ble", "--deep", "--json")
    found = follows(done.out, "comparison")
    assert found["columns"] == ["stock", "plan", "tiles", "more operators", "lean"]
    sizes = [way["arena"] for way in found["boards"][0]["rungs"]]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(
    "pattern", ["arduino", "ARDUINO", "nano*", "nano rp2040", "m0plus/cmsis", ""]
)
def test_boards_are_found_by_parts_of_their_names(pattern: str) -> None:
    assert "nanorp2040" in {target.board.id for target in boards_like(pattern) if target.board}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--boards", "toaster"], "a vendor: Arduino"),
        (["--boards", "stm32", "--kernels", "esp-nn"], "no such board"),
        (["--boards", "pico", "-t", "pico"], "--boards does nothing here"),
        (["--workers", "2"], "--workers does nothing here"),
        (["--tiles", "--deep"], "contradict"),
        (["-t", "toaster"], "neither a target"),
    ],
)
def test_wrong_options_of_compare(model: Path, run, options: list[str], words: str) -> None:
    assert words in run("compare", model, *options).refused(2)


def test_what_is_no_model_is_refused(model: Path, run) -> None:
    model.write_bytes(b"no model")
    assert "not a TFLite model" in run("compare", model).refused(5)


def test_targets_that_are_no_boards_are_not_called_so(model: Path, run) -> None:
    asked = "compare", model, "--as-is", "-t", "esp32s3/esp-nn-1.2.6"
    assert "on 2 targets" in run(*asked, "-t", "cortex-m4/cmsis-nn").out
    assert "on 2 boards" in run(*asked, "-t", "nano33ble").out


# --- check --------------------------------------------------------------------------------------


def test_exit_codes_follow_the_byte(model: Path, run) -> None:
    arena = api.arena(model).arena
    fits = run("check", model, "--max-arena", arena)
    assert (fits.code, fits.out.split()[0]) == (0, "FITS")
    over = run("check", model, "--max-arena", arena - 1)
    assert over.code == 3 and over.out.startswith("DOES NOT FIT") and "1 B too large" in over.out
    assert run("check", model, "-t", "nano33ble", "-q").out == ""


def test_an_arena_that_is_only_at_least_known_does_not_pass(model: Path, run) -> None:
    done = run("check", model, "-t", "esp32s3")
    assert done.code == 3 and done.out.startswith("NOT KNOWN TO FIT")
    assert run("check", model, "-t", "esp32s3", "--allow-at-least").code == 0
    pinned = run("check", model, "-t", "esp32s3/esp-nn-1.2.3", "--max-arena", "200K")
    assert pinned.code == 0


def test_releases_of_a_library_are_checked_together(run) -> None:
    """okay_nabu, whose arena 1.2.1 broke."""
    path = published_path("okay_nabu")
    targets = [f"esp32s3/esp-nn-{release}" for release in ("1.1.2", "1.2.1")]
    asked = "check", path, "-t", targets[0], "-t", targets[1], "--max-arena", 30_000
    done = run(*asked)
    assert done.code == 3
    first, second = done.out.splitlines()
    assert first.startswith("FITS") and f"on {targets[0]}: arena 26,048 B" in first
    assert second.startswith("DOES NOT FIT") and f"on {targets[1]}: arena 34,016 B" in second
    assert "one --target at a time" in run(*asked, "--json").refused(2)


def test_boards_are_told_apart_and_all_that_is_too_large_is_said(run) -> None:
    path = PUBLISHED / "vww_96_int8.tflite"
    first, second = run("check", path, "-t", "nano33ble", "-t", "unor4").out.splitlines()
    assert "on nano33ble: arena 100,712 B of 262,144 B" in first
    assert "on unor4: arena 100,712 B of 32,768 B, 67,944 B too large, and a file of" in second
    line = run("check", CNN, "-t", "unor4", "--max-arena", "200K").out
    assert line.startswith("FITS") and "more than the board's 32,768 B of SRAM" in line


def test_one_file_does_not_hide_another(model: Path, tmp_path: Path, run) -> None:
    damaged, strange = tmp_path / "damaged.tflite", tmp_path / "strange.tflite"
    damaged.write_bytes(model.read_bytes()[:300])
    strange.write_bytes(MODELS["dynamic_range"].make())
    paths = model, damaged, tmp_path / "absent.tflite", strange, tmp_path
    done = run("check", *paths, "-t", "nano33ble", "--json")
    assert done.code == 5
    found = follows(done.out, "check")
    verdicts = [entry["verdict"] for entry in found["models"]]
    assert verdicts == ["fits", "not read", "not read", "cannot run", "not read"]
    assert not found["all_fit"] and all(entry["reason"] for entry in found["models"][1:])
    lines = run("check", *paths, "-t", "nano33ble").out.splitlines()
    assert len(lines) == len(paths) and all(line.isprintable() for line in lines)


def test_a_file_beyond_the_flash_does_not_fit(tmp_path: Path, model: Path, run) -> None:
    toml = tmp_path / "small.toml"
    toml.write_text(
        '[target]\nbase = "cortex-m4/cmsis-nn"\n[board]\nid = "small"\nname = "Small"\n'
        'vendor = "Nobody"\nsram = 200000\nflash = 100\nclock = 1\n'
    )
    done = run("check", model, "-t", toml)
    assert done.code == 3 and "100 B of flash" in done.out


def test_a_manifest_names_model_and_arena(tmp_path: Path, run) -> None:
    """ESPHome lists resource variables outside of the arena."""
    (tmp_path / "word.tflite").write_bytes(MODELS["call_once"].make())
    manifest = tmp_path / "word.json"
    target = load_target("esp32s3/esp-nn-1.2.1")

    def size(arena: object) -> Path:
        keys = {"tensor_arena_size": arena, "probability_cutoff": 0.97}
        text = {"type": "micro", "model": "word.tflite", "version": 2, "micro": keys}
        manifest.write_text(json.dumps(text))
        return manifest

    whole = api.arena(tmp_path / "word.tflite", target).arena
    asked = "check", "-t", target.id, "--manifest"
    assert run(*asked, size(whole - 8)).code == 0
    assert run(*asked, size(whole // 2)).code == 3
    for wrong in (0, "26K", None):
        done = run(*asked, size(wrong), "--json")
        (entry,) = follows(done.out, "check")["models"]
        assert done.code == 5 and entry["verdict"] == "not read" and "manifest" in entry["reason"]
    manifest.write_text("[" * 100_000)
    assert run(*asked, manifest).code == 5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "nothing to check"),
        (["{model}"], "is no board"),
        (["{model}", "--max-arena", "plenty"], "not understood"),
        (["--manifest", "{model}"], "add --target"),
        (["--manifest", "{model}", "-t", "esp32s3", "--max-arena", "1K"], "does nothing here"),
        (["{model}", "-t", "pico", "--json", "-q"], "contradict"),
    ],
)
def test_wrong_options_of_check(model: Path, run, options: list[str], words: str) -> None:
    filled = [option.format(model=model) for option in options]
    assert words in run("check", *filled).refused(2)


# --- arena --------------------------------------------------------------------------------------


def test_arena_says_two_arenas_and_variables(tmp_path: Path, run) -> None:
    path = tmp_path / "in.tflite"
    path.write_bytes(MODELS["call_once"].make())
    found = follows(run("arena", path, "--json").out, "arena")
    assert found["apart"] == {"persistent": 800, "non_persistent": 432}
    assert found["resource_variables"] == 2
    assert "MicroResourceVariables::Create(allocator, 2)" in run("arena", path).out
    split = run("arena", path, "--split").out
    assert "kPersistentArenaSize = 800;" in split and "kNonPersistentArenaSize = 432;" in split
    assert "current TFLM only" in run("arena", path, "--split", "-t", "arduino-2023").refused(2)


def test_arena_of_several_models(tmp_path: Path, model: Path, run) -> None:
    other = tmp_path / "other.tflite"
    other.write_bytes(MODELS["call_once"].make())
    found = follows(run("arena", model, other, "--shared", "--json").out, "common-arena")
    assert found["arena"] < api.arena(model).arena + api.arena(other).arena
    shown = run("arena", model, other, "--shared", "-t", "nano33ble").out
    assert f"kTensorArenaSize = {found['arena']};" in shown and "variables_2" in shown
    assert "add --shared" in run("arena", model, other).refused(2)
    assert "several models" in run("arena", model, "--shared").refused(2)
    assert "contradict" in run("arena", model, other, "--shared", "--split").refused(2)
