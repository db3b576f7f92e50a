"""One concept, one name: no two classes of the package are called the same, and no type that stands
for another by a class's name."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.support.package_trees import PACKAGE, package_trees


def test_every_class_has_a_name_of_its_own():
    places: dict[str, list[str]] = defaultdict(list)
    for path, tree in package_trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert len(places) > 300, "the package was read"
    assert not {name: where for name, where in places.items() if len(where) > 1}


def test_no_type_alias_has_the_name_of_a_class():
    """`Interval = tuple[int, int]` where another module has a class `Interval`."""
    classes: set[str] = set()
    aliases: dict[str, list[str]] = defaultdict(list)
    for path, tree in package_trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                classes.add(node.name)
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        aliases[target.id].append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert not {name: where for name, where in aliases.items() if name in classes}
