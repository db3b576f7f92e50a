"""The command that asks for a point of the Pareto front: for no more bytes than it has.

    command that was given - its --budget and --max-slowdown + those of the point

Of the ways that keep to a budget the fastest is written, so that a point between two others is
asked for by its bytes. It must not know how points are found or drawn.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from tflm_planner.pipeline.options import PlanOptions
from tflm_planner.report.document import ParetoFront, ParetoPoint
from tflm_planner.support import defaults


def given_command(options: PlanOptions, source: str) -> tuple[str, ...]:
    """The command line that options came from; for those that came from none, one that means
    them."""
    if options.command:
        return options.command
    target = options.target
    words = ("tflm-plan", source, "--target", target.id)
    limit = options.given_arena_limit
    return words if limit is None else (*words, "--budget", str(limit))


def with_commands(front: ParetoFront, options: PlanOptions, source: str) -> ParetoFront:
    """The front with a command for each point but the source and what was written. There is none
    where the head was to be lowered: a budget is one of the arena."""
    if front.objective != "arena":
        return front
    words = without(given_command(options, source), ("--budget", "--max-slowdown"))
    points = tuple(
        point
        if point.role in ("stock", "chosen")
        else replace(point, command=shlex.join((*words, *_asking(point, options))))
        for point in front.points
    )
    return replace(front, points=points)


def _asking(point: ParetoPoint, options: PlanOptions) -> Iterator[str]:
    """The options that ask for a point."""
    if options.io == "int8":
        yield from ("--io", "int8")
    if options.target.lean:
        yield from ("--firmware", "lean")
    elif point.added:
        yield from ("--ops", ",".join(point.added))
    if point.role == "plan":
        yield from ("--search", "none")
        return
    yield from ("--budget", str(point.size))
    allowed = defaults.SLOWDOWN if options.tiles is None else options.tiles.max_slowdown
    if point.role == "slower":
        allowed = math.ceil(100 * point.slowdown) / 100
    if allowed != defaults.SLOWDOWN:
        yield from ("--max-slowdown", f"{allowed:g}")


def without(words: Sequence[str], options: Collection[str]) -> tuple[str, ...]:
    """A command line without some options, each of which has a value."""
    kept = list(words)
    for option in options:
        while option in kept:
            del kept[kept.index(option) : kept.index(option) + 2]
    return tuple(kept)
