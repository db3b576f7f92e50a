"""Items made true: intervals cut out, tiled and planned by themselves.

    item (sketched) --(borders, schedules)--> trials --best--> item (tried), or None

One for a whole search, as modes share what loops come to. It must not know covers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tflm_planner.choice.items import region_of, tried_item, ways_to_try, work_added
from tflm_planner.choice.options import TileOptions
from tflm_planner.choice.partition import Item, Way
from tflm_planner.choice.trials.bench import Question
from tflm_planner.choice.trials.trial import CLIMB, Outcome, Schedule, Trial
from tflm_planner.choice.trials.workers import Workers
from tflm_planner.choice.whole import WholeModels
from tflm_planner.passes.recipes import Border


@dataclass
class TriedItems:
    """Of one search. order: that of the line. count: items tried so far. loops: what is known of
    those that are loops; None of those that cannot be."""

    workers: Workers
    options: TileOptions
    whole: WholeModels
    order: tuple[int, ...]
    count: int = 0
    loops: dict[Way, Item | None] = field(default_factory=dict[Way, "Item | None"])
    _border: dict[Way, Border] = field(default_factory=dict[Way, Border])

    def made(self, items: Sequence[Item], bound: bool) -> list[Item | None]:
        """The items with figures of trials; None of those that cannot be, or may not. bound:
        whether views lie in their parents."""
        borders = self.options.borders(self.whole.used)
        ways: list[tuple[Item, Border, Schedule]]
        ways = [(item, *way) for item in items for way in ways_to_try(item, borders)]
        questions = [
            Question(
                Trial((region_of(item, item.first, border),), bound, None, CLIMB, how),
                (item.first, item.end),
                self.order,
            )
            for item, border, how in ways
        ]
        self.count += len(items)
        fresh = {self.workers.key(q): q for q in questions if not self.workers.knows(q)}
        self.whole.work.spend(sum(map(_work_of_interval, fresh.values())))
        possible: dict[Way, list[tuple[Outcome, Border]]] = {item.key: [] for item in items}
        for (item, border, _), outcome in zip(ways, self.whole.outcomes(questions), strict=True):
            if outcome is not None:
                possible[item.key].append((outcome, border))
        return [self._best(item, possible[item.key]) for item in items]

    def _best(self, item: Item, possible: list[tuple[Outcome, Border]]) -> Item | None:
        """The item as the best of its trials says."""
        least = min(possible, key=lambda p: (p[0].head, p[0].tail, p[0].instructions), default=None)
        made = None
        if least is not None:
            outcome, self._border[item.key] = least
            made = tried_item(item, outcome)
        if item.key.edge:
            self.loops[item.key] = made
        return made

    def trial_of(self, items: Iterable[Item], bound: bool) -> Trial:
        """The whole model with these items."""
        schemes = tuple(region_of(i, 0, self._border.get(i.key, "waste")) for i in items)
        return Trial(schemes, bound, self.order, CLIMB)


def _work_of_interval(question: Question) -> int:
    """Operators that a trial of an interval plans."""
    first, end = question.interval or (0, 0)
    return end - first + sum(map(work_added, question.trial.schemes))
