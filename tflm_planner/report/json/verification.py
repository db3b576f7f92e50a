"""Types of the JSON of `verify`, and of checks and proofs in any report. See
`report.json.common`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tflm_planner.report.json.arena import ArenaJson, ScratchJson
from tflm_planner.report.json.common import Count, TargetId, Version
from tflm_planner.support.documents import Document, says
from tflm_planner.verification.planned import FaultKind


class CheckJson(Document):
    """What one runtime said of the original against the result."""

    runtime: Annotated[str, says("Name of the runtime and its kernels.")]
    status: Annotated[
        Literal["equal", "within tolerance", "different", "cannot run original", "not available"],
        says(
            "The verdict. `equal`: all output bytes equal on all inputs. `within "
            "tolerance`: not equal, but within what `--allow-inexact` tolerates."
        ),
    ]
    inputs: Annotated[Count, says("Number of sets of inputs that were run.")]
    outputs_vary: Annotated[
        bool, says("Whether the outputs changed with the inputs (if not, equality proves little).")
    ]
    detail: Annotated[str, says("Why, or where the first difference is; may be empty.")]


Checks = Annotated[list[CheckJson], says("One entry a runtime.")]


class ProofJson(Document):
    """What the proof by terms said of the original against the result: both run over random
    elements of a field in place of numbers."""

    status: Annotated[
        Literal["equal", "different", "not run"],
        says("The verdict. `equal`: the same function of every input, but for `error_log2`."),
    ]
    error_log2: Annotated[
        float | None,
        says(
            "Logarithm to base 2 of the chance that different models pass for equal (a number "
            "without unit; null: nothing was compared)."
        ),
    ]
    detail: Annotated[str, says("Where they differ, or why nothing was compared; may be empty.")]


class VerificationJson(Document):
    """What `tflm-plan verify` says of two models."""

    schema_version: Version
    equal: Annotated[
        bool,
        says(
            "Whether all bits are equal wherever they were compared, on runtimes or for every "
            "input, and they were."
        ),
    ]
    proved: Annotated[
        bool, says("Whether they are proved equal for every input, and no runtime disagrees.")
    ]
    checks: Checks
    terms: Annotated[ProofJson, says("The proof for every input.")] = msgspec.field(name="proof")
    target: Annotated[str, says("Id of the target of both arenas.")]
    before: Annotated[ArenaJson, says("The arena of the first model; bytes.")]
    after: Annotated[ArenaJson, says("The arena of the second model; bytes.")]


class PlanFaultJson(Document):
    """What is wrong with a plan, and where."""

    kind: Annotated[
        FaultKind,
        says(
            "count: not an offset for each tensor. negative: below the arena. alignment: no "
            "multiple of 16. far: far beyond what all buffers side by side would take. collision: "
            "two buffers share bytes while both are needed. version: the target's TFLM confuses it."
        ),
    ]
    said: Annotated[str, says("The fault in words.")]
    first: Annotated[str, says("Name of the buffer (empty: none is meant).")]
    second: Annotated[str, says("Name of the buffer that it shares bytes with; else empty.")]
    bytes_from: Annotated[int, says("First of the bytes of the head; negative below the arena.")]
    bytes_to: Annotated[int, says("Bytes from the head's start: after the last of them.")]
    operators: Annotated[
        tuple[Count, Count] | None,
        says(
            "First and last operator at which it is wrong, by its place in the order in which they "
            "run (counts, from 0; null: wrong at any time)."
        ),
    ]


class PlanVerificationJson(Document):
    """What `tflm-plan verify` says of the plan in one model. All sizes are bytes."""

    schema_version: Version
    target: TargetId
    has_plan: Annotated[
        bool, says("Whether the model carries a plan (if not, TFLM's own planner places all).")
    ]
    sound: Annotated[bool, says("Whether nothing is wrong, as far as it could be looked at.")]
    tensors: Annotated[Count, says("Number of tensors that need memory in the arena.")]
    left: Annotated[Count, says("Number of those that the plan leaves to TFLM.")] = msgspec.field(
        name="left_to_tflm"
    )
    head: Annotated[int, says("Bytes of head: the plan, and all that TFLM places itself.")]
    planned: Annotated[int, says("Bytes of head that the tensors in the plan need.")]
    scratch: Annotated[list[ScratchJson], says("Scratch buffers where TFLM's first fit puts them.")]
    reads_since: Annotated[str, says("First day whose TFLM reads the plan as it is meant.")]
    faults: Annotated[list[PlanFaultJson], says("What is wrong with the plan.")]
    terms: Annotated[
        ProofJson | None,
        says(
            "The model in its planned arena, byte by byte, against itself without the plan (null: "
            "there is nothing to compare)."
        ),
    ] = msgspec.field(name="proof")
    notes: Annotated[list[str], says("What could not be judged.")]
    arena: Annotated[
        ArenaJson, says("The arena with the plan, or without it where that is wrong; bytes.")
    ]
