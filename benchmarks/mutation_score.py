"""How many small faults of a module do its tests see?

    PYTHONPATH=. python benchmarks/mutation_score.py tflm_planner/memory/problem.py \
        tests/memory/test_problem.py tests/memory/test_validator_mutations.py [--most 80]
        [--at 12,40 --slow] [--compiled]

One fault at a time: a comparison turned, a sign changed, `and` for `or`, a condition negated, a
number one larger, a statement left out. Tests run in a child in which that module alone is another,
without the slow ones unless --slow asks for them: for what others did not see, in lines --at.
Of modules that numba compiles --compiled lets each child compile anew: what is kept on disk is
found by the bytecode of functions, which does not tell their constants, nor what they call.
Prints the faults that no test saw; words of messages and type annotations are no code here.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.util
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, cast

_SECONDS, _SECONDS_OF_THE_CLOCK = 60, 600
"""Of a processor, for all tests of one fault; a fault that makes them hang is seen. By the clock
many more: other work on the machine must not pass for a fault that is seen."""
_TURNED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


def faults(tree: ast.Module) -> Iterator[tuple[int, str, ast.Module]]:
    """(line, what is wrong, the module with that fault)."""
    nodes = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    inside = {id(n) for function in nodes for stmt in function.body for n in ast.walk(stmt)}
    annotations = {id(n) for a in ast.walk(tree) for n in _annotation_nodes(a)}
    for at, node in enumerate(ast.walk(tree)):
        if id(node) not in inside or id(node) in annotations:
            continue
        for what, change in _changes(node):
            other = copy.deepcopy(tree)
            twin = next(n for i, n in enumerate(ast.walk(other)) if i == at)
            change(twin)
            yield getattr(node, "lineno", 0), what, ast.fix_missing_locations(other)


def _annotation_nodes(node: ast.AST) -> Iterator[ast.AST]:
    for name in ("annotation", "returns"):
        part = getattr(node, name, None)
        if isinstance(part, ast.AST):
            yield from ast.walk(part)


def _changes(node: ast.AST) -> Iterator[tuple[str, Callable[[Any], object]]]:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _TURNED:
        other = _TURNED[type(node.ops[0])]
        said = f"{ast.unparse(node)}: {other.__name__}"
        yield said, lambda n: n.ops.__setitem__(0, other())
    if isinstance(node, (ast.BinOp, ast.BoolOp, ast.AugAssign)) and type(node.op) in _TURNED:
        other = _TURNED[type(node.op)]
        yield f"{ast.unparse(node)}: {other.__name__}", lambda n: setattr(n, "op", other())
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        said = f"not ({ast.unparse(node.test)})"
        yield said, lambda n: setattr(n, "test", ast.UnaryOp(ast.Not(), n.test))
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        more = not node.value if isinstance(node.value, bool) else node.value + 1
        yield f"{node.value} -> {more}", lambda n: setattr(n, "value", more)
    if isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign, ast.Raise)) and not _is_text(node):
        yield f"without: {ast.unparse(node)}", _leave_out


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _leave_out(node: ast.AST) -> None:
    """Turn a statement into one that does nothing."""
    node.__class__ = ast.Pass
    node.__dict__ = {k: v for k, v in node.__dict__.items() if "lineno" in k or "col_" in k}


class _Instead(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module of another tree."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self._name, self._path, self._tree = name, path, tree

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        folder = [str(self._path.parent)] if self._path.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            fullname, self._path, loader=self, submodule_search_locations=folder
        )

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._tree, str(self._path), "exec"), module.__dict__)


def is_seen(
    name: str, path: Path, tree: ast.Module, tests: list[str], which: str, *, compiled: bool
) -> bool:
    """Whether a test fails, in a child that has not imported the package yet. which: marks of
    pytest. compiled: whether machine code is made anew."""
    with tempfile.TemporaryDirectory() as folder:
        return _fails(name, path, tree, tests, which, folder if compiled else None)


def _fails(
    name: str, path: Path, tree: ast.Module, tests: list[str], which: str, machine_code: str | None
) -> bool:
    child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_PROF, _SECONDS)
        signal.alarm(_SECONDS_OF_THE_CLOCK)
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        sys.meta_path.insert(0, _Instead(name, path, tree))
        if machine_code is not None:
            import numba

            os.environ["NUMBA_CACHE_DIR"] = machine_code
            cast("Any", numba).config.CACHE_DIR = machine_code
        import pytest

        os._exit(int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-m", which, *tests])))
    return os.waitpid(child, 0)[1] != 0


def main() -> None:
    """Print survivors, and the score."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("module", type=Path)
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--most", type=int, default=10**9, help="faults, chosen by chance")
    parser.add_argument("--seconds", type=float, default=1e9, help="then no more are made")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at", help="lines of faults, and no others")
    parser.add_argument("--slow", action="store_true", help="run slow tests too")
    parser.add_argument("--compiled", action="store_true", help="compile machine code anew")
    given = parser.parse_args()
    import hypothesis  # noqa: F401  (all children share what is slow to import)
    import numba  # noqa: F401

    name = str(given.module.with_suffix("")).replace("/", ".").removesuffix(".__init__")
    tree = ast.parse(given.module.read_text())
    which = "not long" if given.slow else "not slow"
    tests: list[str] = given.tests

    def seen_by_tests(module: ast.Module) -> bool:
        return is_seen(name, given.module, module, tests, which, compiled=given.compiled)

    assert not seen_by_tests(tree), "tests fail without any fault"
    found = list(faults(tree))
    if given.at:
        lines = {int(line) for line in given.at.split(",")}
        found = [fault for fault in found if fault[0] in lines]
    some = random.Random(given.seed).sample(found, min(given.most, len(found)))
    seen = tried = 0
    ends = time.monotonic() + given.seconds
    for line, what, other in some:
        tried += 1
        if seen_by_tests(other):
            seen += 1
        else:
            print(f"{given.module}:{line}: {what}", flush=True)
        if time.monotonic() > ends:
            break
    print(f"{given.module}: {seen} of {tried} faults seen; {len(found)} can be made")


if __name__ == "__main__":
    main()
