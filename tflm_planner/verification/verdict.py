"""The results of verification, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

EQUAL: Final = "equal"
CLOSE: Final = "within tolerance"
DIFFERENT: Final = "different"
CANNOT_RUN: Final = "cannot run original"
NOT_AVAILABLE: Final = "not available"
CheckStatus = Literal[
    "equal", "within tolerance", "different", "cannot run original", "not available"
]


@dataclass(frozen=True, slots=True)
class HostAllocation:
    """Bytes of the arena that real TFLM reports after AllocateTensors (x86-64, this machine)."""

    head: int
    tail: int


@dataclass(frozen=True, slots=True)
class Culprit:
    """The operator of a result that is the first to differ. position: its index in the main graph.
    kind: its name, from the file or from the runtime's message. fails: whether the runtime fails to
    run it at all."""

    position: int
    kind: str
    fails: bool


@dataclass(frozen=True, slots=True)
class RuntimeCheck:
    """The outcome of comparing original and result on one runtime.

    status: EQUAL, DIFFERENT, CANNOT_RUN or NOT_AVAILABLE; CLOSE only where a tolerance was
    declared. inputs: how many invokes were compared, in a row on one interpreter. outputs_vary:
    whether the original's outputs differ between inputs at all; if not, equality proves nothing.
    detail: why, or where the first difference is. culprit: the operator at fault, if it is known.
    of_twin: whether the portable twin of the result was compared instead of the result.
    """

    runtime: str
    status: CheckStatus
    inputs: int
    outputs_vary: bool
    detail: str
    culprit: Culprit | None = None
    of_twin: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """The checks of all runtimes, and the arenas that TFLM reported for original and result."""

    checks: tuple[RuntimeCheck, ...]
    original_arena: HostAllocation | None = None
    result_arena: HostAllocation | None = None

    @property
    def differs(self) -> bool:
        """Whether any runtime computed different outputs."""
        return any(c.status == DIFFERENT for c in self.checks)

    @property
    def proved(self) -> bool:
        """Whether at least one runtime compared the models and none found a difference. If a
        tolerance was allowed, differences within it do not count; `exact` tells whether there are
        any."""
        return not self.differs and any(c.status in (EQUAL, CLOSE) for c in self.checks)

    @property
    def exact(self) -> bool:
        """Whether all bits were equal on every runtime that compared them."""
        return not any(c.status in (CLOSE, DIFFERENT) for c in self.checks)
