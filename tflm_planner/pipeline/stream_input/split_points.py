"""The places where a model can be split, each with a lower bound of the SRAM of its halves.

Operators have two numbers: their place in the model that is split, which was cleaned up, and those
that they had in the file, which users know.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tflm_planner.model.clone import clone
from tflm_planner.model.ir import Model
from tflm_planner.pipeline.options import StreamOptions
from tflm_planner.pipeline.planning.planned_file import add_lean_pool
from tflm_planner.support.errors import ModelError, UsageError
from tflm_planner.tflm.arena.predict import split_arena
from tflm_planner.tflm.element_types import new_refusal
from tflm_planner.tflm.target_kernels import runners
from tflm_planner.tflm.targets import Target
from tflm_planner.transforms.row_loop.geometry import LoopGeometry
from tflm_planner.transforms.row_loop.loop import NotStreamableError
from tflm_planner.transforms.row_loop.operand_rows import element_bytes
from tflm_planner.transforms.row_loop.split_input import can_split, split_model, split_points_of


@dataclass(frozen=True, order=True)
class SplitPoint:
    """A place where a model can be split."""

    least_sram: int
    """Lower bound of the pair's SRAM in bytes."""
    ops: tuple[int, ...]
    """The front's operators, by position."""
    rows: int
    """Rows of the boundary that the front makes in each invoke."""


def split_points(model: Model, options: StreamOptions) -> list[SplitPoint]:
    """The places where the model can be split, the lowest bound first. Raises ModelError if there
    are none, UsageError if there are none because of `options.end` or `options.rows`."""
    if len(model.main.inputs) != 1:
        raise ModelError(
            f"the input cannot be streamed: the model has {len(model.main.inputs)} inputs, and "
            "rows can come for one only"
        )
    points: list[SplitPoint] = []
    by_geometry, reasons = points_by_geometry(model, options)
    for point in by_geometry:
        why = _why_halves_cannot_run(model, point.ops, point.rows, options.target)
        if why is None:
            points.append(point)
        else:
            reasons.append(f"TFLM could not run the halves: {why}")
    if points:
        return sorted(points)
    if options.end is not None:
        why = reasons[0] if reasons else "it does not depend on the input"
        number = numbers_in_file(model, [options.end])[-1]
        raise UsageError(f"the front cannot end with operator {number}: {why}")
    if options.rows is not None:
        split_points(model, replace(options, rows=None))  # else it is not the rows that forbid it
        raise UsageError(f"the input cannot be streamed with --rows {options.rows}: {reasons[0]}")
    why = f": {reasons[0]}" if reasons else ""
    raise ModelError(f"the input cannot be streamed{why}")


def points_by_geometry(model: Model, options: StreamOptions) -> tuple[list[SplitPoint], list[str]]:
    """The places where the geometry allows a split; and why it allows none elsewhere."""
    target = options.target
    pooled = add_lean_pool(clone(model))[1] if target.lean else model
    persistent = split_arena(pooled, target).persistent
    points: list[SplitPoint] = []
    reasons: list[str] = []
    for ops in split_points_of(model):
        if options.end not in (None, ops[-1]):
            continue
        try:
            rows = _boundary_rows(model, ops, options.rows)
            geometry = can_split(model, ops, rows)
        except NotStreamableError as error:
            reasons.append(str(error))
            continue
        least_sram = persistent + geometry.result.nbytes + _front_bytes(geometry)
        points.append(SplitPoint(least_sram, ops, rows))
    return points, reasons


def _why_halves_cannot_run(
    model: Model, ops: tuple[int, ...], rows: int, target: Target
) -> str | None:
    """Why TFLM could not run the halves of a split, by the types of their operators."""
    halves = split_model(model, ops, rows)
    both = (*halves.front.ops(), *halves.back.ops())
    return new_refusal(model.ops(), both, runners(target))


def _front_bytes(geometry: LoopGeometry) -> int:
    """Lower bound of a front's bytes: all halos, and the new rows of one operator."""
    new = (
        (use.tile - use.carried) * use.reading.width * element_bytes(use.reading.tensor)
        for use in geometry.uses
    )
    return geometry.halo_bytes + max(new, default=0)


def _boundary_rows(model: Model, ops: tuple[int, ...], rows: int | None) -> int:
    """Rows of the boundary that each invoke makes from `rows` rows of the image. Raises
    NotStreamableError if that is not a whole number."""
    if rows is None:
        return 1
    geometry = can_split(model, ops, 1)
    image_rows = geometry.rows[geometry.source]
    if rows % image_rows:
        raise NotStreamableError(
            f"strips of {rows} rows: {image_rows} rows of the image make one row behind "
            f"{geometry.ops[-1].label}; take a multiple of {image_rows}"
        )
    return rows // image_rows


def end_when_clean(model: Model, end: int | None, last: int) -> int | None:
    """The place of the operator that has number `end` in the file, now that the model is cleaned
    up. last: the number of the file's last operator. Raises UsageError if there is none."""
    if end is None or last < 0:
        return end
    if end > last:
        raise UsageError(f"--end {end}: there are operators 0 to {last}")
    for place, op in enumerate(model.main.ops):
        if end in op.origins:
            return place
    raise UsageError(
        f"--end {end}: nothing is left of that operator once the model is cleaned up; name the one "
        "before or behind it"
    )


def numbers_in_file(model: Model, ops: Iterable[int]) -> tuple[int, ...]:
    """The numbers in the file of operators of a model that was cleaned up."""
    numbers = (model.main.ops[place].origins or {place} for place in ops)
    return tuple(sorted(set[int]().union(*numbers)))
