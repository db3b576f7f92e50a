"""What skips cost: networks as they are, without skips, with DERO's late skips, and with either at
the peak alone, in each tier of planning.

    python benchmarks/dero.py [NETWORKS...] [--tiers stock,plan,tiles,loops] [--keep FILE]

Prints a table in Markdown ([docs/dero.md](../docs/dero.md)); sizes are bytes of arena, with the
head in brackets. `--keep` appends each figure to a file as it is found, and what that has is not
computed again. Networks have no weights of their own: memory does not depend on them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from tflm_planner.codesign.chains.chain import Chain
from tflm_planner.codesign.chains.papers import NETWORKS
from tflm_planner.codesign.chains.residuals import ends, plain, reorganise
from tflm_planner.codesign.chains.sizes import size_of
from tflm_planner.codesign.networks.build import build
from tflm_planner.codesign.networks.folding import running
from tflm_planner.codesign.networks.selection import planned_memory, select, stock_memory
from tflm_planner.pipeline.options import MemoryOptions, PlanOptions, TilePermission
from tflm_planner.pipeline.planning.planning_session import PlanningSession
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tflm.targets import load_target

TARGET = load_target("cortex-m4/cmsis-nn")
TIERS = ("stock", "plan", "tiles", "loops")
MEMORY = {
    "stock": partial(stock_memory, target=TARGET),
    "plan": partial(planned_memory, target=TARGET),
}
Figure = dict[str, int]


def dero(chain: Chain, where: object = None) -> Chain:
    """With late skips, normalised where the paper's network of that kind has them."""
    scaled = "where shapes change" if chain.name.startswith("dense") else "always"
    return reorganise(chain, where, scaled)  # type: ignore[arg-type]


@cache
def selected(name: str, change: Callable[..., Chain], tier: str) -> tuple[Chain, int]:
    """A network with the skips at its peak changed, and how many changed."""
    found = select(NETWORKS[name](), change, MEMORY[tier])
    return found.chain, len(found.changed)


def variant(name: str, kind: str, tier: str) -> tuple[Chain, int]:
    """A variant of a network for a tier, and how many skips changed. Tiles are searched on what the
    plan selected."""
    chain = NETWORKS[name]()
    every = len(ends(chain))
    selecting = "stock" if tier == "stock" else "plan"
    kinds: dict[str, Callable[[], tuple[Chain, int]]] = {
        "original": lambda: (chain, 0),
        "plain": lambda: (plain(chain), every),
        "DERO": lambda: (dero(chain), every),
        "plain at the peak": lambda: selected(name, plain, selecting),
        "DERO at the peak": lambda: selected(name, dero, selecting),
    }
    return kinds[kind]()


KINDS = ("original", "plain", "DERO", "plain at the peak", "DERO at the peak")


def figure(name: str, kind: str, tier: str) -> Figure:
    """Arena, head, and how many skips changed; multiplications and parameters."""
    chain, changed = variant(name, kind, tier)
    chain = running(chain)
    size = size_of(chain)
    about = {"changed": changed, "macs": size.macs, "parameters": size.parameters}
    if tier in MEMORY:
        memory = MEMORY[tier](chain)
        return {"arena": memory.arena, "head": memory.head, **about}
    permission = TilePermission(
        operators=AllowedOperators.NONE if tier == "tiles" else AllowedOperators.ALL
    )
    options = PlanOptions(MemoryOptions(kernels=kernels_of(TARGET)), permission, verify=None)
    planned = PlanningSession(build(chain), Stop(), lambda _: None).plan(options).file
    arena = planned.inspection.arena
    return {"arena": arena.arena, "head": arena.head, **about}


def row(name: str, kind: str, found: dict[tuple[str, str, str], Figure]) -> str:
    """One line of the table; a tier that was not asked for is a dash."""
    figures = [found.get((name, kind, tier)) for tier in TIERS]
    cells = ["-" if f is None else f"{f['arena']:,} ({f['head']:,})" for f in figures]
    one = next(f for f in figures if f is not None)
    every = len(ends(NETWORKS[name]()))
    changed = [f"{f['changed']}" for f in figures[:2] if f is not None]
    skips = " / ".join(dict.fromkeys(changed)) + f" of {every}"
    size = f"{one['macs'] / 1e6:,.1f} M | {one['parameters'] / 1e6:,.2f} M"
    return f"| {name} | {kind} | {skips} | {size} | {' | '.join(cells)} |"


def main() -> None:
    """Find what is not kept yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--tiers", default="stock,plan")
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    found: dict[tuple[str, str, str], Figure] = {}
    if given.keep is not None and given.keep.is_file():
        for line in given.keep.read_text(encoding="utf-8").splitlines():
            key, value = json.loads(line)
            found[tuple(key)] = value
    for name in given.networks:
        for tier in given.tiers.split(","):
            for kind in KINDS:
                if (name, kind, tier) in found:
                    continue
                value = found[name, kind, tier] = figure(name, kind, tier)
                if given.keep is not None:
                    with given.keep.open("a", encoding="utf-8") as file:
                        file.write(json.dumps([[name, kind, tier], value]) + "\n")
    heads = ("network", "skips", "changed", "MACs", "parameters", *TIERS)
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for name in given.networks:
        for kind in KINDS:
            if any((name, kind, tier) in found for tier in TIERS):
                print(row(name, kind, found))


if __name__ == "__main__":
    main()
