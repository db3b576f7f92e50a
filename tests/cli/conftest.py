"""A small model, and the command in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.plain_plans import PLAIN
from tests.command import Run
from tests.models.small import narrow_rows


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A small model in a folder of its own."""
    path = tmp_path / "in.tflite"
    path.write_bytes(narrow_rows())
    return path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    """The command in this process; plans without tiles."""

    def run(*arguments: object) -> Run:
        plain = () if arguments[0] in ("verify", "inspect") else PLAIN
        return Run([*arguments, *plain], capsys)

    return run
