"""What a release and a pull request rest on: workflow files, the action's script, metadata."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CNN, PUBLISHED, ROOT
from tflm_planner import __version__

SCRIPT = ROOT / ".github" / "arena_of_pull_request.py"
SCHEMAS = {
    ROOT / "action.yml": "vendor.github-actions",
    ROOT / "CITATION.cff": "vendor.citation-file-format",
    ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml": "vendor.github-issue-config",
    **dict.fromkeys((ROOT / ".github" / "workflows").glob("*.yml"), "vendor.github-workflows"),
    **dict.fromkeys(
        (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*-*.yml"), "vendor.github-issue-forms"
    ),
    ROOT / ".github" / "ISSUE_TEMPLATE" / "wish.yml": "vendor.github-issue-forms",
}
"""Files, and the published schema that each must follow."""
LARGER = PUBLISHED / "kws_ref_model.tflite"


@pytest.mark.parametrize("path", sorted(SCHEMAS), ids=lambda path: path.name)
def test_a_file_follows_its_schema(path: Path) -> None:
    if importlib.util.find_spec("check_jsonschema") is None:
        pytest.skip("needs check-jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", SCHEMAS[path]]
    done = subprocess.run([*command, str(path)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_citation_names_the_version() -> None:
    (version,) = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert version == __version__


def test_scripts_that_the_files_name_exist() -> None:
    texts = [path.read_text() for path in SCHEMAS]
    named = {name for text in texts for name in re.findall(r"\.github/\w+\.\w+", text)}
    assert named == {".github/arena_of_pull_request.py", ".github/build_twice.sh"}
    assert all((ROOT / name).exists() for name in named)


class Repository:
    """A repository with models, and runs of the action's script in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "--quiet", "--initial-branch=main")
        self.base = ""

    def git(self, *words: str) -> str:
        author = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", *author, *words], cwd=self.folder, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, **models: Path | bytes) -> str:
        """Write models under these names, and commit."""
        for name, source in models.items():
            data = source if isinstance(source, bytes) else source.read_bytes()
            (self.folder / f"{name}.tflite").write_bytes(data)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=models")
        return self.git("rev-parse", "HEAD")

    def run(self, **settings: str) -> tuple[int, str]:
        """Exit code, and what it wrote to the summary of the job."""
        summary = self.folder.parent / "summary.md"
        summary.unlink(missing_ok=True)
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "ARENA_TARGET": "nano33ble",
            "GITHUB_STEP_SUMMARY": str(summary),
            **settings,
        }
        done = subprocess.run(
            [sys.executable, str(SCRIPT)],
            cwd=self.folder, env=environment, check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode in (0, 2, 3, 5), done.stderr
        return done.returncode, summary.read_text() if summary.exists() else done.stderr


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    folder = tmp_path / "models"
    folder.mkdir()
    return Repository(folder)


def test_a_pull_request_shows_what_models_need(repository: Repository) -> None:
    base = repository.commit(changed=LARGER, same=LARGER, former=LARGER)
    (repository.folder / "former.tflite").rename(repository.folder / "renamed.tflite")
    repository.commit(changed=CNN, new=PUBLISHED / "hello_world_int8.tflite")
    code, text = repository.run(ARENA_BASE=base)
    assert code == 0
    assert "| changed.tflite | 22,824 | 122,012 | +99,188 | fits |" in text
    assert "| renamed.tflite | 22,824 | 22,824 | +0 | fits |" in text
    assert re.search(r"\| new.tflite \|  \| [\d,]+ \|  \| fits \|", text)
    assert "same.tflite" not in text


@pytest.mark.slow
def test_what_does_not_fit_or_cannot_be_read_fails(repository: Repository) -> None:
    base = repository.commit(a=LARGER)
    repository.commit(a=CNN)
    code, text = repository.run(ARENA_BASE=base, ARENA_MAX="64K")
    assert code == 3
    assert "| 22,824 | 122,012 | +99,188 | does not fit: " in text
    repository.commit(**{"b&c": b"not a model"})
    code, text = repository.run(ARENA_BASE=base)
    assert code == 5
    assert "| b&amp;c.tflite |  |  |  | not read: " in text


@pytest.mark.slow
def test_what_is_too_large_by_an_uncertain_figure_fails_too(repository: Repository) -> None:
    base = repository.commit()
    repository.commit(a=PUBLISHED / "vww_96_int8.tflite")
    settings = {"ARENA_BASE": base, "ARENA_TARGET": "esp32s3", "ARENA_ALLOW_AT_LEAST": "true"}
    assert repository.run(**settings, ARENA_MAX="60K")[0] == 3
    assert repository.run(**settings, ARENA_MAX="200K")[0] == 0
    settings["ARENA_ALLOW_AT_LEAST"] = "false"
    assert repository.run(**settings, ARENA_MAX="200K")[0] == 3


def test_a_wrong_setting_is_said(repository: Repository) -> None:
    base = repository.commit()
    repository.commit(a=LARGER)
    assert repository.run(ARENA_BASE="")[0] == 2
    code, text = repository.run(ARENA_BASE=base, ARENA_TARGET="no-such-board")
    assert code == 2 and "no-such-board" in text
