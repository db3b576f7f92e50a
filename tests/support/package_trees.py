"""The package's modules as syntax trees, for tests that hold rules of style."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tests.conftest import ROOT

PACKAGE = ROOT / "tflm_planner"


@cache
def package_trees() -> dict[Path, ast.Module]:
    """Path -> tree of every module, in the order of paths. Nobody may change them."""
    paths = sorted(PACKAGE.rglob("*.py"))
    assert len(paths) > 400, "the package was read"
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}
