"""Renders the verdict of `verify` on two models: each runtime's check, arenas, and conclusion."""

from __future__ import annotations

from collections.abc import Iterator

from tflm_planner.report.text.bounds import figure
from tflm_planner.report.text.report import check_sentence
from tflm_planner.report.text.safe import safe_text
from tflm_planner.report.text.words import count
from tflm_planner.tflm.arena.predict import Arena
from tflm_planner.tflm.targets import Target
from tflm_planner.verification.verdict import EQUAL, Verdict


def render_verdict(verdict: Verdict, arenas: tuple[Arena, Arena], target: Target) -> str:
    """The verdict as text, ending in the conclusion and a line break. arenas: the arenas of both
    models on the target."""
    return "\n".join(_lines(verdict, arenas, target)) + "\n"


def _lines(verdict: Verdict, arenas: tuple[Arena, Arena], target: Target) -> Iterator[str]:
    for check in verdict.checks:
        yield f"{check.runtime}: {check_sentence(check)}"
    before, after = (figure(arena.arena, arena.bound) for arena in arenas)
    saved = arenas[0].arena - arenas[1].arena
    change = f"{saved:,} B less" if saved > 0 else f"{-saved:,} B more" if saved else "the same"
    yield f"arena on {safe_text(target.id)}: {before} -> {after}, {change}"
    yield _conclusion(verdict)


def _conclusion(verdict: Verdict) -> str:
    if verdict.differs:
        return "DIFFERENT: the second model does not compute what the first one does"
    if not verdict.proved:
        return "NOT COMPARED: no runtime here runs both models"
    if not verdict.exact:
        return "CLOSE: not the same bits, but within the tolerance"
    checks = [check for check in verdict.checks if check.status == EQUAL]
    runtimes = " and ".join(f"{check.runtime} ({_inputs(check.inputs)})" for check in checks)
    return f"EQUAL: the same bits on {runtimes}"


def _inputs(number: int) -> str:
    return count(number, "input", "inputs")
