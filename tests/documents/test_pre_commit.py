"""The hook `tflm-arena` of .pre-commit-hooks.yaml, and what docs/boards.md has to copy for CI."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.command import Run
from tests.conftest import CNN, PUBLISHED, ROOT

HOOKS = ROOT / ".pre-commit-hooks.yaml"
BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def read(text: str) -> Any:
    yaml = pytest.importorskip("ruamel.yaml")
    return yaml.YAML(typ="safe", pure=True).load(text)


def shown() -> tuple[str, str]:
    """The workflow and the configuration of pre-commit that the page shows."""
    workflow, configuration = BLOCK.findall((ROOT / "docs" / "boards.md").read_text())
    return workflow, configuration


def judged_by(module: str, *words: str) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"needs {module}")
    done = subprocess.run(
        [sys.executable, "-m", module, *words], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def hook() -> dict[str, Any]:
    (only,) = read(HOOKS.read_text())
    return only


def test_pre_commit_accepts_the_hook() -> None:
    judged_by("pre_commit", "validate-manifest", str(HOOKS))


def test_the_hook_takes_models_and_nothing_else(hook: dict[str, Any]) -> None:
    pattern = re.compile(hook["files"])
    assert pattern.search("models/vww.tflite")
    assert not pattern.search("models/vww.tflite.txt") and not pattern.search("vww_tflite")


@pytest.mark.parametrize(("model", "code"), [(CNN, 3), (PUBLISHED / "kws_ref_model.tflite", 0)])
def test_the_hook_fails_for_a_model_that_does_not_fit(
    hook: dict[str, Any], model: Path, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    program, *words = hook["entry"].split()
    assert hook["language"] == "python"
    assert program in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    (configured,) = read(shown()[1])["repos"][0]["hooks"]
    assert configured["id"] == hook["id"]
    assert Run([*words, *configured["args"], "--max-arena", "64K", model], capsys).code == code


def test_the_configuration_of_pre_commit_to_copy(tmp_path: Path) -> None:
    path = tmp_path / ".pre-commit-config.yaml"
    path.write_text(shown()[1])
    judged_by("pre_commit", "validate-config", str(path))


def test_the_workflow_to_copy(tmp_path: Path) -> None:
    path = tmp_path / "arena.yml"
    path.write_text(shown()[0])
    judged_by("check_jsonschema", "--builtin-schema", "vendor.github-workflows", str(path))


def test_the_workflow_uses_what_the_action_has() -> None:
    (job,) = read(shown()[0])["jobs"].values()
    models, sources, python, action = job["steps"]
    assert models["with"]["fetch-depth"] == 0, "the action compares commits"
    assert action["uses"] == f"./{sources['with']['path']}"
    tests = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    assert all(f"uses: {step['uses']}\n" in tests for step in (models, sources, python))
    inputs = read((ROOT / "action.yml").read_text())["inputs"]
    needed = {name for name, value in inputs.items() if value.get("required")}
    assert needed <= set(action["with"]) <= set(inputs)
