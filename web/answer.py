"""What the page asks of the package: a model's bytes in, plain lists and dicts out.

    page.js --file--> worker.js --bytes--> Session --JSON--> page.js

It runs in the browser, so it uses nothing that imports numpy (`tflm_planner.pipeline.read_only`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tflm_planner.pipeline import read_only
from tflm_planner.report.document import MemoryMap
from tflm_planner.report.peak import peak_parts
from tflm_planner.report.svg.arena import TITLES, arena_parts
from tflm_planner.support.errors import PlannerError
from tflm_planner.support.version import __version__
from tflm_planner.tflm.arena.predict import Arena
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tflm.targets import Target, boards_like, kernel_twin

Json = dict[str, Any]
_MOST_BLOCKS = 4000
"""Rectangles of a map that a phone still draws at once."""
_TOO_MUCH = "the page cannot compute this for the model; the command can"


class Session:
    """The model that was dropped last."""

    def __init__(self) -> None:
        self._data, self._name = b"", ""
        self._targets = {t.board.id: t for t in boards_like("") if t.board is not None}

    def ask(self, question: str, *values: Any) -> str:
        """The answer as JSON, or what is wrong with the model in the package's own words."""
        try:
            return json.dumps(getattr(self, question)(*values))
        except PlannerError as error:
            return json.dumps({"error": str(error)})

    def opened(self, data: bytes, name: str) -> Json:
        """What the model needs on every board as it is."""
        self._data, self._name = bytes(data), name
        rows = read_only.compare_as_is(self._data, list(self._targets.values())).rows
        boards = [_board(row.target) | _cell(row.cells[0], row.target) for row in rows]
        return {"name": name, "bytes": len(self._data), "version": __version__, "boards": boards}

    def planned(self) -> Json:
        """What order and plan would leave of each, at most: computed once for boards that run the
        same kernels."""
        known: dict[Target, Json] = {}
        found: Json = {}
        for board, target in self._targets.items():
            twin = kernel_twin(target)
            if twin not in known:
                known[twin] = _guarded(lambda t=target: self._sketched(t))
            found[board] = known[twin]
        return found

    def _sketched(self, target: Target) -> Json:
        arena = read_only.plan_greedily(self._data, target).arena
        return {"arena": arena.arena, "bound": arena.bound}

    def detailed(self, board: str) -> Json:
        """Parts of the arena and memory maps, as it is and planned, for one board."""
        target = self._targets[board]
        seen = _guarded(lambda: self._inspected(target))
        return {"board": board, "as_is": seen, "planned": _guarded(lambda: self._drawn(target))}

    def _inspected(self, target: Target) -> Json:
        found = read_only.inspect(self._data, kernels_of(target))
        limits = found.limits
        floors = {
            "order": limits.file_order_bytes,
            "best_order": limits.best_order_bytes,
            "inputs": limits.input_bytes,
        }
        return _arena(found.arena) | {
            "map": _map(found.map),
            "floors": floors,
            "notes": list(found.notes),
        }

    def _drawn(self, target: Target) -> Json:
        quick = read_only.plan_greedily(self._data, target)
        return _arena(quick.arena) | {"map": _map(quick.map)}


def _guarded(compute: Callable[[], Json]) -> Json:
    """A part of an answer, or why it is missing: what is refused, or needs more than a browser
    has."""
    try:
        return compute()
    except PlannerError as error:
        return {"error": str(error)}
    except ImportError:
        return {"error": _TOO_MUCH}


def _board(target: Target) -> Json:
    board = target.board
    assert board is not None
    return {
        "id": board.id,
        "board": board.name,
        "vendor": board.vendor,
        "kernels": target.name,
        "sram": board.sram,
        "flash": board.flash,
    }


def _cell(cell: Any, target: Target) -> Json:
    return {
        "arena": cell.arena,
        "bound": cell.bound,
        "fits": cell.fits(target.board),
        "remark": cell.remark,
        "warnings": list(cell.warnings),
    }


def _arena(arena: Arena) -> Json:
    parts = arena.tail_parts.items()
    tail = {TITLES.get(name, name.replace("_", " ")): size for name, size in parts if size}
    between = max(arena.arena - arena.head - arena.tail, 0)
    temporary = arena_parts(arena).get("temporary", 0)
    return {
        "arena": arena.arena,
        "reserved": arena.reserved,
        "bound": arena.bound,
        "head": arena.head,
        "tail": arena.tail,
        "tail_parts": dict(sorted(tail.items(), key=lambda part: -part[1])),
        "temporary": temporary,
        "alignment": between - temporary,
        "cannot_run": list(arena.cannot_run),
    }


def _map(found: MemoryMap) -> Json:
    peak = found.peak_step
    blocks = sorted(found.blocks, key=lambda b: -b.size)[:_MOST_BLOCKS]
    return {
        "head": found.head,
        "operators": [step.operator for step in found.steps],
        "live": [step.live_bytes for step in found.steps],
        "peak": None if peak is None else peak.index,
        "at_peak": [[part.block.name, part.own] for part in peak_parts(found)],
        "scratch_at_peak": 0 if peak is None else peak.workspace_bytes,
        "blocks": [[b.name, b.kind, b.size, b.offset, b.start, b.end] for b in blocks],
        "left_out": len(found.blocks) - len(blocks),
    }
