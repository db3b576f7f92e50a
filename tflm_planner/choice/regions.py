"""The default search: the best partition of the operators into intervals, each in tiles or not.

    sketch     every interval x axis x parts       geometry only, optimistic
    partition  the best cover for every cap        exact, by dynamic programming
    trial      the intervals of the best covers    cut out, tiled, planned: sketches made true
    whole      covers that are true                tiled and planned as one model
    improve    around the best whole models        one scheme at a time

As sketches hardly ever promise too little, the best cover whose intervals are all tried is the
best one: only what a partition chooses is ever tried. Intervals act on each other at their
borders, which no sum shows; so whole models decide. Budgets are counts: the same model and
options give the same tiling, however many processes work, unless the clock ends the search.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tflm_planner.choice.bench import Question
from tflm_planner.choice.improve import neighbours
from tflm_planner.choice.line import Line
from tflm_planner.choice.options import Found, Progress, TileOptions, Tiling, silent
from tflm_planner.choice.partition import Cover, Item, Partition, Way
from tflm_planner.choice.sketch import Limits, Sketch, sketches
from tflm_planner.choice.trial import CAREFUL, CLIMB, Outcome, Trial, line_order, tiling_of
from tflm_planner.choice.workers import Workers
from tflm_planner.passes.tile import Scheme

PARTS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112)
"""Numbers of parts that are sketched."""
LONGEST = 14
"""Operators of an interval at most: longer ones recompute more than they save."""
MOST_TRIALS = 700
"""Intervals tried."""
MOST_WHOLE = 24
"""Covers tried as whole models before improvement."""
MOST_IMPROVED = 400
"""Whole models tried while improving."""
FINALISTS = 4
"""Whole models that are planned with all care."""
_SLACK = 60
"""Covers that promise one part in so many more than the best whole model are still tried."""
_CAPS = 48
"""Heads looked at in one round."""
_BATCH = 16
"""Items tried in one round at most."""


class RegionSearch:
    """One search. `found()` is good at any time, also after Ctrl-C in `run()`."""

    def __init__(self, data: bytes, options: TileOptions, workers: Workers) -> None:
        self._options, self._workers = options, workers
        self._deadline = time.monotonic() + options.time_limit
        bench = workers.bench
        self._order = line_order(bench.model, options)
        self._line: Line = bench.line(self._order)
        plain = bench.answer(Question(Trial((), False, effort=CLIMB)))
        assert plain is not None, "the model itself is always possible"
        self._base, self._plain = plain.instructions, plain
        self._tilings = [tiling_of(Trial((), False), plain, options, self._base)]
        self._whole: dict[Trial, Tiling | None] = {}
        self._trials = 0
        allowed = int((options.overhead - 1) * self._base)
        self._partition = Partition(self._line.needs, allowed)

    # --- what was found ---

    @property
    def best(self) -> Tiling:
        """The best tiling so far; the empty one at first."""
        best = self._tilings[0]
        for other in self._tilings[1:]:
            if other.beats(best, self._options.budget):
                best = other
        return best

    def found(self) -> Found:
        """What there is so far."""
        front: list[Tiling] = []
        for tiling in sorted(self._tilings, key=lambda t: t.rank):
            if not front or tiling.overhead < front[-1].overhead:
                front.append(tiling)
        return Found(self.best, tuple(front), self._trials + len(self._whole))

    @property
    def _over(self) -> bool:
        return time.monotonic() > self._deadline

    # --- the search ---

    def run(self, say: Progress = silent) -> None:
        """Search until nothing is left to try, or time is up."""
        say("tiling: sketching intervals")
        for sketch in self._sketched():
            self._partition.add(_item(sketch))
        for cover in self._true_covers(say):
            self._try_whole([self._trial_of(cover.items)])
            say(f"tiling: {self.best.bytes:,} B, {self._trials} intervals tried")
        self._improve(say)
        self._finish(say)

    def _sketched(self) -> Iterator[Sketch]:
        """All intervals in tiles that may lower what is to be lowered."""
        line, options = self._line, self._options
        floor, tail = max(line.crossing, default=0), self._plain.tail
        most = 1 << 62
        if options.objective == "arena":
            most = self._plain.arena - tail - floor
        limits = Limits(most, int((options.overhead - 1) * self._base))
        for end in range(1, len(line) + 1):
            lowest = max(0, end - LONGEST)
            if max(line.needs[lowest:end]) <= floor or self._over:
                continue
            for axis, parts in _cuts(line, end):
                for made in sketches(
                    line, end, axis, parts, bound=options.dialect, lowest=lowest, limits=limits
                ):
                    helps = made.head < max(line.needs[made.first : end])
                    if helps and made.head + made.tail - floor < most:
                        yield made

    def _true_covers(self, say: Progress) -> Iterator[Cover]:
        """Covers of which every item was tried, the most promising first."""
        seen: set[tuple[object, ...]] = set()
        while len(seen) < MOST_WHOLE and not self._over:
            covers = self._covers()
            fresh = [c for c in covers if tuple(i.key for i in c.items) not in seen]
            if not fresh:
                return
            if self._trials >= MOST_TRIALS:
                fresh = [c for c in fresh if all(i.tried for i in c.items)][:1]
                if not fresh:
                    return
            true = fresh[0] if all(i.tried for i in fresh[0].items) else None
            if true is not None:
                seen.add(tuple(i.key for i in true.items))
                if true.items:
                    yield true
                continue
            wanted = {i.key: i for c in fresh[:_BATCH] for i in c.items if not i.tried}
            self._try_items(list(wanted.values())[:_BATCH])
            say(f"tiling: {self._promise(fresh[0]):,} B promised, {self._trials} intervals tried")

    def _covers(self) -> list[Cover]:
        """The best covers for the caps that matter, best first."""
        options = self._options
        known = self.best.bytes
        tail = self._plain.tail if options.objective == "arena" else 0
        caps = [cap for cap in self._partition.caps() if cap + tail < known]
        step = max(len(caps) // _CAPS, 1)
        found: list[Cover] = []
        for cap in caps[::step]:
            found += self._partition.covers(cap)
        known += known // _SLACK
        promising = [c for c in found if self._promise(c) < known or self._fits(c)]
        return sorted(promising, key=self._rank)

    def _promise(self, cover: Cover) -> int:
        if self._options.objective == "head":
            return cover.head
        return cover.head + self._plain.tail + cover.tail

    def _fits(self, cover: Cover) -> bool:
        budget = self._options.budget
        return budget is not None and self._promise(cover) <= budget

    def _rank(self, cover: Cover) -> tuple[int, int, int]:
        if self._fits(cover):
            return (0, cover.cost, self._promise(cover))
        return (1, self._promise(cover), cover.cost)

    def _try_items(self, items: Sequence[Item]) -> None:
        """Make sketches true."""
        questions = [
            Question(
                Trial((self._scheme(item, item.first),), self._bound, None, CLIMB, again),
                (item.first, item.end),
                self._order,
            )
            for item in items
            for again in (False, True)
        ]
        self._trials += len(items)
        answers = self._workers.answers(questions)
        for item, *both in zip(items, answers[::2], answers[1::2], strict=True):
            possible = [outcome for outcome in both if outcome is not None]
            if possible:
                best = min(possible, key=lambda o: (o.head, o.tail))
                self._partition.add(_tried(item, best))
            else:
                self._partition.drop(item)

    @property
    def _bound(self) -> bool:
        return self._options.dialect

    def _scheme(self, item: Item, start: int = 0) -> Scheme:
        """The scheme of an item, with positions counted from `start`."""
        ops = tuple(range(item.first - start, item.end - start))
        return Scheme(ops, (item.key.split,), border=self._options.border)

    def _trial_of(self, items: Iterable[Item]) -> Trial:
        schemes = tuple(self._scheme(i) for i in items)
        return Trial(schemes, self._bound, self._order, CLIMB)

    def _try_whole(self, trials: Sequence[Trial]) -> list[Tiling]:
        """Plan whole models, also with the tiles in an order of their own; those that are
        possible and fast enough."""
        trials = [replace(t, reordered=again) for t in trials for again in (False, True)]
        fresh = [t for t in dict.fromkeys(trials) if t not in self._whole]
        outcomes = self._workers.answers([Question(t) for t in fresh])
        for trial, outcome in zip(fresh, outcomes, strict=True):
            made = None
            if outcome is not None:
                made = tiling_of(trial, outcome, self._options, self._base)
                made = made if made.overhead <= self._options.overhead else None
            self._whole[trial] = made
            if made is not None:
                self._tilings.append(made)
        return [t for trial in trials if (t := self._whole[trial]) is not None]

    def _improve(self, say: Progress) -> None:
        """Change one scheme of the best whole model at a time, while that helps."""
        done: set[tuple[Scheme, ...]] = set()
        while len(self._whole) < MOST_WHOLE + MOST_IMPROVED and not self._over:
            ranked = sorted(
                ((made, trial) for trial, made in self._whole.items() if made is not None),
                key=lambda pair: pair[0].rank,
            )
            starts = [trial for _, trial in ranked[:2] if trial.schemes not in done]
            if not starts:
                return
            done.add(starts[0].schemes)
            moves = [t for t in neighbours(starts[0], len(self._line)) if t not in self._whole]
            for k in range(0, len(moves), _BATCH):
                if self._over:
                    return
                self._try_whole(moves[k : k + _BATCH])
            say(f"tiling: {self.best.bytes:,} B, {len(self._whole)} models planned")

    def _finish(self, say: Progress) -> None:
        """Plan the best few with care, as they are and in orders of their own."""
        ranked = sorted(
            ((made, trial) for trial, made in self._whole.items() if made is not None),
            key=lambda pair: pair[0].rank,
        )
        for _, trial in ranked[:FINALISTS]:
            if self._over:
                return
            self._try_whole([replace(trial, effort=CAREFUL)])
            say(f"tiling: {self.best.bytes:,} B, planned with care")


def _cuts(line: Line, end: int) -> Iterator[tuple[int, int]]:
    """Axes and numbers of parts for intervals that end here."""
    (result, *more) = line.ops[end - 1].outputs
    shape = result.shape or ()
    if more:
        return
    for axis, size in enumerate(shape):
        if size > 1 and (axis > 0 or len(shape) < 4):
            yield from ((axis, parts) for parts in PARTS if parts <= size)


def _item(sketch: Sketch) -> Item:
    key = Way(sketch.first, sketch.end, (sketch.axis, sketch.parts))
    return Item(
        sketch.first, sketch.end, sketch.head, sketch.tail, max(sketch.instructions, 0), key
    )


def _tried(item: Item, outcome: Outcome) -> Item:
    return replace(
        item,
        head=outcome.head,
        tail=outcome.tail,
        cost=max(outcome.instructions, 0),
        tried=True,
    )
