"""Covers that are true: those that promise most, until all their items were tried.

    partition --(every cap)--> covers --best first--> all tried?  yes: made whole
                    ^                                     | no
                    +------------- figures of trials -----+

As sketches hardly ever promise too little, the best cover whose items are all tried is the best
one: only what a partition chooses is ever tried. It must not make models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tflm_planner.tiling.options import Progress, Tiling
from tflm_planner.tiling.segment_evaluations import SegmentEvaluations
from tflm_planner.tiling.segmentation import Segment, Segmentation, Segmenter, SegmentKey
from tflm_planner.tiling.segments import first_batch, sample_by_promise

MOST_TRIALS = 700
"""Intervals tried, in a whole search."""
MOST_WHOLE = 24
"""Covers of one mode that are offered."""
_AT_ONCE = 2
"""Covers that are offered at a time: while one process makes one, another may make the other."""
_SLACK = 60
"""Covers that promise one part in so many more than the best whole model are still tried."""
_BROKEN = 100
"""A promise is broken by more than one part in so many."""
_MOST_BANS = 24
"""Items that covers are looked for without."""
_CAPS = 48
"""Heads looked at in one round, about."""
_REFINED = 4
"""Lower heads looked at beside the best."""


class PromisingSegmentations:
    """Of one mode of a search. partition: of all its items. bound: whether views lie in their
    parents."""

    def __init__(self, partition: Segmenter, tried: SegmentEvaluations, bound: bool) -> None:
        self._partition, self._tried, self._bound = partition, tried, bound
        self._whole, self._options = tried.whole, tried.options
        caps = partition.caps()
        self._caps = caps[:: max(len(caps) // _CAPS, 1)]
        self._bans: list[tuple[int, frozenset[SegmentKey]]] = []
        self._bans_of: dict[tuple[SegmentKey, ...], frozenset[SegmentKey]] = {}

    def true(self, say: Progress) -> Iterator[list[Segmentation]]:
        """Covers of which every item was tried, the most promising first, a few at a time."""
        seen: set[tuple[SegmentKey, ...]] = set()
        while len(seen) < MOST_WHOLE:
            fresh = [c for c in self._promising() if c.items and c.ways not in seen]
            if self._tried.count >= MOST_TRIALS or self._whole.work.is_spent:
                fresh = [c for c in fresh if c.tried]
            if not fresh:
                return
            known = self._whole.best.bytes
            true = [c for c in fresh if c.tried and (c is fresh[0] or self._promise(c) < known)]
            if true:
                seen |= {c.ways for c in true[:_AT_ONCE]}
                yield true[:_AT_ONCE]
                continue
            self._try(
                first_batch(i for c in sample_by_promise(fresh) for i in c.items if not i.tried)
            )
            promise = self._promise(fresh[0])
            say(f"tiling: {promise:,} B promised, {self._tried.count} intervals tried")

    def keeps(self, cover: Segmentation, made: Sequence[Tiling]) -> bool:
        """Whether one of the models is what its cover promised, about."""
        promise = self._promise(cover)
        return any(t.bytes <= promise + promise // _BROKEN for t in made)

    def branch(self, cover: Segmentation) -> None:
        """A cover that broke its promise stands for all that are a little worse and might not:
        the best ones without one of its items are looked at too, and so on (Lawler 1972)."""
        parent = self._bans_of.get(cover.ways, frozenset())
        bans = [(cover.head, parent | {i.key}) for i in cover.items]
        self._bans += [b for b in bans if b not in self._bans][: _MOST_BANS - len(self._bans)]

    def _try(self, items: Sequence[Segment]) -> None:
        """Make sketches true."""
        for item, made in zip(items, self._tried.made(items, self._bound), strict=True):
            if made is None:
                self._partition.drop(item)
            else:
                self._partition.add(made)

    def _promising(self) -> list[Segmentation]:
        """The best covers for the caps that matter, best first."""
        known = self._whole.best.bytes
        found: list[Segmentation] = []
        for cap in self._caps:
            if cap + self._whole.beside < known:
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

    def _promise(self, cover: Segmentation) -> int:
        if self._options.objective == "head":
            return cover.head
        return cover.head + self._whole.beside + cover.tail

    def _fits(self, cover: Segmentation) -> bool:
        budget = self._options.budget
        return budget is not None and self._promise(cover) <= budget

    def _rank(self, cover: Segmentation) -> tuple[int, int, int]:
        if self._fits(cover):
            return (0, cover.cost, self._promise(cover))
        return (1, self._promise(cover), cover.cost)
