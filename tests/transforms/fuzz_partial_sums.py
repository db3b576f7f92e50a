"""How exact shares of sums are: `python -m tests.transforms.fuzz_partial_sums [first] [count]`.

Single random int8 sums, split in 2 to 6 shares, on both runtimes; the sum is the model's output, so
nothing behind it makes differences larger or smaller.
"""

from __future__ import annotations

import random
import sys

from tests.models.generator import random_model
from tests.transforms.tiled import outputs_of_both, tiled
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import SUM, TiledRegion
from tflm_planner.verification.tolerance import Differences, Tolerance

KINDS = {"conv_2d": 4, "fully_connected": 4, "transpose_conv": 1, "mean": 1}


def main() -> None:
    """Print how many values were how many steps off."""
    first, count = (int(a) for a in (*sys.argv[1:], "0", "1000")[:2])
    found, split = Differences(Tolerance(quantised=255.0)), 0
    for seed in range(first, first + count):
        data = random_model(seed, steps=1, dtype="int8", kinds=KINDS)
        scheme = TiledRegion((0,), (Split(SUM, random.Random(seed).randint(2, 6)),))
        made, (note, *_) = tiled(data, scheme, inexact=True)
        if note.startswith("tiled"):
            split += 1
            for _, _, a, b in outputs_of_both(data, made):
                assert found.add(a, b) is None
    print(f"{split} sums of int8, {found.values:,} values: {found}")


if __name__ == "__main__":
    main()
