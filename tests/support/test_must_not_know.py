"""What a module's first lines say that it must not know, it does not import."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.support.package_trees import PACKAGE, package_trees

MADE_OF = {
    "allocators": ("memory.allocators",),
    "arenas": ("tflm.arena",),
    "boards": ("device.protocol.board", "device.protocol.line", "device.protocol.station"),
    "boards' lines": ("device.protocol.line", "device.protocol.link"),
    "boxes": ("transforms.tile.boxes", "transforms.tile.box_plan"),
    "candidates": ("tiling.evaluate.candidate",),
    "families": ("codesign.chains.families",),
    "flatbuffers": ("model.flatbuffer",),
    "frames": ("device.protocol.framing",),
    "kernels": ("tflm.kernels",),
    "life spans": ("tflm.liveness", "tiling.estimate.live_bytes"),
    "lines": ("device.protocol.line",),
    "memory": ("memory", "tflm.arena", "tflm.liveness"),
    "operators": ("model.ir.Op", "model.draft", "ops.axes"),
    "transforms": ("transforms", "tiling"),
    "plans": ("memory.problem", "transforms.attach_plan"),
    "targets": ("tflm.target", "tflm.targets", "tflm.target_kernels"),
    "TFLite": ("model", "ops"),
    "tiles": ("tiling", "transforms.tile"),
    "time limits": ("support.stopping",),
    "turns": ("transforms.row_loop.turn",),
}
"""What modules say that they must not know -> the parts of the package that make it up."""


def unknown_to(tree: ast.Module) -> set[str]:
    """The things that a module's docstring says it must not know, as far as `MADE_OF` has them."""
    text = " ".join((ast.get_docstring(tree) or "").split())
    lists = re.findall(r"must not know ([^.:;(]*)", text)
    things = (thing for each in lists for thing in re.split(r",? n?or |, ", each))
    return {thing.strip() for thing in things} & {*MADE_OF}


def imported_by(tree: ast.Module) -> Iterator[str]:
    """What a module imports from the package, with its name: `model.ir.Op`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{a.name}".partition(".")[2] for a in node.names)


def ruled_out(tree: ast.Module) -> list[str]:
    """Imports of a module against its own docstring."""
    parts = [part for thing in unknown_to(tree) for part in MADE_OF[thing]]
    return [
        name
        for name in imported_by(tree)
        if any(name == part or name.startswith(f"{part}.") for part in parts)
    ]


def test_no_module_imports_what_it_must_not_know() -> None:
    trees = package_trees()
    assert {thing for tree in trees.values() for thing in unknown_to(tree)} == {*MADE_OF}
    found = {str(path.relative_to(PACKAGE)): ruled_out(tree) for path, tree in trees.items()}
    assert {name: imports for name, imports in found.items() if imports} == {}


def test_an_import_against_the_docstring_is_found() -> None:
    says = '"""Draws plans. It must not know boards, nor time\nlimits (`arena`)."""\n'
    assert unknown_to(ast.parse(says)) == {"boards", "time limits"}
    assert ruled_out(ast.parse(says + "from tflm_planner.memory import problem")) == []
    board = ast.parse(says + "from tflm_planner.device.protocol.board import Board")
    assert ruled_out(board) == ["device.protocol.board.Board"]
