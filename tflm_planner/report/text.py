"""A report, and an inspection, as plain text for a terminal.

It must not know colours, terminals or files: it returns a string. Names come from a model that
someone else made: nothing of them reaches the terminal but printable characters (see
`safe_text`, which the other renderings use too).
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePath

from tflm_planner.report.bars import CELLS, bars
from tflm_planner.report.document import (
    ArenaFigures,
    Limits,
    MemoryMap,
    Report,
    RuntimeCheck,
    Side,
    Step,
)
from tflm_planner.report.front_text import front_rows
from tflm_planner.report.safe import cannot_run_lines, safe_text
from tflm_planner.units import human_size
from tflm_planner.verify.verdict import CLOSE, DIFFERENT, EQUAL

_NOTES_SHOWN = 10
_CHECKS_SHOWN = 4
_PEAK_TENSORS_SHOWN = 16
_NAME_LIMIT = 4096
_LABEL = 13


def display_width(text: str) -> int:
    """Terminal cells that `text` takes: wide East Asian characters two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(_cells(c) for c in text)


def shorten(text: str, width: int) -> str:
    """Safe `text` in at most `width` cells; what is too long loses its middle to "..".

    Both ends of a tensor name tell something: the block it is in, and what it is there.
    """
    if len(text) > _NAME_LIMIT:
        text = text[: _NAME_LIMIT // 2] + text[-_NAME_LIMIT // 2 :]
    text = safe_text(text)
    if display_width(text) <= width:
        return text
    if width <= 2:
        return "."[:width] * width
    tail = (width - 2) // 2
    return _take(text, width - 2 - tail) + ".." + _take(text[::-1], tail)[::-1]


def percent(part: int, whole: int) -> str:
    """`part` of `whole` in percent with one decimal; zero of nothing is zero."""
    return f"{100 * part / whole if whole else 0.0:.1f} %"


def count(number: int, one: str, many: str) -> str:
    """`number` with its noun."""
    return f"{number:,} {one if number == 1 else many}"


def limit_rows(limits: Limits) -> tuple[tuple[str, str, int | None, str], ...]:
    """The floors L0 to L3: short name, title, bytes (None: not known), what it means."""
    return (
        ("L0", "inputs", limits.inputs, "all model inputs together"),
        ("L1", "file order", limits.order, "live bytes at the peak, operators in file order"),
        ("L2", "best order", limits.best_order, "any order, all sharing that the target allows"),
        ("L3", "overlap", limits.overlap, "this order, whatever operands and results may share"),
    )


def limit_sentence(report: Report) -> str:
    """How far from the lower bound of its order and operators the plan is."""
    allocation = report.allocation
    if allocation.optimal:
        reached = f"{human_size(allocation.height)}, reached: proved optimal for this order"
        above = report.after.head - allocation.height
        more = f", but scratch that TFLM places ends {above:,} B above" if above > 0 else ""
        return f"{reached}{more}"
    gap = allocation.height - allocation.lower_bound
    bound = f"lower bound {human_size(allocation.lower_bound)}"
    return f"{bound}, gap {gap:,} B ({percent(gap, allocation.lower_bound)}), not proved"


def macs_sentence(before: int, after: int) -> str:
    """Multiply-accumulates of one inference, and what tiles add to them."""
    added = f", {100 * (after - before) / before:+.2f} %" if before and after != before else ""
    return f"{before:,} -> {after:,}{added}"


def order_sentence(report: Report) -> str:
    """What was done to the order of the operators."""
    order = report.order
    bound = "proved best" if order.optimal else f"lower bound {order.lower_bound:,} B"
    what = "changed" if order.changed else "kept"
    return f"{what} ({safe_text(order.method)}), peak {order.peak:,} B, {bound}"


def plan_sentence(report: Report) -> str:
    """Who found the offsets, and how much memory is shared on purpose."""
    plan = report.allocation
    shared = count(len(plan.aliases), "alias", "aliases")
    if plan.trails:
        trails = count(len(plan.trails), "result", "results")
        shared += f"; {trails} trailing an operand inside an operator, {plan.replayed} replayed"
    return f"found by {safe_text(plan.allocator)}; {shared}"


def budget_sentence(report: Report) -> str:
    """Whether the target's arena is within the budget, and by how much."""
    if report.budget is None:
        return "none given"
    spare = report.budget - report.after.arena.arena
    verdict = f"met, {spare:,} B to spare" if report.within_budget else f"MISSED by {-spare:,} B"
    return f"{human_size(report.budget)}: {verdict}"


def check_sentence(check: RuntimeCheck) -> str:
    """What one runtime said: the verdict, on how many inputs, and why."""
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
        where = " and ".join(c.runtime for c in report.checks if c.status == EQUAL)
        return f"NO: the target's TFLM cannot run the model{where and f' (equal on {where})'}"
    if report.verified:
        return "yes, the outputs are equal"
    if any(check.status == CLOSE for check in report.checks):
        return "NO: the outputs are NOT equal, but within the tolerance that was allowed"
    if any(check.status == DIFFERENT for check in report.checks):
        return "NO: the outputs differ"
    return "NO: no runtime compared the two models"


def real_sentence(side: Side) -> str:
    """What TFLM used on this machine (x86-64, reference kernels), beside the prediction."""
    wheel = side.wheel
    if wheel.measured_head is None or wheel.measured_tail is None:
        return "not measured"
    head = _against(wheel.measured_head, wheel.predicted_head)
    return f"head {head}, tail {_against(wheel.measured_tail, wheel.predicted_tail)}"


def _against(measured: int, predicted: int) -> str:
    off = measured - predicted
    said = "as predicted" if off == 0 else f"predicted {predicted:,} B, off by {off:+,} B"
    return f"{measured:,} B ({said})"


def arena_sentence(arena: ArenaFigures) -> str:
    """The arena and what it is made of."""
    return (
        f"{human_size(arena.arena)}: head {arena.head:,} + tail {arena.tail:,}; "
        f"temporary {max(arena.planning_temp, arena.prepare_temp):,}"
    )


def seconds_sentence(seconds: dict[str, float]) -> str:
    """The total, and what it went into. A given "total" is taken at its word."""
    parts = {name: value for name, value in seconds.items() if name != "total"}
    total = seconds.get("total", sum(parts.values()))
    inside = ", ".join(f"{safe_text(name)} {value:.2f}" for name, value in parts.items())
    return f"{total:.2f}" + (f" ({inside})" if inside else "")


def render_report(report: Report, *, width: int = 100, encoding: str = "utf-8") -> str:
    """A run in at most about 25 lines of at most `width` cells, ending in a line break.

    What `encoding` cannot hold is written as a backslash escape.
    """
    before, after = report.before, report.after
    paths = [p for p in (report.source, report.destination) if p]
    names = [shorten(PurePath(p).name or p, 40) for p in paths]
    rows = [
        ("arena", f"{human_size(before.arena.arena)} -> {human_size(after.arena.arena)}"),
        ("saved", f"{report.saved:,} B, {percent(report.saved, before.arena.arena)} of the arena"),
        ("head", f"{human_size(before.head)} -> {human_size(after.head)}"),
        ("limit", limit_sentence(report)),
        ("order", order_sentence(report)),
        ("plan", plan_sentence(report)),
        ("TFLM before", real_sentence(before)),
        ("TFLM after", real_sentence(after)),
        ("verified", verdict_sentence(report)),
        *_some([f"{c.runtime}: {check_sentence(c)}" for c in report.checks], _CHECKS_SHOWN),
        ("budget", budget_sentence(report)),
        ("file", f"{before.file_bytes:,} B -> {after.file_bytes:,} B"),
        ("operators", f"{before.operators:,} -> {after.operators:,}"),
        ("MACs", macs_sentence(before.macs, after.macs)),
        *front_rows(report.front, encoding),
        *_titled("notes", [" ".join(note.split()) for note in report.notes], _NOTES_SHOWN),
        ("seconds", seconds_sentence(report.seconds)),
    ]
    title = f"{' -> '.join(names)}  for {shorten(report.target, 40)}"
    lines = [f"{title}  (tflm-plan {shorten(report.version, 20)})"]
    lines += cannot_run_lines(report.cannot_run, width)
    for label, text in rows:
        lines += _row(label, text, width)
    return _encodable("\n".join(lines) + "\n", encoding)


def render_inspection(
    title: str,
    memory_map: MemoryMap,
    limits: Limits,
    notes: Sequence[str],
    *,
    cannot_run: Sequence[str] = (),
    width: int = 110,
    encoding: str = "utf-8",
) -> str:
    """One operator a line with its live bytes as a bar, then the peak, the limits, the notes.

    Lines are about `width` cells (at least 80). Operators of sub-graphs other than the first
    are indented. Bars are of block characters, or of "#" where `encoding` has none. Takes
    time linear in the operators, and in the buffers once.
    """
    steps, blocks = len(memory_map.steps), len(memory_map.blocks)
    lines = [
        f"{shorten(title, 60)}: {steps:,} operators, {blocks:,} buffers, "
        f"head {human_size(memory_map.head)}",
        *cannot_run_lines(cannot_run, max(80, width)),
        "",
        *_operator_lines(memory_map, max(80, width), bars(encoding)),
        *_peak_lines(memory_map, max(80, width)),
        "",
        "Limits of the head (no plan of the kind can be lower)",
        *_limit_lines(limits, memory_map.head),
    ]
    if notes:
        lines += ["", "Notes"]
    for note in notes:
        body = textwrap.wrap(safe_text(" ".join(note.split())), max(80, width) - 4)
        lines += [f"{'    ' if i else '  - '}{line}" for i, line in enumerate(body)]
    return _encodable("\n".join(lines) + "\n", encoding)


def _operator_lines(memory_map: MemoryMap, width: int, bar: Callable[[int, int], str]) -> list[str]:
    """The table of operators. Columns of which every number is zero are left out."""
    steps = memory_map.steps
    if not steps:
        return ["  (no operators)", ""]
    columns = [
        (title, numbers)
        for title, numbers, always in (
            ("input", [s.input_bytes for s in steps], True),
            ("output", [s.output_bytes for s in steps], True),
            ("other", [s.other_bytes for s in steps], True),
            ("scratch", [s.workspace_bytes for s in steps], False),
            ("shared", [-s.shared_bytes for s in steps], False),
            ("live", [s.live_bytes for s in steps], True),
        )
        if always or any(numbers)
    ]
    cells = [_right(title, numbers) for title, numbers in columns]
    operators = [_indent(s) + shorten(s.operator, 26) for s in steps]
    index = max(5, len(f"{max(s.index for s in steps):,}") + 2)
    kind = max(8, *map(display_width, operators))
    used = index + kind + sum(len(c[0]) + 2 for c in cells) + 6 + CELLS + 8
    name = max(12, min(width - used, max(min(len(s.name), 200) for s in steps)))
    peak, most = memory_map.peak_step, max(1, *(s.live_bytes for s in steps))
    lines = [
        f"{'#':>{index}}  {_pad('operator', kind)}  {_pad('name', name)}  "
        + "  ".join(c[0] for c in cells)
    ]
    for row, step in enumerate(steps):
        numbers = "  ".join(c[row + 1] for c in cells)
        mark = (">", " <- peak") if step is peak else ("", "")
        lines.append(
            f"{mark[0] + f'{step.index:,}':>{index}}  {_pad(operators[row], kind)}  "
            f"{_pad(shorten(step.name, name), name)}  {numbers}  "
            f"{bar(step.live_bytes, most)}{mark[1]}"
        )
    return [line.rstrip() for line in lines] + [""]


def peak_tensors(memory_map: MemoryMap) -> list[tuple[str, int | None]]:
    """Buffers live at the peak, largest first: name and bytes (None: no block of that name).

    A name that several blocks have means the one that lives at the peak.
    """
    peak = memory_map.peak_step
    if peak is None:
        return []
    time = next(i for i, step in enumerate(memory_map.steps) if step is peak)
    wanted, sizes = set(peak.live), dict[str, int]()
    for block in memory_map.blocks:
        if block.name in wanted and (block.start <= time < block.end or block.name not in sizes):
            sizes[block.name] = block.size
    rows = [(name, sizes.get(name)) for name in peak.live]
    return sorted(rows, key=lambda row: (-(row[1] or 0), row[0]))


def _peak_lines(memory_map: MemoryMap, width: int) -> Iterator[str]:
    peak = memory_map.peak_step
    if peak is None:
        return
    where = f"operator {peak.index:,} {shorten(peak.operator, 26)}"
    yield f"Peak: {human_size(peak.live_bytes)} live at {where}"
    rows = peak_tensors(memory_map)
    for name, size in rows[:_PEAK_TENSORS_SHOWN]:
        number = "?" if size is None else f"{size:,} B"
        share = "" if size is None else percent(size, peak.live_bytes)
        yield f"  {number:>14}  {share:>7}  {shorten(name, width - 27)}"
    if len(rows) > _PEAK_TENSORS_SHOWN:
        rest = sum(size or 0 for _, size in rows[_PEAK_TENSORS_SHOWN:])
        yield f"  {f'{rest:,} B':>14}  {'':>7}  in {len(rows) - _PEAK_TENSORS_SHOWN:,} more"
    if peak.workspace_bytes:
        share = percent(peak.workspace_bytes, peak.live_bytes)
        yield f"  {f'{peak.workspace_bytes:,} B':>14}  {share:>7}  scratch of the kernel"


def _limit_lines(limits: Limits, head: int) -> Iterator[str]:
    for short, title, size, meaning in limit_rows(limits):
        number = "not known" if size is None else f"{size:,} B"
        above = "" if size is None or not head else f"{percent(size, head)} of the head"
        yield f"  {short}  {title:<11}{number:>14}  {above:<20}  {meaning}"


def _titled(label: str, items: Sequence[str], shown: int) -> Iterator[tuple[str, str]]:
    for i, (_, text) in enumerate(_some(items, shown)):
        yield (label if i == 0 else "", text)


def _some(items: Sequence[str], shown: int) -> Iterator[tuple[str, str]]:
    kept = items if len(items) <= shown else items[: shown - 1]
    for item in kept:
        yield "", item
    if len(kept) < len(items):
        yield "", f"and {len(items) - len(kept):,} more"


def _right(title: str, numbers: Iterable[int]) -> list[str]:
    """A column: the title, then the numbers, all right-aligned."""
    cells = [title, *(f"{n:,}" for n in numbers)]
    width = max(map(len, cells))
    return [cell.rjust(width) for cell in cells]


def _indent(step: Step) -> str:
    return "  " if step.graph > 0 else ""


def _row(label: str, text: str, width: int) -> list[str]:
    """A labelled line and, where the text is long, one more; the middle of the rest is lost."""
    room = max(20, width - 2 - _LABEL)
    text = shorten(text, 2 * room - 20)
    lines = textwrap.wrap(text, room) if text.isascii() else [shorten(text, room)]
    return [f"  {label if i == 0 else '':<{_LABEL}}{line}" for i, line in enumerate(lines)]


def _pad(text: str, width: int) -> str:
    return text + " " * (width - display_width(text))


def _take(text: str, width: int) -> str:
    """The longest start of `text` of at most `width` cells."""
    used = 0
    for i, c in enumerate(text):
        used += _cells(c)
        if used > width:
            return text[:i]
    return text


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _encodable(text: str, encoding: str) -> str:
    try:
        return text.encode(encoding, "backslashreplace").decode(encoding)
    except LookupError:
        return text.encode("ascii", "backslashreplace").decode("ascii")
