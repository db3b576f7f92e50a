"""The question to a search for tilings (`TilingOptions`) and its answer (`TilingResult`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from tflm_planner.support.defaults import SLOWDOWN
from tflm_planner.support.errors import UsageError
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tflm.liveness import InputOverlapRule
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.tiling.budget import DEFAULT_BUDGET, SearchBudget
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.schedules import PlanRecipe
from tflm_planner.transforms.tile.operator_tiles import Border
from tflm_planner.transforms.tile.tile import TiledRegion

Method = Literal["regions", "motes"]
METHODS: tuple[Method, ...] = get_args(Method)
Objective = Literal["arena", "head"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)

Region = TiledRegion | LoopedRegion
"""Operators that run in tiles, or a few rows at a time in a loop."""
MAX_REPORTED_SLOWDOWN = 1.5
"""Slower tilings, in instructions relative to the original, are not reported."""


def check_choices(method: str, objective: str) -> None:
    """UsageError for a search or an objective that there is not."""
    if method not in METHODS:
        raise UsageError(f"search {method!r} is unknown; choose from {', '.join(METHODS)}")
    if objective not in OBJECTIVES:
        names = ", ".join(OBJECTIVES)
        raise UsageError(f"objective {objective!r} is unknown; choose from {names}")


@dataclass(frozen=True)
class TilingOptions:
    """What the search may do, and what for."""

    kernels: TargetKernels
    """The target, with the kernel library that runs on it."""
    input_overlaps_of: InputOverlapRule
    """For an operator, where its result may lie in the memory of a dying operand."""
    max_slowdown: float = SLOWDOWN
    """Instructions that a tiling may take, relative to the original model."""
    method: Method = "regions"
    """The search of segments, or the beam search of MOTES."""
    objective: Objective = "arena"
    """The bytes to lower: the whole arena, or its head alone."""
    width: int = 4
    """States that the beam search keeps (beta in MOTES)."""
    budget: int | None = None
    """Bytes that are enough: of the tilings that keep them the fastest wins. None: the smallest
    tiling wins."""
    dialect: bool = True
    """Whether a view may cost no operator (`transforms.dialect`)."""
    operators: AllowedOperators = AllowedOperators.NONE
    """Operators that may be added, so that the firmware must register them."""
    workers: int = 1
    """Processes that evaluate candidates."""
    work_limit: int | None = None
    """Operators that this search may plan, where that is less than its budget. None: no limit
    beside the budget."""
    search_budget: SearchBudget = DEFAULT_BUDGET
    """The tuning constants."""

    def __post_init__(self) -> None:
        check_choices(self.method, self.objective)

    def allows(self, kind: str, used_kinds: frozenset[str]) -> bool:
        """Whether the result of a model that uses `used_kinds` may use operators of this kind."""
        return self.operators.allows(kind, used_kinds, self.kernels.target)

    def allows_copies(self, used_kinds: frozenset[str]) -> bool:
        """Whether parts of tensors may be cut out and joined by copying."""
        return all(self.allows(kind, used_kinds) for kind in ("SLICE", "CONCATENATION"))

    def borders(self, used_kinds: frozenset[str]) -> tuple[Border, ...]:
        """How a tile may get the padding of the image's edge: by PAD only where that is allowed."""
        return ("waste", "pad") if self.allows("PAD", used_kinds) else ("waste",)


@dataclass(frozen=True)
class Tiling:
    """Regions of the original model, with the figures of the model that they lead to."""

    regions: tuple[Region, ...]
    """Operators by their positions in the file, once the model is normalized."""
    arena: int
    """Bytes of the arena, by the plan that was made."""
    slowdown: float
    """Instructions relative to the original."""
    bottleneck: int | None
    """Position of the operator of the original that runs at the peak; None if there is none."""
    bind_views: bool
    """Whether every view lies inside its parent, so that none is a copy."""
    head: int = 0
    """Bytes of the head."""
    objective: Objective = "arena"
    """The bytes that the search lowered."""
    order: tuple[int, ...] | None = None
    """Operators of the original in running order, before tiling; None for the file's order."""
    new_kinds: tuple[str, ...] = ()
    """Kinds of operators that the original does not use."""
    recipe: PlanRecipe | None = None
    """How the plan with these figures was made; None if there was none."""
    respell: int | None = None
    """Instructions of one inference up to which operators are spelled otherwise; None: none is."""

    @classmethod
    def respelled(cls, instructions: int, objective: Objective) -> Tiling:
        """No regions: operators may be spelled otherwise, up to so many instructions. Its figures
        are not known before it is planned."""
        return cls((), 0, 1.0, None, True, objective=objective, respell=instructions)

    @property
    def has_views(self) -> bool:
        """Whether there are tiles or other spellings: only then views may cost no operator."""
        tiles = any(isinstance(r, TiledRegion) for r in self.regions)
        return tiles or self.respell is not None

    @property
    def is_changed(self) -> bool:
        """Whether the model runs otherwise than with order and plan alone."""
        return bool(self.regions) or self.respell is not None

    @property
    def bytes(self) -> int:
        """The bytes that the search lowered."""
        return self.arena if self.objective == "arena" else self.head

    @property
    def rank(self) -> tuple[int, float, int]:
        """Smaller is better. Of equal bytes the faster tiling is better, then the one with fewer
        regions."""
        return self.bytes, self.slowdown, len(self.regions)

    def beats(self, other: Tiling, budget: int | None) -> bool:
        """Whether this tiling is better: the faster one if both keep the budget, else the smaller
        one."""
        if budget is not None and max(self.bytes, other.bytes) <= budget:
            return (self.slowdown, self.bytes) < (other.slowdown, other.bytes)
        return self.rank < other.rank


@dataclass(frozen=True)
class TilingResult:
    """The tilings that a search offers."""

    best: Tiling
    """The best one; without regions when nothing helps."""
    front: tuple[Tiling, ...]
    """The smallest first: none is both smaller and faster than another on the same firmware (see
    `pareto_fronts`)."""
    evaluated: int
    """Number of candidates that were evaluated."""
    slower: tuple[Tiling, ...] = ()
    """How the front would go on if more instructions were allowed, as far as the search saw it."""

    @property
    def finalists(self) -> tuple[Tiling, ...]:
        """The best tiling, then those to fall back on if it is refused."""
        return tuple(dict.fromkeys(t for t in (self.best, *self.front) if t.is_changed))


def best_tiling(tilings: Iterable[Tiling], budget: int | None) -> Tiling:
    """The best tiling; of equals the first."""
    best, *others = tilings
    for other in others:
        if other.beats(best, budget):
            best = other
    return best


def pareto_fronts(tilings: Iterable[Tiling]) -> tuple[Tiling, ...]:
    """Two fronts in one, the smallest tiling first: the front of the tilings that need no new
    operator, and the front of all. A tiling that needs a new operator never removes one that needs
    none."""
    every = list(tilings)
    both = (*pareto_front(t for t in every if not t.new_kinds), *pareto_front(every))
    return tuple(sorted(dict.fromkeys(both), key=lambda t: t.rank))


def slower_front(front: tuple[Tiling, ...], tilings: Iterable[Tiling]) -> tuple[Tiling, ...]:
    """The front of those that are smaller than all of `front`, and not slower than
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
    """Bytes of the smallest tiling within a slowdown, on average over the slowdowns from 1 to
    `max_slowdown`: a front as one figure. One tiling at least must be no slower than the model as
    it is."""
    *slower, fastest = pareto_front(tilings)
    if max_slowdown <= 1:
        return fastest.bytes
    total, end = 0.0, max_slowdown
    for tiling in slower:
        total += tiling.bytes * (end - tiling.slowdown)
        end = tiling.slowdown
    return int((total + fastest.bytes * (end - 1)) / (max_slowdown - 1))
