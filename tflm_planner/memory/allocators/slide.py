"""Picks offsets from domains: finds runs of layers that slide through one buffer, at once.

Knows problems and their pruned domains. It must not know TFLite or time limits.

    height - - - - - - - - - -     Buffers are placed one after the other, each at the low or the
        |####|                     high end of what its neighbours leave it, at a height given
        |####|####|                beforehand. Each placement is propagated: whoever comes later
             |####|####|           still finds room, or the attempt is given up early.
    0   - - - - - - - - - - -

For a model without branches the first attempt at the bound succeeds if any plan does (`domains`
says why); elsewhere the orders and ends are tried in turn.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Literal

from tflm_planner.memory.bounds import live_bytes
from tflm_planner.memory.domains import Domains, Pruner
from tflm_planner.memory.problem import Problem

End = Literal["low", "high", "near"]
"""The end of its domain at which a buffer is placed; "near": the end closer to its wall."""

_AROUND = 100
"""Pairs looked at after each placement."""
_PRUNE = 30_000
"""Pairs looked at before the first one."""
BUDGET = 120_000
"""Pairs looked at in all: about 0.2 s."""
_SHAKEN = 80
"""Orders with a little chance in them, tried at the bound only."""
PAIRS = 40_000
"""Problems with more pairs live together are left alone: they are no chains."""


def variants(problem: Problem) -> list[tuple[str, list[int], End]]:
    """Named orders and ends, the most promising first; ties go to lower indices."""
    buffers, near = problem.buffers, problem.neighbours
    peak, _ = max(live_bytes(problem), key=lambda moment: (moment[1], -moment[0]))
    away = [max(b.start - peak, peak - b.end + 1, 0) for b in buffers]
    pair = [b.size + max((buffers[j].size for j in near[i]), default=0)
            for i, b in enumerate(buffers)]  # fmt: skip
    every = range(len(buffers))
    outward = sorted(every, key=lambda i: (away[i], -buffers[i].size))
    size = sorted(every, key=lambda i: (-buffers[i].size, buffers[i].start))
    fattest = sorted(every, key=lambda i: (-pair[i], -buffers[i].size))
    backward = sorted(every, key=lambda i: (-buffers[i].end, -buffers[i].size))
    return [
        ("outward", outward, "near"),
        ("size", size, "low"),
        ("backward", backward, "high"),
        ("fattest pair", fattest, "high"),
        ("outward", outward, "low"),
        ("backward", backward, "near"),
        ("size", size, "near"),
        ("fattest pair", fattest, "low"),
    ]


def attempts(
    problem: Problem, pruner: Pruner, low: int, high: int
) -> Iterator[tuple[str, list[int]]]:
    """(name, offsets in bytes) of plans ever lower, from the bound `low` to below `high`.

    The bound itself comes first, then heights are bisected.
    """
    unit, tried = pruner.unit, variants(problem)
    # What comes close to the bound mostly reaches it with another turn or two.
    tries: Iterable[tuple[str, list[int], End]] = chain(tried, _shaken(tried))
    budget, floor, target = BUDGET, low - unit, low
    while target < high and budget > 0:
        domains = pruner.at(target, _PRUNE)
        budget -= domains.steps
        failed = True
        for name, order, end in tries if domains.possible else ():
            work = domains.copy()
            found = _pick(work, pruner.sizes, target // unit, order, end)
            budget -= work.steps
            if found is not None:
                offsets = [o * unit for o in found]
                high = max(o + b.size for o, b in zip(offsets, problem.buffers, strict=True))
                failed = False
                yield f"slide {name} {end}", offsets
                break
            if budget <= (BUDGET // 2 if target == low else 0):
                break
        floor, tries = target if failed else floor, tried
        target = floor + max(1, (high - floor) // (2 * unit)) * unit


def _shaken(tried: Sequence[tuple[str, list[int], End]]) -> Iterator[tuple[str, list[int], End]]:
    """The same orders with every buffer moved a little, the same way in every run."""
    chance = random.Random(0)
    for turn in range(_SHAKEN):
        name, order, end = tried[turn % len(tried)]
        reach = chance.choice((0.05, 0.15, 0.4)) * len(order)
        place = [p + chance.uniform(-reach, reach) for p in range(len(order))]
        moved = sorted(range(len(order)), key=place.__getitem__)
        yield f"shaken {name}", [order[p] for p in moved], end


def _pick(
    domains: Domains, sizes: list[int], top: int, order: list[int], end: End
) -> list[int] | None:
    """Place the buffers in this order; None when one finds no room."""
    for i in order:
        span = domains.spans[i]
        low, high = span[0][0], span[-1][1]
        if end == "near":
            offset = low if low <= top - high - sizes[i] else high
        else:
            offset = low if end == "low" else high
        if not domains.fix(i, offset, _AROUND):
            return None
    return [span[0][0] for span in domains.spans]
