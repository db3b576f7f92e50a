"""Renders the arena of a model on a target as text, with the lines to paste into firmware."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflm_planner.report.text.bounds import fits_words, hedge, long_figure, meaning
from tflm_planner.report.text.safe import safe_text
from tflm_planner.report.text.words import percent
from tflm_planner.support.units import human_size
from tflm_planner.support.words import count
from tflm_planner.tflm.arena.predict import Arena, CommonArena, SplitArena
from tflm_planner.tflm.arena.uncertainty import BoundKind, bytes_to_reserve
from tflm_planner.tflm.targets import Board, Target

_SCRATCH_SHOWN = 6


def render_arena(name: str, arena: Arena, target: Target) -> str:
    """The arena and its parts, ending in a line break. `name`: the name of the model."""
    return "\n".join(_lines(safe_text(name), arena, target)) + "\n"


def _lines(name: str, arena: Arena, target: Target) -> Iterator[str]:
    yield f"{name} on {target.id} ({target.name})"
    for reason in arena.cannot_run:
        yield f"  CANNOT RUN     {safe_text(reason)}"
    yield f"  arena          {long_figure(arena.arena, arena.bound)}: {_meaning(arena)}"
    yield f"  head           {arena.head:>9,}  tensors and scratch, as TFLM's planner places them"
    yield f"  tail           {arena.tail:>9,}  what stays: {_parts(arena)}"
    if arena.resource_variables:
        yield f"  variables      {_variables(arena)}"
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
    yield from _one_array(arena.reserved, arena.alignment_slack)


def _one_array(size: int, slack: int) -> Iterator[str]:
    yield f"constexpr int kTensorArenaSize = {size};"
    yield "alignas(16) uint8_t tensor_arena[kTensorArenaSize];"
    yield f"// Without alignas(16): {size + slack}."


def _variables(arena: Arena) -> str:
    """The call for resource variables, and the bytes that their list takes."""
    number, size = arena.resource_variables, arena.tail_parts.get("resource_vars", 0)
    call = f"tflite::MicroResourceVariables::Create(allocator, {number})"
    return f"{call}, {size:,} of the tail; what they hold is among op prepare"


def render_split_arena(name: str, arena: Arena, apart: SplitArena, target: Target) -> str:
    """The sizes of two arenas, with the lines to paste, ending in a line break."""
    return "\n".join(_split_lines(safe_text(name), arena, apart, target)) + "\n"


def _split_lines(name: str, arena: Arena, apart: SplitArena, target: Target) -> Iterator[str]:
    persistent, non_persistent = (bytes_to_reserve(size, arena.uncertainties) for size in apart)
    least = (long_figure(size, arena.bound) for size in apart)
    yield f"{name} on {target.id} ({target.name}), in two arenas"
    for reason in arena.cannot_run:
        yield f"  CANNOT RUN      {safe_text(reason)}"
    yield f"  persistent      {next(least)}: structures, parameters, variables"
    yield f"  non-persistent  {next(least)}: tensors, scratch, temporary memory"
    for warning in arena.warnings:
        yield f"  warning         {safe_text(warning)}"
    if arena.cannot_run:
        return
    yield ""
    yield from (f"// {line}" for line in margin_remarks(arena))
    yield f"constexpr int kPersistentArenaSize = {persistent};"
    yield f"constexpr int kNonPersistentArenaSize = {non_persistent};"
    yield "alignas(16) uint8_t persistent_arena[kPersistentArenaSize];"
    yield "alignas(16) uint8_t non_persistent_arena[kNonPersistentArenaSize];"
    yield "tflite::MicroAllocator* allocator = tflite::MicroAllocator::Create("
    yield "    persistent_arena, kPersistentArenaSize,"
    yield "    non_persistent_arena, kNonPersistentArenaSize);"
    yield from _interpreter("", arena.resource_variables)


def _interpreter(name: str, variables: int) -> Iterator[str]:
    """Yield C++ lines for an interpreter that uses `allocator`. name: a suffix of identifiers that
    tells the model. variables: its number of resource variables."""
    argument = f", variables{name}" if variables else ""
    if variables:
        yield f"tflite::MicroResourceVariables* variables{name} ="
        yield f"    tflite::MicroResourceVariables::Create(allocator, {variables});"
    yield f"tflite::MicroInterpreter interpreter{name}(model{name}, resolver, allocator{argument});"


def render_common_arena(names: Sequence[str], arena: CommonArena, target: Target) -> str:
    """One arena for several models, with the lines to paste, ending in a line break. names: the
    names of the models, in the order of allocation."""
    return "\n".join(_common_lines([safe_text(n) for n in names], arena, target)) + "\n"


def _common_lines(names: Sequence[str], arena: CommonArena, target: Target) -> Iterator[str]:
    yield f"{len(names)} models in one arena on {target.id} ({target.name})"
    yield f"  arena          {long_figure(arena.arena, arena.bound)}: {meaning(arena.bound)}"
    yield f"  head           {arena.head:>9,}  the largest of theirs"
    yield f"  tail           {arena.tail:>9,}  what stays of all:"
    for name, tail in zip(names, arena.tails, strict=True):
        yield f"    {tail:>9,}  {name}"
    for uncertainty in arena.uncertainties:
        yield f"  warning        {safe_text(uncertainty.words)}"
    if target.board is not None:
        yield f"  board          {_share(arena.arena, arena.bound, target.board)}"
    yield ""
    yield from (f"// {line}" for line in margin_remarks(arena))
    yield from _one_array(arena.reserved, arena.alignment_slack)
    yield "// One allocator for all, in this order. Each AllocateTensors() and Invoke() writes over"
    yield "// the tensors of the other models: fill inputs just before, read outputs just after."
    yield "tflite::MicroAllocator* allocator ="
    yield "    tflite::MicroAllocator::Create(tensor_arena, kTensorArenaSize);"
    for place, variables in enumerate(arena.resource_variables, 1):
        yield from _interpreter(f"_{place}", variables)
        yield f"interpreter_{place}.AllocateTensors();  // before the next model begins"


def margin_remarks(arena: Arena | CommonArena, size: int | None = None) -> Iterator[str]:
    """Yield remarks on why the size to paste into firmware is larger than the predicted one; none
    if it is the same. size: the bytes to paste, where a limit leaves less than a whole margin."""
    size = arena.reserved if size is None else size
    if arena.reserved == arena.arena:
        return
    needed = f"{hedge(arena.bound)}{arena.arena:,} bytes".capitalize()
    cut = f", which is what the limit leaves of {arena.reserved - arena.arena:,}"
    yield f"{needed}, and a margin of {size - arena.arena:,}{cut * (size < arena.reserved)}:"
    for uncertainty in arena.uncertainties:
        yield safe_text(uncertainty.words)
    yield "Whether this is enough, only the board can tell; lower it to what it measures."


def _meaning(arena: Arena) -> str:
    """What the figure means (see `bounds`)."""
    if arena.cannot_run:
        return "what TFLM would need, if it could run the model"
    return meaning(arena.bound)


def _parts(arena: Arena) -> str:
    """The largest classes of the tail in words."""
    named = sorted(arena.tail_parts.items(), key=lambda part: -part[1])[:4]
    return ", ".join(f"{key.replace('_', ' ')} {size:,}" for key, size in named if size)


def _rules(arena: Arena) -> str:
    """A remark if temporary memory decides the size, and not head + tail."""
    decides = arena.arena > arena.head + arena.tail + 16
    return ": this decides, not head + tail" if decides else ""


def _fits(arena: Arena, board: Board) -> str:
    if arena.cannot_run:
        return f"{board.name}: TFLM cannot run the model"
    return _share(arena.arena, arena.bound, board)


def _share(size: int, bound: BoundKind, board: Board) -> str:
    share = f"{hedge(bound)}{percent(size, board.sram)}"
    verdict = fits_words(size, board.sram, bound)
    return (
        f"{board.name}: {share} of {human_size(board.sram)} SRAM, {verdict} (stack and data apart)"
    )
