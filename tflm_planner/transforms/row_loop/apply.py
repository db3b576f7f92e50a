"""The pass: regions that can be streamed are, the others stay as they are, with a note."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tflm_planner.model.ir import Model, Op
from tflm_planner.transforms.base import apply_regions
from tflm_planner.transforms.row_loop.body import LoopBuilder
from tflm_planner.transforms.row_loop.geometry import LoopGeometry, geometry
from tflm_planner.transforms.row_loop.loop import LoopedRegion, NotStreamableError


@dataclass(frozen=True)
class ApplyLoops:
    """Puts regions into loops; a region that cannot run in a loop stays as it is, with a note."""

    loops: tuple[LoopedRegion, ...]

    def apply(self, model: Model) -> list[str]:
        """See the class."""

        def rewrite(loop: LoopedRegion, ops: Sequence[Op]) -> str:
            return loop_region(model, loop, ops)

        results = apply_regions(model, self.loops, rewrite, NotStreamableError)
        return [result.note for result in results]


def can_stream(model: Model, loop: LoopedRegion) -> LoopGeometry:
    """The loop as it would be: delays, halos, turns, and where the result goes. Changes nothing.

    Raises NotStreamableError.
    """
    ops = model.main.ops
    return geometry(model.main, [ops[i] for i in sorted(set(loop.ops))], loop)


def loop_region(model: Model, loop: LoopedRegion, region: Sequence[Op]) -> str:
    """Put `region` (operators of the main graph, in order) into a loop; a note on it.

    Raises NotStreamableError; the model is then as it was.
    """
    shape = geometry(model.main, region, loop)
    note = _note(loop, shape)
    LoopBuilder(model, shape).commit()
    return note


def _note(loop: LoopedRegion, shape: LoopGeometry) -> str:
    ops, own = shape.ops, sum(shape.peeled)
    how = "from the bottom up" if shape.backwards else "from the top down"
    where = "in place of its input" if shape.in_place else "into a store of its own"
    outside = f", {own} of them outside the loop" if own else ""
    return (
        f"streamed {len(ops)} operators from {ops[0].label} to {ops[-1].label}: {shape.turns} "
        f"turns {how}, {loop.rows} rows each{outside}, {where}, {shape.halo_bytes:,} bytes of halo"
    )
