"""Types of the JSON of a report, with all results of a run of the planner. See
`report.json.common`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tflm_planner.report.document import RungKind
from tflm_planner.report.json.arena import ArenaJson
from tflm_planner.report.json.common import BoardId, BoundJson, Count, Notes, Version
from tflm_planner.report.json.memory_map import LimitsJson, MapJson
from tflm_planner.report.json.verification import Checks, ProofJson
from tflm_planner.support.documents import Document, says


class FileJson(Document):
    """A model file."""

    path: Annotated[str, says("Path as it was given to the planner.")]
    sha256: Annotated[
        str,
        says("SHA-256 of the file's bytes, in lower-case hexadecimal.", pattern="^[0-9a-f]{64}$"),
    ]


class ConvertedEndJson(Document):
    """An input or output that has another type than in the original (`--io int8`)."""

    side: Annotated[Literal["input", "output"], says("Which end of the model.")]
    name: Annotated[str, says("Name of the tensor, the same as before.")]
    type: Annotated[str, says("Type of its elements now.")]
    was: Annotated[str, says("Type of its elements in the original.")]
    scale: Annotated[float, says("A number q stands for scale * (q - zero_point).")]
    zero_point: Annotated[int, says("See `scale`.")]


class HostJson(Document):
    """TFLM on the machine that planned (x86-64, reference kernels, recording allocator)."""

    predicted_head: Annotated[Count, says("Predicted bytes of head there.")]
    predicted_tail: Annotated[Count, says("Predicted bytes of tail there.")]
    measured_head: Annotated[
        Count | None, says("Bytes of head that TFLM reported (null: not measured).")
    ]
    measured_tail: Annotated[
        Count | None, says("Bytes of tail that TFLM reported (null: not measured).")
    ]


class SideJson(Document):
    """The model at one side of the rewrite."""

    operators: Annotated[Count, says("Number of operators of all sub-graphs.")]
    tensors: Annotated[Count, says("Number of tensors of all sub-graphs.")]
    file_bytes: Annotated[Count, says("Bytes of the model file.")]
    macs: Annotated[
        Count,
        says("Multiply-accumulates of one inference; turns of loops count as often as they run."),
    ]
    arena: Annotated[ArenaJson, says("The arena of the target, predicted; bytes.")]
    host: Annotated[HostJson, says("The same model on the machine that planned it; bytes.")]
    map: Annotated[MapJson, says("Memory map; all sizes in bytes.")]


class ArenasJson(Document):
    """Smallest arenas that work on the target, in bytes."""

    before: Annotated[Count, says("Bytes of arena of the source.")]
    after: Annotated[Count, says("Bytes of arena of the result.")]
    saved: Annotated[int, says("Bytes: before - after (negative: it grew).")]
    bound: Annotated[BoundJson, says("What both arenas are, exact or at least.")]


class HeadJson(Document):
    """Predicted head on the target, before and after, in bytes."""

    before: Annotated[Count, says("Bytes of head of the source.")]
    after: Annotated[Count, says("Bytes of head of the result.")]


class BudgetJson(Document):
    """The budget of the arena."""

    bytes: Annotated[Count | None, says("Budget in bytes (null: none given).")]
    met: Annotated[
        bool | None,
        says(
            "Whether arena.after is within it (true without a budget; null: as far as the "
            "arena is known, which is not to the end)."
        ),
    ]


class FitJson(Document):
    """Whether the model has room on the board, or in the budget."""

    verdict: Annotated[str, says("The verdict in one line, as the text report begins with it.")]
    known: Annotated[
        bool | None,
        says(
            "Whether it fits beyond doubt: arena and file (null: neither board nor budget was "
            "given)."
        ),
    ]
    board: BoardId
    arena_limit: Annotated[
        Count | None, says("Bytes that the arena may take: the budget, or the board's SRAM.")
    ]
    flash: Annotated[Count | None, says("Bytes of the board's flash.")]
    next_command: Annotated[
        str | None, says("What to try next where it does not fit (null: it does).")
    ]


class RungJson(Document):
    """One more thing that may change, with all that the rungs before it may change."""

    kind: Annotated[RungKind, says("What may change, or was changed.")]
    arena: Annotated[Count | None, says("Bytes of arena (null: not tried).")]
    slowdown: Annotated[
        float | None, says("Instructions relative to the source (a ratio; null: not known).")
    ]
    taken: Annotated[bool, says("Whether it is what was written.")]
    at_most: Annotated[bool, says("Whether a search for it may lower the arena further.")]
    command: Annotated[str, says("The command line for it; empty where it was taken.")]
    remark: Annotated[str, says("Why it was not tried, or what it came to; may be empty.")]


class PasteJson(Document):
    """What goes into the firmware's source."""

    lines: Annotated[list[str], says("Lines of C++: the arena, and the operators.")]
    remarks: Annotated[list[str], says("Which TFLM it needs, and what else is to be known.")]


class OrderJson(Document):
    """How the order of the operators was found."""

    method: Annotated[str, says("Name of the method.")]
    changed: Annotated[bool, says("Whether it differs from the file's order.")]
    peak: Annotated[Count, says("Bytes live at the peak of this order.")]
    lower_bound: Annotated[Count, says("Bytes: no order has a lower peak.")]
    optimal: Annotated[bool, says("Whether the order is proved best.")]


class SolutionJson(Document):
    """What the allocators found."""

    allocator: Annotated[str, says("Name of the allocator.")]
    height: Annotated[Count, says("Bytes that the plan is high.")]
    lower_bound: Annotated[
        Count, says("Bytes: no plan of this order and these operators is lower.")
    ]
    optimal: Annotated[
        bool, says("Whether the plan is proved best for this order and these operators.")
    ]


class AllocationJson(SolutionJson):
    """How the offsets were found."""

    aliases: Annotated[list[str], says("Buffers that share memory with another on purpose.")]
    input_overlaps: Annotated[
        list[str], says("Results that overlap an operand of their own operator from a distance on.")
    ]
    replayed: Annotated[
        Count, says("How many of the overlaps were replayed under the target's contract.")
    ]


class PointJson(Document):
    """A way to run the model."""

    role: Annotated[
        Literal["stock", "plan", "tiled", "chosen", "slower"],
        says(
            "stock: the source. plan: order and plan alone. tiled: with regions in tiles or"
            " in loops. chosen: what was written. slower: needs more instructions than "
            "allowed."
        ),
    ]
    size: Annotated[Count, says("Bytes of arena, or of head, as the objective says.")] = (
        msgspec.field(name="bytes")
    )
    slowdown: Annotated[
        float, says("Instructions relative to the source (a ratio), by the model of latency.", ge=0)
    ]
    added: Annotated[list[str], says("Operators that the firmware must register in addition.")] = (
        msgspec.field(name="added_operators")
    )
    tiles: Annotated[Count, says("Number of regions in tiles.")]
    loops: Annotated[Count, says("Number of regions in loops.")]
    command: Annotated[
        str,
        says(
            "The command line that asks for no more bytes; empty for the source, for what was "
            "written, and where the head was to be lowered."
        ),
    ]


class FrontJson(Document):
    """Memory against instructions: the ways that a search found, the largest first."""

    objective: Annotated[Literal["arena", "head"], says("The bytes that were to be lowered.")]
    allowed: Annotated[
        float, says("Instructions allowed, relative to the source (a ratio).", ge=1)
    ] = msgspec.field(name="max_slowdown")
    bound: Annotated[BoundJson, says("What the bytes of the points are.")]
    points: Annotated[list[PointJson], says("Ways to run the model.")]


class TrialJson(Document):
    """What a search tried with an operator of the source: the smallest model with it in a region of
    tiles or in a loop, among those that are fast enough if there are any."""

    name: Annotated[str, says("Name of its first result.")]
    size: Annotated[
        Count | None,
        says("Bytes of that model, as the objective of `front` counts (null: none was tried)."),
    ]
    slowdown: Annotated[
        float | None, says("Its instructions relative to the source (a ratio; null: none).")
    ]
    fast_enough: Annotated[bool, says("Whether it needs no more instructions than allowed.")]
    promising: Annotated[
        bool | None,
        says("Whether such tiles or loops may help by estimate (null: not all were estimated)."),
    ]
    whole: Annotated[
        str, says("Why the operator can only run as a whole; empty where it need not.")
    ]


class ReportJson(Document):
    """What a run of tflm-plan found. All sizes are bytes, all times seconds; K is never used."""

    schema_version: Version
    planner_version: Annotated[str, says("Version of tflm-plan.")]
    target: Annotated[str, says("Target whose arena was minimised, e.g. cortex-m4/cmsis-nn.")]
    source: Annotated[FileJson, says("The model that was read.")]
    destination: Annotated[FileJson, says("The model that was written.")]
    arena: Annotated[
        ArenasJson,
        says(
            "Smallest arena that works on the target, before and after, in bytes; no more "
            'than "at least" where bound says so.'
        ),
    ]
    head: Annotated[HeadJson, says("Predicted head on the target, before and after, in bytes.")]
    budget: Annotated[BudgetJson, says("The budget of the arena.")]
    fit: Annotated[FitJson, says("Whether it fits the board, or the budget.")]
    ladder: Annotated[
        list[RungJson], says("What each further permission reaches, the source first.")
    ]
    paste: Annotated[PasteJson, says("What goes into the firmware's source.")]
    stopped: Annotated[
        Literal["interrupted", "time limit"] | None,
        says(
            "Why the search was cut short (null: it was not; the same bytes come out on any"
            " machine)."
        ),
    ]
    verified: Annotated[
        bool,
        says(
            "Whether the result is proved equal to the source on the runtimes that were asked for."
        ),
    ]
    tflm_only: Annotated[bool, says("Whether no other runtime runs the result.")]
    cannot_run: Annotated[
        list[str],
        says(
            "What the target's TFLM refuses to run of the model: the operator, its types, "
            "what to do. Empty where it runs. Such a model is not verified, whatever other "
            "runtimes say."
        ),
    ]
    proof: Annotated[
        ProofJson | None, says("The proof for every input (null: nothing was to be proved).")
    ]
    checks: Checks
    limits: Annotated[
        LimitsJson, says("Floors of the head, in bytes, that no plan of a kind can go below.")
    ]
    order: Annotated[OrderJson, says("How the order of the operators was found.")]
    allocation: Annotated[AllocationJson, says("How the offsets were found.")]
    front: Annotated[
        FrontJson | None,
        says(
            "Memory against instructions: the ways that a search for tiles found, the "
            "largest first; null where none was made."
        ),
    ]
    trials: Annotated[
        list[TrialJson],
        says(
            "What the search for tiles tried with each operator of the source, cleaned up; empty "
            "where none was made, or where results of it were refused."
        ),
    ]
    io: Annotated[
        list[ConvertedEndJson], says("Inputs and outputs that the application converts now (--io).")
    ]
    notes: Notes
    seconds: Annotated[
        dict[str, Annotated[float, msgspec.Meta(ge=0)]],
        says("Wall-clock seconds, by stage of the run."),
    ]
    before: Annotated[SideJson, says("The source; all sizes in bytes.")]
    after: Annotated[SideJson, says("The result; all sizes in bytes.")]
