"""What becomes of one file: the arenas that it needs as it is, planned, and in tiles."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tflm_planner.pipeline import api
from tflm_planner.support.errors import PlannerError, UnsoundPlanError

SEARCH = api.MemoryOptions(time_limit=10.0)
PROOF = api.VerifyOptions(inputs=2)


@dataclass(frozen=True)
class Reached:
    """One command: bytes of arena, or why there are none. proof: what the report says of it, ""
    where nothing was to be proved. fault: an internal error, and where it arose."""

    arena: int | None = None
    refused: str = ""
    proof: str = ""
    fault: str = ""


UNHELPFUL = re.compile(r"IndexError|KeyError|Traceback|assert|object has no attribute")
"""In a refusal: an error that nobody meant for users."""
Command = Callable[[bytes], Reached]


def _stock(data: bytes) -> Reached:
    return Reached(api.arena(data).arena)


def _planned(tiles: api.TilePermission | None) -> Command:
    def command(data: bytes) -> Reached:
        report = api.plan(data, None, api.PlanOptions(SEARCH, tiles, verify=PROOF)).report
        statuses = ", ".join(f"{c.runtime} {c.status}" for c in report.checks)
        proof = "verified" if report.verified else f"not proved: {statuses}"
        return Reached(report.after.arena.arena, proof=proof)

    return command


def _streamed(data: bytes) -> Reached:
    options = api.StreamOptions(SEARCH, api.TilePermission(workers=1), verify=PROOF)
    made = api.stream_input(data, None, options)
    proof = "verified" if made.verdict is not None and made.verdict.proved else "not proved"
    return Reached(made.pair.sram, proof=proof)


COMMANDS: dict[str, Command] = {
    "arena": _stock,
    "plan": _planned(None),
    "tiles": _planned(api.TilePermission(workers=1)),
    "all operators": _planned(api.TilePermission(operators=api.AllowedOperators.ALL, workers=1)),
    "stream-input": _streamed,
}
"""What is done with a file, by the name of the column."""


def reached(data: bytes, name: str) -> Reached:
    """One command on one file. Raises nothing: what is no PlannerError is a fault of the tool."""
    try:
        return COMMANDS[name](data)
    except UnsoundPlanError as error:
        return Reached(fault=f"{error}")
    except PlannerError as error:
        return Reached(refused=f"{error}")
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [f for f in frames if "tflm_planner" in f.filename] or frames
        at = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
        return Reached(fault=f"{type(error).__name__} at {at}: {str(error)[:120]}")
