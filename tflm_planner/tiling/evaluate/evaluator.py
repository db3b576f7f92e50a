"""Evaluates requests about one model, which is read once, and caches intermediate results.

A request is for a candidate of the whole model, or for one of an interval of a schedule. An
interval is cut out of the model; the tail and the instructions are then relative to the untiled
interval.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tflm_planner.memory.order import Dag
from tflm_planner.model.clone import clone
from tflm_planner.model.extract import extract_interval
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model
from tflm_planner.support.garbage import no_collection
from tflm_planner.tiling.estimate.interval import ScheduleInterval
from tflm_planner.tiling.estimate.loops import LoopEstimator
from tflm_planner.tiling.estimate.schedule import LinearSchedule
from tflm_planner.tiling.estimate.tiles import EstimatedHalo, TileEstimate
from tflm_planner.tiling.evaluate.candidate import (
    Candidate,
    Evaluation,
)
from tflm_planner.tiling.evaluate.equivalence import IntervalSignatures
from tflm_planner.tiling.evaluate.evaluation import evaluate, evaluate_family, evaluate_tiled
from tflm_planner.tiling.evaluate.memo import EvaluationMemo, TiledMemo
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import clean_up
from tflm_planner.transforms.reorder import OrderProblem, Reorder
from tflm_planner.transforms.schedules import ORDER_STATES, Effort, quick_order


@dataclass(frozen=True)
class EvaluationRequest:
    """A candidate, and the part of the model that it is for."""

    candidate: Candidate
    """The positions of its regions are counted from the start of `part`, if that is given."""
    part: ScheduleInterval | None = None
    """The interval that is cut out; None for the whole model."""

    @property
    def family(self) -> Hashable:
        """Equal for requests that are best evaluated together (`evaluation.evaluate_family`)."""
        return self.candidate.family, self.part


UNTILED = EvaluationRequest(Candidate((), False, effort=Effort.CLIMB))
"""The model without tiles, in the order of its file."""


@dataclass(frozen=True)
class RequestFamily:
    """A job: requests that differ only in the tile order and in `bind_views`."""

    requests: tuple[EvaluationRequest, ...]

    @property
    def tiles(self) -> Hashable:
        """Equal for jobs for which the same tiled model is made."""
        (request, *_) = self.requests
        return request.candidate.regions, request.candidate.order, request.part

    def run(self, evaluator: Evaluator) -> list[Evaluation | None]:
        """One evaluation for each request."""
        with no_collection():
            return evaluator.evaluate_family(self.requests)


class Evaluator:
    """Evaluates requests about the model in `data`. used_kinds: kinds of operators that the
    firmware has (`clean_up`); `model` may use fewer."""

    def __init__(self, data: bytes, options: TilingOptions) -> None:
        self.options = options
        self.model: Model = read_model(data)
        self.used_kinds = clean_up(self.model).kinds
        if options.subsampling is not None:
            run(self.model, options.subsampling.transform)
        self._schedules: dict[tuple[int, ...], LinearSchedule] = {}
        self._tile_estimates: dict[tuple[tuple[int, ...], EstimatedHalo], list[TileEstimate]] = {}
        self._loop_estimators: dict[tuple[int, ...], LoopEstimator] = {}
        self._signatures: dict[tuple[int, ...], IntervalSignatures] = {}
        self._untiled: dict[ScheduleInterval, Evaluation | None] = {}
        self._memo = EvaluationMemo.of(options)
        self._tiled = TiledMemo(self.model, options, self.used_kinds)

    @cached_property
    def dag(self) -> Dag:
        """The main graph as a DAG with bytes, where results may reuse the memory of operands."""
        scratch_of, overlaps_of = self.options.kernels.scratch_of, self.options.input_overlaps_of
        return OrderProblem.of(self.model.main, scratch_of).dag({}, overlaps_of)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The order of the operators that defines the intervals."""
        return schedule_order(self.model, self.options)

    def linear_schedule(self, order: tuple[int, ...]) -> LinearSchedule:
        """The model's operators in an order."""
        if order not in self._schedules:
            self._schedules[order] = LinearSchedule(self.model, order, self.options)
        return self._schedules[order]

    def loop_estimator(self, order: tuple[int, ...]) -> LoopEstimator:
        """Estimates of loops for the schedule of an order."""
        if order not in self._loop_estimators:
            self._loop_estimators[order] = LoopEstimator(self.linear_schedule(order))
        return self._loop_estimators[order]

    def tile_estimates(
        self, order: tuple[int, ...], policy: EstimatedHalo, make: Callable[[], list[TileEstimate]]
    ) -> list[TileEstimate]:
        """Estimates for the schedule of an order; made once and shared by all searches."""
        key = order, policy
        if key not in self._tile_estimates:
            self._tile_estimates[key] = make()
        return self._tile_estimates[key]

    def key(self, request: EvaluationRequest) -> Hashable:
        """Equal for requests with the same evaluation; blocks of a network often repeat."""
        candidate = request.candidate
        if not candidate.has_views:
            candidate = replace(candidate, bind_views=False)
        if request.part is None:
            return candidate
        order, interval = request.part
        if order not in self._signatures:
            self._signatures[order] = IntervalSignatures(self.linear_schedule(order))
        return candidate, self._signatures[order].of(interval)

    def evaluate(self, request: EvaluationRequest) -> Evaluation | None:
        """The evaluation; None if the candidate is impossible. For an interval: its head, and the
        tail and instructions that it adds to the untiled interval."""
        return self.evaluate_family([request])[0]

    def evaluate_family(self, requests: Sequence[EvaluationRequest]) -> list[Evaluation | None]:
        """`evaluate` for requests of one family."""
        candidates = [request.candidate for request in requests]
        part = requests[0].part
        if part is None:
            family = self._tiled.of(candidates[0])
            return evaluate_tiled(family, candidates, self.options, self._memo)
        schedule, interval = self.linear_schedule(part.order), part.interval
        through = schedule.tensors_living_through(interval)
        cut_out = extract_interval(self.model, schedule.ops[interval.as_slice], through)
        evaluations = evaluate_family(cut_out, candidates, self.options, self._memo)
        if part not in self._untiled:
            self._untiled[part] = evaluate(cut_out, Candidate((), False), self.options, self._memo)
        untiled = self._untiled[part]
        return [
            None if one is None or untiled is None else _relative_to(one, untiled)
            for one in evaluations
        ]


def _relative_to(evaluation: Evaluation, untiled: Evaluation) -> Evaluation:
    """The evaluation with tail and instructions relative to those of the untiled interval."""
    return replace(
        evaluation,
        tail=evaluation.tail - untiled.tail,
        instructions=evaluation.instructions - untiled.instructions,
    )


def schedule_order(model: Model, options: TilingOptions) -> tuple[int, ...]:
    """The order of the operators that defines the intervals: the one with the smallest peak that a
    short search finds, or the file's if none is smaller."""
    copied = clone(model)
    position = {op: i for i, op in enumerate(copied.main.ops)}
    rules = options.kernels.scratch_of, options.input_overlaps_of
    Reorder(quick_order("best", ORDER_STATES), *rules).results(copied)
    return tuple(position[op] for op in copied.main.ops)
