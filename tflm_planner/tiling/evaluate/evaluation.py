"""Evaluates one candidate: tiled, ordered, planned, and counted on the exact arena of the target.

    model -clone-> Regions -> Crop -> (tile order) -> plan -> (spellings) -> Dialect -> figures

A whole model and an interval that was extracted from one are treated alike. It must not choose
between candidates.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflm_planner.cost import instructions_of
from tflm_planner.model.ir import Model
from tflm_planner.tflm.arena.predict import arena_bytes_of
from tflm_planner.tflm.element_types import forms_of, new_refusal_of_forms
from tflm_planner.tflm.kernels.known_faults import faults_of
from tflm_planner.tflm.lean.pool import WritePool
from tflm_planner.tflm.target_kernels import runners
from tflm_planner.tiling.evaluate.bottleneck import bottleneck_of
from tflm_planner.tiling.evaluate.candidate import Candidate, Evaluation
from tflm_planner.tiling.evaluate.candidate_plan import plan_candidate
from tflm_planner.tiling.evaluate.memo import EvaluationMemo
from tflm_planner.tiling.evaluate.tiled_model import GraphOrders, TiledFamily, TiledModel
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.transforms.base import run
from tflm_planner.transforms.dialect import Dialect, scratch_faults
from tflm_planner.transforms.schedules import Effort


def evaluate(
    model: Model, candidate: Candidate, options: TilingOptions, memo: EvaluationMemo | None = None
) -> Evaluation | None:
    """The figures of `candidate` for `model`, which is not changed; None if it is impossible.

    Operators that are not permitted do not matter here (see `if_permitted`), so that one evaluation
    can be used by searches with different permissions. memo: results of earlier evaluations with
    the same options.
    """
    return evaluate_family(model, (candidate,), options, memo)[0]


def evaluate_family(
    model: Model,
    candidates: Sequence[Candidate],
    options: TilingOptions,
    memo: EvaluationMemo | None = None,
) -> list[Evaluation | None]:
    """`evaluate` for candidates of one family: they differ only in their tile order and in
    `bind_views`. The tiles are made once, and equal orders are planned once."""
    family = TiledFamily.of(model, candidates[0], options)
    return evaluate_tiled(family, candidates, options, memo or EvaluationMemo.of(options))


def evaluate_tiled(
    family: TiledFamily | None,
    candidates: Sequence[Candidate],
    options: TilingOptions,
    memo: EvaluationMemo,
) -> list[Evaluation | None]:
    """`evaluate_family` for candidates whose tiles were already made, as `family`; None if that was
    impossible."""
    if family is None:
        return [None] * len(candidates)
    by_order: dict[tuple[GraphOrders, bool], Evaluation | None] = {}
    evaluations: list[Evaluation | None] = []
    for candidate in candidates:
        own, orders = family.in_order(candidate.tile_order, options)
        key = orders, candidate.bind_views and candidate.has_views
        if key not in by_order:
            by_order[key] = _plan_and_count(own, candidate, options, memo)
        evaluations.append(by_order[key])
    return evaluations


def _plan_and_count(
    tiled: TiledModel, candidate: Candidate, options: TilingOptions, memo: EvaluationMemo
) -> Evaluation | None:
    """Plan the ordered model, which changes it, and count. None if the plan is invalid, if TFLM has
    no kernel for the element types of an operator that is not a view, or if the target would
    compute an operator wrongly that it computed correctly before tiling."""
    target, scratch_of = options.kernels.target, options.kernels.scratch_of
    dialect = options.dialect and candidate.has_views
    planned = plan_candidate(tiled, candidate, options, memo)
    tiled, timeline, offsets = planned.tiled, planned.timeline, planned.offsets
    model = tiled.model
    bottleneck = bottleneck_of(tiled, timeline, offsets, candidate.regions)
    if dialect:
        Dialect(offsets).apply(model)
        careful = candidate.effort >= Effort.CAREFUL
        overlaps_of = options.input_overlaps_of
        if careful and scratch_faults(timeline, model, offsets, scratch_of, overlaps_of):
            return None
    if new_refusal_of_forms(tiled.forms, forms_of(model.ops()), runners(target)) is not None:
        return None
    if faults_of(model.ops(), target) - tiled.faults:  # faults that only tiles have
        return None
    new_kinds = frozenset(op.kind for op in model.ops()) - tiled.used_kinds
    if target.lean:
        run(model, WritePool())
    arena = arena_bytes_of(model, target, offsets)
    return Evaluation(
        arena.head,
        arena.tail,
        arena.arena,
        instructions_of(model, target, offsets),
        bottleneck,
        new_kinds,
        planned.spellings,
    )
