"""How `fit` chooses what to search, and that its figures are those of the commands it prints."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.command import Run
from tflm_planner.codesign.chains.families import Grid
from tflm_planner.codesign.fitting import outcomes
from tflm_planner.codesign.fitting.fit_text import command_for
from tflm_planner.codesign.fitting.fit_types import fits_to_json
from tflm_planner.codesign.fitting.largest import Fits, fit
from tflm_planner.codesign.fitting.outcomes import Outcomes, VariantOutcome
from tflm_planner.codesign.fitting.variants import Limits, limits_of, variants_of
from tflm_planner.pipeline.options import TilePermission
from tflm_planner.support.errors import UsageError
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.targets import load_target

NANO = load_target("nano33ble")


def silent(_: str) -> None:
    """Nobody listens."""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    return lambda *arguments: Run([*arguments], capsys)


def streamed(limits: Limits, *, quick: bool) -> tuple[VariantOutcome, Outcomes]:
    """A small network whose rows are streamed."""
    (variant,) = variants_of("mobilenet_v1", Grid((16,), (0.25,), classes=2))
    figures = Outcomes(limits, silent, Stop())
    outcome = figures.of(variant, "rows streamed", quick=quick)
    assert outcome is not None
    return outcome, figures


@pytest.mark.parametrize(
    ("target", "quick"),
    [
        ("nano33ble", True),
        pytest.param("x86-64/wheel", True, marks=pytest.mark.slow),
        pytest.param("nano33ble", False, marks=pytest.mark.long),
    ],
)
def test_streamed_figures_are_those_of_the_command(
    run, tmp_path: Path, target: str, quick: bool
) -> None:
    limits = limits_of(load_target(target), 1 << 20, None, 1)
    outcome, figures = streamed(limits, quick=quick)
    (tmp_path / f"{outcome.variant.name}.tflite").write_bytes(outcome.variant.make())
    words = shlex.split(command_for(outcome, limits, tmp_path))[1:]
    document = json.loads(run(*words, "--no-verify", "--json").out)
    halves = [tmp_path / f"{outcome.variant.name}_{half}.tflite" for half in ("front", "back")]
    assert outcome.arena == document["sram"]
    assert outcome.file_bytes == sum(half.stat().st_size for half in halves)
    assert outcome.slowdown == pytest.approx(document["instructions_relative"])
    assert figures.floor(outcome.variant, "rows streamed") <= outcome.arena


@pytest.mark.long
def test_rows_are_streamed_where_nothing_else_fits() -> None:
    variants = variants_of("mobilenet_v1", Grid((48, 64), (0.25,), classes=2))
    *_, lean, rows = fit("v1", variants, limits_of(NANO, 20_000, None, 0), silent).rungs
    assert (lean.kind, rows.kind) == ("lean", "rows streamed")
    assert lean.best is not None and lean.best.variant.resolution == 48
    assert rows.best is not None and rows.best.variant.resolution == 64
    assert rows.best.arena <= 20_000 and 1.1 < rows.best.slowdown <= 1.2
    *_, rows = fit("v1", variants, limits_of(NANO, 20_000, 1.1, 0), silent).rungs
    assert rows.best is None, "too slow for what was allowed"


def test_a_lower_bound_rules_out_what_no_split_can_make_fit() -> None:
    variants = variants_of("resnet8", Grid((16, 24), (1.0,), (8,)))
    rows = fit("resnet8", variants, limits_of(NANO, 2_000, None, 0), silent).rungs[-1]
    assert (rows.kind, rows.ruled_out_by_bound, rows.tried) == ("rows streamed", 2, 0)


def test_an_error_is_said_once_for_all_variants() -> None:
    (made,) = variants_of("resnet8", Grid((8,), (0.5,), (8,)))
    broken = [replace(made, name=name, make=lambda: b"") for name in ("a", "b")]
    (note,) = fit("x", broken, limits_of(NANO, None, None, 0), silent).notes[:1]
    assert note.startswith("refused: a and 1 more, ")


def test_a_budget_of_flash_is_kept(run) -> None:
    few = ("--resolutions", "16", "--widths", "0.5,1", "--depths", "8", "--searches", "0")
    names = [
        json.loads(run("fit", "--family", "resnet8", "-t", target, *few, *more, "--json").out)
        for target, more in (
            ("nano33ble", ()),
            ("nano33ble", ("--flash", "60K")),
            ("cortex-m4/cmsis-nn", ("--budget", "1M", "--flash", "60K")),
        )
    ]
    best = [document["rungs"][0]["best"]["name"] for document in names]
    assert best == ["resnet8_1_16", "resnet8_0.5_16", "resnet8_0.5_16"]
    assert [document["flash"] for document in names] == [1 << 20, 60 << 10, 60 << 10]
    assert names[1]["rungs"][0]["of_flash"] == 1


def test_a_slowdown_below_one_is_refused() -> None:
    with pytest.raises(UsageError, match="below 1"):
        limits_of(NANO, None, 0.5, 1)


def found_with(searches: int) -> tuple[Fits, list[str]]:
    """What fits 38,000 bytes, and what was said of searches."""
    said: list[str] = []
    limits = limits_of(load_target("cortex-m4/cmsis-nn"), 38_000, 1.1, searches)
    variants = variants_of("resnet8", Grid((24, 32, 40, 64), (1.0,)))
    found = fit("resnet8", variants, limits, said.append)
    return found, [words for words in said if words.startswith("tiles: ")]


@pytest.mark.long
def test_only_what_nearly_fits_is_searched_as_its_command_does(run, tmp_path: Path) -> None:
    found, said = found_with(2)
    (tiles,) = (rung for rung in found.rungs if rung.kind == "tiles")
    assert tiles.best is not None and tiles.best.variant.resolution == 32
    assert not tiles.best.quick and tiles.tried > 1
    whole = [words for words in said if "quick" not in words]
    assert whole == ["tiles: resnet8_1_32, search 1 of 2 at most"]
    (tmp_path / "resnet8_1_32.tflite").write_bytes(tiles.best.variant.make())
    words = shlex.split(command_for(tiles.best, found.limits, tmp_path))[1:]
    document = json.loads(run(*words, "--no-verify", "--json").out)
    assert document["after"]["arena"]["arena"] == tiles.best.arena
    assert document["after"]["file_bytes"] == tiles.best.file_bytes


@pytest.mark.long
def test_the_same_is_found_with_any_number_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def document(workers: int) -> str:
        monkeypatch.setattr(outcomes, "TilePermission", partial(TilePermission, workers=workers))
        limits = limits_of(NANO, 38_000, 1.1, 1)
        found = fit("resnet8", variants_of("resnet8", Grid((24, 32), (1.0,))), limits, silent)
        assert any(not figure.quick for figure in found.figures if figure.kind == "tiles")
        files = [(f.variant.name, f.kind, f.arena, f.file_bytes, f.slowdown) for f in found.figures]
        return json.dumps([fits_to_json(found, None), files])

    assert document(1) == document(3)
