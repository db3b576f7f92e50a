"""Renders an inspection as plain text: operators, live bytes as bars, the peak, the limits.

It must not know colours, terminals or files: it returns a string, safe as
`report.text.report` says.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence

from tflm_planner.report.document import HeadLimits, MapStep, MemoryMap
from tflm_planner.report.peak import peak_parts
from tflm_planner.report.text.bars import CELLS, bars
from tflm_planner.report.text.bounds import long_figure
from tflm_planner.report.text.report import limit_rows
from tflm_planner.report.text.safe import cannot_run_lines, safe_text
from tflm_planner.report.text.words import display_width, encodable, percent, shorten
from tflm_planner.support.words import count

_PEAK_TENSORS_SHOWN = 16


def render_inspection(
    title: str,
    memory_map: MemoryMap,
    limits: HeadLimits,
    notes: Sequence[str],
    *,
    cannot_run: Sequence[str] = (),
    width: int = 110,
    encoding: str = "utf-8",
) -> str:
    """One line for each operator with its live bytes as a bar, then the peak, the limits, the
    notes.

    Lines are about `width` cells (at least 80). Operators of sub-graphs other than the first are
    indented. Bars use block characters, or "#" if `encoding` has none. The running time is linear
    in operators and buffers.
    """
    steps, blocks = len(memory_map.steps), len(memory_map.blocks)
    lines = [
        f"{shorten(title, 60)}: {count(steps, 'operator', 'operators')}, "
        f"{count(blocks, 'buffer', 'buffers')}, "
        f"head {long_figure(memory_map.head, memory_map.bound)}",
        *cannot_run_lines(cannot_run, max(80, width)),
        "",
        *_operator_lines(memory_map, max(80, width), bars(encoding)),
        *_peak_lines(memory_map, max(80, width)),
        "",
        "Limits of the head (each of what it says alone: other sharing, orders or tiles go below)",
        *_limit_lines(limits, memory_map.head),
    ]
    if notes:
        lines += ["", "Notes"]
    for note in notes:
        body = textwrap.wrap(safe_text(" ".join(note.split())), max(80, width) - 4)
        lines += [f"{'    ' if i else '  - '}{line}" for i, line in enumerate(body)]
    return encodable("\n".join(lines) + "\n", encoding)


def _operator_lines(memory_map: MemoryMap, width: int, bar: Callable[[int, int], str]) -> list[str]:
    """The table of operators. The columns for scratch and shared bytes are left out if all their
    numbers are zero."""
    steps = memory_map.steps
    if not steps:
        return ["  (no operators)", ""]
    cells = _number_columns(steps)
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


def _peak_lines(memory_map: MemoryMap, width: int) -> Iterator[str]:
    peak = memory_map.peak_step
    if peak is None:
        return
    operator = f"operator {peak.index:,} {shorten(peak.operator, 26)}"
    live = long_figure(peak.live_bytes, memory_map.bound)
    parts = peak_parts(memory_map)
    shared = any(p.own < p.block.size for p in parts)
    apart = "; tensors share memory, bytes are counted once" if shared else ""
    yield f"Peak: {live} live at {operator}{apart}"
    for part in parts[:_PEAK_TENSORS_SHOWN]:
        share, of = percent(part.own, peak.live_bytes), ""
        if part.own < part.block.size:
            of = f" (of {part.block.size:,} B)"
        name = shorten(part.block.name, width - 27 - len(of))
        yield f"  {f'{part.own:,} B':>14}  {share:>7}  {name}{of}"
    if len(parts) > _PEAK_TENSORS_SHOWN:
        other_bytes = sum(part.own for part in parts[_PEAK_TENSORS_SHOWN:])
        yield f"  {f'{other_bytes:,} B':>14}  {'':>7}  in {len(parts) - _PEAK_TENSORS_SHOWN:,} more"
    if peak.workspace_bytes:
        share = percent(peak.workspace_bytes, peak.live_bytes)
        yield f"  {f'{peak.workspace_bytes:,} B':>14}  {share:>7}  scratch of the kernel"


def _limit_lines(limits: HeadLimits, head: int) -> Iterator[str]:
    for short, title, size, meaning in limit_rows(limits):
        number = "not known" if size is None else f"{size:,} B"
        above = "" if size is None or not head else f"{percent(size, head)} of the head"
        yield f"  {short}  {title:<11}{number:>14}  {above:<20}  {meaning}"


def _number_columns(steps: Sequence[MapStep]) -> list[list[str]]:
    """The columns of bytes. Each has a title and a cell for each operator."""
    columns = (
        ("input", [s.input_bytes for s in steps], True),
        ("output", [s.output_bytes for s in steps], True),
        ("other", [s.other_bytes for s in steps], True),
        ("scratch", [s.workspace_bytes for s in steps], False),
        ("shared", [-s.shared_bytes for s in steps], False),
        ("live", [s.live_bytes for s in steps], True),
    )
    return [_right(title, numbers) for title, numbers, always in columns if always or any(numbers)]


def _right(title: str, numbers: Iterable[int]) -> list[str]:
    """A column with its title and numbers, all right-aligned."""
    cells = [title, *(f"{n:,}" for n in numbers)]
    width = max(map(len, cells))
    return [cell.rjust(width) for cell in cells]


def _indent(step: MapStep) -> str:
    return "  " if step.graph > 0 else ""


def _pad(text: str, width: int) -> str:
    return text + " " * (width - display_width(text))
