"""The exact arena: what MicroInterpreter takes from `tensor_arena`, byte by byte.

    0                head              temporary                tail           N
    |  tensors, scratch  |  structs while planning  ->  ...  <-  persistent    |

How much an allocation takes depends on its address, hence on the arena's size modulo 16; the
smallest arena is the minimum over all sixteen remainders. `allocation_replay` knows which
allocations there are, and in which order. This module must not change models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tflm_planner.model.ir import Model, Tensor
from tflm_planner.support.units import align_up
from tflm_planner.tflm.arena import allocation_log as ledger
from tflm_planner.tflm.arena.allocation_replay import FIXED, PARTS, AllocationReplay, ScratchUse
from tflm_planner.tflm.arena.struct_sizes import struct_sizes
from tflm_planner.tflm.arena.uncertainty import (
    Bound,
    Uncertainty,
    bound_of,
    head_bound_of,
    reserved,
)
from tflm_planner.tflm.element_types import cannot_run
from tflm_planner.tflm.targets import Target


@dataclass(frozen=True)
class Arena:
    """Bytes of the arena; head, tail and parts for a size that is a multiple of 16.

    arena: the smallest size such that it and every larger one work (start aligned to 16). TFLM does
    not check whether persistent memory overwrites temporary structures; in this size it does so
    only where they are not read again. alignment_slack: bytes to add if the array's start is not
    aligned to 16. planning_temp: temporary memory of the memory planner. prepare_temp: the same of
    the operator whose Prepare needs most. need_plan, need_prepare: what the two ask for, with the
    tail of that moment. tail_parts: tail by class (see PARTS). uncertainties: why the figures are
    no more than "at least"; empty where they are exact. warnings: those, and what makes the model
    not run. cannot_run: what the target's TFLM refuses to run: the figures are then what it would
    need if it could.
    """

    head: int
    tail: int
    tail_parts: Mapping[str, int]
    planning_temp: int
    prepare_temp: int
    need_plan: int
    need_prepare: int
    arena: int
    alignment_slack: int
    scratch: tuple[ScratchUse, ...]
    warnings: tuple[str, ...]
    uncertainties: tuple[Uncertainty, ...] = ()
    cannot_run: tuple[str, ...] = ()

    @property
    def bound(self) -> Bound:
        """How `arena` and the tail are known: exact, enough, or at least."""
        return bound_of(self.uncertainties)

    @property
    def head_bound(self) -> Bound:
        """How `head` is known: exact, enough, or at least."""
        return head_bound_of(self.uncertainties)

    @property
    def exact(self) -> bool:
        """Whether `arena` is known to the byte."""
        return self.bound == "exact"

    @property
    def reserved(self) -> int:
        """Bytes that firmware should reserve: `arena`, plus a margin where it is in doubt."""
        return reserved(self.arena, self.uncertainties)

    @property
    def used(self) -> int:
        """What `arena_used_bytes()` returns in a large arena; it is less than what is needed."""
        return self.head + self.tail


def arena_of(model: Model, target: Target, offsets: Mapping[Tensor, int] | None = None) -> Arena:
    """The arena of `model` on `target`.

    `offsets`: an offline plan (tensor -> bytes from the head's start), for example
    `transforms.attach_plan.carried_plan(model)`; tensors without one, and all without a plan, are
    placed as TFLM does. Raises ModelError for tensors that cannot lie in an arena.
    """
    replay = AllocationReplay(model, target, offsets or {})
    head, placed = replay.head()
    log = replay.run(head)
    needs = log.needs()
    smallest, slack = ledger.smallest(needs)
    parts, tail = log.tail_parts(len(PARTS))
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
        warnings=(*(uncertainty.words for uncertainty in replay.uncertainties), *replay.warnings),
        uncertainties=replay.uncertainties,
        cannot_run=tuple(cannot_run(model.ops(), target)),
    )


def head_of(model: Model, target: Target, offsets: Mapping[Tensor, int] | None = None) -> int:
    """Bytes of the head alone; see `arena_of`."""
    return AllocationReplay(model, target, offsets or {}).head()[0]


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


__all__ = ["PARTS", "Arena", "ScratchUse", "SplitArena", "arena_of", "head_of", "split_arena"]
