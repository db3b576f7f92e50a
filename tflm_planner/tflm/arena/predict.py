"""The exact arena: what MicroInterpreter takes from `tensor_arena`, byte by byte.

    0                head              temporary                tail           N
    |  tensors, scratch  |  structs while planning  ->  ...  <-  persistent    |

How much an allocation takes depends on its address, hence on the arena's size modulo 16; the
smallest arena is the minimum over all sixteen remainders. `allocation_replay` knows which
allocations there are, and in which order. This module must not change models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from tflm_planner.model.ir import Model, Tensor
from tflm_planner.support.errors import ModelError
from tflm_planner.support.units import align_up
from tflm_planner.tflm.arena import allocation_log as ledger
from tflm_planner.tflm.arena.allocation_replay import FIXED, PARTS, AllocationReplay, ScratchUse
from tflm_planner.tflm.arena.struct_sizes import struct_sizes
from tflm_planner.tflm.arena.uncertainty import (
    BoundKind,
    Uncertainty,
    bound_of,
    bytes_to_reserve,
    head_bound_of,
)
from tflm_planner.tflm.element_types import cannot_run
from tflm_planner.tflm.targets import Target


@dataclass(frozen=True)
class Arena:
    """Bytes of the arena; head, tail and parts for a size that is a multiple of 16."""

    head: int
    """Tensors and scratch, as TFLM's planner places them."""
    tail: int
    """What stays."""
    tail_parts: Mapping[str, int]
    """The tail by class (see PARTS)."""
    planning_temp: int
    """Temporary memory of the memory planner."""
    prepare_temp: int
    """The same of the operator whose Prepare needs most."""
    need_plan: int
    """What planning asks for, with the tail of that moment."""
    need_prepare: int
    """What that Prepare asks for, with the tail of that moment."""
    arena: int
    """The smallest size such that it and every larger one work (start aligned to 16). TFLM does not
    check whether persistent memory overwrites temporary structures; in this size it does so only
    where they are not read again."""
    alignment_slack: int
    """Bytes to add if the array's start is not aligned to 16."""
    scratch: tuple[ScratchUse, ...]
    """Each scratch buffer of an operator."""
    warnings: tuple[str, ...]
    """What makes the figures uncertain, and what makes the model not run."""
    uncertainties: tuple[Uncertainty, ...] = ()
    """Why the figures are no more than "at least"; empty where they are exact."""
    cannot_run: tuple[str, ...] = ()
    """What the target's TFLM refuses to run: the figures are then what it would need if it
    could."""
    resource_variables: int = 0
    """For how many the application makes room."""

    @property
    def bytes(self) -> int:
        """The size of the arena, `arena`, as users of the package ask for it."""
        return self.arena

    @property
    def bound(self) -> BoundKind:
        """How `arena` and the tail are known: exact, enough, or at least."""
        return bound_of(self.uncertainties)

    @property
    def head_bound(self) -> BoundKind:
        """How `head` is known: exact, enough, or at least."""
        return head_bound_of(self.uncertainties)

    @property
    def exact(self) -> bool:
        """Whether `arena` is known to the byte."""
        return self.bound == "exact"

    @property
    def reserved(self) -> int:
        """Bytes that firmware should reserve: `arena`, plus a margin where it is in doubt."""
        return bytes_to_reserve(self.arena, self.uncertainties)

    @property
    def used(self) -> int:
        """What `arena_used_bytes()` returns in a large arena; it is less than what is needed."""
        return self.head + self.tail


def arena_of(
    model: Model,
    target: Target,
    offsets: Mapping[Tensor, int] | None = None,
    *,
    variables_apart: bool = False,
) -> Arena:
    """The arena of `model` on `target`.

    `offsets`: an offline plan (tensor -> bytes from the head's start), for example
    `transforms.attach_plan.carried_plan(model)`; tensors without one, and all without a plan, are
    placed as TFLM does. `variables_apart`: whether the application lists resource variables outside
    of the arena. Raises ModelError for tensors that cannot lie in an arena.
    """
    replay = AllocationReplay(model, target, offsets or {}, variables_apart=variables_apart)
    head, placed = replay.head()
    log = replay.run(head)
    needs = log.needs()
    smallest, slack = ledger.smallest(needs)
    parts, tail = log.tail_parts(len(PARTS))
    doubts = replay.uncertainties()
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
        warnings=(*(doubt.words for doubt in doubts), *replay.warnings()),
        uncertainties=doubts,
        cannot_run=tuple(cannot_run(model.ops(), target)),
        resource_variables=replay.resource_variables(),
    )


class ArenaBytes(NamedTuple):
    """Bytes of the arena, as of `Arena`, without the words beside them."""

    head: int
    tail: int
    arena: int


def arena_bytes_of(
    model: Model, target: Target, offsets: Mapping[Tensor, int] | None = None
) -> ArenaBytes:
    """The figures of `arena_of` alone, for whoever compares hundreds of models."""
    replay = AllocationReplay(model, target, offsets or {})
    head, _ = replay.head()
    log = replay.run(head)
    smallest, _ = ledger.smallest(log.needs())
    *_, tail = log.extents()
    return ArenaBytes(head, tail, smallest)


def head_of(model: Model, target: Target, offsets: Mapping[Tensor, int] | None = None) -> int:
    """Bytes of the head alone; see `arena_of`."""
    return AllocationReplay(model, target, offsets or {}).head()[0]


@dataclass(frozen=True)
class CommonArena:
    """Bytes of one arena for several models that are allocated one after the other by one
    MicroAllocator, and run in turn."""

    arena: int
    """The smallest that works, its start aligned to 16."""
    head: int
    """The largest of theirs."""
    tail: int
    """What stays of all."""
    tails: tuple[int, ...]
    """What each adds to it, in order."""
    resource_variables: tuple[int, ...]
    """How many each has."""
    alignment_slack: int
    """As of `Arena`."""
    uncertainties: tuple[Uncertainty, ...]
    """As of `Arena`."""

    @property
    def bound(self) -> BoundKind:
        """How `arena` is known: exact, enough, or at least."""
        return bound_of(self.uncertainties)

    @property
    def reserved(self) -> int:
        """Bytes that firmware should reserve."""
        return bytes_to_reserve(self.arena, self.uncertainties)


def common_arena(
    models: Sequence[tuple[Model, Mapping[Tensor, int] | None]], target: Target
) -> CommonArena:
    """One arena for several models, each with its plan, in the order in which they are allocated.

    Every AllocateTensors and every Invoke writes over the head of the other models, so that only
    what lies in the tail outlives them. Raises ModelError where a plan puts a variable elsewhere.
    """
    log, head = ledger.Log(), 0
    ends: list[int] = []
    variables: list[int] = []
    doubts: list[Uncertainty] = []
    for place, (model, offsets) in enumerate(models):
        replay = AllocationReplay(model, target, offsets or {})
        if placed_variables := replay.planned_variables():
            raise ModelError(
                f"model {place + 1} keeps its variable {placed_variables[0].name!r} in the "
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
    smallest, slack = ledger.smallest(log.needs())
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
    aligned to 16. The second one holds nothing between AllocateTensors and Invoke, or after what
    the application has read: several models can share it."""

    persistent: int
    shared: int


def split_arena(
    model: Model, target: Target, offsets: Mapping[Tensor, int] | None = None
) -> SplitArena:
    """Persistent memory and the rest, as `arena_of` counts them, in two arenas."""
    replay = AllocationReplay(model, target, offsets or {})
    log = replay.run(replay.head()[0])
    pointer, sizes = struct_sizes(target).pointer, struct_sizes(target).fixed_apart
    log.pieces[: len(struct_sizes(target).fixed)] = [(FIXED, size, pointer) for size in sizes]
    *_, tail = log.extents()
    return SplitArena(align_up(tail), align_up(max(above for _, above, _ in log.floors)))


__all__ = [
    "PARTS", "Arena", "ArenaBytes", "CommonArena", "ScratchUse", "SplitArena", "arena_bytes_of",
    "arena_of", "common_arena", "head_of", "split_arena",
]  # fmt: skip
