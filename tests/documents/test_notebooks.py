"""Notebooks as they are committed: run to their end, small, and without links that lead nowhere.

What they compute is checked when they run (`tests.run_notebook`); `.ci/run` runs the short ones.
"""

from __future__ import annotations

import ast
import csv
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MOST_BYTES = 200_000
THEIRS = {"https://github.com/esphome/micro-wake-word-models"}
"""Addresses that notebooks may name; there is none of our own yet."""
INSTALL = re.compile(
    r"# In a clone nothing has to be changed\. .*"
    r'^PLANNER = "\.\."\n%pip install -q \{PLANNER\}(?: [a-z]+)*$',
    re.MULTILINE | re.DOTALL,
)


def cells(path: Path, kind: str) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == kind]


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def printed(path: Path) -> str:
    """All that cells printed or returned as text."""
    outputs = [output for cell in cells(path, "code") for output in cell["outputs"]]
    texts = [output.get("text", output.get("data", {}).get("text/plain", "")) for output in outputs]
    return "".join("".join(text) for text in texts)


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request: pytest.FixtureRequest) -> Path:
    return request.param


def test_one_variable_says_what_is_installed(notebook: Path) -> None:
    installing = [source(cell) for cell in cells(notebook, "code") if "%pip" in source(cell)]
    assert len(installing) == 1
    assert INSTALL.fullmatch(installing[0]), installing[0]


def test_it_was_run_to_its_end(notebook: Path) -> None:
    code = cells(notebook, "code")
    assert all(cell["execution_count"] for cell in code)
    kinds = {output["output_type"] for cell in code for output in cell["outputs"]}
    assert kinds <= {"stream", "execute_result", "display_data"}
    assert "error" not in {output.get("name") for cell in code for output in cell["outputs"]}
    assert notebook.stat().st_size <= MOST_BYTES


def test_outputs_say_nothing_of_the_machine(notebook: Path) -> None:
    assert not re.search(r"\x1b|/tmp/|/home/|/root/|tflm-plan: error|Traceback", printed(notebook))


def test_what_it_imports_of_the_package_is_there(notebook: Path) -> None:
    """A name that moved shows here, in a second, not when the notebook runs."""
    code = "\n".join(source(cell) for cell in cells(notebook, "code"))
    python = re.sub(r"^( *)[%!](?:.*\\\n)*.*$", r"\1pass", code, flags=re.MULTILINE)
    for node in ast.walk(ast.parse(python)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tflm_planner"):
            module = importlib.import_module(node.module or "")
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                assert hasattr(module, alias.name) or importlib.util.find_spec(name), name


def test_links_lead_somewhere(notebook: Path) -> None:
    for cell in cells(notebook, "markdown"):
        for target in re.findall(r"\]\(([^)#\s]+)", source(cell)):
            if "://" in target:
                assert target in THEIRS
            else:
                assert (notebook.parent / target).exists(), target


def test_a_command_runs_it(notebook: Path) -> None:
    """Each notebook is run by CI, or by a command that the page on tests names."""
    name = f"notebooks/{notebook.name}"
    assert name in (ROOT / ".ci" / "run").read_text() + (ROOT / "docs" / "testing.md").read_text()
    assert notebook.name in (ROOT / "docs" / "notebooks.md").read_text()


def test_the_page_has_the_figures_of_its_notebook() -> None:
    """Bytes in `docs/how-it-works.md` are those that `how_it_works.ipynb` printed."""
    page = (ROOT / "docs" / "how-it-works.md").read_text()
    (path,) = [path for path in NOTEBOOKS if path.stem == "how_it_works"]
    figures = set(re.findall(r"\b\d+,\d{3}\b", page))
    assert len(figures) > 10
    assert figures <= set(re.findall(r"\b\d+,\d{3}\b", printed(path)))


@pytest.mark.parametrize("model", ["inception_v1", "squeezenet_11"])
def test_recorded_operators_peak_where_the_tables_say(model: str) -> None:
    """The largest operator of `operator_memory.csv` is L1 of `docs/tiers.md`."""
    recorded = (ROOT / "notebooks" / "operator_memory.csv").read_text()
    rows = csv.DictReader(recorded.splitlines())
    live = [
        sum(int(row[f"{part}_bytes"]) for part in ("input", "output", "other"))
        for row in rows
        if row["model"] == model
    ]
    lines = (ROOT / "docs" / "tiers.md").read_text().splitlines()
    tables = [line for line in lines if line.startswith(f"| {model} | {len(live)} |")]
    assert len(tables) == 3
    assert all(f" {max(live):,} |" in line for line in tables)


def test_recorded_scores_are_those_of_the_table() -> None:
    """Each row of `docs/training.md` on image sizes says what `resolution.json` says."""
    recorded = json.loads((ROOT / "notebooks" / "resolution.json").read_text())
    naming, finding = recorded["naming"], recorded["finding"]
    page = (ROOT / "docs" / "training.md").read_text()
    assert len(naming) == 4 and naming.keys() == finding.keys()
    for side in naming:
        both = naming[side], finding[side]
        cells = [f"{100 * row['score']:.1f} ± {100 * row['spread']:.1f}" for row in both]
        (line,) = re.findall(rf"^\| {side}x{side} \|.*$", page, re.MULTILINE)
        assert [cell.strip() for cell in line.split("|")][2::2][:2] == cells
        assert all(f" {row['arena']:,} |" in line for row in both)
