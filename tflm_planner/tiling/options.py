"""What a search of tiles may do, and what it comes to. Data alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from tflm_planner.support.errors import UsageError
from tflm_planner.tflm.kernels.operator_allocations import lacks
from tflm_planner.tflm.liveness import InputOverlapRule
from tflm_planner.tflm.machine import Machine
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.schedules import PlanRecipe
from tflm_planner.transforms.tile.operator_tiles import Border
from tflm_planner.transforms.tile.tile import TiledRegion

Method = Literal["regions", "motes"]
METHODS: tuple[Method, ...] = get_args(Method)
Objective = Literal["arena", "head"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)

Progress = Callable[[str], None]
MAX_REPORTED_SLOWDOWN = 1.5
"""Instructions, relative to the original, beyond which nothing is worth a word."""


def check_choices(method: str, objective: str) -> None:
    """UsageError for a search or an objective that there is not."""
    if method not in METHODS:
        raise UsageError(f"search {method!r} is unknown; choose from {', '.join(METHODS)}")
    if objective not in OBJECTIVES:
        known = ", ".join(OBJECTIVES)
        raise UsageError(f"objective {objective!r} is unknown; choose from {known}")


@dataclass(frozen=True)
class TilingOptions:
    """machine, trails_of: the target. overhead: instructions allowed, relative to the model as it
    was read (delta). method: "regions" or MOTES's beam search. objective: the bytes to lower, of
    the whole arena or of the head alone. width: of the beam (beta). budget:
    bytes that are enough: of the candidates that keep it the fastest wins. dialect: whether views
    may cost no operator (`transforms.dialect`). new_kinds: operators that may be used although the
    model does not use them, so that the firmware must register them; None for all. workers:
    processes. most_work: operators that a search plans in its trials at most."""

    machine: Machine
    trails_of: InputOverlapRule
    overhead: float = 1.10
    method: Method = "regions"
    objective: Objective = "arena"
    width: int = 4
    budget: int | None = None
    dialect: bool = True
    new_kinds: frozenset[str] | None = frozenset()
    workers: int = 1
    most_work: int = 1 << 40

    def __post_init__(self) -> None:
        check_choices(self.method, self.objective)

    def allows(self, kind: str, used: frozenset[str]) -> bool:
        """Whether an operator of this kind may be in the result of a model that uses `used`: none
        that the target's TFLM lacks, whatever the firmware may register."""
        permitted = self.new_kinds is None or kind in self.new_kinds
        return kind in used or (permitted and not lacks(kind, self.machine.target))

    def borders(self, used: frozenset[str]) -> tuple[Border, ...]:
        """How tiles may get the padding of an image's edge: by PAD only if that may be used."""
        return ("waste", "pad") if self.allows("PAD", used) else ("waste",)


@dataclass(frozen=True)
class Tiling:
    """Schemes with what they lead to.

    schemes: regions in tiles or in loops; positions of operators as in the file, cleaned up.
    arena, head: bytes by the plan that was made. overhead: instructions relative to the original.
    bottleneck: the operator of the original at the peak. bound: whether all views are bound to
    their parents (none is a copy then). order: operators of the original in running order, before
    tiling; None for the file's. added: kinds of operators that the original does not have. recipe:
    how these bytes were come to.
    """

    schemes: tuple[TiledRegion | LoopedRegion, ...]
    arena: int
    overhead: float
    bottleneck: int | None
    bound: bool
    head: int = 0
    objective: Objective = "arena"
    order: tuple[int, ...] | None = None
    added: tuple[str, ...] = ()
    recipe: PlanRecipe | None = None

    @property
    def bytes(self) -> int:
        """What is to be small."""
        return self.arena if self.objective == "arena" else self.head

    @property
    def rank(self) -> tuple[int, float, int]:
        """Smaller is better; ties in bytes go to the faster, then to the one with fewer tiles."""
        return self.bytes, self.overhead, len(self.schemes)

    def beats(self, other: Tiling, budget: int | None) -> bool:
        """Within the budget the faster one wins, otherwise the smaller one."""
        if budget is not None and max(self.bytes, other.bytes) <= budget:
            return (self.overhead, self.bytes) < (other.overhead, other.bytes)
        return self.rank < other.rank


@dataclass(frozen=True)
class TilingResult:
    """What a search came to. best: the empty tiling when nothing helps. front: tilings of which
    none is both smaller and faster than another on the same firmware (`fronts_of`), the smallest
    first. tried: candidates planned.
    slower: what the front would go on with if more instructions were allowed, as far as the search
    came across it."""

    best: Tiling
    front: tuple[Tiling, ...]
    tried: int
    slower: tuple[Tiling, ...] = ()

    @property
    def finalists(self) -> tuple[Tiling, ...]:
        """The best one and, should it not stand closer scrutiny, those to fall back on."""
        return tuple(dict.fromkeys(t for t in (self.best, *self.front) if t.schemes))


def pareto_fronts(tilings: Iterable[Tiling]) -> tuple[Tiling, ...]:
    """Two fronts in one, the smallest first: of the tilings that use what the model uses already,
    and of all. What needs one operator more in the firmware beats nothing that needs none."""
    found = list(tilings)
    both = (*pareto_front(t for t in found if not t.added), *pareto_front(found))
    return tuple(sorted(dict.fromkeys(both), key=lambda t: t.rank))


def slower_front(front: tuple[Tiling, ...], tilings: Iterable[Tiling]) -> tuple[Tiling, ...]:
    """The front of what is smaller than all of `front`, and at most `MOST_OVERHEAD` slow."""
    least = min((t.bytes for t in front), default=0)
    return pareto_front(
        t for t in tilings if t.bytes < least and t.overhead <= MAX_REPORTED_SLOWDOWN
    )


def pareto_front(tilings: Iterable[Tiling]) -> tuple[Tiling, ...]:
    """Those of which none is both smaller and faster than another, the smallest first."""
    front: list[Tiling] = []
    for tiling in sorted(tilings, key=lambda t: t.rank):
        if not front or tiling.overhead < front[-1].overhead:
            front.append(tiling)
    return tuple(front)


def silent(_: str) -> None:
    """A listener to progress that does nothing."""
