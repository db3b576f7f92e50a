"""The path of a newcomer: the README's picture, and the commands of docs/first-hour.md in a row."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.command import Run
from tests.conftest import ROOT, needs_tflm, published_path

PAGE = (ROOT / "docs" / "first-hour.md").read_text("utf-8")
EXPECTED = {"check": 3}
"""Exit codes that are not 0: the model does not fit as it is."""


def path_of_the_newcomer() -> list[list[str]]:
    """The words of each command that names the model, in the order of the page, up to the board."""
    path = PAGE[PAGE.index("## 1.") : PAGE.index("## 6.")]
    lines = re.findall(r"(?:^|\$ |`)tflm-plan ([^`\n]*vww[^`\n]*)", path, re.MULTILINE)
    return [shlex.split(line) for line in lines]


@needs_tflm
@pytest.mark.long
@pytest.mark.slow
def test_each_command_ends_as_the_page_says(tmp_path: Path, monkeypatch, capsys) -> None:
    shutil.copy(published_path("vww_96_int8"), tmp_path)
    monkeypatch.chdir(tmp_path)
    path = path_of_the_newcomer()
    verbs = [words[0] for words in path]
    assert verbs == ["check", "inspect", "vww_96_int8.tflite", "verify", "verify", "export"]
    for words in path:
        done = Run(words, capsys)
        assert done.code == EXPECTED.get(words[0], 0), done.out + done.err
    assert (tmp_path / "vww" / "vww_arena.h").exists()


@needs_tflm
@pytest.mark.long
@pytest.mark.slow
def test_the_picture_of_the_readme_is_what_its_command_draws(
    tmp_path: Path, monkeypatch, capsys
) -> None:
    shutil.copy(published_path("vww_96_int8"), tmp_path)
    monkeypatch.chdir(tmp_path)
    assert "`tflm-plan vww_96_int8.tflite`" in (ROOT / "README.md").read_text("utf-8")
    assert Run(["vww_96_int8.tflite", "--report", "drawn.svg"], capsys).code == 0
    shown = (ROOT / "docs" / "before_after.svg").read_text("utf-8")
    assert (tmp_path / "drawn.svg").read_text("utf-8") == shown
