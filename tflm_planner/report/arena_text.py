"""The arena of a target as text, with the lines to paste into firmware."""

from __future__ import annotations

from collections.abc import Iterator

from tflm_planner.report.bounds_text import fits_words, long_figure, meaning
from tflm_planner.report.safe import safe_text
from tflm_planner.report.text import count, percent
from tflm_planner.support.units import human_size
from tflm_planner.tflm.arena.predict import Arena
from tflm_planner.tflm.targets import Board, Target

_SCRATCH_SHOWN = 6


def render_arena(name: str, arena: Arena, target: Target) -> str:
    """What the arena needs and why, ending in a line break. `name`: of the model."""
    return "\n".join(_lines(safe_text(name), arena, target)) + "\n"


def _lines(name: str, arena: Arena, target: Target) -> Iterator[str]:
    yield f"{name} on {target.id} ({target.name})"
    for reason in arena.cannot_run:
        yield f"  CANNOT RUN     {safe_text(reason)}"
    yield f"  arena          {long_figure(arena.arena, arena.bound)}: {_meaning(arena)}"
    yield f"  head           {arena.head:>9,}  tensors and scratch, as TFLM's planner places them"
    yield f"  tail           {arena.tail:>9,}  what stays: {_parts(arena)}"
    yield f"  planning temp  {arena.planning_temp:>9,}  while AllocateTensors plans{_rules(arena)}"
    yield f"  prepare temp   {arena.prepare_temp:>9,}  of the operator whose Prepare needs most"
    if arena.scratch:
        total = count(len(arena.scratch), "scratch buffer", "scratch buffers")
        yield f"  scratch        {total}, in the head; the largest:"
        for use in sorted(arena.scratch, key=lambda s: -s.size)[:_SCRATCH_SHOWN]:
            yield f"    {use.size:>9,}  {safe_text(use.operator)[:80]}"
    for warning in arena.warnings:
        yield f"  warning        {safe_text(warning)}"
    if target.board is not None:
        yield f"  board          {_fits(arena, target.board)}"
    if arena.cannot_run:
        return
    yield ""
    for line in margin_remarks(arena):
        yield f"// {line}"
    yield f"constexpr int kTensorArenaSize = {arena.reserved};"
    yield "alignas(16) uint8_t tensor_arena[kTensorArenaSize];"
    yield f"// Without alignas(16): {arena.reserved + arena.alignment_slack}."


def margin_remarks(arena: Arena) -> Iterator[str]:
    """Why the size to paste into firmware is larger than the predicted one; empty where it is the
    same."""
    if arena.reserved == arena.arena:
        return
    yield f"At least {arena.arena:,} bytes, and a margin of {arena.reserved - arena.arena:,}:"
    for uncertainty in arena.uncertainties:
        yield safe_text(uncertainty.words)
    yield "Whether this is enough, only the board can tell; lower it to what it measures."


def _meaning(arena: Arena) -> str:
    """How far the figure can be trusted."""
    if arena.cannot_run:
        return "what TFLM would need, if it could run the model"
    return meaning(arena.bound)


def _parts(arena: Arena) -> str:
    """The largest classes of the tail."""
    named = sorted(arena.tail_parts.items(), key=lambda part: -part[1])[:4]
    return ", ".join(f"{key.replace('_', ' ')} {size:,}" for key, size in named if size)


def _rules(arena: Arena) -> str:
    """Whether temporary memory, and not head + tail, decides the size."""
    decides = arena.arena > arena.head + arena.tail + 16
    return ": this decides, not head + tail" if decides else ""


def _fits(arena: Arena, board: Board) -> str:
    if arena.cannot_run:
        return f"{board.name}: TFLM cannot run the model"
    share = f"{'at least ' if arena.bound == 'at least' else ''}{percent(arena.arena, board.sram)}"
    verdict = fits_words(arena.arena, board.sram, arena.bound)
    return (
        f"{board.name}: {share} of {human_size(board.sram)} SRAM, {verdict} (stack and data apart)"
    )
