"""Turns items into the arrays of the compiled search.

Knows items and arrays. It must not know how the search goes, nor import numba.

    sections:   0    1     2        A section is a maximal set of buffers that live together. Where
              |####|                the buffers of an item differ from section to section, each
              |####|#####|          section has its own bottom and weight: the outline of an item
                   |#####|####|     is exact.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from tflm_planner.memory.allocators.conflicts import conflicts_of
from tflm_planner.memory.allocators.items import (
    Items,
    areas_of,
    maximal_live_sets,
    spans_of,
    windows,
)

Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Sections:
    """The arrays of `search_state.SearchShape` by name, and which conclusions they allow."""

    arrays: dict[str, Ints]
    ordered: bool
    """Whether an item above another always has the higher offset, so that placing items in the
    order of offsets loses no plan."""
    complete: bool
    """Whether the arrays describe the items exactly: if the search then finds no plan, there is
    none."""
    bound: int
    """Bytes that the section with the largest load needs."""
    step: int
    """Every height worth trying is a multiple of this."""


def sections_of(items: Items, seed: int = 0) -> Sections:
    """The sections of items. The cost grows with the sum of the sizes of all maximal live sets."""
    count = len(items)
    skyline = [windows(items, live) for live in maximal_live_sets(items)]
    first, last = [len(skyline)] * count, [0] * count
    for s, window in enumerate(skyline):
        for k in window:
            first[k], last[k] = min(first[k], s), s + 1
    gaps, single = _gaps(items)
    loose = _loose_items(items)
    low, weight = _skylines(skyline, first, last, gaps, loose)
    slot = [0, *accumulate(b - a for a, b in zip(first, last, strict=True))]
    loads, crossing = [0] * len(skyline), [0] * len(skyline)
    for k in range(count):
        for s in range(first[k], last[k]):
            loads[s] += weight[slot[k] + s - first[k]]
            crossing[s] += s + 1 < last[k]
    arrays: dict[str, Sequence[int] | Sequence[Sequence[int]]] = {
        "height": items.heights,
        "first": first,
        "last": last,
        "slot": slot[:-1],
        "low": low,
        "weight": weight,
        "twin": _twins(items, first, last, loose),
        "ranks": _ranks(items, seed),
        "loads": loads,
        "crossing": crossing,
        **_neighbourhoods(gaps),
        **_members(skyline, first, slot, low),
    }
    distances = [d for gap in gaps for d in gap.values()]
    ordered = all(d > 0 for d in distances)
    return Sections(
        {name: np.asarray(values, dtype=np.int64) for name, values in arrays.items()},
        ordered,
        ordered and single,
        max([*loads, *items.heights], default=0),
        math.gcd(*distances, *items.heights) or 1,
    )


def _neighbourhoods(gaps: Sequence[dict[int, int]]) -> dict[str, list[int]]:
    """Each item's neighbours and the distances to them, one item after the other."""
    pairs = [(k, j) for k, gap in enumerate(gaps) for j in gap]
    return {
        "near": [0, *accumulate(map(len, gaps))],
        "near_item": [j for _, j in pairs],
        "near_gap": [gaps[k][j] for k, j in pairs],
        "near_under": [gaps[j][k] for k, j in pairs],
    }


def _members(
    skyline: Sequence[dict[int, tuple[int, int, int]]],
    first: Sequence[int], slot: Sequence[int], low: Sequence[int],
) -> dict[str, list[int]]:  # fmt: skip
    """The items of each section and their bottoms there, one section after the other."""
    pairs = [(s, k) for s, window in enumerate(skyline) for k in sorted(window)]
    return {
        "member": [0, *accumulate(map(len, skyline))],
        "member_item": [k for _, k in pairs],
        "member_low": [low[slot[k] + s - first[k]] for s, k in pairs],
    }


def _gaps(items: Items) -> tuple[list[dict[int, int]], bool]:
    """Item -> other item -> least distance at which the other may lie above it. Second result:
    whether these distances describe all permitted ones."""
    gaps: list[dict[int, int]] = [{} for _ in range(len(items))]
    single = True
    for k, others in enumerate(conflicts_of(items)):
        for j, stretches in others.items():
            gaps[k][j] = stretches[-1][1]
            single = single and len(stretches) == 1
    return gaps, single


def _loose_items(items: Items) -> set[int]:
    """Items that have an overlap with unbounded distance."""
    trailing = [o for o in items.problem.overlaps if not o.is_alias]
    return {items.owner[i] for o in trailing for i in (o.first, o.second)}


def _skylines(
    skyline: Sequence[dict[int, tuple[int, int, int]]],
    first: Sequence[int], last: Sequence[int],
    gaps: Sequence[dict[int, int]], loose: set[int],
) -> tuple[list[int], list[int]]:  # fmt: skip
    """Bottom and weight of every (item, section), item by item.

    The weight is the number of bytes that any item above must leave free. A loose item's weight is
    the minimum of what the other items of the section must leave free.
    """
    lows: list[int] = []
    weights: list[int] = []
    for k in range(len(first)):
        for s in range(first[k], last[k]):
            bottom, _, weight = skyline[s].get(k, (0, 0, 0))
            if k in loose:
                for j in skyline[s]:
                    if j in gaps[k]:
                        weight = min(weight, gaps[k][j] + skyline[s][j][0] - bottom)
                    elif j != k:
                        weight = 0
            lows.append(bottom)
            weights.append(max(0, weight))
    return lows, weights


def _twins(
    items: Items, first: Sequence[int], last: Sequence[int], loose: set[int]
) -> list[int]:  # fmt: skip
    """Item -> class; single buffers of equal size that span the same sections are twins."""
    classes: dict[tuple[int, ...], int] = {}
    linked = {items.owner[i] for pair in items.problem.permits for i in pair} | loose
    return [
        classes.setdefault(
            (-1, k)
            if k in linked or len(items.members[k]) > 1
            else (first[k], last[k], items.heights[k]),
            len(classes),
        )
        for k in range(len(items))
    ]


def _ranks(items: Items, seed: int) -> list[list[int]]:
    widths = [b - a for a, b in spans_of(items)]
    noise = list(range(len(items)))
    random.Random(seed).shuffle(noise)

    def rank(values: Sequence[int]) -> list[int]:
        place = {v: r for r, v in enumerate(sorted(set(values)))}
        return [place[v] for v in values]

    return [rank(widths), rank(areas_of(items)), noise]
