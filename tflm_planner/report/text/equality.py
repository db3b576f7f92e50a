"""Renders what `verify` finds of two models: each runtime's check, the proof for every input, both
arenas, and the conclusion."""

from __future__ import annotations

from collections.abc import Iterator

from tflm_planner.report.text.bounds import figure
from tflm_planner.report.text.report import check_sentence, sentence_of_terms
from tflm_planner.report.text.safe import safe_text
from tflm_planner.support.words import count
from tflm_planner.tflm.arena.predict import Arena
from tflm_planner.tflm.targets import Target
from tflm_planner.verification import Equality
from tflm_planner.verification.verdict import EQUAL


def render_equality(equality: Equality, arenas: tuple[Arena, Arena], target: Target) -> str:
    """The comparison as text, ending in the conclusion and a line break. arenas: the arenas of both
    models on the target."""
    return "\n".join(_lines(equality, arenas, target)) + "\n"


def _lines(equality: Equality, arenas: tuple[Arena, Arena], target: Target) -> Iterator[str]:
    for check in equality.checks:
        yield f"{check.runtime}: {check_sentence(check)}"
    yield f"by terms: {sentence_of_terms(equality.terms)}"
    before, after = (figure(arena.arena, arena.bound) for arena in arenas)
    saved = arenas[0].arena - arenas[1].arena
    change = f"{saved:,} B less" if saved > 0 else f"{-saved:,} B more" if saved else "the same"
    yield f"arena on {safe_text(target.id)}: {before} -> {after}, {change}"
    yield _conclusion(equality)


def _conclusion(equality: Equality) -> str:
    runtimes = _runtimes(equality)
    if equality.differs:
        return "DIFFERENT: the second model does not compute what the first one does"
    if equality.refuted:
        return f"NOT PROVED: as terms the models differ{runtimes and f', though not on {runtimes}'}"
    if equality.close:
        return "CLOSE: not the same bits, but within the tolerance"
    if equality.proved:
        return f"EQUAL for every input{runtimes and f', and the same bits on {runtimes}'}"
    if equality.equal:
        return f"EQUAL: the same bits on {runtimes}"
    return "NOT COMPARED: no runtime here runs both models"


def _runtimes(equality: Equality) -> str:
    """The runtimes on which the outputs were equal, with the number of inputs."""
    return " and ".join(
        f"{check.runtime} ({count(check.inputs, 'input', 'inputs')})"
        for check in equality.checks
        if check.status == EQUAL
    )
