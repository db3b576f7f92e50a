"""What skips cost: networks as they are, without skips, with DERO's late skips, and with either at
the peak alone, in each tier of planning.

    python benchmarks/dero.py [NETWORKS...] [--tiers stock,plan,tiles,loops,lean,streamed]
                              [--keep FILE]
    python benchmarks/dero.py my_model.tflite my_model.keras

Prints a table in Markdown ([docs/dero.md](../docs/dero.md)); sizes are bytes of arena, with the
head in brackets. tiles: of the firmware's own operators; loops: of all operators; lean: the same
with the lean library; streamed: on it, the image comes row by row, and both halves are counted,
without tiles in the second one (`stream-input --firmware lean --search none`).
A network is one of ours by its name, or a file of yours, which is read as a chain of layers with
skips (`codesign.networks.chain_of_model` says what that holds); a Keras model is converted to int8
first. `--keep` appends each figure to a file as it is found, and what that has is not computed
again. What cannot be made, or not be streamed, is a dash, and is said above the table. Weights are
not read: memory does not depend on them.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from tflm_planner.codesign.chains.chain import Chain
from tflm_planner.codesign.chains.papers import NETWORKS
from tflm_planner.codesign.chains.residuals import ends, plain, reorganise, vanishing
from tflm_planner.codesign.chains.sizes import size_of
from tflm_planner.codesign.keras_models import KERAS_FILES, convert_keras_file
from tflm_planner.codesign.networks.build import build
from tflm_planner.codesign.networks.chain_of_model import ReadChain, chain_of
from tflm_planner.codesign.networks.folding import running
from tflm_planner.codesign.networks.selection import (
    ChainMemory,
    planned_memory,
    select,
    stock_memory,
    streamed_memory,
)
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline.inspection.arenas import arena_in
from tflm_planner.pipeline.options import TilePermission
from tflm_planner.support.errors import PlannerError, UsageError
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tflm.targets import load_target, with_lean

TARGET = load_target("cortex-m4/cmsis-nn")
LEAN = with_lean(TARGET)
PLANNED = partial(planned_memory, target=TARGET)
LOOPS = TilePermission(operators=AllowedOperators.ALL)
MEMORY: dict[str, Callable[[Chain], ChainMemory]] = {
    "stock": cache(partial(stock_memory, target=TARGET)),
    "plan": cache(PLANNED),
    "tiles": cache(partial(PLANNED, tiles=TilePermission(operators=AllowedOperators.NONE))),
    "loops": cache(partial(PLANNED, tiles=LOOPS)),
    "lean": cache(partial(planned_memory, target=LEAN, tiles=LOOPS)),
    "streamed": cache(partial(streamed_memory, target=LEAN)),
}
"""What a network needs in each tier. Variants that are the same network are planned once."""
TIERS = tuple(MEMORY)
Figure = dict[str, int]


def file_of(name: str) -> bytes:
    """The int8 model of a user's file. Raises UsageError."""
    path = Path(name)
    if not path.is_file():
        known = ", ".join(NETWORKS)
        raise UsageError(f"{name} is neither a file nor a network that is known here: {known}")
    return convert_keras_file(path) if path.suffix in KERAS_FILES else path.read_bytes()


@cache
def read(name: str) -> tuple[ReadChain, bytes]:
    """A user's file as a chain, and its bytes. Raises PlannerError."""
    data = file_of(name)
    return chain_of(read_model(data), Path(name).stem), data


def chain_named(name: str) -> Chain:
    """One of our networks, or a user's file. Raises PlannerError."""
    return NETWORKS[name]() if name in NETWORKS else read(name)[0].chain


def key_of(name: str) -> str:
    """What figures of a network are kept under: for a file also what is in it."""
    return name if name in NETWORKS else f"{name} {hashlib.sha256(read(name)[1]).hexdigest()}"


def what_was_read(name: str) -> list[str]:
    """What to say of a user's file: what its chain holds otherwise, and the arena of both."""
    found, data = read(name)
    arenas = (arena_in(d, TARGET)[1].arena for d in (data, build(found.chain)))
    file, chain = arenas
    return [
        f"{found.chain.name}: the file needs {file:,} B as it is, the chain {chain:,} B",
        *found.notes,
    ]


def dero(chain: Chain, where: object = None) -> Chain:
    """With late skips, normalised where the paper's network of that kind has them."""
    scaled = "where shapes change" if chain.name.startswith("dense") else "always"
    return reorganise(chain, where, scaled)  # type: ignore[arg-type]


@cache
def selected(name: str, change: Callable[..., Chain], tier: str) -> tuple[Chain, int]:
    """A network with the skips at its peak changed, and how many changed."""
    found = select(chain_named(name), change, MEMORY[tier])
    return found.chain, len(found.changed)


def variant(name: str, kind: str, tier: str) -> tuple[Chain, int]:
    """A variant of a network for a tier, and how many skips changed. Tiles are searched on what the
    plan selected."""
    chain = chain_named(name)
    every = len(ends(chain))
    selecting = "stock" if tier == "stock" else "plan"
    kinds: dict[str, Callable[[], tuple[Chain, int]]] = {
        "original": lambda: (chain, 0),
        "plain": lambda: (plain(chain), every),
        "DERO": lambda: (dero(chain), every),
        "vanishing at the peak": lambda: selected(name, vanishing, selecting),
        "DERO at the peak": lambda: selected(name, dero, selecting),
    }
    return kinds[kind]()


KINDS = ("original", "plain", "DERO", "vanishing at the peak", "DERO at the peak")
"""With skips that vanish everywhere a network runs as the plain one."""


def figure(name: str, kind: str, tier: str) -> Figure:
    """Arena, head, and how many skips changed; multiplications and parameters."""
    chain, changed = variant(name, kind, tier)
    chain = running(chain)
    size = size_of(chain)
    about = {"changed": changed, "macs": size.macs, "parameters": size.parameters}
    memory = MEMORY[tier](chain)
    return {"arena": memory.arena, "head": memory.head, **about}


def row(name: str, kind: str, tiers: list[str], found: dict[tuple[str, str, str], Figure]) -> str:
    """One line of the table; what cannot be made is a dash."""
    figures = [found.get((name, kind, tier)) for tier in tiers]
    cells = ["-" if f is None else f"{f['arena']:,} ({f['head']:,})" for f in figures]
    one = next(f for f in figures if f is not None)
    chain = chain_named(name)
    every = len(ends(chain))
    changed = [f"{f['changed']}" for f in figures if f is not None]
    skips = " / ".join(dict.fromkeys(changed)) + f" of {every}"
    size = f"{one['macs'] / 1e6:,.1f} M | {one['parameters'] / 1e6:,.2f} M"
    shown = name if name in NETWORKS else chain.name
    return f"| {shown} | {kind} | {skips} | {size} | {' | '.join(cells)} |"


def figures(
    names: list[str], tiers: list[str], keep: Path | None
) -> dict[tuple[str, str, str], Figure]:
    """All figures, those that were kept among them. A variant that cannot be made is said."""
    kept: dict[tuple[str, ...], Figure] = {}
    if keep is not None and keep.is_file():
        for line in keep.read_text(encoding="utf-8").splitlines():
            key, value = json.loads(line)
            kept[tuple(key)] = value
    found: dict[tuple[str, str, str], Figure] = {}
    for name, tier, kind in itertools.product(names, tiers, KINDS):
        key = (key_of(name), kind, tier)
        if key not in kept:
            try:
                kept[key] = figure(name, kind, tier)
            except (ValueError, PlannerError) as error:  # no such variant, or it cannot be streamed
                print(f"{name}, {kind}, {tier}: {error}\n")
                continue
            if keep is not None:
                with keep.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([[*key], kept[key]]) + "\n")
        found[name, kind, tier] = kept[key]
    return found


def main() -> None:
    """Find what is not kept yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--tiers", default="stock,plan")
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    try:
        for name in given.networks:
            if name not in NETWORKS:
                print("\n".join(what_was_read(name)), end="\n\n")
    except PlannerError as error:
        parser.exit(error.exit_code, f"{error}\n")
    tiers = [tier for tier in TIERS if tier in given.tiers.split(",")]
    found = figures(given.networks, tiers, given.keep)
    heads = ("network", "skips", "changed", "MACs", "parameters", *tiers)
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for name, kind in itertools.product(given.networks, KINDS):
        if any((name, kind, tier) in found for tier in tiers):
            print(row(name, kind, tiers, found))


if __name__ == "__main__":
    main()
