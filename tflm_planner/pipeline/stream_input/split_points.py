"""The places where a model can be split, each with a lower bound of the SRAM of its halves.

Operators have two numbers: their place in the model that is split, which was cleaned up, and those
that they had in the file, which users know.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain

from tflm_planner.model.clone import clone
from tflm_planner.model.ir import Model
from tflm_planner.pipeline.options import StreamOptions
from tflm_planner.pipeline.planning.planned_file import add_lean_pool
from tflm_planner.pipeline.stream_input.shortlist import (
    SplitPoint,
    by_promise,
    most_places,
    runtime_bytes,
)
from tflm_planner.support.errors import ModelError, UsageError
from tflm_planner.tflm.arena.predict import split_arena
from tflm_planner.tflm.element_types import new_refusal
from tflm_planner.tflm.target_kernels import runners
from tflm_planner.tflm.targets import Target
from tflm_planner.transforms.row_loop.geometry import LoopGeometry
from tflm_planner.transforms.row_loop.loop import NotStreamableError
from tflm_planner.transforms.row_loop.operand_rows import element_bytes, operand_rows
from tflm_planner.transforms.row_loop.split_input import (
    can_split,
    front_masks,
    operators_in,
    split_model,
)

_GEOMETRY_WORK = 50_000
"""Operators of all fronts together whose geometry is computed: every front of a chain of 300."""


def split_points(model: Model, options: StreamOptions) -> list[SplitPoint]:
    """The places where the model can be split, the lowest bound first; of a long model those that
    promise most (`shortlist`). Raises ModelError if there are none, UsageError if there are none
    because of `options.end` or `options.rows`."""
    if len(model.main.inputs) != 1:
        raise ModelError(
            f"the input cannot be streamed: the model has {len(model.main.inputs)} inputs, and "
            "rows can come for one only"
        )
    by_geometry, reasons = points_by_geometry(model, options)
    points, more_reasons = _points_that_run(model, by_geometry, options.target)
    reasons += more_reasons
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
    """The places where the geometry allows a split, those of a very long model until their fronts
    have many operators together; and why it allows none elsewhere."""
    target = options.target
    pooled = add_lean_pool(clone(model))[1] if target.lean else model
    persistent = split_arena(pooled, target).persistent
    points: dict[int, SplitPoint] = {}
    reasons: dict[int, str] = {}
    reads_of = cache(operand_rows)  # each operator is in the fronts of all points behind it
    work = _GEOMETRY_WORK
    for end, mask in _ends_in_turn(model):
        if options.end not in (None, end):
            continue
        ops = operators_in(mask)
        try:
            rows = _boundary_rows(model, ops, options.rows)
            geometry = can_split(model, ops, rows, reads_of)
        except NotStreamableError as error:
            reasons[end] = str(error)
            continue
        tensors = geometry.result.nbytes + _front_bytes(geometry)
        points[end] = SplitPoint(persistent + tensors, ops, rows, tensors)
        work -= len(ops)
        if work < 0:
            break
    return [points[end] for end in sorted(points)], [reasons[end] for end in sorted(reasons)]


def _ends_in_turn(model: Model) -> list[tuple[int, int]]:
    """The fronts of a model, each with the place of its last operator: in turn the shortest one and
    the one with the smallest result that are left."""
    ops = model.main.ops
    fronts = list(front_masks(model).items())
    shortest = sorted(fronts, key=lambda front: (front[1].bit_count(), front[0]))
    smallest = sorted(shortest, key=lambda front: sum(t.nbytes for t in ops[front[0]].outputs))
    return list(dict.fromkeys(chain.from_iterable(zip(shortest, smallest, strict=True))))


def _points_that_run(
    model: Model, points: Sequence[SplitPoint], target: Target
) -> tuple[list[SplitPoint], list[str]]:
    """Those points whose halves TFLM can run, each with a closer bound, and no more than are worth
    planning; and why it could not run others, by the types of their operators."""
    running: list[SplitPoint] = []
    reasons: list[str] = []
    refused: list[frozenset[int]] = []
    most = most_places(model)
    for point in by_promise(model, points, target):
        if len(running) == most:
            break
        if any(front.issubset(point.ops) for front in refused):
            continue  # what TFLM cannot run in a front, it cannot run in a longer one
        halves = split_model(model, point.ops, point.rows)
        both = (*halves.front.ops(), *halves.back.ops())
        why = new_refusal(model.ops(), both, runners(target))
        if why is None:
            least = runtime_bytes(halves, target).least_sram(point.tensors)
            running.append(replace(point, least_sram=max(point.least_sram, least)))
        else:
            reasons.append(f"TFLM could not run the halves: {why}")
            refused.append(frozenset(point.ops))
    return running, reasons


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
