"""What the page says of a model: the figures of the package, without numpy and msgspec."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CNN, ROOT, published_path
from tflm_planner.pipeline import read_only
from tflm_planner.tflm.targets import load_target

WEB = ROOT / "web"
MISSING = ("numpy", "numba", "ai_edge_litert", "flatbuffers", "msgspec", "typer", "jinja2")
"""What a browser does not have."""


def _asked(path: Path) -> list[dict[str, Any]]:
    """The page's three questions about a file, in a process that has only what a browser has."""
    code = f"""
import sys
for name in {MISSING!r}: sys.modules[name] = None
sys.path[:0] = [{str(ROOT)!r}, {str(WEB)!r}]
from answer import Session
session = Session()
print(session.ask("opened", open({str(path)!r}, "rb").read(), "m.tflite"))
print(session.ask("planned"))
print(session.ask("detailed", "nano33ble"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name", ["cnn_int8", "vww_96_int8", "kws_ref_model"])
def test_figures_are_the_packages(name: str) -> None:
    path = CNN if name == CNN.stem else published_path(name)
    opened, planned, detailed = _asked(path)
    assert opened["bytes"] == path.stat().st_size
    assert len(opened["boards"]) == len(planned) > 20
    for board in opened["boards"]:
        target = load_target(board["id"])
        assert board["arena"] == read_only.arena(path, target).arena
    quick = read_only.plan_greedily(path, load_target("nano33ble"))
    assert planned["nano33ble"]["arena"] == detailed["planned"]["arena"] == quick.arena.arena
    assert detailed["as_is"]["map"]["head"] == detailed["as_is"]["head"]
    assert len(detailed["as_is"]["map"]["operators"]) == len(detailed["as_is"]["map"]["live"])


@pytest.mark.parametrize(
    ("name", "between"), [("vww_96_int8", "alignment"), ("ad01_int8", "temporary")]
)
def test_the_parts_of_an_arena_are_named(name: str, between: str) -> None:
    """Bytes between head and tail are temporary memory only where that decides the size."""
    seen = _asked(published_path(name))[2]["as_is"]
    rest = seen["arena"] - seen["head"] - seen["tail"]
    assert rest > 0
    parts = {"alignment": 0, "temporary": 0} | {between: rest}
    assert {key: seen[key] for key in parts} == parts


def test_a_damaged_file_is_refused_in_our_words(tmp_path: Path) -> None:
    broken = tmp_path / "broken.tflite"
    broken.write_bytes(CNN.read_bytes()[:5000])
    assert "damaged model" in _asked(broken)[0]["error"]


def test_the_page_names_nothing_that_is_not_there() -> None:
    """Every element that the script asks for is in the page, every file of the page is copied."""
    import re

    page, script = (WEB / "index.html").read_text(), (WEB / "page.js").read_text()
    ids = set(re.findall(r'\bid="([\w-]+)"', page))
    assert set(re.findall(r'\$\("([\w-]+)"\)', script)) <= ids
    spec = importlib.util.spec_from_file_location("build_page", WEB / "build.py")
    assert spec is not None and spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    used = set(re.findall(r'(?:src|href)="([\w.]+)"', page)) | set(
        re.findall(r'"(?:\./)?([\w]+\.(?:js|py|css))"', script + (WEB / "worker.js").read_text())
    )
    assert used <= {*build.PAGE, build.SHARED.name}
