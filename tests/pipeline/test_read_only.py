"""What only looks runs without numpy and runtimes, and says the same without them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CNN, published_path
from tests.models.handmade import MODELS
from tflm_planner.model import serde
from tflm_planner.model.flatbuffer.learnt import Learnt
from tflm_planner.pipeline import api, read_only
from tflm_planner.report.json.document import arena_to_json, inspection_to_json
from tflm_planner.support.errors import ModelError
from tflm_planner.tflm.targets import load_target

HEAVY = ("numpy", "numba", "ai_edge_litert", "flatbuffers", "tflite_micro", "jinja2")
COMMANDS = (["arena"], ["arena", "--target", "esp32s3"], ["inspect"], ["compare", "--as-is"])


def _run(blocked: tuple[str, ...], source: Path) -> list[object]:
    """The JSON of the commands, in one process to which some modules are not there."""
    code = f"""
import sys
for name in {blocked!r}: sys.modules[name] = None
from tflm_planner.cli.app import app
for command in {COMMANDS!r}:
    app([*command, {str(source)!r}, "--json"], standalone_mode=False)
    print("---")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(part) for part in done.stdout.split("---\n")[:-1]]


@pytest.mark.parametrize("name", ["cnn", "vww_96_int8"])
def test_says_the_same_without_numpy_and_runtimes(name: str) -> None:
    source = CNN if name == "cnn" else published_path(name)
    found = _run(HEAVY, source)
    assert len(found) == len(COMMANDS)
    assert found == _run((), source)


def _seen(data: bytes) -> list[object]:
    """What is said of a model, or why it is refused."""
    target = load_target("nano33ble")

    def inspected() -> object:
        found = read_only.inspect(data)
        return inspection_to_json(found.map, found.limits, found.notes)

    def predicted() -> object:
        return arena_to_json(
            read_only.arena(data, target), target, read_only.split_arena(data, target)
        )

    return [
        _or_refusal(inspected),
        _or_refusal(predicted),
        _or_refusal(lambda: read_only.plan_greedily(data, target)),
    ]


def _or_refusal(ask: Callable[[], object]) -> object:
    try:
        return ask()
    except ModelError as error:
        return str(error)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_corners_look_as_with_arrays(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = MODELS[name].make()
    found = _seen(data)
    monkeypatch.setattr(serde, "Known", Learnt)
    assert found == _seen(data)


def test_a_sketch_is_no_lower_than_the_plan() -> None:
    data = CNN.read_bytes()
    target = load_target("nano33ble")
    quick, before = read_only.plan_greedily(data, target).arena, read_only.arena(data, target)
    comparison = api.compare(data, [target])
    planned = next(cell for cell in comparison.rows[0].cells if cell.kind == "plan")
    assert planned.arena is not None
    assert planned.arena <= quick.arena < before.arena
