"""Says how each operator of the original was changed, or why it was not.

    before   0 CONV_2D   1 DEPTHWISE   2 MEAN
             |         /  |  \\         |
    after    0 CONV_2D  1..3 in parts  4 MEAN

Operators are matched by the name of their first result. Tiles and loops keep this name and append
the part that they make. If a name is not unique, nothing is said. It must not know how anything is
rendered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tflm_planner.report.document import MapStep, MemoryMap, OperatorTrial, ParetoFront, Report
from tflm_planner.report.text.bounds import figure
from tflm_planner.transforms.tile.boxes import box_in_name, whole_name

_SHOWN = 3
"""How many parts are named."""
_SPELLED = "/rows"
"""Suffix of the name of a 1x1 convolution in another spelling (`transforms.spelling`)."""
_MOVERS = frozenset(
    {"CONCATENATION", "SLICE", "STRIDED_SLICE", "SPLIT", "SPLIT_V", "RESHAPE", "PAD", "SQUEEZE"}
)
"""Operators that only move bytes, so that a view may replace them."""

_UNTRIED = {
    True: "promised too little",
    False: "no gain estimated",
    None: "not tried",
}
"""Whether an operator is in a promising region -> why no model was tried with it in one. Short,
because hundreds of rows of a page say one of these; the page explains them once."""


@dataclass(frozen=True, slots=True)
class OperatorChange:
    """An operator of the original. after: the operators that now compute its result, in execution
    order. live_after: the most live bytes while one of these runs; None if there are none. done:
    how it was changed. why: why it was not changed."""

    before: MapStep
    after: tuple[MapStep, ...]
    live_after: int | None
    done: str
    why: str


def changes_of(report: Report) -> Iterator[OperatorChange]:
    """Yield the changes of the operators of a report, in order."""
    tried = _tried(report)
    return operator_changes(report.before.map, report.after.map, _why_at_peak(report), tried)


def _tried(report: Report) -> dict[str, str]:
    """Name of a first result -> what the search tried with its operator, in words. Without names
    that are not unique."""
    if report.front is None:
        return {}
    named = Counter(trial.name for trial in report.trials)
    return {
        trial.name: _words_of(trial, report.front)
        for trial in report.trials
        if named[trial.name] == 1
    }


def _words_of(trial: OperatorTrial, front: ParetoFront) -> str:
    if trial.whole:
        return trial.whole
    if trial.size is None or trial.slowdown is None:
        return _UNTRIED[trial.promising]
    needs = f"{figure(trial.size, front.bound)} of {front.objective}"
    least = f"best tried: {needs}, {100 * (trial.slowdown - 1):+.1f} %"
    return least if trial.fast_enough else f"{least}, too slow"


def _why_at_peak(report: Report) -> str:
    """Why the operators at the peak were kept: what the whole run says about that."""
    inputs, peak = report.limits.input_bytes, report.after.map.peak_step
    if report.arena_limit is not None and report.fits:
        return "lower was not needed, as it fits"
    if report.front is None:
        return "no tiles were searched for"
    if report.stopped is not None:
        return "lower was not found before the search was ended"
    if peak is not None and 2 * inputs > peak.live_bytes:
        share = f"{inputs:,} of {peak.live_bytes:,} B"
        return f"lower was not found; the model's inputs alone take {share}"
    return f"lower was not found within {100 * (report.front.allowed - 1):+.3g} % instructions"


def operator_changes(
    before: MemoryMap,
    after: MemoryMap,
    at_peak: str = "lower was not found, or not needed",
    tried: Mapping[str, str] | None = None,
) -> Iterator[OperatorChange]:
    """Yield the changes of the operators of the original's main graph, in order. at_peak: why
    operators at the peak were kept. tried: name of a first result -> what was tried with its
    operator."""
    named = Counter(step.name for step in before.steps)
    found: dict[str, list[MapStep]] = {}
    for step in after.steps:
        found.setdefault(_whole(step.name), []).append(step)
    peak = max((step.live_bytes for step in after.steps), default=0)
    told = {name for name, count in named.items() if count == 1 and name and _is_whole(name)}
    told_after = told & found.keys()
    moved = _moved([step.name for step in before.steps if step.name in told_after], found)
    for step in before.steps:
        if step.graph > 0:
            continue
        is_told = step.name in told
        matched = found.get(step.name, []) if is_told else []
        live = max((other.live_bytes for other in matched), default=None)
        done = _done(step, matched) if is_told else ""
        if not done and matched and step.name in moved:
            done = "runs at another time"
        why = "" if done or live is None else _why(live, peak, at_peak)
        if why and (words := (tried or {}).get(step.name)):
            why = f"{why}; {words}"
        yield OperatorChange(step, tuple(matched), live, done, why)


def _whole(name: str) -> str:
    """The name of the original's result, of which this is the name of a part or spelling."""
    return whole_name(name).removesuffix(_SPELLED)


def _is_whole(name: str) -> bool:
    """Whether a name is not that of a part. A model that is planned again has such names
    already."""
    return _whole(name) == name


def _done(step: MapStep, after: Sequence[MapStep]) -> str:
    if not after:
        if step.operator in _MOVERS:
            return "left out: its result is a view of what lies there, or known ahead"
        return "no operator makes a result of this name any more"
    parts = list(dict.fromkeys(filter(None, (box_in_name(other.name) for other in after))))
    kinds = {other.operator for other in after}
    if any(other.graph > 0 for other in after):
        return "runs in a loop, some rows a turn"
    if len(parts) > 1:
        named = ", ".join(parts[:_SHOWN]) + (", ..." if len(parts) > _SHOWN else "")
        return f"runs in {len(parts)} parts: {named}"
    if parts:
        return f"computes only the part {parts[0]}, which is all that is read"
    if any(other.name.endswith(_SPELLED) for other in after):
        return "spelled otherwise: the same sums by a kernel whose result may trail its operand"
    if step.operator not in kinds:
        return f"is a {after[-1].operator} now"
    if len(after) > 1:
        others = Counter(other.operator for other in after)
        others[step.operator] -= 1
        return f"with {', '.join(sorted(kind for kind, n in others.items() if n))} beside it"
    return ""


def _why(live: int, peak: int, at_peak: str) -> str:
    """Why an operator was not changed."""
    if live >= peak:
        return f"at the peak: {at_peak}"
    return "below the peak"


def _moved(order: Sequence[str], found: Mapping[str, Sequence[MapStep]]) -> set[str]:
    """The results of neighbouring operators that now run in reverse order. Only neighbours are
    compared, so that an operator that moved far counts as moved, but not all operators that it
    passed. order: the results in the order in which the original computed them."""
    moved: set[str] = set()
    for first, second in pairwise(order):
        if found[first][0].index > found[second][0].index:
            moved |= {first, second}
    return moved
