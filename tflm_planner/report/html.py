"""A report as one HTML page: pictures, figures, tables.

Self-contained: no script, nothing loaded (a content security policy forbids both), dark and
light by `prefers-color-scheme`. Names come from a model that someone else made: every text
goes through `_e`, which spells out what is not printable and escapes the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import PurePath

from tflm_planner.report.bounds_text import figure
from tflm_planner.report.document import MapStep, MemoryMap, Report
from tflm_planner.report.front_svg import front_svg
from tflm_planner.report.front_text import overhead_text, point_words
from tflm_planner.report.memory_map_svg import before_after_svg, memory_map_svg
from tflm_planner.report.peak import Part, peak_parts
from tflm_planner.report.text import (
    HERE,
    arena_sentence,
    arenas_sentence,
    budget_sentence,
    check_sentence,
    count,
    heads_sentence,
    limit_rows,
    limit_sentence,
    macs_sentence,
    order_sentence,
    percent,
    plan_sentence,
    real_sentence,
    safe_text,
    saved_sentence,
    seconds_sentence,
    shorten,
    verdict_sentence,
)

_NAME = 160
_LISTED = 20
"""Tensors named at the peak."""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

_STYLE = """
:root{color-scheme:light dark;--ink:#111827;--soft:#5b6676;--page:#f3f5f9;--card:#fff;
--edge:#e3e7ee;--bar:#74a2e2;--hot:#c2334d;--good:#0f7b53;--zebra:#f7f9fc}
@media (prefers-color-scheme:dark){:root{--ink:#eef2f7;--soft:#9aa7b8;--page:#0a0f16;
--card:#10161f;--edge:#263041;--bar:#4a7fc6;--hot:#ff8a9d;--good:#4fd1a0;--zebra:#151d29}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 ui-sans-serif,system-ui,
-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1080px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:22px;margin:0;overflow-wrap:anywhere}h2{font-size:16px;margin:34px 0 10px}
p{margin:4px 0}.soft{color:var(--soft)}.hot{color:var(--hot)}.good{color:var(--good)}
.lead{margin:12px 0 6px}svg.tfm{display:block;width:100%;height:auto;margin:18px 0 0}
svg.tff{display:block;width:100%;height:auto}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(200px,1fr));gap:12px;
margin:16px 0 0}
.card{background:var(--card);border:1px solid var(--edge);border-radius:12px;padding:12px 16px}
.card b{display:block;font-size:21px;line-height:1.35;font-variant-numeric:tabular-nums}
.card span{color:var(--soft);font-size:13px;overflow-wrap:anywhere}
.wide{overflow-x:auto;background:var(--card);border:1px solid var(--edge);border-radius:12px}
table{border-collapse:collapse;width:100%;font-size:13.5px;font-variant-numeric:tabular-nums}
th,td{padding:6px 12px;text-align:left;vertical-align:top;overflow-wrap:anywhere}
thead th{color:var(--soft);font-weight:600;border-bottom:1px solid var(--edge)}
tbody tr:nth-child(even){background:var(--zebra)}tbody th{font-weight:600;white-space:nowrap}
.n{text-align:right;white-space:nowrap;overflow-wrap:normal}.op{white-space:nowrap}
.sub td:nth-child(2){padding-left:30px}
tr.top td{color:var(--hot);font-weight:600}tr.kept td{color:var(--good);font-weight:600}
.meter{min-width:110px;width:22%}.meter i{display:block;height:10px;margin-top:5px;
border-radius:3px;background:var(--bar)}tr.top .meter i{background:var(--hot)}
details{margin:10px 0}summary{cursor:pointer;font-weight:600;padding:4px 0}
ul{margin:0;padding:10px 14px 10px 32px}li{overflow-wrap:anywhere}
code{font:12.5px ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace;
overflow-wrap:anywhere}
"""


def to_html(report: Report) -> str:
    """The page as a string; write it as UTF-8."""
    title = shorten(PurePath(report.source).name or report.source, 90)
    body = [
        f"<h1>{_e(title)}</h1>",
        f'<p class="soft">{_e(shorten(report.source, 200))} → '
        f"{_e(shorten(report.destination, 200))}, tflm-plan {_e(shorten(report.version, 40))}</p>",
        *(_section("TFLM cannot run it", [_list(report.cannot_run)]) if report.cannot_run else ()),
        before_after_svg(report.before.map, report.after.map, title="Memory over time"),
        *_cards(report),
        *_section("What was done", _rows(_done(report))),
        *(_section("Memory against instructions", _front(report)) if report.front else ()),
        *_section("Verified?", _checks(report)),
        *_section("Limits of the head", _limits(report)),
        *_section("At the peak", _peak(report)),
        *(_section("Notes", [_list(report.notes)]) if report.notes else ()),
        "<h2>In detail</h2>",
        *_details(report),
    ]
    return page(f"{title}: memory plan", body)


def page(title: str, body: Iterable[str]) -> str:
    """A page of its own with this title and content, which must be escaped already."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_e(_POLICY)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_e(title)}</title>",
            f"<style>{_STYLE}</style></head><body><main>",
            *body,
            "</main></body></html>\n",
        ]
    )


def _cards(report: Report) -> Iterator[str]:
    """The figures that count, large."""
    bound = report.allocation.solution.lower_bound
    arenas = arenas_sentence(report).replace("->", "→")
    saved = f"saved: {saved_sentence(report)}, {arenas}, for {report.target}"
    yield '<div class="cards">'
    yield _card(f"{report.saved:,} B", saved, "good" * (report.saved > 0))
    gap = report.after.head - bound
    if gap <= 0:
        words = "no plan of these operators in this order, shared as was allowed, has a lower head"
        yield _card("optimal", f"{words}: proved", "good")
    else:
        above = percent(gap, bound)
        yield _card(f"{above} above", limit_sentence(report), "")
    verdict = "verified" if report.verified else "not verified"
    runs = "; ".join(f"{shorten(c.runtime, 40)}: {c.status}" for c in report.checks)
    yield _card(verdict, runs or "no runtime was asked", "good" if report.verified else "hot")
    if report.budget is not None:
        word = "within budget" if report.within_budget else "over budget"
        word = word if report.known_to_fit or not report.within_budget else "not known to fit"
        yield _card(word, budget_sentence(report), "good" if report.known_to_fit else "hot")
    yield "</div>"


def _card(figure: str, words: str, style: str) -> str:
    mark = f' class="{style}"' if style else ""
    return f'<div class="card"><b{mark}>{_e(figure)}</b><span>{_e(words)}</span></div>'


def _done(report: Report) -> Iterator[tuple[str, str]]:
    before, after = report.before, report.after
    yield "order", order_sentence(report)
    yield "plan", plan_sentence(report)
    yield "limit", limit_sentence(report)
    yield "budget", budget_sentence(report)
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


def _checks(report: Report) -> Iterator[str]:
    yield f'<p class="lead">{_e(verdict_sentence(report))}</p>'
    yield from _rows((c.runtime, check_sentence(c)) for c in report.checks)


def _front(report: Report) -> Iterator[str]:
    """What less memory costs: the picture, then every point with what it takes."""
    front = report.front
    assert front is not None
    title = f"What less {front.objective} costs on {report.target}"
    budget = report.budget if front.objective == "arena" else None
    yield front_svg(front, inputs=report.limits.inputs, budget=budget, title=title)
    yield '<p class="soft">Ways that the search found; there may be better ones. Instructions are '
    yield "those of our model of latency, or of a profile.</p>"
    yield '<div class="wide"><table><thead><tr><th class="n">bytes</th>'
    yield '<th class="n">instructions</th><th>how</th><th>to be registered</th></tr></thead><tbody>'
    for point in front.points:
        mark = ' class="kept"' if point.role == "chosen" else ""
        yield (
            f'<tr{mark}><td class="n">{point.size:,}</td>'
            f'<td class="n">{_e(overhead_text(point) or "0 %")}</td>'
            f"<td>{_e(point_words(point))}</td><td>{_e(', '.join(point.added) or 'nothing')}</td>"
            "</tr>"
        )
    yield "</tbody></table></div>"


def _limits(report: Report) -> Iterator[str]:
    head = report.after.head
    yield '<p class="soft">No head is lower than a limit by what the limit says alone. What it '
    yield "leaves out goes below it: other sharing, other orders, operators in tiles.</p>"
    yield '<div class="wide"><table><thead><tr><th>limit</th><th class="n">bytes</th>'
    yield '<th class="n">of the head</th><th>what it is</th></tr></thead><tbody>'
    for short, title, size, meaning in limit_rows(report.limits):
        number = "not known" if size is None else f"{size:,}"
        share = "" if size is None else percent(size, head)
        below = "; this plan is below it" if size is not None and size > head else ""
        yield (
            f'<tr><th>{short} {_e(title)}</th><td class="n">{number}</td>'
            f'<td class="n">{share}</td><td>{_e(meaning + below)}</td></tr>'
        )
    least = figure(head, report.after.arena.head_bound).removesuffix(" B")
    yield f'<tr><th>head, after</th><td class="n">{least}</td><td class="n">100.0 %</td>'
    yield "<td>what the plan needs</td></tr></tbody></table></div>"


def _peak(report: Report) -> Iterator[str]:
    """The tensors that are live at the peak, before and after."""
    for word, side in (("Before", report.before), ("After", report.after)):
        peak = side.map.peak_step
        if peak is None:
            continue
        where = f"operator {peak.index:,} {shorten(peak.operator, 40)}"
        live = figure(peak.live_bytes, side.map.bound)
        yield f'<p class="lead">{word}: {live} live at {_e(where)}</p>'
        yield from _peak_table(peak_parts(side.map), peak.workspace_bytes)


def _peak_table(parts: Sequence[Part], scratch: int) -> Iterator[str]:
    """Tensors with the bytes that are their own, which add up to those live, and with their sizes,
    which add up to more where tensors share memory."""
    rows = [(shorten(p.block.name, _NAME), p.own, f"{p.block.size:,}") for p in parts[:_LISTED]]
    if left := parts[_LISTED:]:
        rows.append((f"and {len(left):,} more", sum(p.own for p in left), ""))
    if scratch:
        rows.append(("scratch of the kernel", scratch, f"{scratch:,}"))
    yield '<div class="wide"><table><thead><tr><th>tensor</th><th class="n">bytes of its own</th>'
    yield '<th class="n">size</th></tr></thead><tbody>'
    for name, own, size in rows:
        yield f'<tr><td>{_e(name)}</td><td class="n">{own:,}</td><td class="n">{size}</td></tr>'
    yield "</tbody></table></div>"


def _details(report: Report) -> Iterator[str]:
    before, after = report.before.map, report.after.map
    scale = max(before.head, after.head)
    for word, memory_map in (("before", before), ("after", after)):
        figure = memory_map_svg(memory_map, title=f"Memory map {word}", scale=scale, height=560)
        yield from _fold(f"Memory map {word}, large", [figure])
    for word, memory_map in (("before", before), ("after", after)):
        operators = count(len(memory_map.steps), "operator", "operators")
        yield from _fold(f"{operators} {word}", _operators(memory_map))
    if aliases := report.allocation.aliases:
        yield from _fold(count(len(aliases), "alias", "aliases"), [_list(aliases)])
    digests = [("before", report.sha256_before), ("after", report.sha256_after)]
    yield from _fold("SHA-256 of the files", _rows(digests, code=True))


def _operators(memory_map: MemoryMap) -> Iterator[str]:
    """The tensor memory mapping as a table, live bytes as bars."""
    peak = memory_map.peak_step
    most = max(1, peak.live_bytes) if peak else 1
    steps = memory_map.steps
    columns = [
        ("input", [s.input_bytes for s in steps], True),
        ("output", [s.output_bytes for s in steps], True),
        ("other", [s.other_bytes for s in steps], True),
        ("scratch", [s.workspace_bytes for s in steps], False),
        ("shared", [-s.shared_bytes for s in steps], False),
        ("live bytes", [s.live_bytes for s in steps], True),
    ]
    shown = [(title, numbers) for title, numbers, always in columns if always or any(numbers)]
    yield '<div class="wide"><table><thead><tr><th class="n">#</th><th>operator</th><th>name</th>'
    yield "".join(f'<th class="n">{title}</th>' for title, _ in shown)
    yield "<th></th></tr></thead><tbody>"
    for row, step in enumerate(steps):
        style = " ".join(["sub"] * (step.graph > 0) + ["top"] * (step is peak))
        yield _operator(step, [numbers[row] for _, numbers in shown], style, most)
    yield "</tbody></table></div>"


def _operator(step: MapStep, numbers: Iterable[int], style: str, most: int) -> str:
    mark = f' class="{style}"' if style else ""
    cells = "".join(f'<td class="n">{number:,}</td>' for number in numbers)
    name, long = shorten(step.name, 40), shorten(step.name, _NAME)
    hover = "" if name == long else f' title="{_e(long)}"'
    return (
        f'<tr{mark}><td class="n">{step.index:,}</td>'
        f'<td class="op">{_e(shorten(step.operator, 40))}</td>'
        f'<td class="op"{hover}>{_e(name)}</td>'
        f'{cells}<td class="meter"><i style="width:{100 * step.live_bytes / most:.1f}%"></i></td>'
        "</tr>"
    )


def _section(title: str, body: Iterable[str]) -> Iterator[str]:
    yield f"<h2>{_e(title)}</h2>"
    yield from body


def _fold(title: str, body: Iterable[str]) -> Iterator[str]:
    yield f"<details><summary>{_e(title)}</summary>"
    yield from body
    yield "</details>"


def _rows(rows: Iterable[tuple[str, str]], *, code: bool = False) -> Iterator[str]:
    tag = ("<code>", "</code>") if code else ("", "")
    yield '<div class="wide"><table><tbody>'
    for title, text in rows:
        yield f"<tr><th>{_e(shorten(title, 60))}</th><td>{tag[0]}{_e(text)}{tag[1]}</td></tr>"
    yield "</tbody></table></div>"


def _list(items: Iterable[str]) -> str:
    rows = "".join(f"<li>{_e(' '.join(item.split()))}</li>" for item in items)
    return f'<div class="wide"><ul>{rows}</ul></div>'


def _e(text: str) -> str:
    return escape(safe_text(text), quote=True)
