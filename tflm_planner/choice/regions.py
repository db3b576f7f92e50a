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

from tflm_planner.choice.allowance import Allowance, Patience
from tflm_planner.choice.bulges.outings import Outings
from tflm_planner.choice.intervals import LARGE, Intervals, Reach
from tflm_planner.choice.items import (
    BATCH,
    SCHEDULES,
    batch_of,
    region_of,
    spread,
    tried_item,
    ways_to_try,
    work_added,
)
from tflm_planner.choice.moves.drift import against, both_ways
from tflm_planner.choice.moves.improve import neighbours
from tflm_planner.choice.moves.patching import patch_stages, with_patches
from tflm_planner.choice.options import (
    Found,
    Progress,
    TileOptions,
    Tiling,
    fronts_of,
    silent,
    slower_than,
)
from tflm_planner.choice.partition import Cover, Item, Partition, Way
from tflm_planner.choice.sketches.line import Line
from tflm_planner.choice.sketches.loops import may_loop
from tflm_planner.choice.trials.bench import Question
from tflm_planner.choice.trials.trial import (
    CAREFUL,
    CLIMB,
    Outcome,
    Schedule,
    Trial,
    line_order,
)
from tflm_planner.choice.trials.workers import Workers
from tflm_planner.choice.whole import LARGEST_MODEL, WholeModels
from tflm_planner.passes.recipes import Border
from tflm_planner.passes.stream import Loop
from tflm_planner.passes.tile import Scheme

MOST_TRIALS = 700
"""Intervals tried."""
MOST_WHOLE = 24
"""Covers tried as whole models before improvement."""
MOST_WORK = 24_000
"""Operators planned in trials that no search made before: of intervals and of whole models, in
all modes together."""
FINALISTS = 4
"""Whole models that are planned with all care."""
_SHARES, _THREE_SHARES, _HOPED_SHARES = (0.1, 0.6, 0.5, 1.0), (0.1, 0.6, 1.0), (0.85, 1.0)
"""Of the work that is left, for each mode, the last ones where there are fewer; and where views
that are not bound may only be hoped to cost no copy."""
_COVERS_SHARE = 0.75
"""Of a mode's work, for covers; the rest is for improvement."""
_PATCHES_SHARE = 0.1
"""Of the work that is left, for patches."""
_CAREFUL_WORK, _CAREFUL_MODEL = 1_200, 600
"""Operators planned with care, but for the first model; and those of a model that is, at most:
larger ones take seconds for less than a per cent."""
_COVERS_IN_VAIN, _STARTS_IN_VAIN, _OUTINGS_IN_VAIN = 8, 2, 2
"""Covers, models whose neighbours are all tried, and orders around bulges, after which a step that
gains nothing ends."""
_FEWEST = 6
"""Neighbours of a model that are tried at least, or none: one in dozens hardly ever helps."""
_AT_ONCE = 2
"""Covers that are made whole at a time: while one process does one, another may do the other."""
_GAIN = 200
"""A gain is one part in so many."""
_SLACK = 60
"""Covers that promise one part in so many more than the best whole model are still tried."""
_BROKEN = 100
"""A promise is broken by more than one part in so many."""
_MOST_BANS = 24
"""Items that covers are looked for without."""
_CAPS = 48
"""Heads looked at in one round, about."""
_LOOSENED = 4
"""Models with bound views that are tried with views that are not."""
_REFINED = 4
"""Lower heads looked at beside the best."""


class RegionSearch:
    """One search. `found()` is good at any time, also after Ctrl-C in `run()`."""

    def __init__(self, options: TileOptions, workers: Workers) -> None:
        self._options, self._workers = options, workers
        self._deadline = time.monotonic() + options.time_limit
        bench = workers.bench
        self._order = line_order(bench.model, options)
        self._line: Line = bench.line(self._order)
        self._whole = WholeModels(
            workers, options, len(self._line), Allowance(min(options.most_work, MOST_WORK))
        )
        self._work, self._plain = self._whole.work, self._whole.plain
        self._used, base = self._whole.used, self._plain.instructions
        self._trials = 0
        self._whole.add([Trial((), False, self._order, CLIMB)])
        self._allowed = int((options.overhead - 1) * base)
        reach = Reach(self._order, self._plain.arena, self._plain.tail, self._allowed)
        self._intervals = Intervals(reach, workers, options, self._used, lambda: self._over)
        self._partition = Partition(self._line.needs, self._allowed)
        self._bound = options.dialect
        self._caps: list[int] = []
        self._border: dict[Way, Border] = {}
        self._loops: dict[Way, Item] = {}
        self._bans: list[tuple[int, frozenset[Way]]] = []
        self._bans_of: dict[tuple[Way, ...], frozenset[Way]] = {}

    # --- what was found ---

    def found(self) -> Found:
        """What there is so far."""
        front = fronts_of(self._whole.tilings)
        tried = self._trials + self._whole.count
        return Found(self._whole.best, front, tried, slower_than(front, self._whole.slower))

    @property
    def _over(self) -> bool:
        return time.monotonic() > self._deadline

    # --- the search ---

    def run(self, say: Progress = silent) -> None:
        """Search until nothing is left to try, or time is up."""
        modes = self._modes()
        for share, (bound, loops) in zip(self._shares(len(modes)), modes, strict=True):
            self._bound = bound
            self._partition = Partition(self._line.needs, self._allowed)
            self._caps, self._bans, self._bans_of = [], [], {}
            say("tiling: sketching intervals")
            for item in self._intervals.tiled(bound):
                self._partition.add(item)
            for loop in self._looped() if loops else ():
                self._partition.add(loop)
            self._work.open(share, _COVERS_SHARE)
            self._try_covers(say)
            self._turn_round()
            self._cut_patches()
            self._work.go_on()
            if not all(bound for bound, _ in modes):
                self._loosen()
            self._improve(say)
            if (bound, loops) == modes[0]:
                self._try_outings(say)
        self._finish(say)

    def _try_covers(self, say: Progress) -> None:
        """Make true covers whole, while that helps now and then."""
        patience = Patience(_COVERS_IN_VAIN, _GAIN, self._whole.best.bytes)
        for covers in self._true_covers(say):
            ways = [both_ways(self._trial_of(cover.items)) for cover in covers]
            self._whole.add([trial for trial, *_ in ways])
            broken = [
                (cover, turned)
                for cover, (trial, *turned) in zip(covers, ways, strict=True)
                if not self._keeps(cover, self._whole.add([trial]))
            ]
            self._whole.add([trial for _, turned in broken for trial in turned])
            for cover, turned in broken:
                if not self._keeps(cover, self._whole.add(turned)):
                    self._branch(cover)
            say(f"tiling: {self._whole.best.bytes:,} B, {self._trials} intervals tried")
            patience.note(self._whole.best.bytes, len(covers))
            # A cover of a large model is dear, and other modes want their part.
            dear = len(self._line) > LARGE and self._work.is_overdrawn
            if patience.is_over or dear:
                return

    def _try_outings(self, say: Progress) -> None:
        """Where not every interval can be looked at: what is fat, in orders made for it."""
        if len(self._line) <= LARGE:
            return
        say("tiling: looking for bulges")
        outings = Outings(self._workers, self._options, self._whole, self._allowed)
        patience = Patience(_OUTINGS_IN_VAIN, _GAIN, self._whole.best.bytes)
        for trial in outings.trials():
            self._whole.add([trial])
            patience.note(self._whole.best.bytes)
            self._trials += outings.tried
            outings.tried = 0
            say(f"tiling: {self._whole.best.bytes:,} B, {self._trials} bulges tried")
            if self._over or patience.is_over:
                return

    def _turn_round(self) -> None:
        """Keep a chain that drifts in its place."""
        if len(self._line) > LARGE:
            return
        border = self._options.borders(self._used)[0]
        moves = list(against(self._line, self._order, self._plain.head, border))
        if self._bound and moves:
            self._whole.add(moves)

    def _cut_patches(self) -> None:
        """Try patch stages before what the best model so far has behind them: with copies, as
        patches need them."""
        if self._bound or self._over or not self._copies:
            return
        border = self._options.borders(self._used)[-1]
        most = self._whole.best.bytes - self._beside
        stages = patch_stages(self._line, most, border, self._allowed)
        ranked = sorted(
            self._whole.ranked(True) + self._whole.ranked(False), key=lambda pair: pair[0].rank
        )
        known = [trial for _, trial in ranked if trial.order == self._order]
        start = known[0] if known else Trial((), False, self._order, CLIMB)
        left = self._work.left * _PATCHES_SHARE
        chosen: list[Trial] = []
        for trial in with_patches(start, stages):
            left -= len(SCHEDULES) * self._whole.work_of(trial)
            if left < 0:
                break
            chosen.append(trial)
        self._whole.add(chosen)

    def _loosen(self) -> None:
        """Try the best models whose views are bound with views that are not: all their copies may
        yet be dropped, so that they need no new operator either."""
        bound = [trial for _, trial in self._whole.ranked(True)[:_LOOSENED]]
        self._whole.add([replace(trial, bound=False) for trial in bound])

    def _modes(self) -> list[tuple[bool, bool]]:
        """Whether views are bound to their parents, and whether there are loops. In the dialect
        views should be bound; where copies are allowed they need not, and halos may then be kept.
        Where copies are not allowed the plan may come to none all the same. Tiles alone come
        first: what loops are tried for must be better."""
        dialect = self._options.dialect
        bounds = (*([True] * dialect), *([False] * (dialect or self._copies)))
        if not may_loop(self._options, self._used):
            return [(bound, False) for bound in bounds]
        both = [(bound, loops) for bound in bounds or (True,) for loops in (False, True)]
        if len(self._line) > LARGE and (False, False) in both[1:]:
            both.remove((False, False))  # what has loops has tiles too, and trials are dear
        return both

    def _shares(self, modes: int) -> Sequence[float]:
        """Of the work that is left, for each of so many modes."""
        if modes == len(_HOPED_SHARES) and not self._copies:
            return _HOPED_SHARES
        return _THREE_SHARES if modes == len(_THREE_SHARES) else _SHARES[len(_SHARES) - modes :]

    @property
    def _copies(self) -> bool:
        """Whether parts of tensors may be copied."""
        return all(self._options.allows(kind, self._used) for kind in ("SLICE", "CONCATENATION"))

    def _looped(self) -> list[Item]:
        """Intervals in loops, with what trials said of them."""
        if not self._loops:
            self._loops = {item.key: item for item in self._intervals.looped()}
        return list(self._loops.values())

    def _true_covers(self, say: Progress) -> Iterator[list[Cover]]:
        """Covers of which every item was tried, the most promising first, a few at a time."""
        seen: set[tuple[Way, ...]] = set()
        while len(seen) < MOST_WHOLE and not self._over:
            covers = self._covers()
            fresh = [c for c in covers if c.items and c.ways not in seen]
            if self._trials >= MOST_TRIALS or self._work.is_spent:
                fresh = [c for c in fresh if c.tried]
            if not fresh:
                return
            known = self._whole.best.bytes
            true = [c for c in fresh if c.tried and (c is fresh[0] or self._promise(c) < known)]
            if true:
                seen |= {c.ways for c in true[:_AT_ONCE]}
                yield true[:_AT_ONCE]
                continue
            self._try_items(batch_of(i for c in spread(fresh) for i in c.items if not i.tried))
            say(f"tiling: {self._promise(fresh[0]):,} B promised, {self._trials} intervals tried")

    def _keeps(self, cover: Cover, made: Sequence[Tiling]) -> bool:
        """Whether one of the models is what its cover promised, about."""
        promise = self._promise(cover)
        return any(t.bytes <= promise + promise // _BROKEN for t in made)

    def _branch(self, cover: Cover) -> None:
        """A cover that broke its promise stands for all that are a little worse and might not:
        the best ones without one of its items are looked at too, and so on (Lawler 1972)."""
        parent = self._bans_of.get(cover.ways, frozenset())
        bans = [(cover.head, parent | {i.key}) for i in cover.items]
        self._bans += [b for b in bans if b not in self._bans][: _MOST_BANS - len(self._bans)]

    def _covers(self) -> list[Cover]:
        """The best covers for the caps that matter, best first."""
        known = self._whole.best.bytes
        if not self._caps:
            caps = self._partition.caps()
            self._caps = caps[:: max(len(caps) // _CAPS, 1)]
        found: list[Cover] = []
        for cap in self._caps:
            if cap + self._beside < known:
                found += self._partition.covers(cap)
        for _ in range(_REFINED):
            best = min(found, key=self._rank, default=None)
            lower = [] if best is None else self._partition.covers(best.head - 1)
            found += lower
            if not lower or best is None or self._rank(lower[0]) >= self._rank(best):
                break
        for cap, ban in self._bans:
            others = self._partition.without(cap, ban)
            self._bans_of |= {c.ways: ban for c in others if c.ways not in self._bans_of}
            found += others
        known += known // _SLACK
        promising = {c.ways: c for c in found if self._promise(c) < known or self._fits(c)}
        return sorted(promising.values(), key=self._rank)

    @property
    def _beside(self) -> int:
        """Bytes of the tail as it is, where they count."""
        return self._plain.tail if self._options.objective == "arena" else 0

    def _promise(self, cover: Cover) -> int:
        if self._options.objective == "head":
            return cover.head
        return cover.head + self._beside + cover.tail

    def _fits(self, cover: Cover) -> bool:
        budget = self._options.budget
        return budget is not None and self._promise(cover) <= budget

    def _rank(self, cover: Cover) -> tuple[int, int, int]:
        if self._fits(cover):
            return (0, cover.cost, self._promise(cover))
        return (1, self._promise(cover), cover.cost)

    def _try_items(self, items: Sequence[Item]) -> None:
        """Make sketches true."""
        borders = self._options.borders(self._used)
        ways: dict[Way, list[tuple[Border, Schedule]]]
        ways = {i.key: ways_to_try(i, borders) for i in items}
        questions = [
            Question(
                Trial((region_of(item, item.first, border),), self._bound, None, CLIMB, how),
                (item.first, item.end),
                self._order,
            )
            for item in items
            for border, how in ways[item.key]
        ]
        self._trials += len(items)
        fresh = {self._workers.key(q): q for q in questions if not self._workers.knows(q)}
        self._work.spend(sum(map(_work_of_interval, fresh.values())))
        answers = iter(self._whole.outcomes(questions))
        for item in items:
            tried: list[tuple[Outcome | None, Border]]
            tried = [(next(answers), border) for border, _ in ways[item.key]]
            possible: list[tuple[Outcome, Border]]
            possible = [(outcome, border) for outcome, border in tried if outcome is not None]
            if not possible:
                self._partition.drop(item)
                self._loops.pop(item.key, None)
                continue
            possible.sort(key=lambda p: (p[0].head, p[0].tail, p[0].instructions))
            outcome, border = possible[0]
            self._border[item.key] = border
            made = tried_item(item, outcome)
            self._partition.add(made)
            if item.key.edge:
                self._loops[item.key] = made

    def _trial_of(self, items: Iterable[Item]) -> Trial:
        schemes = tuple(region_of(i, 0, self._border.get(i.key, "waste")) for i in items)
        return Trial(schemes, self._bound, self._order, CLIMB)

    def _improve(self, say: Progress) -> None:
        """Change one scheme of the best whole model at a time, while that helps."""
        done: set[tuple[Scheme | Loop, ...]] = set()
        patience = Patience(_STARTS_IN_VAIN, _GAIN, self._whole.best.bytes)
        while not (self._work.is_spent or self._over or patience.is_over):
            ranked = self._whole.ranked(self._bound)
            near = [trial for _, trial in ranked[:2]]
            near += [trial for _, trial in ranked if not trial.has_loops][:1]
            starts = [trial for trial in near if trial.schemes not in done]
            if not starts:
                return
            work = self._whole.work_of(starts[0])
            if work > LARGEST_MODEL or _FEWEST * len(SCHEDULES) * work > self._work.rest:
                return
            done.add(starts[0].schemes)
            moves = [t for t in neighbours(starts[0], len(self._line)) if t not in self._whole]
            for k in range(0, len(moves), BATCH):
                fitting = self._whole.fitting(moves[k : k + BATCH])
                self._whole.add(fitting)
                if self._over or self._work.is_spent or len(fitting) < len(moves[k : k + BATCH]):
                    return
            patience.note(self._whole.best.bytes)
            say(f"tiling: {self._whole.best.bytes:,} B, {self._whole.count} models planned")

    def _finish(self, say: Progress) -> None:
        """Plan the best few with care, as they are and in orders of their own."""
        if self._over:
            return
        left = _CAREFUL_WORK
        chosen: list[Trial] = []
        for _, trial in self._whole.ranked()[:FINALISTS]:
            if left >= 0 and self._whole.work_of(trial) <= _CAREFUL_MODEL:
                left -= len(SCHEDULES) * self._whole.work_of(trial)
                chosen.append(replace(trial, effort=CAREFUL))
        self._whole.add(chosen)
        say(f"tiling: {self._whole.best.bytes:,} B, planned with care")


def _work_of_interval(question: Question) -> int:
    """Operators that a trial of an interval plans."""
    first, end = question.interval or (0, 0)
    return end - first + sum(map(work_added, question.trial.schemes))
