"""Picks offsets from domains; finds at once the plans in which layers slide through one buffer.

Knows problems and their pruned domains. It must not know TFLite or time limits.

    height - - - - - - - - - -     Buffers are placed one after the other, each at the low or the
        |####|                     high end of its domain, below a height that is given. Each
        |####|####|                placement is propagated to the other domains; when one becomes
             |####|####|           empty, the attempt is given up early.
    0   - - - - - - - - - - -

For a model without branches the first attempt at the bound succeeds if any plan does (`domains`
says why); for other models the orders and ends of `variants` are tried in turn.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Literal

from tflm_planner.memory.bounds import live_bytes
from tflm_planner.memory.budgets import DEFAULT_ALLOCATOR_BUDGET, AllocatorBudget
from tflm_planner.memory.domains import Domains, Pruner
from tflm_planner.memory.problem import Problem

End = Literal["low", "high", "near"]
"""The end of its domain at which a buffer is placed; "near": the end that is closer to its limit,
0 or the height."""


def variants(problem: Problem) -> list[tuple[str, list[int], End]]:
    """Named (order, end) pairs, the most promising first; ties go to lower indices."""
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
    problem: Problem,
    pruner: Pruner,
    low: int,
    high: int,
    budget: AllocatorBudget = DEFAULT_ALLOCATOR_BUDGET,
) -> Iterator[tuple[str, list[int]]]:
    """(name, offsets in bytes) of plans, each lower than the one before, with heights from the
    bound `low` to below `high`. The height `low` is tried first, then heights are bisected.
    """
    unit, plain = pruner.unit, variants(problem)
    # An order that comes close to the bound often reaches it with a few buffers moved.
    orders: Iterable[tuple[str, list[int], End]] = chain(
        plain, _perturb(plain, budget.slide_perturbed_orders)
    )
    work_left, floor, target = budget.slide_work, low - unit, low
    while target < high and work_left > 0:
        domains = pruner.at(target, budget.slide_prune_work)
        work_left -= domains.steps
        failed = True
        for name, order, end in orders if domains.possible else ():
            work = domains.copy()
            picked = _pick(work, pruner.sizes, target // unit, order, end, budget.slide_place_work)
            work_left -= work.steps
            if picked is not None:
                offsets = [o * unit for o in picked]
                high = max(o + b.size for o, b in zip(offsets, problem.buffers, strict=True))
                failed = False
                yield f"slide {name} {end}", offsets
                break
            if work_left <= (budget.slide_work // 2 if target == low else 0):
                break
        floor, orders = target if failed else floor, plain
        target = floor + max(1, (high - floor) // (2 * unit)) * unit


def _perturb(
    plain: Sequence[tuple[str, list[int], End]], count: int
) -> Iterator[tuple[str, list[int], End]]:
    """The same orders with every buffer moved a little; the same moves in every run."""
    generator = random.Random(0)
    for number in range(count):
        name, order, end = plain[number % len(plain)]
        reach = generator.choice((0.05, 0.15, 0.4)) * len(order)
        ranks = [p + generator.uniform(-reach, reach) for p in range(len(order))]
        places = sorted(range(len(order)), key=ranks.__getitem__)
        yield f"perturbed {name}", [order[p] for p in places], end


def _pick(
    domains: Domains, sizes: list[int], top: int, order: list[int], end: End, work: int
) -> list[int] | None:
    """Place the buffers in this order; None when a domain becomes empty. work: the largest number
    of pairs to look at after each placement."""
    for i in order:
        span = domains.spans[i]
        low, high = span[0][0], span[-1][1]
        if end == "near":
            offset = low if low <= top - high - sizes[i] else high
        else:
            offset = low if end == "low" else high
        if not domains.fix(i, offset, work):
            return None
    return [span[0][0] for span in domains.spans]
