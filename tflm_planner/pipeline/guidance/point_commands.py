"""Makes the command for each point of the Pareto front, by setting the point's bytes as the budget.

    given command - its --budget and --max-slowdown + those of the point

The fastest result within a budget is written, so a point of the front can be requested by its
bytes. It must not know how points are found or drawn.
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
    """The command line from which the options came; if there is none, an equivalent one."""
    if options.command:
        return options.command
    target = options.target
    words = ("tflm-plan", source, "--target", target.id)
    limit = options.given_arena_limit
    return words if limit is None else (*words, "--budget", str(limit))


def with_commands(front: ParetoFront, options: PlanOptions, source: str) -> ParetoFront:
    """The front with a command for each point except the original and the one that was written. If
    the objective was the head, there are no commands, because a budget limits the arena."""
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
    """Yield the options that request a point."""
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
