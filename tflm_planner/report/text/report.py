"""Renders a report as plain text for a terminal.

It must not know colours, terminals or files: it returns a string. Names come from a model that
someone else made: only printable characters of them reach the terminal (`safe_text`).
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from tflm_planner.report.document import (
    HeadLimits,
    ModelFigures,
    Report,
    RuntimeCheck,
)
from tflm_planner.report.text.bounds import long_figure, meaning
from tflm_planner.report.text.fit import ladder_rows, next_line, paste_lines, verdict_line
from tflm_planner.report.text.pareto import front_rows
from tflm_planner.report.text.safe import safe_text
from tflm_planner.report.text.words import display_width, encodable, percent, shorten
from tflm_planner.support.units import human_size
from tflm_planner.support.words import count
from tflm_planner.tflm.arena.uncertainty import may_need_more
from tflm_planner.verification.verdict import CLOSE, DIFFERENT, EQUAL

if TYPE_CHECKING:
    from tflm_planner.tflm.arena.predict import Arena
    from tflm_planner.verification.terms import TermsProof

_NOTES_SHOWN = 10
_CHECKS_SHOWN = 4
_LABEL = 13
_RUNG = 18
"""Width of the labels of the ladder."""
_MOST_LINES = 4
"""The most lines of one text."""
HERE = "TFLM here"
"""The label of rows about TFLM on this machine, which is another target than the report's."""


def limit_rows(limits: HeadLimits) -> tuple[tuple[str, str, int | None, str], ...]:
    """The lower bounds L0 to L3: short name, title, bytes (None: unknown), meaning."""
    return (
        ("L0", "inputs", limits.input_bytes, "all model inputs together"),
        (
            "L1",
            "file order",
            limits.file_order_bytes,
            "as the file came, in its order, nothing shared",
        ),
        (
            "L2",
            "best order",
            limits.best_order_bytes,
            "any order, all sharing that the target allows",
        ),
        (
            "L3",
            "overlap",
            limits.overlap_bytes,
            "this order, whatever operands and results may share",
        ),
    )


def limit_sentence(report: Report) -> str:
    """How far the head is from the lower bound for its operators and their order."""
    solution, head = report.allocation.solution, report.after.head
    above = head - solution.height
    if solution.optimal:
        reached = f"{human_size(solution.height)}, reached: proved optimal for this order"
        return f"{reached}, but {_scratch_above(above)}" if above > 0 else reached
    gap = head - solution.lower_bound
    bound = f"lower bound {human_size(solution.lower_bound)}"
    if gap <= 0:
        return f"{bound}, reached"
    why = f"; {_scratch_above(above)}" if above > 0 else ""
    return f"{bound}, gap {gap:,} B ({percent(gap, solution.lower_bound)}), not proved{why}"


def _scratch_above(above: int) -> str:
    return f"scratch that TFLM places ends {above:,} B above"


def macs_sentence(before: int, after: int) -> str:
    """Multiply-accumulates of one inference before and after, and how much tiles add."""
    added = f", {100 * (after - before) / before:+.2f} %" if before and after != before else ""
    return f"{before:,} -> {after:,}{added}"


def order_sentence(report: Report) -> str:
    """Whether the order of the operators was changed, its peak and its lower bound."""
    order = report.order
    bound = "proved best" if order.optimal else f"lower bound {order.lower_bound:,} B"
    change = "changed" if order.changed else "kept"
    shared = " before sharing" if order.peak > report.after.head else ""
    return f"{change} ({safe_text(order.method)}), peak {order.peak:,} B{shared}, {bound}"


def plan_sentence(report: Report) -> str:
    """Which allocator found the offsets, and how many results share memory on purpose."""
    plan = report.allocation
    shared = count(len(plan.aliases), "alias", "aliases")
    if plan.input_overlaps:
        results = count(len(plan.input_overlaps), "result", "results")
        shared += f"; {results} overlapping an operand inside an operator, {plan.replayed} replayed"
    return f"found by {safe_text(plan.solution.allocator)}; {shared}"


def check_sentence(check: RuntimeCheck) -> str:
    """The check of one runtime in words: the verdict, the number of inputs, and the reason."""
    text = f"NOT equal, but {CLOSE}" if check.status == CLOSE else check.status
    if check.status in (EQUAL, CLOSE, DIFFERENT):
        text += f" on {count(check.inputs, 'input', 'inputs')}"
    if check.status == "equal" and not check.outputs_vary:
        text += " (the outputs never vary: this proves little)"
    detail = " ".join(check.detail.split())
    return safe_text(f"{text}: {detail}" if detail else text)


def verdict_sentence(report: Report) -> str:
    """The verdict over all runtimes."""
    if report.cannot_run:
        runtimes = " and ".join(c.runtime for c in report.checks if c.status == EQUAL)
        return f"NO: the target's TFLM cannot run the model{runtimes and f' (equal on {runtimes})'}"
    if report.verified and not any(check.status == EQUAL for check in report.checks):
        return "yes, by the proof alone: no runtime here compared the two models"
    if report.verified:
        return "yes, the outputs are equal"
    if any(check.status == CLOSE for check in report.checks):
        return "NO: the outputs are NOT equal, but within the tolerance that was allowed"
    if any(check.status == DIFFERENT for check in report.checks):
        return "NO: the outputs differ"
    return "NO: no runtime compared the two models"


def proved_sentence(report: Report) -> str:
    """The outcome of the proof for every input."""
    return "not asked for" if report.terms is None else sentence_of_terms(report.terms)


def sentence_of_terms(terms: TermsProof) -> str:
    """A proof by terms in words."""
    if terms.error_log2 is None:
        return safe_text(f"not for every input: {terms.detail}")
    return f"equal for every input (chance of error < 2^{math.floor(terms.error_log2) + 1})"


def real_sentence(side: ModelFigures) -> str:
    """The memory that TFLM used on this machine (x86-64, reference kernels), compared with the
    prediction for it. This is another target than the report's, with 64-bit structures and other
    scratch."""
    predicted, measured = side.host.predicted, side.host.measured
    if measured is None:
        return "not measured"
    head = _against(measured.head, predicted.head)
    return f"head {head}, tail {_against(measured.tail, predicted.tail)}"


def _against(measured: int, predicted: int) -> str:
    off = measured - predicted
    deviation = "as predicted" if off == 0 else f"predicted {predicted:,} B, off by {off:+,} B"
    return f"{measured:,} B ({deviation})"


def arena_sentence(arena: Arena) -> str:
    """The arena and its parts."""
    temporary = max(arena.planning_temp, arena.prepare_temp)
    parts = f"head {arena.head:,} + tail {arena.tail:,}; temporary {temporary:,}"
    doubt = "" if arena.bound == "exact" else f" ({meaning(arena.bound)})"
    return f"{long_figure(arena.arena, arena.bound)}: {parts}{doubt}"


def saved_sentence(report: Report) -> str:
    """Bytes of arena saved. If an arena is not known, the sentence says so."""
    saved = f"{report.saved:,} B, {percent(report.saved, report.before.arena.arena)} of the arena"
    return f"{saved}, as far as it is known" if may_need_more(report.bound) else saved


def heads_sentence(report: Report, arrow: str = "->") -> str:
    """The heads before and after, in words."""
    before, after = (long_figure(s.head, s.arena.head_bound) for s in (report.before, report.after))
    return f"{before} {arrow} {after}"


def arenas_sentence(report: Report) -> str:
    """The arenas before and after, in words."""
    arenas = report.before.arena, report.after.arena
    before, after = (long_figure(a.arena, a.bound) for a in arenas)
    return f"{before} -> {after}"


def seconds_sentence(seconds: dict[str, float]) -> str:
    """The total time and its parts. The key "total" holds the total; without it, the parts are
    added up."""
    parts = {name: value for name, value in seconds.items() if name != "total"}
    total = seconds.get("total", sum(parts.values()))
    inside = ", ".join(f"{safe_text(name)} {value:.2f}" for name, value in parts.items())
    return f"{total:.2f}" + (f" ({inside})" if inside else "")


def render_report(report: Report, *, width: int = 100, encoding: str = "utf-8") -> str:
    """A report in words, ending in a line break: first the verdict (does it fit), then what to
    paste, what else would help, what was proved, and how it was done. Lines are at most `width`
    cells long, except for the verdict, code and commands, which are to be copied.

    Characters that `encoding` cannot represent are written as backslash escapes.
    """
    paths = [p for p in (report.source, report.destination) if p]
    names = [shorten(PurePath(p).name or p, 40) for p in paths]
    title = f"{' -> '.join(names)}  for {shorten(report.target, 40)}"
    lines = [verdict_line(report), f"{title}  (tflm-plan {shorten(report.version, 20)})"]
    if (following := next_line(report)) is not None:
        lines.append(f"  {'next':<{_LABEL}}{safe_text(following)}")
    lines += _section([f"  {line}" for line in paste_lines(report)])
    ladder = [f"  {label:<{_RUNG}}{text}" for label, text in ladder_rows(report)]
    lines += _section(ladder)
    rows = [*_proof_rows(report), *_detail_rows(report, encoding)]
    lines += _section([line for label, text in rows for line in _row(label, text, width)])
    return encodable("\n".join(lines) + "\n", encoding)


def _section(lines: list[str]) -> list[str]:
    """The lines, preceded by an empty one; nothing if there are none."""
    return ["", *lines] if lines else []


def _proof_rows(report: Report) -> Iterator[tuple[str, str]]:
    """Yield label and text of rows on proof and checks."""
    if report.terms is not None:
        yield "proved", proved_sentence(report)
    yield "verified", verdict_sentence(report)
    yield from _some([f"{c.runtime}: {check_sentence(c)}" for c in report.checks], _CHECKS_SHOWN)
    yield "runs on", runs_on_sentence(report)


def runs_on_sentence(report: Report) -> str:
    """Which runtimes run the file."""
    if report.tflm_only:
        return "TFLM alone; --portable writes a file for every TFLite runtime, which may be larger"
    return "every TFLite runtime; TFLM alone reads the plan in it"


def _detail_rows(report: Report, encoding: str) -> Iterator[tuple[str, str]]:
    """Yield label and text of rows with figures, what was done, and notes."""
    before, after = report.before, report.after
    yield "arena", arenas_sentence(report)
    yield "saved", saved_sentence(report)
    yield "head", heads_sentence(report)
    yield "limit", limit_sentence(report)
    yield "order", order_sentence(report)
    yield "plan", plan_sentence(report)
    yield HERE, f"on x86-64, before: {real_sentence(before)}"
    yield "", f"after: {real_sentence(after)}"
    yield "file", f"{before.file_bytes:,} B -> {after.file_bytes:,} B"
    yield "operators", f"{before.operators:,} -> {after.operators:,}"
    yield "MACs", macs_sentence(before.macs, after.macs)
    yield from front_rows(report.front, encoding)
    yield from _labelled_rows(
        "notes", [" ".join(note.split()) for note in report.notes], _NOTES_SHOWN
    )
    yield "seconds", seconds_sentence(report.seconds)


def _labelled_rows(label: str, items: Sequence[str], shown: int) -> Iterator[tuple[str, str]]:
    for i, (_, text) in enumerate(_some(items, shown)):
        yield (label if i == 0 else "", text)


def _some(items: Sequence[str], shown: int) -> Iterator[tuple[str, str]]:
    listed = items if len(items) <= shown else items[: shown - 1]
    for item in listed:
        yield "", item
    if len(listed) < len(items):
        yield "", f"and {len(items) - len(listed):,} more"


def _row(label: str, text: str, width: int) -> list[str]:
    """A line with a label, and further lines if the text is long. The middle of a very long text is
    left out."""
    room = max(20, width - 2 - _LABEL)
    text = shorten(text, _MOST_LINES * room - 20)
    even = text.isascii() or display_width(text) == len(text)
    lines = textwrap.wrap(text, room) if even else [shorten(text, room)]
    return [f"  {label if i == 0 else '':<{_LABEL}}{line}" for i, line in enumerate(lines)]
