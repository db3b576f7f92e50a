"""Renders what users want to know first: does it fit, what to paste, and what else would help.

    FITS Arduino Nano 33 BLE (nRF52840): arena 82,280 of 262,144 B SRAM, file 299,312 of ...
    DOES NOT FIT in 50,000 B: arena 57,464 B, 7,464 B too much
    NOT KNOWN TO FIT ...: at least ..., or about ...

It must not know colours, terminals or files. Names come from a model that someone else made.
"""

from __future__ import annotations

from collections.abc import Iterator

from tflm_planner.report.document import Report, Rung, RungKind
from tflm_planner.report.text.bounds import figure, hedge
from tflm_planner.report.text.safe import safe_text
from tflm_planner.tflm.arena.uncertainty import BoundKind, may_need_more

LABELS: dict[RungKind, str] = {
    "stock": "as it was",
    "plan": "order and plan",
    "given search": "search as given",
    "tiles": "tiles, spellings",
    "int8 ends": "--io int8",
    "more operators": "more operators",
    "lean": "lean library",
    "rows streamed": "rows streamed",
    "by hand": "tiles by hand",
}
"""The names of the rungs of the ladder."""


def verdict_line(report: Report) -> str:
    """The verdict on arena and file in one line, without a line break."""
    if report.cannot_run:
        more = f" (and {len(report.cannot_run) - 1} more)" if report.cannot_run[1:] else ""
        return safe_text(f"CANNOT RUN on TFLM: {' '.join(report.cannot_run[0].split())}{more}")
    if report.arena_limit is None:
        return f"{_sizes(report)}; --target BOARD or --budget BYTES says whether it fits"
    if not report.may_fit:
        word = "NOT KNOWN TO FIT" if report.is_in_doubt else "DOES NOT FIT"
        return f"{word} {_where(report)}: {'; '.join(_misses(report))}"
    word = "FITS" if report.fits else "NOT KNOWN TO FIT"
    return f"{word} {_where(report)}: {', '.join(_shares(report))}"


def is_good(report: Report) -> bool | None:
    """Whether the verdict is good; None without a limit."""
    if report.arena_limit is None and not report.cannot_run:
        return None
    return report.fits


def _sizes(report: Report) -> str:
    after, saved = report.after.arena, report.saved
    before = figure(report.before.arena.arena, report.before.arena.bound)
    change = f"{100 * saved / report.before.arena.arena:.1f} % saved" if saved else "nothing saved"
    return f"{figure(after.arena, after.bound)} of arena, was {before} ({change})"


def _where(report: Report) -> str:
    if report.budget is not None or report.board is None:
        return f"in {report.arena_limit:,} B"
    return safe_text(report.board.name)


def _misses(report: Report) -> Iterator[str]:
    """Yield what is too large, and by how much."""
    arena, limit = report.after.arena, report.arena_limit
    if limit is not None and arena.arena > limit:
        needs = figure(arena.arena, arena.bound)
        more = figure(arena.arena - limit, arena.bound)
        yield f"arena {needs}, {more} more than {_limit_words(report)}"
    if report.board is not None and not report.within_flash:
        file = report.after.file_bytes
        yield f"file {file:,} B, {file - report.board.flash:,} B more than the flash"


def _shares(report: Report) -> Iterator[str]:
    """Yield how much of each limit is used."""
    arena, limit = report.after.arena, report.arena_limit or 0
    share = f"{100 * arena.arena / limit:.1f} %" if limit else ""
    words = "SRAM" if report.budget is None else "allowed"
    yield f"arena {hedge(arena.bound)}{arena.arena:,} of {limit:,} B {words} ({share})"
    if report.board is not None and arena.arena > report.board.sram:
        yield f"more than the board's {report.board.sram:,} B of SRAM"
    if report.board is not None:
        yield f"file {report.after.file_bytes:,} of {report.board.flash:,} B flash"


def _limit_words(report: Report) -> str:
    return "the budget" if report.budget is not None else f"its {report.arena_limit:,} B of SRAM"


def next_line(report: Report) -> str | None:
    """What to try next if the model does not fit: the first rung that fits or was not searched yet
    or, if only the file is too large, how to make it smaller. None if it fits. A smaller model is
    asked for only once every rung and the whole search have failed."""
    limit = report.arena_limit
    if limit is None or report.within_budget:
        return _next_for_flash(report)
    return _next_for_arena(report, limit) + _beside_the_arena(report)


def _next_for_arena(report: Report, limit: int) -> str:
    for rung in report.ladder:
        if _would_fit(rung, limit):
            return f"{rung.command}   # {_fits_with(report, rung.arena or 0)}"
        if rung.command and not rung.searched:
            return f"{rung.command}   # not tried yet{_known_to_fit(report, limit)}"
    return _next_beside_ladder(report, limit)


def _beside_the_arena(report: Report) -> str:
    """What is left to say of the file where the next step was chosen for its arena."""
    return "" if report.within_flash else " (the arena; this file is larger than the flash)"


def _would_fit(rung: Rung, limit: int) -> bool:
    """Whether this rung's command makes a model that fits."""
    return bool(rung.command) and rung.arena is not None and rung.arena <= limit


def _known_to_fit(report: Report, limit: int) -> str:
    """The first rung that is known to fit, in words; "" if none is."""
    fitting = next((rung for rung in report.ladder if _would_fit(rung, limit)), None)
    if fitting is None:
        return ""
    size = figure(fitting.arena or 0, report.after.arena.bound)
    return f"; further below, {LABELS[fitting.kind]} {_fits(report)} with {size}"


def _fits_with(report: Report, size: int) -> str:
    """What a size within the limit means: it fits, or it may."""
    return f"{figure(size, report.after.arena.bound)}: {_fits(report)}"


def _fits(report: Report) -> str:
    return "may fit" if may_need_more(report.after.arena.bound) else "fits"


def _next_beside_ladder(report: Report, limit: int) -> str:
    """What to try next if every rung was searched and none fits."""
    points = () if report.front is None else report.front.points
    slower = [p for p in points if p.role == "slower" and p.command and p.size <= limit]
    if slower:
        least = min(slower, key=lambda point: point.slowdown)
        more = 100 * (least.slowdown - 1)
        words = _fits_with(report, least.size)
        return f"{least.command}   # {words}, for {more:+.1f} % instructions"
    shown = [rung for rung in report.ladder if rung.command and not rung.remark]
    tried = [rung.arena for rung in shown if rung.arena is not None]
    none = "no further step is known that would fit"
    if tried:
        none = f"no step below fits; the least is {figure(min(tried), report.after.arena.bound)}"
    if report.stopped is not None:
        return f"{none}; the search was ended early: let it run to its end"
    if report.is_in_doubt:
        return f"{none}, but that is not known: {report.after.arena.uncertainties[0].words}"
    return f"{none}: a smaller model is needed"


def _next_for_flash(report: Report) -> str | None:
    """How to make the file fit the flash; None if it fits."""
    if report.board is None or report.within_flash:
        return None
    flash, smaller = report.board.flash, report.smaller_file
    most = "fewer weights, or weights of int8, are needed: flash holds the firmware too"
    if smaller is None:
        return f"the file is stripped already: {most}"
    if smaller.file_bytes <= flash:
        return f"{smaller.command}   # file {smaller.file_bytes:,} B: fits"
    over = smaller.file_bytes - flash
    return f"--strip leaves {smaller.file_bytes:,} B, {over:,} B more than the flash: {most}"


def paste_lines(report: Report) -> Iterator[str]:
    """Yield the C++ lines for the firmware, followed by remarks as comments."""
    yield from report.paste.lines
    for remark in report.paste.remarks:
        yield f"// {safe_text(remark)}"


def ladder_rows(report: Report) -> Iterator[tuple[str, str]]:
    """Yield label and text of each rung: bytes, slowdown, and the command or outcome."""
    cells = [cells for _, cells in ladder_cells(report)]
    width = max([10, *(len(size) for _, size, _, _ in cells)])
    for label, size, slowdown, outcome in cells:
        yield label, f"{size:>{width}} {slowdown:>8}  {outcome}".rstrip()


def ladder_cells(report: Report) -> Iterator[tuple[Rung, tuple[str, str, str, str]]]:
    """Yield each rung with its label, bytes, slowdown, and the command or outcome."""
    for rung in report.ladder:
        bound = (report.before if rung.kind == "stock" else report.after).arena.bound
        size, slower = _figure(rung, bound), _slowdown(rung)
        yield rung, (LABELS[rung.kind], size, slower, _outcome(rung))


def _figure(rung: Rung, bound: BoundKind) -> str:
    if rung.arena is None or (rung.remark and not rung.taken):
        return ""
    most = "<= " if rung.at_most else ""
    return most + figure(rung.arena, bound)


def _slowdown(rung: Rung) -> str:
    shown = rung.slowdown is not None and rung.kind != "stock" and not rung.remark
    return f"{100 * ((rung.slowdown or 1) - 1):+.1f} %" if shown else ""


def _outcome(rung: Rung) -> str:
    if rung.taken:
        return "<- this file"
    return safe_text(rung.remark or rung.command)
