"""The exact arena: what MicroInterpreter takes from `tensor_arena`, byte by byte.

    0                head              temporary                tail           N
    |  tensors, scratch  |  structs while planning  ->  ...  <-  persistent    |

The size of an allocation depends on its address, hence on the arena's size modulo 16; the smallest
arena is the minimum over all sixteen remainders. `allocation_replay` knows which allocations there
are, and in which order. This module must not change models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from tflm_planner.model.ir import Model, Tensor
from tflm_planner.support.errors import ModelError
from tflm_planner.support.units import align_up
from tflm_planner.tflm.arena.allocation_log import AllocationLog, smallest_arena
from tflm_planner.tflm.arena.allocation_replay import PARTS, AllocationReplay, ScratchUse
from tflm_planner.tflm.arena.uncertainty import (
    BoundKind,
    Uncertainty,
    bound_of,
    bytes_to_reserve,
    head_bound_of,
)
from tflm_planner.tflm.placement import placed_variables
from tflm_planner.tflm.refusals import cannot_run
from tflm_planner.tflm.targets import Target


@dataclass(frozen=True)
class Arena:
    """Bytes of the arena; head, tail and parts for a size that is a multiple of 16."""

    head: int
    """Tensors and scratch, as TFLM's planner places them."""
    tail: int
    """Memory that stays allocated."""
    tail_parts: Mapping[str, int]
    """The tail by class (see PARTS)."""
    planning_temp: int
    """Temporary memory of the memory planner."""
    prepare_temp: int
    """The largest temporary memory that the Prepare of one operator needs."""
    need_plan: int
    """Bytes that planning needs, including the tail at that time."""
    need_prepare: int
    """Bytes that that Prepare needs, including the tail at that time."""
    arena: int
    """The smallest size such that it and every larger size work (start aligned to 16). TFLM does
    not check whether persistent memory overwrites temporary structures; at this size it only
    overwrites those that are not read again."""
    alignment_slack: int
    """Bytes to add if the array's start is not aligned to 16."""
    scratch: tuple[ScratchUse, ...]
    """Each scratch buffer of an operator."""
    warnings: tuple[str, ...]
    """Why the figures are uncertain, and why the model may not run correctly."""
    uncertainties: tuple[Uncertainty, ...] = ()
    """Why the figures are only "at least"; empty if they are exact."""
    cannot_run: tuple[str, ...] = ()
    """What the target's TFLM refuses to run; the figures are then what it would need if it
    could."""
    resource_variables: int = 0
    """Number of resource variables for which the application reserves memory."""

    @property
    def bytes(self) -> int:
        """The size of the arena: `arena` under the name that users of the package expect."""
        return self.arena

    @property
    def bound(self) -> BoundKind:
        """How certain `arena` and the tail are: exact, enough, or at least."""
        return bound_of(self.uncertainties)

    @property
    def head_bound(self) -> BoundKind:
        """How certain `head` is: exact, enough, or at least."""
        return head_bound_of(self.uncertainties)

    @property
    def exact(self) -> bool:
        """Whether `arena` is known to the byte."""
        return self.bound == "exact"

    @property
    def reserved(self) -> int:
        """Bytes that firmware should reserve: `arena`, plus a margin if it is uncertain."""
        return bytes_to_reserve(self.arena, self.uncertainties)

    @property
    def used(self) -> int:
        """What `arena_used_bytes()` returns in a large arena; less than AllocateTensors needs."""
        return self.head + self.tail


def arena_of(
    model: Model,
    target: Target,
    offsets: Mapping[Tensor, int] | None = None,
    *,
    variables_apart: bool = False,
) -> Arena:
    """The arena of `model` on `target`.

    `offsets`: an offline plan (tensor -> bytes from the start of the head), for example
    `transforms.attach_plan.carried_plan(model)`; TFLM's planner places all tensors without an
    offset. `variables_apart`: whether the application keeps its list of resource variables outside
    of the arena. Raises ModelError for tensors that cannot lie in an arena.
    """
    replay = AllocationReplay(model, target, offsets or {}, variables_apart=variables_apart)
    head, placed = replay.head()
    log = replay.run(head)
    needs = log.needs()
    smallest, slack = smallest_arena(needs)
    parts, tail = log.tail_parts(len(PARTS))
    doubts = replay.uncertainties()
    reasons = tuple(cannot_run(model, target))
    return Arena(
        head=head,
        tail=tail,
        tail_parts=dict(zip(PARTS, parts, strict=True)),
        planning_temp=log.planning_temp,
        prepare_temp=log.prepare_temp,
        need_plan=log.need_plan,
        need_prepare=log.need_prepare,
        arena=smallest,
        alignment_slack=slack,
        scratch=placed,
        warnings=(*(d.words for d in doubts), *(w for w in replay.warnings() if w not in reasons)),
        uncertainties=doubts,
        cannot_run=reasons,
        resource_variables=replay.resource_variables(),
    )


class ArenaBytes(NamedTuple):
    """Bytes of the arena, as in `Arena`, without reasons and warnings."""

    head: int
    tail: int
    arena: int


def arena_bytes_of(
    model: Model, target: Target, offsets: Mapping[Tensor, int] | None = None
) -> ArenaBytes:
    """Only the figures of `arena_of`, for callers that compare hundreds of models."""
    replay = AllocationReplay(model, target, offsets or {})
    head, _ = replay.head()
    log = replay.run(head)
    smallest, _ = smallest_arena(log.needs())
    *_, tail = log.extents()
    return ArenaBytes(head, tail, smallest)


def head_of(model: Model, target: Target, offsets: Mapping[Tensor, int] | None = None) -> int:
    """Only the bytes of the head; see `arena_of`."""
    return AllocationReplay(model, target, offsets or {}).head()[0]


@dataclass(frozen=True)
class CommonArena:
    """Bytes of one arena for several models that are allocated one after the other by one
    MicroAllocator, and run in turn."""

    arena: int
    """The smallest arena that works, if its start is aligned to 16."""
    head: int
    """The largest head of the models."""
    tail: int
    """The memory of all models that stays allocated."""
    tails: tuple[int, ...]
    """The bytes that each model adds to the tail, in order."""
    resource_variables: tuple[int, ...]
    """The number of resource variables of each model."""
    alignment_slack: int
    """As in `Arena`."""
    uncertainties: tuple[Uncertainty, ...]
    """As in `Arena`."""

    @property
    def bound(self) -> BoundKind:
        """How certain `arena` is: exact, enough, or at least."""
        return bound_of(self.uncertainties)

    @property
    def reserved(self) -> int:
        """Bytes that firmware should reserve."""
        return bytes_to_reserve(self.arena, self.uncertainties)


def common_arena(
    models: Sequence[tuple[Model, Mapping[Tensor, int] | None]], target: Target
) -> CommonArena:
    """One arena for several models, each with its plan, in the order in which they are allocated.

    Every AllocateTensors and every Invoke overwrites the heads of the other models, so only what
    lies in the tail is preserved. Raises ModelError if a plan places a variable in the head.
    """
    log, head = AllocationLog(), 0
    ends: list[int] = []
    variables: list[int] = []
    doubts: list[Uncertainty] = []
    for place, (model, offsets) in enumerate(models):
        replay = AllocationReplay(model, target, offsets or {})
        for variable in placed_variables(offsets or {}):
            raise ModelError(
                f"model {place + 1} keeps its variable {variable.name!r} in the "
                "head, as its plan says, where the other models write: give the models arenas of "
                "their own"
            )
        if not place:
            replay.begin(log)
        before, head = head, max(head, replay.head()[0])
        replay.continue_with(log, head, before)
        ends.append(log.tail_parts(len(PARTS))[1])
        variables.append(replay.resource_variables())
        doubts += replay.uncertainties()
    smallest, slack = smallest_arena(log.needs())
    tails = tuple(end - start for start, end in pairwise([0, *ends]))
    return CommonArena(
        arena=smallest,
        head=head,
        tail=ends[-1],
        tails=tails,
        resource_variables=tuple(variables),
        alignment_slack=slack,
        uncertainties=tuple(dict.fromkeys(doubts)),
    )


class SplitArena(NamedTuple):
    """Bytes of both arenas of `MicroAllocator::Create(persistent, ..., non_persistent, ...)`, each
    aligned to 16. The second one contains nothing that is needed between AllocateTensors and
    Invoke, or after the application has read its outputs, so several models can share it."""

    persistent: int
    shared: int


def split_arena(
    model: Model, target: Target, offsets: Mapping[Tensor, int] | None = None
) -> SplitArena:
    """The arena that `arena_of` predicts, split into persistent memory and the rest."""
    replay = AllocationReplay(model, target, offsets or {})
    log = replay.run(replay.head()[0], apart=True)
    *_, tail = log.extents()
    return SplitArena(align_up(tail), align_up(log.highest_floor))


__all__ = [
    "PARTS", "Arena", "ArenaBytes", "CommonArena", "ScratchUse", "SplitArena", "arena_bytes_of",
    "arena_of", "common_arena", "head_of", "split_arena",
]  # fmt: skip
