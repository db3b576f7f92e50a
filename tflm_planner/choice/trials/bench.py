"""Where trials are made: a model read once, and what is known of it.

A question is a trial of the whole model, or of an interval of a line, cut out, with what it adds
to the interval as it is.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tflm_planner.choice.options import TileOptions
from tflm_planner.choice.sketches.line import Line
from tflm_planner.choice.sketches.loops import LoopSketches
from tflm_planner.choice.sketches.sketch import Kept, Sketch
from tflm_planner.choice.trials.copying import cut_out
from tflm_planner.choice.trials.likeness import Likeness
from tflm_planner.choice.trials.trial import Outcome, Trial, all_tried, line_order, tried
from tflm_planner.ir import Model
from tflm_planner.passes.base import run
from tflm_planner.passes.cleanup import Cleanup
from tflm_planner.passes.reorder import Frame
from tflm_planner.planning.order import Dag
from tflm_planner.serde import read_model


@dataclass(frozen=True)
class Question:
    """trial: of the whole model; of an interval (first, end) of the order `order` if there is
    one, with its schemes counted from the interval's start."""

    trial: Trial
    interval: tuple[int, int] | None = None
    order: tuple[int, ...] = ()

    @property
    def family(self) -> Hashable:
        """Equal for questions that are best answered together (`trial.all_tried`)."""
        return self.trial.family, self.interval, self.order


@dataclass(frozen=True)
class Family:
    """Questions that are answered together: they differ in schedule and binding alone."""

    questions: tuple[Question, ...]

    def on(self, bench: Bench) -> list[Outcome | None]:
        """One outcome a question."""
        return bench.answers(self.questions)


class Bench:
    """Answers questions about one model."""

    def __init__(self, data: bytes, options: TileOptions) -> None:
        self.options = options
        self.model: Model = read_model(data)
        run(self.model, Cleanup())
        self._lines: dict[tuple[int, ...], Line] = {}
        self._sketches: dict[tuple[int, ...], dict[Kept, list[Sketch]]] = {}
        self._loops: dict[tuple[int, ...], LoopSketches] = {}
        self._alike: dict[tuple[int, ...], Likeness] = {}
        self._plain: dict[tuple[tuple[int, ...], int, int], Outcome | None] = {}

    @cached_property
    def dag(self) -> Dag:
        """The main graph, with what results may take over of operands."""
        rules = self.options.machine.scratch_of, self.options.trails_of
        return Frame.of(self.model.main, rules[0]).dag({}, rules[1])

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The order of the operators in which intervals are looked for."""
        return line_order(self.model, self.options)

    def line(self, order: tuple[int, ...]) -> Line:
        """The model's operators in an order."""
        if order not in self._lines:
            self._lines[order] = Line(self.model, order, self.options)
        return self._lines[order]

    def loops(self, order: tuple[int, ...]) -> LoopSketches:
        """Sketches of loops for a line."""
        if order not in self._loops:
            self._loops[order] = LoopSketches(self.line(order))
        return self._loops[order]

    def sketched(self, order: tuple[int, ...]) -> dict[Kept, list[Sketch]]:
        """Where searches keep sketches of intervals of a line."""
        return self._sketches.setdefault(order, {})

    def key(self, question: Question) -> Hashable:
        """Equal for questions that have one answer: intervals repeat in a network."""
        trial = question.trial
        if not trial.is_tiled:  # then there are no views
            trial = replace(trial, bound=False)
        if question.interval is None:
            return trial
        if question.order not in self._alike:
            self._alike[question.order] = Likeness(self.line(question.order))
        return trial, self._alike[question.order].of(*question.interval)

    def answer(self, question: Question) -> Outcome | None:
        """The outcome; of an interval the head, and what is added to the rest."""
        return self.answers([question])[0]

    def answers(self, family: Sequence[Question]) -> list[Outcome | None]:
        """`answer` for questions of one family."""
        trials, (first, end) = [q.trial for q in family], family[0].interval or (0, 0)
        if family[0].interval is None:
            return all_tried(self.model, trials, self.options)
        line = self.line(family[0].order)
        part = cut_out(self.model, line.ops[first:end], line.through(first, end))
        found = all_tried(part, trials, self.options)
        key = (family[0].order, first, end)
        if key not in self._plain:
            self._plain[key] = tried(part, Trial((), False), self.options)
        plain = self._plain[key]
        return [None if o is None or plain is None else _added(o, plain) for o in found]


def _added(found: Outcome, plain: Outcome) -> Outcome:
    """An outcome, counted from that of the interval as it is."""
    return replace(
        found,
        tail=found.tail - plain.tail,
        temp=found.temp - plain.temp,
        instructions=found.instructions - plain.instructions,
    )
