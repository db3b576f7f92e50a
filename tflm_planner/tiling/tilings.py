"""The results of a search: tilings with their figures, the best one, and Pareto fronts of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tflm_planner.tiling.options import Objective
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.schedules import PlanRecipe
from tflm_planner.transforms.subsample import Subsample
from tflm_planner.transforms.tile.tile import TiledRegion

Region = TiledRegion | LoopedRegion
"""Operators that run in tiles, or a few rows at a time in a loop."""
MAX_REPORTED_SLOWDOWN = 1.5
"""Tilings with more than this many times the instructions of the original are not reported."""


@dataclass(frozen=True)
class Tiling:
    """Regions of the original model, with the figures of the resulting model."""

    regions: tuple[Region, ...]
    """Operators are given by their positions in the file, after the model is normalized and
    subsampled."""
    arena: int
    """Bytes of the arena with the plan that was made."""
    slowdown: float
    """Instructions relative to the original."""
    bottleneck: int | None
    """Position of the operator of the original at the memory peak; None if there is none."""
    bind_views: bool
    """Whether every view lies inside its parent, so that none is a copy."""
    head: int = 0
    """Bytes of the head."""
    objective: Objective = "arena"
    """What the search minimised."""
    order: tuple[int, ...] | None = None
    """Operators of the original in running order, before tiling; None for the file's order."""
    new_kinds: tuple[str, ...] = ()
    """Kinds of operators that the original does not use."""
    recipe: PlanRecipe | None = None
    """How the plan with these figures was made; None if there was none."""
    respell: int | None = None
    """Operators may be spelled otherwise up to this many instructions for one inference; None: no
    operator is."""
    subsample: Subsample | None = None
    """The rewrite before tiles that computes pixels only where they are read; None: none is."""

    @classmethod
    def unplanned(
        cls,
        regions: tuple[Region, ...] = (),
        *,
        bind_views: bool = True,
        respell: int | None = None,
        objective: Objective = "arena",
    ) -> Tiling:
        """A tiling whose figures are not known before it is planned."""
        return cls(regions, 0, 1.0, None, bind_views, objective=objective, respell=respell)

    @property
    def ordered_regions(self) -> tuple[Region, ...]:
        """The regions, with operators given by their positions in the running order."""
        return self.regions if self.order is None else in_running_order(self.regions, self.order)

    @property
    def has_views(self) -> bool:
        """Whether there are tiles or other spellings: views may cost no operator only then."""
        tiles = any(isinstance(r, TiledRegion) for r in self.regions)
        return tiles or self.respell is not None

    @property
    def is_changed(self) -> bool:
        """Whether the model differs from the original in more than order and plan."""
        return bool(self.regions) or self.respell is not None or self.subsample is not None

    @property
    def bytes(self) -> int:
        """The bytes that the search minimised."""
        return self.arena if self.objective == "arena" else self.head

    @property
    def rank(self) -> tuple[int, float, int]:
        """Sort key, smaller is better. Of equal bytes the faster tiling is better, then the one
        with fewer regions."""
        return self.bytes, self.slowdown, len(self.regions)

    def beats(self, other: Tiling, arena_limit: int | None) -> bool:
        """Whether this tiling is better: the faster one if both are within the limit, else the
        smaller one."""
        if arena_limit is not None and max(self.bytes, other.bytes) <= arena_limit:
            return (self.slowdown, self.bytes) < (other.slowdown, other.bytes)
        return self.rank < other.rank


@dataclass(frozen=True, slots=True)
class Trial:
    """The smallest model that was evaluated with an operator in a region; among those that are fast
    enough, if there are any."""

    name: str
    """Name of the operator's first result; "" if it has none."""
    whole: str = ""
    """Why the operator can only run as a whole; "" if it need not."""
    bytes: int | None = None
    """The bytes of that model that the search lowers. None: there is none."""
    slowdown: float | None = None
    """Its instructions, relative to the original. None: there is none."""
    fast_enough: bool = False
    """Whether it needs no more instructions than allowed."""
    promising: bool | None = None
    """Whether a region with the operator may help by an estimate. None: not all were estimated."""


@dataclass(frozen=True)
class TilingResult:
    """The tilings that a search offers."""

    best: Tiling
    """The best one; without regions if nothing helps."""
    front: tuple[Tiling, ...]
    """A Pareto front, the smallest first: none is both smaller and faster than another on the same
    firmware (see `pareto_fronts`)."""
    evaluated: int
    """Number of candidates that were evaluated."""
    slower: tuple[Tiling, ...] = ()
    """The continuation of the front if more instructions were permitted, as far as it was
    searched."""
    trials: tuple[Trial, ...] = ()
    """What was tried with each operator of the main graph, after the model is normalized."""

    @property
    def finalists(self) -> tuple[Tiling, ...]:
        """The best tiling, then those to use instead if it is refused."""
        return tuple(dict.fromkeys(t for t in (self.best, *self.front) if t.is_changed))


def in_running_order(regions: Iterable[Region], order: Sequence[int]) -> tuple[Region, ...]:
    """Regions whose operators are given by their positions in `order`, which lists operators by
    their positions in the regions as given."""
    place = {op: i for i, op in enumerate(order)}
    return tuple(replace(r, ops=tuple(sorted(place[i] for i in r.ops))) for r in regions)


def best_tiling(tilings: Iterable[Tiling], arena_limit: int | None) -> Tiling:
    """The best tiling; among equals the first."""
    best, *others = tilings
    for other in others:
        if other.beats(best, arena_limit):
            best = other
    return best


def pareto_fronts(tilings: Iterable[Tiling]) -> tuple[Tiling, ...]:
    """Two Pareto fronts in one, the smallest tiling first: the front of the tilings that need no
    new operator, and the front of all. So a tiling that needs a new operator never removes one that
    needs none."""
    every = list(tilings)
    both = (*pareto_front(t for t in every if not t.new_kinds), *pareto_front(every))
    return tuple(sorted(dict.fromkeys(both), key=lambda t: t.rank))


def slower_front(front: tuple[Tiling, ...], tilings: Iterable[Tiling]) -> tuple[Tiling, ...]:
    """The Pareto front of the tilings that are smaller than all of `front`, and not slower than
    `MAX_REPORTED_SLOWDOWN`."""
    least = min((t.bytes for t in front), default=0)
    return pareto_front(
        t for t in tilings if t.bytes < least and t.slowdown <= MAX_REPORTED_SLOWDOWN
    )


def pareto_front(tilings: Iterable[Tiling]) -> tuple[Tiling, ...]:
    """The tilings of which none is both smaller and faster than another, the smallest first."""
    front: list[Tiling] = []
    for tiling in sorted(tilings, key=lambda t: t.rank):
        if not front or tiling.slowdown < front[-1].slowdown:
            front.append(tiling)
    return tuple(front)


def mean_bytes(tilings: Iterable[Tiling], max_slowdown: float) -> int:
    """Bytes of the smallest tiling within a slowdown, averaged over the slowdowns from 1 to
    `max_slowdown`: one figure for a whole front. At least one tiling must be no slower than the
    unchanged model."""
    *slower, fastest = pareto_front(tilings)
    if max_slowdown <= 1:
        return fastest.bytes
    total, end = 0.0, max_slowdown
    for tiling in slower:
        total += tiling.bytes * (end - tiling.slowdown)
        end = tiling.slowdown
    return int((total + fastest.bytes * (end - 1)) / (max_slowdown - 1))
