"""Random tilings of random models, for tests and for the commands that run thousands of them."""

from __future__ import annotations

import random

from tflm_planner.model.draft import is_convex
from tflm_planner.model.serde import read_model
from tflm_planner.ops.window import CHANNELS, COLUMNS, ROWS
from tflm_planner.transforms.tile.box_plan import HALOS, Split
from tflm_planner.transforms.tile.operator_tiles import BORDERS
from tflm_planner.transforms.tile.tile import SUM, TiledRegion


def random_scheme(data: bytes, seed: int) -> TiledRegion | None:
    """A random convex run of operators, split along random axes in a random way."""
    rng = random.Random(seed)
    ops = read_model(data).main.ops
    first = rng.randrange(len(ops))
    last = rng.randrange(first, min(len(ops), first + 8))
    chosen = [i for i in range(first, last + 1) if rng.random() < 0.9] or [first]
    if not is_convex(ops, [ops[i] for i in chosen]):
        chosen = list(range(first, last + 1))
    halo = rng.choice(HALOS)
    axes = [(ROWS,), (ROWS,), (COLUMNS,), (CHANNELS,), (0,), (ROWS, COLUMNS), (ROWS, CHANNELS)]
    picked = rng.choice(axes if halo == "recompute" else axes[:5])
    growth = random.Random(f"growth {seed}").choice((0, 0, 30, -50))
    splits = tuple(Split(a, rng.randint(2, 4 if len(picked) > 1 else 12), growth) for a in picked)
    border, backward, eager = rng.choice(BORDERS), rng.random() < 0.3, rng.random() < 0.4
    return TiledRegion(tuple(chosen), splits, halo, border, backward, eager)


def random_sum(data: bytes, seed: int) -> TiledRegion:
    """A short run of operators whose results, with luck, are sums, in shares."""
    rng = random.Random(seed)
    count = len(read_model(data).main.ops)
    last = rng.randrange(count)
    return TiledRegion(tuple(range(rng.randrange(max(0, last - 2), last + 1), last + 1)),
                  (Split(SUM, rng.randint(2, 5)),))  # fmt: skip
