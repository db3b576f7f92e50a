"""The options of a search for tilings; its results are in `tilings`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from tflm_planner.support.defaults import SLOWDOWN
from tflm_planner.support.errors import UsageError
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tflm.liveness import InputOverlapRule
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.tiling.budget import DEFAULT_BUDGET, SearchBudget
from tflm_planner.transforms.subsample import Subsample
from tflm_planner.transforms.tile.operator_tiles import Border

Method = Literal["regions", "motes"]
COPYING = ("SLICE", "CONCATENATION")
"""The operators by which parts of tensors are cut out and joined, where these are no views."""
METHODS: tuple[Method, ...] = get_args(Method)
Objective = Literal["arena", "head"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)


def check_choices(method: str, objective: str) -> None:
    """UsageError if the search or the objective does not exist."""
    if method not in METHODS:
        raise UsageError(f"search {method!r} is unknown; choose from {', '.join(METHODS)}")
    if objective not in OBJECTIVES:
        names = ", ".join(OBJECTIVES)
        raise UsageError(f"objective {objective!r} is unknown; choose from {names}")


@dataclass(frozen=True)
class Subsampling:
    """A rewrite of the model before its tiles are looked for, with what the model was before."""

    transform: Subsample
    """The rewrite."""
    original_instructions: int
    """Instructions of one inference before it."""
    replaced: frozenset[int]
    """Positions of the operators that it replaces, after the model is normalized."""
    new_kinds: frozenset[str] = frozenset()
    """Kinds of operators that it adds."""


@dataclass(frozen=True)
class TilingOptions:
    """What the search may do, and its objective."""

    kernels: TargetKernels
    """The target, with the kernel library that runs on it."""
    input_overlaps_of: InputOverlapRule
    """The rule that says where an operator's result may lie in the memory of a dying operand."""
    max_slowdown: float = SLOWDOWN
    """Upper limit of instructions, relative to the original model."""
    method: Method = "regions"
    """The search of segments, or the beam search of MOTES."""
    objective: Objective = "arena"
    """The bytes to minimise: the whole arena, or only its head."""
    width: int = 4
    """States that the beam search keeps (beta in MOTES)."""
    arena_limit: int | None = None
    """Bytes of arena that are enough: the fastest tiling within this limit is the best. None: the
    smallest tiling is the best."""
    dialect: bool = True
    """Whether a view may cost no operator (`transforms.dialect`)."""
    operators: AllowedOperators = AllowedOperators.NONE
    """Operators that may be added; the firmware must register them."""
    workers: int = 1
    """Most processes that evaluate candidates, one a core."""
    work_limit: int | None = None
    """Number of operators that this search may plan, if that is less than its budget. None: only
    the budget limits it."""
    search_budget: SearchBudget = DEFAULT_BUDGET
    """The tuning constants."""
    subsampling: Subsampling | None = None
    """What is done to the model first; None: nothing."""

    def __post_init__(self) -> None:
        check_choices(self.method, self.objective)

    @property
    def is_nearly_free(self) -> bool:
        """Whether next to no instruction more is allowed. Then what is a little too slow is varied
        too: most tiles add a little, a few save a little, and what is free is often both."""
        return self.max_slowdown < self.searched_slowdown

    @property
    def searched_slowdown(self) -> float:
        """The slowdown up to which models are varied; those above `max_slowdown` are not
        offered."""
        return max(self.max_slowdown, 1 + self.search_budget.slowdown_slack)

    def allows(self, kind: str, used_kinds: frozenset[str]) -> bool:
        """Whether the result of a model that uses `used_kinds` may use operators of this kind."""
        return self.operators.allows(kind, used_kinds, self.kernels.target)

    def allows_copies(self, used_kinds: frozenset[str]) -> bool:
        """Whether parts of tensors may be cut out and joined by copying."""
        return all(self.allows(kind, used_kinds) for kind in COPYING)

    def borders(self, used_kinds: frozenset[str]) -> tuple[Border, ...]:
        """How tiles may get the padding of the image's border: by PAD only if that is permitted."""
        return ("waste", "pad") if self.allows("PAD", used_kinds) else ("waste",)
