"""The pass: regions that can be streamed are, the others stay as they are, with a note."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflm_planner.ir import Model, Op
from tflm_planner.passes.base import apply_regions
from tflm_planner.passes.stream.body import Writer
from tflm_planner.passes.stream.geometry import Geometry, geometry
from tflm_planner.passes.stream.loop import Loop, NotStreamableError


@dataclass(frozen=True)
class Stream:
    """Puts regions into loops; those that cannot be streamed stay as they are, with a note."""

    loops: tuple[Loop, ...]

    def apply(self, model: Model) -> list[str]:
        """See the class."""

        def rewrite(loop: Loop, ops: Sequence[Op]) -> str:
            return stream_region(model, loop, ops)

        return apply_regions(model, self.loops, rewrite, NotStreamableError)


def can_stream(model: Model, loop: Loop) -> Geometry:
    """The loop as it would be: delays, halos, turns, and where the result goes. Looks only.

    Raises NotStreamableError.
    """
    ops = model.main.ops
    return geometry(model.main, [ops[i] for i in sorted(set(loop.ops))], loop)


def stream_region(model: Model, loop: Loop, region: Sequence[Op]) -> str:
    """Put `region` (operators of the main graph, in order) into a loop; a note on it.

    Raises NotStreamableError; the model is then as it was.
    """
    found = geometry(model.main, region, loop)
    note = _note(loop, found)
    Writer(model, found).commit()
    return note


def _note(loop: Loop, found: Geometry) -> str:
    ops, own = found.ops, sum(found.peeled)
    how = "from the bottom up" if found.backwards else "from the top down"
    where = "in place of its input" if found.in_place else "into a store of its own"
    outside = f", {own} of them outside the loop" if own else ""
    return (
        f"streamed {len(ops)} operators from {ops[0].label} to {ops[-1].label}: {found.turns} "
        f"turns {how}, {loop.rows} rows each{outside}, {where}, {found.halo_bytes:,} bytes of halo"
    )
