"""Types of the JSON of `arena`: an arena, its parts, and an arena that several models share. See
`report.json.common`."""

from __future__ import annotations

from typing import Annotated

from tflm_planner.report.json.common import BoardId, BoundJson, CannotRun, Count, TargetId, Version
from tflm_planner.support.documents import Document, says

ArenaBound = Annotated[BoundJson, says("What arena and tail are.")]
Reserved = Annotated[
    Count, says('Bytes that firmware should give: arena, and a margin where it is "at least".')
]
AlignmentSlack = Annotated[
    Count, says("Bytes to add when the start of the arena is not aligned to 16.")
]


class ScratchJson(Document):
    """A scratch buffer in the head."""

    operator: Annotated[str, says("The operator that asked for it.")]
    size: Annotated[Count, says("Bytes, as asked.")]
    offset: Annotated[Count, says("Bytes from the start of the head.")]


class ArenaJson(Document):
    """An arena, in bytes."""

    head: Annotated[Count, says("Bytes that the memory plan lays out: tensors and scratch.")]
    tail: Annotated[Count, says("Bytes of persistent data.")]
    planning_temp: Annotated[Count, says("Temporary bytes of the memory planner.")]
    prepare_temp: Annotated[
        Count, says("Temporary bytes of the operator whose Prepare needs most.")
    ]
    arena: Annotated[
        Count,
        says(
            "Bytes of the smallest arena that works, its start aligned to 16; no more than "
            '"at least" where bound says so.'
        ),
    ]
    exact: Annotated[bool, says("Whether arena is known to the byte.")]
    bound: ArenaBound
    reserved: Reserved
    alignment_slack: AlignmentSlack


class ArenaPartsJson(ArenaJson):
    """An arena, what its tail and its scratch are, and what to know of it."""

    tail_parts: Annotated[dict[str, Count], says("Bytes of the tail by class.")]
    scratch: Annotated[list[ScratchJson], says("Scratch buffers.")]
    warnings: Annotated[list[str], says("Why figures are in doubt, and what else is wrong.")]
    cannot_run: CannotRun


class ArenasApartJson(Document):
    """Two arenas in place of one, as of MicroAllocator::Create with two of them; bytes."""

    persistent: Annotated[Count, says("Bytes of what stays: structures, parameters, variables.")]
    non_persistent: Annotated[Count, says("Bytes of tensors, scratch and temporary memory.")]


class ArenaOnTargetJson(ArenaPartsJson):
    """What `tflm-plan arena` says of a model on a target. All sizes are bytes."""

    schema_version: Version
    target: TargetId
    board: BoardId
    resource_variables: Annotated[
        Count, says("For how many resource variables the arena has room (a count).")
    ]
    apart: Annotated[
        ArenasApartJson | None,
        says("The same in two arenas (null: the target's TFLM has one only, or is not known)."),
    ]


class ArenaOfSeveralJson(Document):
    """What `tflm-plan arena --shared` says of several models in one arena. All sizes are bytes."""

    schema_version: Version
    target: TargetId
    models: Annotated[list[str], says("Paths as they were given, in the order of allocation.")]
    arena: Annotated[Count, says("Bytes of the smallest arena that works for all.")]
    bound: ArenaBound
    reserved: Reserved
    alignment_slack: AlignmentSlack
    head: Annotated[Count, says("Bytes of the largest head.")]
    tail: Annotated[Count, says("Bytes of persistent data of all.")]
    tails: Annotated[list[Count], says("What each model adds to the tail, in order.")]
    warnings: Annotated[list[str], says("Why figures are in doubt.")]
