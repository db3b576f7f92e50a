"""Error texts that docs/troubleshooting.md explains are those that TFLM prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CNN, ROOT, needs_tflm, published_path
from tflm_planner.pipeline import api

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
OLDER = {"exeeds"}
"""Spellings of former versions."""


def texts() -> list[str]:
    """The code in the first column of the page's tables."""
    cells = re.findall(r"^\| (`[^|]*`[^|]*) \|", PAGE, re.MULTILINE)
    return [text for cell in cells for text in re.findall(r"`([^`]+)`", cell)]


@needs_tflm
def test_tflm_prints_every_text() -> None:
    import tflite_micro

    libraries = Path(tflite_micro.__file__).parent.rglob("_runtime*.so")
    printed = b"\n".join(path.read_bytes() for path in libraries)
    assert len(texts()) > 20
    for text in {*texts()} - OLDER:
        for piece in filter(None, map(str.strip, re.split(r"\.\.\.,?", text))):
            assert piece.strip("'(). ").encode() in printed, text


SWEEP = """
import os, sys
from tflite_micro import runtime
data = open(sys.argv[1], "rb").read()
for size in map(int, sys.argv[2:]):
    if os.fork() == 0:  # TFLM reads through null pointers in the smallest arenas
        try:
            runtime.Interpreter.from_bytes(data, arena_size=size)
        except Exception:
            pass
        os._exit(0)
    os.wait()
"""
"""Makes an interpreter in each of some arenas; TFLM prints on standard error."""


@needs_tflm
@pytest.mark.parametrize("name", ["hello_world_int8", "okay_nabu"])
def test_what_tflm_prints_in_small_arenas_is_explained(name: str) -> None:
    path = published_path(name)
    sizes = [*range(1_000, 24_000, 920), *range(1_500, 3_000, 40)]
    command = [sys.executable, "-c", SWEEP, str(path), *map(str, sizes)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    lines = {line.strip() for line in printed.stderr.splitlines() if line.strip()}
    known = [_pattern(text) for text in texts()]
    assert len(lines) > 10
    assert [line for line in sorted(lines) if not any(k.search(line) for k in known)] == []


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(piece.strip()) for piece in text.split("...")))


@needs_tflm
def test_an_interpreter_that_preserves_all_tensors_refuses_plans() -> None:
    from tflite_micro import runtime

    kept = runtime.InterpreterConfig.kPreserveAllTensors
    planned = api.plan(CNN.read_bytes(), None, api.PlanOptions(verify=None)).data

    def make(model: bytes) -> None:
        runtime.Interpreter.from_bytes(model, arena_size=1 << 20, intrepreter_config=kept)

    make(CNN.read_bytes())
    with pytest.raises(RuntimeError):
        make(planned)
