"""Whole models that a search has tried, and what they come to.

    trial --(schedules, bindings)--> trials --(never asked before)--> workers --> tilings, or None

A trial of a whole model is tried with its tiles in several orders, as far as it is not too large;
what is asked of the workers is charged to the search's allowance. It must not know where trials
come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tflm_planner.tiling.budget import WorkBudget
from tflm_planner.tiling.evaluate.candidate import (
    CLIMB,
    Candidate,
    Evaluation,
    if_permitted,
    tiling_of,
)
from tflm_planner.tiling.evaluate.evaluator import EvaluationRequest
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.options import Tiling, TilingOptions
from tflm_planner.tiling.segments import SCHEDULES, added_work

LARGEST_MODEL = 800
"""Operators of a whole model that is tried in several orders, and that others near it are tried
for."""


class ModelEvaluations:
    """Of one search. length: operators of the model as it is. work: what its trials are charged
    to."""

    def __init__(
        self, workers: Workers, options: TilingOptions, length: int, work: WorkBudget
    ) -> None:
        self._workers, self._options, self._length, self.work = workers, options, length, work
        (plain,) = workers.answers([EvaluationRequest(Candidate((), False, effort=CLIMB))])
        assert plain is not None, "the model itself is always possible"
        self.plain: Evaluation = plain
        self.used = frozenset(op.kind for op in workers.bench.model.ops())
        self.tilings = [tiling_of(Candidate((), False), plain, options, plain.instructions)]
        self.slower: list[Tiling] = []
        self._made: dict[Candidate, Tiling | None] = {}

    @property
    def count(self) -> int:
        """Trials of whole models, the impossible ones too."""
        return len(self._made)

    def __contains__(self, trial: object) -> bool:
        """Whether just this was tried."""
        return trial in self._made

    @property
    def best(self) -> Tiling:
        """The best tiling so far; the empty one at first."""
        best = self.tilings[0]
        for other in self.tilings[1:]:
            if other.beats(best, self._options.budget):
                best = other
        return best

    @property
    def beside(self) -> int:
        """Bytes of the tail as it is, where they count."""
        return self.plain.tail if self._options.objective == "arena" else 0

    def outcomes(self, questions: Sequence[EvaluationRequest]) -> list[Evaluation | None]:
        """Outcomes that are permitted."""
        found = self._workers.answers(questions)
        return [if_permitted(outcome, self._options, self.used) for outcome in found]

    def add(self, trials: Sequence[Candidate]) -> list[Tiling]:
        """Plan whole models, also with the tiles in an order of their own; those that are
        possible and fast enough."""
        trials = [
            replace(t, schedule=how, bound=bound)
            for t in trials
            for bound in ((True, False) if t.bound and t.is_mixed else (t.bound,))
            for how in (SCHEDULES if self.work_of(t) <= LARGEST_MODEL else (t.schedule,))
        ]
        fresh = [t for t in dict.fromkeys(trials) if t not in self._made]
        questions = [EvaluationRequest(t) for t in fresh]
        unknown = [q.trial for q in questions if not self._workers.knows(q)]
        self.work.spend(sum(map(self.work_of, unknown)))
        for trial, outcome in zip(fresh, self.outcomes(questions), strict=True):
            self._made[trial] = self._fast_enough(trial, outcome)
        return [t for trial in trials if (t := self._made[trial]) is not None]

    def _fast_enough(self, trial: Candidate, outcome: Evaluation | None) -> Tiling | None:
        """The tiling, noted; None where there is none, or none that may be had."""
        if outcome is None:
            return None
        made = tiling_of(trial, outcome, self._options, self.plain.instructions)
        if made.overhead > self._options.overhead:
            self.slower.append(made)
            return None
        self.tilings.append(made)
        return made

    def work_of(self, trial: Candidate) -> int:
        """Operators that a trial plans."""
        return self._length + sum(map(added_work, trial.schemes))

    def ranked(self, *bounds: bool) -> list[tuple[Tiling, Candidate]]:
        """Tilings of these modes, or of all, the best first."""
        found = [
            (made, trial)
            for trial, made in self._made.items()
            if made is not None and trial.schemes and trial.bound in (bounds or (True, False))
        ]
        return sorted(found, key=lambda pair: (pair[0].rank, not pair[1].bound))

    def fitting(self, trials: Sequence[Candidate]) -> Sequence[Candidate]:
        """As many of them as the step may still plan; one at least."""
        left = self.work.rest
        for k, trial in enumerate(trials):
            left -= len(SCHEDULES) * self.work_of(trial)
            if left < 0:
                return trials[: max(k, 1)]
        return trials
