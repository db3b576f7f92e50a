"""Types of the JSON of `inspect`, and of memory maps and lower bounds of the head in any report.
See `report.json.common`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tflm_planner.report.json.common import BoundJson, CannotRun, Count, Notes, Version
from tflm_planner.support.documents import Document, says


class StepJson(Document):
    """One operator, with what must exist while it runs (tensor memory mapping of Sudharsan et al.,
    section 3.1)."""

    index: Annotated[Count, says("Index of the operator (a count, from 0).")]
    operator: Annotated[str, says("Operator type, as in CONV_2D.")]
    name: Annotated[str, says("Name of the operator: that of its first output.")]
    graph: Annotated[Count, says("Index of the sub-graph it stands in (0: the main one).")]
    input_bytes: Annotated[Count, says("Bytes of its operands that lie in the arena.")]
    output_bytes: Annotated[Count, says("Bytes of its results.")]
    other_bytes: Annotated[Count, says("Bytes of everything else that must be kept while it runs.")]
    workspace_bytes: Annotated[Count, says("Bytes of the kernel's scratch.")]
    shared_bytes: Annotated[
        Count,
        says("Bytes that are counted twice in the four before, since two tensors share them."),
    ]
    live_bytes: Annotated[
        Count,
        says("Bytes that must exist while it runs: input + output + other + workspace - shared."),
    ]
    live: Annotated[list[str], says("Names of the buffers that are live while it runs.")]


class BlockJson(Document):
    """A buffer: the bytes [offset, offset + size) of the head during operators [start, end)."""

    name: Annotated[str, says("Name of the tensor, or of the scratch buffer.")]
    kind: Annotated[
        Literal["input", "output", "activation", "scratch"], says("What the buffer holds.")
    ]
    size: Annotated[Count, says("Bytes.")]
    offset: Annotated[int, says("Bytes from the start of the head; negative in a broken plan.")]
    start: Annotated[Count, says("First place in `steps` at which it is live (a count, from 0).")]
    end: Annotated[Count, says("Place in `steps` after the last at which it is live (a count).")]


class MapJson(Document):
    """Where every buffer lies, over the operators in execution order."""

    head: Annotated[Count, says("Bytes of head that the blocks need.")]
    bound: Annotated[BoundJson, says("What the head is, and live bytes with scratch.")]
    steps: Annotated[list[StepJson], says("Operators in execution order.")]
    blocks: Annotated[list[BlockJson], says("Buffers.")]


class LimitsJson(Document):
    """Floors of the head, in bytes, that no plan of a kind can go below."""

    input_bytes: Annotated[Count, says("L0, bytes: all model inputs together.")] = msgspec.field(
        name="inputs"
    )
    file_order_bytes: Annotated[
        Count | None,
        says("L1, bytes: live bytes at the peak, operators in file order (null: not known)."),
    ] = msgspec.field(name="order")
    best_order_bytes: Annotated[
        Count | None, says("L2, bytes: the same for the best order (null: not known).")
    ] = msgspec.field(name="best_order")
    overlap_bytes: Annotated[
        Count | None,
        says("L3, bytes: when outputs may also trail inputs inside an operator (null: not known)."),
    ] = msgspec.field(name="overlap")


class InspectionJson(Document):
    """What `tflm-plan inspect` shows of a model as it is. All sizes are bytes."""

    schema_version: Version
    cannot_run: CannotRun
    limits: Annotated[LimitsJson, says("Floors of the head.")]
    notes: Notes
    map: Annotated[MapJson, says("Memory map on stock TFLM.")]
