"""Renders the Pareto front as text, one line for each point, for a terminal and for tables.

It must not know colours, terminals or files.
"""

from __future__ import annotations

from collections.abc import Iterator

from tflm_planner.report.document import ParetoFront, ParetoPoint
from tflm_planner.report.text.bars import CELLS, bars
from tflm_planner.report.text.bounds import figure

MOST_POINTS = 9
"""The most points that a terminal shows."""
_TITLES = ("memory", "against", "instructions")


def front_rows(front: ParetoFront | None, encoding: str) -> Iterator[tuple[str, str]]:
    """Yield label and text of each line: bytes, instructions, a bar of the bytes, and what the
    point is."""
    if front is None:
        return
    bar, points = bars(encoding), shown_points(front, MOST_POINTS)
    most = max((p.size for p in points), default=1) or 1
    width = max([12, *(len(figure(p.size, front.bound)) for p in points)])
    for i, p in enumerate(points):
        label = _TITLES[i] if i < len(_TITLES) else ""
        figures = f"{figure(p.size, front.bound):>{width}} {slowdown_text(p):>8}"
        yield label, f"{figures}  {bar(p.size, most):<{CELLS}}  {point_words(p)}".rstrip()


def shown_points(front: ParetoFront, most: int) -> list[ParetoPoint]:
    """About `most` points: the original, the plan, the one that was written, and some of the
    others."""
    named = [p for p in front.points if p.role in ("stock", "plan", "chosen")]
    others = [p for p in front.points if p not in named]
    room = max(most - len(named), 1)
    if len(others) > room:
        last = len(others) - 1
        others = [others[round(i * last / max(room - 1, 1))] for i in range(room)]
    shown = [*named, *others]
    return [p for p in front.points if any(p is k for k in shown)]


def slowdown_text(point: ParetoPoint) -> str:
    """Instructions relative to those of the original; "" for the original itself."""
    return "" if point.role == "stock" else f"{100 * (point.slowdown - 1):+.1f} %"


def point_words(point: ParetoPoint) -> str:
    """What a point is, and how many operators the firmware must add for it, in words."""
    if point.role == "stock":
        return "as it was"
    parts = [f"{point.tiles} in tiles"] * bool(point.tiles)
    parts += [f"{point.loops} in a loop" if point.loops == 1 else f"{point.loops} in loops"] * bool(
        point.loops
    )
    is_plain = point.role == "plan" or (point.role == "chosen" and point.slowdown == 1)
    parts = parts or ["order and plan" if is_plain else "other spellings"]
    if point.added:
        parts.append(f"+{len(point.added)} operators" if len(point.added) > 1 else "+1 operator")
    words = ", ".join(parts)
    if point.role == "slower":
        return f"slower than allowed: {words}"
    return f"this file: {words}" if point.role == "chosen" else words
