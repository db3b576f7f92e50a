"""The generated TFLite schema stays in `model/`: nothing above names its fields, not even by a part
of a name, or reads `raw`."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tests.support.package_trees import PACKAGE, package_trees
from tflm_planner.model.schema import known_schema

BELOW = (PACKAGE / "model", PACKAGE / "cost")
"""`model/` is where they belong; rows of measurements have these names in files."""


@cache
def fields_of_schema() -> set[str]:
    """Names of fields that nobody would choose for something else: two words run together."""
    names = {field for table in known_schema()["tables"].values() for field in table}
    return {name for name in names if name != name.lower()}


def words_of(tree: ast.Module) -> set[str]:
    """Attributes, keywords and strings that a module uses."""
    words = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            words.add(node.attr)
        elif isinstance(node, ast.keyword) and node.arg:
            words.add(node.arg)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words.add(node.value)
    return words


def schema_words(tree: ast.Module) -> set[str]:
    """Fields of the schema that a module names, and ends of the names of those that hold the number
    of a graph: `f"{which}SubgraphIndex"` names no field, and reads one all the same."""
    fields = {*fields_of_schema(), "raw"}
    return {w for w in words_of(tree) if w in fields or w.endswith("SubgraphIndex")}


def test_no_module_above_reads_the_schemas_fields() -> None:
    assert {"strideH", "zeroPoint", "quantizedDimension"} < fields_of_schema()
    modules = {p: t for p, t in package_trees().items() if not p.is_relative_to(BELOW[0])}
    found = {str(p.relative_to(PACKAGE)): schema_words(tree) for p, tree in modules.items()}
    found = {name: words for name, words in found.items() if words}
    assert {Path(name).parts[0] for name in found} == {BELOW[1].name}, found


def test_a_field_named_in_parts_is_found() -> None:
    parts = 'graphs = [op.graphs[f"{name}SubgraphIndex"] for name in ("cond", "body")]'
    assert schema_words(ast.parse(parts)) == {"SubgraphIndex"}
    words = "graphs = [op.graphs[name] for name in (CONDITION, BODY)]"
    assert schema_words(ast.parse(words)) == set()
