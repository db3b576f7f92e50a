"""Tiles and loops that the user specifies: `--patch 3,5b`, `--split 2-7:rows=4,halo=merge`, `--loop
2-4:rows=2,border=reverse`.

This module parses these options and checks that such regions are possible; it must not choose any.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tflm_planner.model.check import check
from tflm_planner.model.ir import Graph
from tflm_planner.model.serde import read_model
from tflm_planner.ops.window import CHANNELS, COLUMNS, ROWS
from tflm_planner.support.errors import UsageError
from tflm_planner.support.words import count
from tflm_planner.tiling.tilings import Region
from tflm_planner.transforms.axis_graph import blocks
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.regions import Regions
from tflm_planner.transforms.row_loop import LOOP_BORDERS, LoopedRegion, NotStreamableError
from tflm_planner.transforms.tile.box_plan import HALOS, Split
from tflm_planner.transforms.tile.boxes import NotTileableError
from tflm_planner.transforms.tile.operator_tiles import BORDERS
from tflm_planner.transforms.tile.tile import SUM, Patch, TiledRegion

_AXES = {"rows": ROWS, "columns": COLUMNS, "channels": CHANNELS, "sum": SUM}


def parse_regions(
    patch: str | None, splits: Sequence[str], loops: Sequence[str] = ()
) -> tuple[TiledRegion | Patch | LoopedRegion, ...]:
    """The regions that the options --patch, --split and --loop specify. Raises UsageError."""
    patches = () if patch is None else (parse_patch(patch),)
    return (*patches, *map(parse_split, splits), *map(parse_loop, loops))


def parse_patch(text: str) -> Patch:
    """Parse "p,n" (p x p patches over the first n operators) or "p,nb" (over the first n
    blocks)."""
    match = re.fullmatch(r"\s*(\d+)\s*,\s*(\d+)\s*(b?)\s*", text)
    if match is None or not int(match[1]) or not int(match[2]):
        raise UsageError(f"--patch {text!r}: give p,n (operators) or p,nb (blocks), e.g. 3,5b")
    return Patch(int(match[1]), int(match[2]), blocks=bool(match[3]))


def parse_split(text: str) -> TiledRegion:
    """Parse "2-7:rows=4,columns=2": operators by position in the file, and into how many parts
    rows, columns, channels, an axis ("axis0=2") or a sum is split, each optionally followed by
    growth= (`boxes.cuts`); optionally with halo=, border=, and order=backward or order=eager."""
    match = re.fullmatch(r"([\s\d,-]+):(.+)", text)
    if match is None:
        raise UsageError(f"--split {text!r}: give operators and parts, e.g. 2-7:rows=4")
    ops = _operators(f"--split {text!r}", match[1])
    splits: list[Split] = []
    settings: dict[str, Any] = {}
    for setting in match[2].split(","):
        name, _, value = (part.strip() for part in setting.partition("="))
        axis = _axis(name)
        if axis is not None and value.isdecimal() and int(value) > 0:
            splits.append(Split(axis, int(value)))
        elif name in settings or (name == "growth" and splits and splits[-1].growth):
            raise UsageError(f"--split {text!r}: give {name} once")
        elif name == "growth" and splits and re.fullmatch(r"-?\d{1,2}", value):
            splits[-1] = splits[-1]._replace(growth=int(value))
        elif (name, value) == ("order", "backward"):
            settings["backward"] = True
        elif (name, value) == ("order", "eager"):
            settings["eager"] = True
        elif (name == "halo" and value in HALOS) or (name == "border" and value in BORDERS):
            settings[name] = value
        else:
            raise UsageError(
                f"--split {text!r}: {setting.strip()!r} is not understood; there are "
                f"{', '.join(_AXES)}, axisN, after each of these growth (-99 to 99), "
                f"halo ({', '.join(HALOS)}), border ({', '.join(BORDERS)}) and order= (backward, "
                "eager)"
            )
    if not splits or len({s.axis for s in splits}) < len(splits):
        raise UsageError(f"--split {text!r}: give each axis to be split once")
    if len(splits) > 1 and any(s.axis == SUM for s in splits):
        raise UsageError(f"--split {text!r}: a sum is split alone")
    if any(s.axis == SUM and s.growth for s in splits):
        raise UsageError(f"--split {text!r}: shares of a sum have one size; leave growth out")
    return TiledRegion(ops, tuple(splits), **settings)


def parse_loop(text: str) -> LoopedRegion:
    """Parse "2-4" or "2-4:rows=2,border=reverse": operators by position in the file, which run in
    a loop that makes `rows` rows of their result in each turn. border: how the loop treats the
    image's borders (`transforms.row_loop`)."""
    spans, _, items = text.partition(":")
    ops = _operators(f"--loop {text!r}", spans)
    settings: dict[str, Any] = {}
    for setting in items.split(",") if items else ():
        name, _, value = (part.strip() for part in setting.partition("="))
        if name == "rows" and value.isdecimal() and int(value) > 0:
            settings[name] = int(value)
        elif name == "border" and value in LOOP_BORDERS:
            settings[name] = value
        else:
            raise UsageError(
                f"--loop {text!r}: {setting.strip()!r} is not understood; there are rows=N and "
                f"border ({', '.join(LOOP_BORDERS)})"
            )
    return LoopedRegion(ops, **settings)


def _operators(option: str, spans: str) -> tuple[int, ...]:
    """The positions in a list such as "2-5,7"."""
    ops: set[int] = set()
    for span in spans.split(","):
        match = re.fullmatch(r"\s*(\d{1,6})(?:-(\d{1,6}))?\s*", span)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first:
            raise UsageError(f"{option}: {span!r} is no range of operators")
        ops |= {*range(first, last + 1)}
    return tuple(sorted(ops))


def _axis(name: str) -> int | None:
    numbered = re.fullmatch(r"axis(\d+)", name)
    return int(numbered[1]) if numbered else _AXES.get(name)


def possible_regions(
    data: bytes, requested: Sequence[TiledRegion | Patch | LoopedRegion], inexact: bool
) -> tuple[Region, ...]:
    """The specified regions of the model in `data`, as a `Tiling` counts their operators. Raises
    UsageError if they are impossible."""
    model = read_model(data)
    listed = list(model.main.ops)
    run(model, Normalize())
    if not model.main.ops:
        raise UsageError("the model has no operator that computes anything: nothing can be tiled")
    position = {op: i for i, op in enumerate(model.main.ops)}
    place = [position.get(op) for op in listed] if len(position) < len(listed) else None
    regions = tuple(
        _patched(w, model.main, place, len(listed))
        if isinstance(w, Patch)
        else _move(w, place, len(listed))
        for w in requested
    )
    check(model)
    for result in Regions(regions, inexact).rewrite(model):
        if isinstance(result.refusal, NotTileableError):
            raise UsageError(f"{result.note}; `tflm-plan inspect --axes` shows what can be split")
        if isinstance(result.refusal, NotStreamableError):
            raise UsageError(f"{result.note}; try fewer operators in the loop, or --split")
        if result.refusal is not None:
            raise UsageError(f"{result.note}; give each operator to one region at most")
    check(model)
    return regions


def _patched(
    patch: Patch, graph: Graph, place: Sequence[int | None] | None, listed: int
) -> TiledRegion:
    """The region of a patch stage in a normalized graph. place, listed: as for `_move`; blocks are
    those of the normalized graph."""
    there, what = (len(blocks(graph)), "block") if patch.blocks else (listed, "operator")
    if patch.stage > there:
        unit = "b" if patch.blocks else ""
        raise UsageError(
            f"--patch {patch.p},{patch.stage}{unit}: the model has "
            f"{count(there, what, what + 's')}; give {there}{unit} at most"
        )
    if patch.blocks or place is None:
        return patch.region(graph)
    remaining = patch.stage - place[: patch.stage].count(None)
    if not remaining:
        raise UsageError(
            f"--patch {patch.p},{patch.stage}: these operators do nothing, and are dropped before "
            "tiling; give more of them"
        )
    return replace(patch, stage=remaining).region(graph)


def _move(
    region: TiledRegion | LoopedRegion, place: Sequence[int | None] | None, listed: int
) -> TiledRegion | LoopedRegion:
    """The region with its operators numbered as in the normalized model. place: for each operator
    of the file its position in that model, or None if it was dropped; None instead of a list if no
    operator was dropped. listed: operators of the file."""
    if region.ops[-1] >= listed:
        option = "--loop" if isinstance(region, LoopedRegion) else "--split"
        raise UsageError(
            f"{option}: there is no operator {region.ops[-1]}: the model has "
            f"{count(listed, 'operator', 'operators')}; give numbers from 0 to {listed - 1}"
        )
    if place is None:
        return region
    ops = [place[i] for i in region.ops]
    remaining = tuple(i for i in ops if i is not None)
    if not remaining:
        raise UsageError(
            f"operators {region.ops[0]}-{region.ops[-1]} do nothing, and are dropped before tiling"
        )
    return replace(region, ops=remaining)
