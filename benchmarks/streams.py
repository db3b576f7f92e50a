"""Arenas of models with loops chosen by hand, beside what was reached before.

    python benchmarks/streams.py MODELS ZOO [--target cortex-m4/cmsis-nn] [--seconds 10]

MODELS: the folder of the published models, ZOO: that of the generated ones (`zoo/make.py`). Each
row: bytes of head, tail and smallest arena, predicted instructions relative to the original, and
the arena that loops written by hand had.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from tflm_planner.cost import latency_of
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.pipeline.planning.memory_search import plan_memory
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.regions import Regions
from tflm_planner.transforms.row_loop import LoopBorder, LoopedRegion


def loop(first: int, last: int, border: LoopBorder = "masked", rows: int = 1) -> LoopedRegion:
    """Operators `first` to `last`, both included."""
    return LoopedRegion(tuple(range(first, last + 1)), rows, border)


_BLOCKS = [loop(0, 2, "reverse"), loop(3, 5, "reverse"), loop(6, 9), loop(10, 12, "reverse")]
ROWS: list[tuple[str, list[LoopedRegion], int]] = [
    ("vww_96_int8", [loop(2, 4, "reverse", 2), loop(6, 8, "reverse", 2)], 58_908),
    ("vww_96_int8", [loop(2, 4), loop(6, 8)], 60_484),
    ("vww_96_int8", [loop(0, 4)], 66_812),
    ("vww_96_int8", [loop(0, 4, "peeled")], 70_232),
    ("pretrainedResnet_quant", [loop(1, 3, rows=2)], 38_672),
    ("pretrainedResnet_quant", [loop(0, 7, "reverse")], 33_096),
    ("mobilenet_v2_035_96", _BLOCKS[:2], 115_852),
    ("mobilenet_v2_035_96", _BLOCKS[:3], 115_852),
    ("mobilenet_v2_035_144", _BLOCKS, 153_388),
    ("mobilenet_v2_100_224", [loop(0, 2, "reverse", 2), *_BLOCKS[1:]], 422_368),
    ("issue_2513", [loop(0, 2)], 0),
    ("issue_2513_float", [loop(0, 2)], 0),
]


def main() -> None:
    """Print a row for each entry of ROWS whose model is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--target", default="cortex-m4/cmsis-nn")
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    on = api.kernels_of(api.load_target(given.target))
    for name, loops, by_hand in ROWS:
        paths = [f / f"{name}.tflite" for f in given.folders if (f / f"{name}.tflite").exists()]
        if not paths:
            print(f"{name}: not there")
            continue
        model = read_model(paths[0].read_bytes())
        before = latency_of(model, on.target).instructions
        run(model, Normalize(), Regions(tuple(loops)))
        found = plan_memory(model, MemoryOptions(kernels=on, time_limit=given.seconds))
        arena = arena_of(found.model, on.target, found.offsets)
        after = latency_of(found.model, on.target, found.offsets).instructions
        regions = ", ".join(f"{o.ops[0]}-{o.ops[-1]} {o.border} {o.rows}" for o in loops)
        print(
            f"{name:24} {arena.head:9,} + {arena.tail:8,} = {arena.arena:9,}  "
            f"x{after / before:.3f}  by hand {by_hand or '-':>9}  {regions}"
        )


if __name__ == "__main__":
    main()
