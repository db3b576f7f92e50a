"""Receptive fields moved out of patches: what is repeated, and the arena in each way to run it.

    python benchmarks/redistribution.py [NETWORKS...] [--ways plan,patches,tiles,loops]

Prints a table in Markdown ([docs/dero.md](../docs/dero.md)): each network, and the same with the
field moved by the rule of `codesign.chains.redistribution`. plan: in the best order. patches: the
stage in patches. tiles: what the search finds. loops: that and row loops, which repeat nothing.
"""

from __future__ import annotations

import argparse

from tflm_planner.codesign.chains.chain import Chain
from tflm_planner.codesign.chains.families import FAMILIES
from tflm_planner.codesign.chains.receptive_field import measure_patches
from tflm_planner.codesign.chains.redistribution import redistribute_field
from tflm_planner.codesign.chains.sizes import size_of
from tflm_planner.codesign.networks.build import build_traced
from tflm_planner.pipeline.options import MemoryOptions, PlanOptions, TilePermission
from tflm_planner.pipeline.planning.planning_session import PlanningSession
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tflm.targets import load_target
from tflm_planner.transforms.tile.tile import Patch

TARGET = load_target("cortex-m4/cmsis-nn")
PATCHES = 4
NETWORKS: dict[str, tuple[str, int, float, int]] = {
    "MobileNetV2 1.0@224": ("mobilenet_v2", 224, 1.0, 12),
    "MobileNetV2 0.35@96": ("mobilenet_v2", 96, 0.35, 12),
    "MCUNet-like 1.0@160": ("mcunet_like", 160, 1.0, 12),
    "MobileNetV1 0.25@96": ("mobilenet_v1", 96, 0.25, 9),
}
"""Family, side, width, and layers of the stage, whose result four divides."""


def permission(way: str, stage: int) -> TilePermission | None:
    """What may be tiled."""
    if way == "plan":
        return None
    if way == "patches":
        return TilePermission(max_slowdown=10.0, by_hand=(Patch(PATCHES, stage),))
    return TilePermission(
        operators=AllowedOperators.NONE if way == "tiles" else AllowedOperators.ALL
    )


def arena(chain: Chain, layers: int, way: str) -> str:
    """Arena and head."""
    data, layer_of_op = build_traced(chain)
    stage = sum(layer < layers for layer in layer_of_op)
    order = "file" if way == "patches" else "best"  # one patch after the other
    memory = MemoryOptions(order=order, kernels=kernels_of(TARGET))
    options = PlanOptions(memory, permission(way, stage), verify=None)
    planned = PlanningSession(data, Stop(), lambda _: None).plan(options).file
    found = planned.inspection.arena
    return f"{found.arena:,} ({found.head:,})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--ways", default="plan,patches")
    given = parser.parse_args()
    ways = given.ways.split(",")
    heads = ("network", "changes", "MACs", "patch", "repeated", *ways)
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for name in given.networks:
        family, side, width, layers = NETWORKS[name]
        chain = FAMILIES[family].make(side, width, 0, FAMILIES[family].classes)
        moved = redistribute_field(chain, layers, PATCHES)
        both = ((chain, layers, ""), (moved.chain, moved.layers, "; ".join(moved.changes)))
        for one, count, changes in both:
            stage = measure_patches(one, count, PATCHES)
            cells = [arena(one, count, way) for way in ways]
            macs = f"{size_of(one).macs / 1e6:,.1f} M"
            about = (changes or "as published", macs, stage.side, f"{100 * stage.overhead:.1f} %")
            print(f"| {name} | {' | '.join(map(str, (*about, *cells)))} |", flush=True)


if __name__ == "__main__":
    main()
