"""Renders a report as one HTML page: drawings, figures and tables.

templates/report.html has the layout; this module makes the contents. `page` renders the template
and escapes all text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from markupsafe import Markup

from tflm_planner.report.document import MemoryMap, ParetoFront, Report
from tflm_planner.report.operator_changes import changes_of
from tflm_planner.report.page import Column, Name, Row, Table, pairs, render
from tflm_planner.report.peak import PeakPart, peak_parts
from tflm_planner.report.svg.arena import ArenaBar, Limit, arena_svg
from tflm_planner.report.svg.memory_map import (
    before_above_after_svg,
    before_after_svg,
    memory_map_svg,
)
from tflm_planner.report.svg.pareto import pareto_svg
from tflm_planner.report.text.bounds import figure
from tflm_planner.report.text.fit import (
    is_good,
    ladder_cells,
    next_line,
    paste_lines,
    verdict_line,
)
from tflm_planner.report.text.pareto import point_words, slowdown_text
from tflm_planner.report.text.report import (
    HERE,
    arena_sentence,
    arenas_sentence,
    check_sentence,
    count,
    heads_sentence,
    limit_rows,
    limit_sentence,
    macs_sentence,
    order_sentence,
    percent,
    plan_sentence,
    proved_sentence,
    real_sentence,
    runs_on_sentence,
    saved_sentence,
    seconds_sentence,
    shorten,
    verdict_sentence,
)
from tflm_planner.tflm.arena.uncertainty import may_need_more

_NAME = 160
_OVER_TIME = "Tensors and scratch over time"
_PHONE = 360
"""Pixels of a phone's screen that a drawing has."""
_SHORT_NAME = 72
"""Characters of a tensor's name in lists: three lines of a phone."""
_LISTED = 20
"""How many tensors at the peak are listed."""


@dataclass(frozen=True, slots=True)
class _Card:
    """An important figure that is shown large, and its description."""

    figure: str
    words: str
    style: str = ""


def to_html(report: Report) -> str:
    """The page as a string; write it as UTF-8."""
    heading = shorten(PurePath(report.source).name or report.source, 90)
    paths = [shorten(path, 200) for path in (report.source, report.destination)]
    sides = (("before", report.before), ("after", report.after))
    digests = [("before", report.sha256_before), ("after", report.sha256_after)]
    maps = [side.map for _, side in sides]
    by = f"tflm-plan {shorten(report.version, 40)}"
    return render(
        "report.html",
        title=f"{heading}: memory plan",
        heading=heading,
        about=", ".join(filter(None, [" → ".join(filter(None, paths)), by, report.made])),
        report=report,
        arenas=_arenas(report),
        narrow_arenas=_arenas(report, _PHONE),
        before_after=Markup(before_after_svg(*maps, title=_OVER_TIME)),
        before_above_after=Markup(before_above_after_svg(*maps, title=_OVER_TIME)),
        fit=verdict_line(report),
        fit_style={True: "good", False: "hot", None: ""}[is_good(report)],
        following=next_line(report),
        paste=list(paste_lines(report)),
        ladder=_ladder(report),
        cards=list(_cards(report)),
        done=pairs(list(_done_rows(report))),
        front=None if report.front is None else _front(report, report.front),
        verdict=verdict_sentence(report),
        checks=pairs(list(_checks(report))),
        limits=_limits(report),
        peaks=list(_peaks(report)),
        maps=[_large_map(word, side.map, max(m.head for m in maps)) for word, side in sides],
        changes=_changes(report),
        has_parts=any("parts: " in change.done for change in changes_of(report)),
        has_twin=any(check.of_twin for check in report.checks),
        operators=[_operators(word, side.map) for word, side in sides],
        shared=[_short_names(alias) for alias in report.allocation.aliases],
        aliases=count(len(report.allocation.aliases), "alias", "aliases"),
        digests=pairs(digests, "code"),
    )


def _short_names(words: str) -> str:
    """A line in which names stand, each shortened."""
    return " ".join(shorten(word, _SHORT_NAME) for word in words.split())


def _arenas(report: Report, width: int = 1000) -> Markup:
    """A drawing of the parts of both arenas, with their limit. width: in pixels."""
    bars = [ArenaBar("before", report.before.arena), ArenaBar("after", report.after.arena)]
    size, is_board = report.arena_limit, report.budget is None
    limit = Limit(size, "of SRAM" if is_board else "allowed") if size else None
    return Markup(arena_svg(bars, title=f"Arena on {report.target}", limit=limit, width=width))


def _checks(report: Report) -> Iterator[tuple[str, str]]:
    """Yield (name, outcome) for the proof and for each runtime."""
    if report.terms is not None:
        yield "proof by terms", proved_sentence(report)
    for check in report.checks:
        yield check.runtime, check_sentence(check)
    if report.versions:
        yield "versions", ", ".join(report.versions)


def _cards(report: Report) -> Iterator[_Card]:
    """Yield the important figures."""
    bound = report.allocation.solution.lower_bound
    arenas = arenas_sentence(report).replace("->", "→")
    board = f"{report.board.name}, " if report.board else ""
    saved = f"saved: {saved_sentence(report)}, {arenas}, for {shorten(board, 80)}{report.target}"
    yield _Card(f"{report.saved:,} B", saved, "good" * (report.saved > 0))
    gap = report.after.head - bound
    if gap <= 0:
        words = "no plan of these operators in this order, shared as was allowed, has a lower head"
        yield _Card("optimal", f"{words}: proved", "good")
    else:
        yield _Card(f"{percent(gap, bound)} above the bound", limit_sentence(report))
    verdict = "verified" if report.verified else "not verified"
    runs = "; ".join(f"{shorten(c.runtime, 40)}: {c.status}" for c in report.checks)
    runs = runs or "no runtime was asked"
    proofs = runs if report.terms is None else f"{proved_sentence(report)}; {runs}"
    yield _Card(verdict, proofs, "good" if report.verified else "hot")


def _done_rows(report: Report) -> Iterator[tuple[str, str]]:
    before, after = report.before, report.after
    yield "runs on", runs_on_sentence(report)
    yield "order", order_sentence(report)
    yield "plan", plan_sentence(report)
    yield "limit", limit_sentence(report)
    yield "arena before", arena_sentence(before.arena)
    yield "arena after", arena_sentence(after.arena)
    yield "heads", heads_sentence(report, "→")
    yield f"{HERE} (x86-64), before", real_sentence(before)
    yield f"{HERE} (x86-64), after", real_sentence(after)
    yield "operators", f"{before.operators:,} → {after.operators:,}"
    yield "MACs", macs_sentence(before.macs, after.macs).replace("->", "→")
    yield "tensors", f"{before.tensors:,} → {after.tensors:,}"
    yield "file", f"{before.file_bytes:,} B → {after.file_bytes:,} B"
    yield "seconds", seconds_sentence(report.seconds)
    if report.command:
        yield "command", shorten(report.command, 400)


def _ladder(report: Report) -> Table:
    """A table of what each further permission reaches."""
    columns = (
        Column("what may change", "op"),
        Column("arena", "n"),
        Column("instructions", "n"),
        Column("", "command"),
    )
    return Table(columns, [Row(cells, "kept" * rung.taken) for rung, cells in ladder_cells(report)])


def _front(report: Report, front: ParetoFront) -> dict[str, object]:
    """The Pareto front: the drawing, also for a phone, and a table of its points with instructions
    and added operators."""
    limit = report.arena_limit if front.objective == "arena" else None

    def drawn(title: str, width: int) -> Markup:
        inputs = report.limits.input_bytes
        return Markup(pareto_svg(front, inputs=inputs, arena_limit=limit, title=title, width=width))

    title = f"What less {front.objective} costs"
    unit = f"bytes, {front.bound}" if may_need_more(front.bound) else "bytes"
    columns = Column(unit, "n"), Column("instructions", "n"), Column("how many regions changed")
    rows = [
        Row(
            (
                f"{point.size:,}",
                slowdown_text(point) or "0 %",
                point_words(point),
                ", ".join(point.added) or "nothing",
                point.command,
            ),
            "kept" * (point.role == "chosen"),
        )
        for point in front.points
    ]
    table = Table((*columns, Column("to be registered"), Column("", "command")), rows)
    return {
        "picture": drawn(f"{title} on {report.target}", 1000),
        "narrow": drawn(title, _PHONE),
        "table": table,
    }


def _limits(report: Report) -> Table:
    head = report.after.head
    columns = Column("limit", "head"), Column("bytes", "n"), Column("of the head", "n")
    rows: list[Row] = []
    for short, title, size, meaning in limit_rows(report.limits):
        number = "not known" if size is None else f"{size:,}"
        share = "" if size is None else percent(size, head)
        below = "; this plan is below it" if size is not None and size > head else ""
        rows.append(Row((f"{short} {title}", number, share, meaning + below)))
    least = figure(head, report.after.arena.head_bound).removesuffix(" B")
    rows.append(Row(("head, after", least, "100.0 %", "what the plan needs")))
    return Table((*columns, Column("what it is", "words")), rows)


def _peaks(report: Report) -> Iterator[tuple[str, Table]]:
    """Yield a title and a table of the tensors that are live at the peak, before and after."""
    for word, side in (("Before", report.before), ("After", report.after)):
        peak = side.map.peak_step
        if peak is None:
            continue
        operator = f"operator {peak.index:,} {shorten(peak.operator, 40)}"
        live = figure(peak.live_bytes, side.map.bound)
        parts = _peak_table(peak_parts(side.map), peak.workspace_bytes)
        yield f"{word}: {live} live at {operator}", parts


def _peak_table(parts: Sequence[PeakPart], scratch: int) -> Table:
    """A table of tensors with two figures each: their own bytes, which add up to the live bytes,
    and their sizes, which add up to more if tensors share memory."""
    rows = [
        (shorten(p.block.name, _SHORT_NAME), p.own, f"{p.block.size:,}") for p in parts[:_LISTED]
    ]
    if others := parts[_LISTED:]:
        rows.append((f"and {len(others):,} more", sum(p.own for p in others), ""))
    if scratch:
        rows.append(("scratch of the kernel", scratch, f"{scratch:,}"))
    columns = Column("tensor"), Column("bytes of its own", "n"), Column("size", "n")
    return Table(columns, [Row((name, f"{own:,}", size)) for name, own, size in rows])


def _large_map(word: str, memory_map: MemoryMap, scale: int) -> tuple[str, Markup]:
    title = f"Memory map {word}"
    picture = memory_map_svg(memory_map, title=title, side=word, scale=scale, height=560)
    return f"Memory map {word}, large", Markup(picture)


def _changes(report: Report) -> Table:
    """A table of the operators of the original: live bytes before and after on one scale, and what
    was changed or why not."""
    changes = list(changes_of(report))
    most = max([1, *(change.before.live_bytes for change in changes)])
    rows = [
        Row(
            (
                f"{change.before.index:,}",
                shorten(change.before.operator, 40),
                Name(shorten(change.before.name, 24), shorten(change.before.name, _NAME)),
                f"{change.before.live_bytes:,}",
                f"{100 * change.before.live_bytes / most:.1f}",
                "" if change.live_after is None else f"{change.live_after:,}",
                f"{min(100, 100 * (change.live_after or 0) / most):.1f}",
                change.done or change.why or _unfollowed(change.before.name),
            ),
            "kept" * bool(change.done),
        )
        for change in changes
    ]
    columns = (
        Column("#", "n"),
        Column("operator", "op"),
        Column("name", "name"),
        Column("live before", "n"),
        Column("", "meter"),
        Column("after", "n"),
        Column("", "meter"),
        Column("what became of it, or why not", "words"),
    )
    return Table(columns, rows, "long changes")


def _unfollowed(name: str) -> str:
    """Why nothing is said of an operator, which is matched by its first result's name."""
    return f"not followed: {'others have the name of its result' if name else 'it has no result'}"


def _operators(word: str, memory_map: MemoryMap) -> tuple[str, Table]:
    """The tensor memory mapping as a table, live bytes as bars."""
    peak, steps = memory_map.peak_step, memory_map.steps
    most = max(1, peak.live_bytes) if peak else 1
    columns = [
        ("input", [s.input_bytes for s in steps], True),
        ("output", [s.output_bytes for s in steps], True),
        ("other", [s.other_bytes for s in steps], True),
        ("scratch", [s.workspace_bytes for s in steps], False),
        ("shared", [-s.shared_bytes for s in steps], False),
        ("live bytes", [s.live_bytes for s in steps], True),
    ]
    shown = [(title, numbers) for title, numbers, always in columns if always or any(numbers)]
    rows = [
        Row(
            (
                f"{step.index:,}",
                shorten(step.operator, 40),
                Name(shorten(step.name, 40), shorten(step.name, _NAME)),
                *(f"{numbers[row]:,}" for _, numbers in shown),
                f"{100 * step.live_bytes / most:.1f}",
            ),
            " ".join(["sub"] * (step.graph > 0) + ["top"] * (step is peak)),
        )
        for row, step in enumerate(steps)
    ]
    first = Column("#", "n"), Column("operator", "op"), Column("name", "name")
    numbers = [Column(title, "n") for title, _ in shown]
    title = f"{count(len(steps), 'operator', 'operators')} {word}"
    return title, Table((*first, *numbers, Column("", "meter")), rows, "long operators", word)
