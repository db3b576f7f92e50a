"""The documents say what the tool does: commands are run, figures compared, links followed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import typer
from _pytest.mark import ParameterSet

from tests.command import Run
from tests.conftest import PUBLISHED, ROOT, SHARED
from tests.documents.console import Example, commands, examples, first_unlike
from tflm_planner.cli.app import app
from tflm_planner.pipeline import api

README = ROOT / "README.md"
ABOUT_OTHERS = ("CHANGELOG.md", "CONTRIBUTING.md", "benchmarks.md", "testing.md")
"""Documents with options of other programs, or of former versions."""
DOCUMENTS = [README, *sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
TABLE = {
    "MobileNetV1 0.25@96 (vww)": "vww_96_int8.tflite",
    "ResNet8": "pretrainedResnet_quant.tflite",
    "DS-CNN (kws)": "kws_ref_model.tflite",
}
"""Rows of the README's table whose models are published, by the name of their file."""


def model_named(name: str) -> Path:
    """A model of the repository, or a published one; skips the test where it is not here."""
    for folder in (ROOT / "tests" / "models", PUBLISHED, SHARED / "models"):
        for path in folder.rglob(name):
            return path
    pytest.skip(f"{name} is not here")


def all_examples() -> list[ParameterSet]:
    """The commands of the documents with what they print; those that write a report are long."""
    found = [example for path in dict.fromkeys(DOCUMENTS) for example in examples(path)]
    return [pytest.param(e, marks=pytest.mark.long if "--report" in e.words else ()) for e in found]


@pytest.mark.slow
@pytest.mark.parametrize("example", all_examples(), ids=str)
def test_a_command_prints_what_is_shown(example: Example, tmp_path: Path, monkeypatch, capsys):
    for name in example.models:
        shutil.copy(model_named(name), tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert example.words[0] == "tflm-plan"
    done = Run(list(example.words[1:]), capsys)
    assert done.code == 0, done.err
    assert first_unlike(example.shown, done.out.splitlines()) is None, done.out


def test_an_example_that_is_wrong_is_found() -> None:
    shown = ("a 1", "...", "c ... 3")
    assert first_unlike(shown, ["a 1", "b", "b", "c 2 3"]) is None
    assert first_unlike(shown, ["a 1", "b", "c 2 4"]) == "c ... 3"
    assert first_unlike(shown, ["a 2", "c 2 3"]) == "a 1"
    assert first_unlike(("a",), ["a", "b"]) == "(end), where 'b' is printed"


@pytest.mark.parametrize("row", TABLE)
def test_the_figures_of_the_table(row: str) -> None:
    """Stock, and order and plan; those of tiles are held by the tests of published models."""
    path = model_named(TABLE[row])
    (line,) = [line for line in README.read_text().splitlines() if line.startswith(f"| {row} ")]
    stock, planned = (int(cell.replace(",", "")) for cell in line.split("|")[2:4])
    report = api.plan(path, None, api.PlanOptions(verify=None)).report
    assert (report.before.arena.arena, report.after.arena.arena) == (stock, planned)


@pytest.mark.parametrize("path", dict.fromkeys(DOCUMENTS), ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize(
    "path",
    [path for path in dict.fromkeys(DOCUMENTS) if path.name not in ABOUT_OTHERS],
    ids=lambda path: path.name,
)
def test_options_that_documents_name_exist(path: Path) -> None:
    """Every `--option` in code, alone or behind `tflm-plan`."""
    whole = typer.main.get_command(app)
    commands = [whole, *whole.commands.values()]  # type: ignore[attr-defined]
    known = {opt for command in commands for p in command.params for opt in p.opts} | {"--help"}
    code = re.findall(r"`(?:tflm-plan )?[^`\n]*`|^tflm-plan .*$", path.read_text(), re.MULTILINE)
    for line in code:
        if "tflm-plan" in line or line.startswith("`--"):
            for option in re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", line.partition("#")[0]):
                assert option in known, (path.name, line)


def shown_commands() -> list[tuple[str, ...]]:
    paths = [*dict.fromkeys(DOCUMENTS), ROOT / "arduino_runner" / "README.md"]
    return list(dict.fromkeys(words for path in paths for words in commands(path)))


@pytest.mark.parametrize("words", shown_commands(), ids=" ".join)
def test_a_command_that_is_shown_is_one(words: tuple[str, ...]) -> None:
    """Also those that are not run: the verb, the options, and the values that options take."""
    whole = typer.main.get_command(app)
    verbs: dict[str, typer.core.TyperCommand] = whole.commands  # type: ignore[attr-defined]
    if words == ("--version",):
        return
    verb, arguments = (words[0], words[1:]) if words[0] in verbs else ("plan", words)
    verbs[verb].make_context(verb, list(arguments))


def test_commands_are_found_in_all_blocks() -> None:
    assert len(shown_commands()) > 20
