"""Renders the known targets and boards as a table and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tflm_planner.support.units import human_size
from tflm_planner.tflm.targets import Board, Target


def render_targets(targets: Mapping[str, Target], boards: Mapping[str, Board]) -> str:
    """Tables of boards and of targets, ending in a line break."""
    lines = ["Boards"]
    width = max(map(len, [*targets, *boards]))
    for board in boards.values():
        psram = f" and {human_size(board.psram)} PSRAM" if board.psram else ""
        memory = f"{human_size(board.sram)} SRAM{psram}, {board.clock // 1_000_000} MHz"
        lines.append(f"  {board.id:<{width}}  {board.name}: {board.target}, {memory}")
    lines.append("Targets (processor core / kernel library)")
    lines += [f"  {t.id:<{width}}  {t.name}" for t in targets.values()]
    lines.append("A TOML file of your own works too: see schema/target.schema.json")
    return "\n".join(lines) + "\n"


def targets_to_json(targets: Mapping[str, Target], boards: Mapping[str, Board]) -> dict[str, Any]:
    """Every field of every target and board; sram, flash, psram: bytes; clock: Hz."""
    return {
        "targets": [asdict(t) for t in targets.values()],
        "boards": [asdict(b) for b in boards.values()],
    }
