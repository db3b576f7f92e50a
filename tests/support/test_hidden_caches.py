"""Values hold what their fields say, and nothing else: a frozen dataclass or a named tuple keeps no
cache, and nobody writes to the attributes of an object behind its back. What follows from fields
and is dear to compute is a field that a factory fills (`Problem.of`), or belongs to a plain class
whose job it is to hold it (`GreedyPlacer`)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.support.package_trees import PACKAGE, package_trees

CACHES = {"cached_property", "lru_cache", "cache"}
WRITES_ATTRIBUTES = {"model/schema.py"}
"""Objects of the generated schema are made without their constructors, which take most of the time
of reading a file."""


def name_of(node: ast.expr) -> str:
    """The last word of a decorator or base class: `functools.lru_cache(8)` is "lru_cache"."""
    node = node.func if isinstance(node, ast.Call) else node
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def is_value(node: ast.ClassDef) -> bool:
    """Whether a class is a frozen dataclass or a named tuple."""
    frozen = any(
        isinstance(d, ast.Call)
        and name_of(d) == "dataclass"
        and any(k.arg == "frozen" and getattr(k.value, "value", False) for k in d.keywords)
        for d in node.decorator_list
    )
    return frozen or "NamedTuple" in map(name_of, node.bases)


def hidden_caches(tree: ast.Module) -> Iterator[int]:
    """Lines of values' methods that remember their results."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and is_value(node):
            for method in node.body:
                if isinstance(method, ast.FunctionDef):
                    decorators = {name_of(d) for d in method.decorator_list}
                    if decorators & CACHES:
                        yield method.lineno


def hidden_writes(tree: ast.Module) -> Iterator[int]:
    """Lines that write attributes past the class: through `__dict__`, `vars` or
    `object.__setattr__`. Reading is no matter."""
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else targets
        if any(is_attribute_table(target) for target in targets):
            yield node.lineno
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            called = node.func
            if called.attr in ("update", "setdefault", "pop") and is_attribute_table(called.value):
                yield node.lineno
            if called.attr == "__setattr__" and name_of(called.value) == "object":
                yield node.lineno


def is_attribute_table(node: ast.expr) -> bool:
    """`x.__dict__`, `vars(x)`, or an entry of either."""
    node = node.value if isinstance(node, ast.Subscript) else node
    if isinstance(node, ast.Call):
        return name_of(node) == "vars"
    return isinstance(node, ast.Attribute) and node.attr == "__dict__"


def test_no_value_keeps_a_hidden_cache() -> None:
    values, found = 0, list[str]()
    for path, tree in package_trees().items():
        values += sum(isinstance(n, ast.ClassDef) and is_value(n) for n in ast.walk(tree))
        found += [f"{path.relative_to(PACKAGE)}:{line}" for line in hidden_caches(tree)]
    assert values > 200, "the package was read"
    assert not found


def test_nobody_writes_attributes_past_the_class() -> None:
    writers = {
        path.relative_to(PACKAGE).as_posix()
        for path, tree in package_trees().items()
        if any(hidden_writes(tree))
    }
    assert writers == WRITES_ATTRIBUTES


VALUE = "@dataclass(frozen=True)\nclass Value:\n    size: int\n    "


@pytest.mark.parametrize(
    "method",
    ["@cached_property", "@functools.cached_property", "@lru_cache(maxsize=8)", "@functools.cache"],
)
def test_a_cache_is_seen(method: str) -> None:
    tree = ast.parse(VALUE + f"{method}\n    def half(self): return self.size // 2")
    assert list(hidden_caches(tree)) == [5]
    plain = ast.parse(ast.unparse(tree).replace("frozen=True", ""))
    assert not list(hidden_caches(plain))


@pytest.mark.parametrize(
    "line",
    [
        "self.__dict__['half'] = 1",
        "self.__dict__ = {}",
        "self.__dict__.update(half=1)",
        "vars(self)['half'] = 1",
        "object.__setattr__(self, 'half', 1)",
    ],
)
def test_a_write_is_seen(line: str) -> None:
    assert list(hidden_writes(ast.parse(VALUE + f"def half(self):\n        {line}"))) == [5]
    assert not list(hidden_writes(ast.parse("print(self.__dict__['half'], vars(self)['half'])")))
