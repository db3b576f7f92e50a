"""Where trials are made: a model read once, and what is known of it.

A question is a trial of the whole model, or of an interval of a line, cut out, with what it adds
to the interval as it is.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tflm_planner.memory.order import Dag
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model
from tflm_planner.tiling.estimate.loops import LoopEstimator
from tflm_planner.tiling.estimate.schedule import LinearSchedule
from tflm_planner.tiling.estimate.tiles import HaloPolicy, TileEstimate
from tflm_planner.tiling.evaluate.candidate import (
    Candidate,
    Evaluation,
    evaluate,
    evaluate_family,
    schedule_order,
)
from tflm_planner.tiling.evaluate.equivalence import IntervalSignatures
from tflm_planner.tiling.evaluate.extract import extract_interval
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.reorder import OrderProblem


@dataclass(frozen=True)
class EvaluationRequest:
    """trial: of the whole model; of an interval (first, end) of the order `order` if there is
    one, with its schemes counted from the interval's start."""

    trial: Candidate
    interval: tuple[int, int] | None = None
    order: tuple[int, ...] = ()

    @property
    def family(self) -> Hashable:
        """Equal for questions that are best answered together (`trial.all_tried`)."""
        return self.trial.family, self.interval, self.order


@dataclass(frozen=True)
class RequestFamily:
    """Questions that are answered together: they differ in schedule and binding alone."""

    questions: tuple[EvaluationRequest, ...]

    def on(self, bench: Evaluator) -> list[Evaluation | None]:
        """One outcome a question."""
        return bench.answers(self.questions)


class Evaluator:
    """Answers questions about one model."""

    def __init__(self, data: bytes, options: TilingOptions) -> None:
        self.options = options
        self.model: Model = read_model(data)
        run(self.model, Normalize())
        self._lines: dict[tuple[int, ...], LinearSchedule] = {}
        self._sketches: dict[tuple[int, ...], dict[HaloPolicy, list[TileEstimate]]] = {}
        self._loops: dict[tuple[int, ...], LoopEstimator] = {}
        self._alike: dict[tuple[int, ...], IntervalSignatures] = {}
        self._plain: dict[tuple[tuple[int, ...], int, int], Evaluation | None] = {}

    @cached_property
    def dag(self) -> Dag:
        """The main graph, with what results may take over of operands."""
        rules = self.options.machine.scratch_of, self.options.trails_of
        return OrderProblem.of(self.model.main, rules[0]).dag({}, rules[1])

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The order of the operators in which intervals are looked for."""
        return schedule_order(self.model, self.options)

    def line(self, order: tuple[int, ...]) -> LinearSchedule:
        """The model's operators in an order."""
        if order not in self._lines:
            self._lines[order] = LinearSchedule(self.model, order, self.options)
        return self._lines[order]

    def loops(self, order: tuple[int, ...]) -> LoopEstimator:
        """Sketches of loops for a line."""
        if order not in self._loops:
            self._loops[order] = LoopEstimator(self.line(order))
        return self._loops[order]

    def sketched(self, order: tuple[int, ...]) -> dict[HaloPolicy, list[TileEstimate]]:
        """Where searches keep sketches of intervals of a line."""
        return self._sketches.setdefault(order, {})

    def key(self, question: EvaluationRequest) -> Hashable:
        """Equal for questions that have one answer: intervals repeat in a network."""
        trial = question.trial
        if not trial.is_tiled:  # then there are no views
            trial = replace(trial, bound=False)
        if question.interval is None:
            return trial
        if question.order not in self._alike:
            self._alike[question.order] = IntervalSignatures(self.line(question.order))
        return trial, self._alike[question.order].of(*question.interval)

    def answer(self, question: EvaluationRequest) -> Evaluation | None:
        """The outcome; of an interval the head, and what is added to the rest."""
        return self.answers([question])[0]

    def answers(self, family: Sequence[EvaluationRequest]) -> list[Evaluation | None]:
        """`answer` for questions of one family."""
        trials, (first, end) = [q.trial for q in family], family[0].interval or (0, 0)
        if family[0].interval is None:
            return evaluate_family(self.model, trials, self.options)
        line = self.line(family[0].order)
        part = extract_interval(self.model, line.ops[first:end], line.through(first, end))
        found = evaluate_family(part, trials, self.options)
        key = (family[0].order, first, end)
        if key not in self._plain:
            self._plain[key] = evaluate(part, Candidate((), False), self.options)
        plain = self._plain[key]
        return [None if o is None or plain is None else _relative_to(o, plain) for o in found]


def _relative_to(found: Evaluation, plain: Evaluation) -> Evaluation:
    """An outcome, counted from that of the interval as it is."""
    return replace(
        found,
        tail=found.tail - plain.tail,
        temp=found.temp - plain.temp,
        instructions=found.instructions - plain.instructions,
    )
