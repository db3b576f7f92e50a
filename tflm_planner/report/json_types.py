"""The documents that programs read of reports: every key, its type, its limits and its meaning.

The JSON comes of these types (`json_document`), and so do the schemas in `schema/`
(`python -m tflm_planner.cli.schemas`). A field has the name of the result's attribute that it
shows, and another one in JSON where `name` says so. `SCHEMA_VERSION` grows with every change that a
reader could notice.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tflm_planner.report.document import RungKind
from tflm_planner.support.documents import Document, says
from tflm_planner.tflm.arena.uncertainty import Bound as BoundWord
from tflm_planner.verification.planned import FaultKind

SCHEMA_VERSION = 5
"""The version of the document; `schema_version` in the JSON."""
Version = Annotated[Literal[5], says("Version of this format (a number without unit).")]
Count = Annotated[int, msgspec.Meta(ge=0)]
Bound = Annotated[
    BoundWord,
    says(
        "What the bytes are: exact; enough, though less may do; or at least so many, where nobody "
        "has read the kernels or an operator is not known (no size is then known to fit)."
    ),
]


class File(Document):
    """A model file."""

    path: Annotated[str, says("Path as it was given to the planner.")]
    sha256: Annotated[
        str,
        says("SHA-256 of the file's bytes, in lower-case hexadecimal.", pattern="^[0-9a-f]{64}$"),
    ]


class ConvertedEnd(Document):
    """An input or output that has another type than in the original (`--io int8`)."""

    side: Annotated[Literal["input", "output"], says("Which end of the model.")]
    name: Annotated[str, says("Name of the tensor, the same as before.")]
    type: Annotated[str, says("Type of its elements now.")]
    was: Annotated[str, says("Type of its elements in the original.")]
    scale: Annotated[float, says("A number q stands for scale * (q - zero_point).")]
    zero_point: Annotated[int, says("See `scale`.")]


class Check(Document):
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


class Proof(Document):
    """What the proof by terms said of the original against the result: both run over random
    elements of a field in place of numbers."""

    status: Annotated[
        Literal["equal", "different", "not run"],
        says("The verdict. `equal`: the same function of every input, but for `error_log2`."),
    ] = msgspec.field(name="terms")
    error_log2: Annotated[
        float | None,
        says(
            "Logarithm to base 2 of the chance that different models pass for equal (a number "
            "without unit; null: nothing was compared)."
        ),
    ]
    detail: Annotated[str, says("Where they differ, or why nothing was compared; may be empty.")]


class Side(Document):
    """The model at one side of the rewrite."""

    operators: Annotated[Count, says("Number of operators of all sub-graphs.")]
    tensors: Annotated[Count, says("Number of tensors of all sub-graphs.")]
    file_bytes: Annotated[Count, says("Bytes of the model file.")]
    macs: Annotated[
        Count,
        says("Multiply-accumulates of one inference; turns of loops count as often as they run."),
    ]
    arena: Annotated[Arena, says("The arena of the target, predicted; bytes.")]
    host: Annotated[Wheel, says("The same model on the machine that planned it; bytes.")] = (
        msgspec.field(name="wheel")
    )
    map: Annotated[Map, says("Memory map; all sizes in bytes.")]


class Map(Document):
    """Where every buffer lies, over the operators in execution order."""

    head: Annotated[Count, says("Bytes of head that the blocks need.")]
    bound: Annotated[Bound, says("What the head is, and live bytes with scratch.")]
    steps: Annotated[list[Step], says("Operators in execution order.")]
    blocks: Annotated[list[Block], says("Buffers.")]


class Step(Document):
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


class Block(Document):
    """A buffer: the bytes [offset, offset + size) of the head during operators [start, end)."""

    name: Annotated[str, says("Name of the tensor, or of the scratch buffer.")]
    kind: Annotated[
        Literal["input", "output", "activation", "scratch"], says("What the buffer holds.")
    ]
    size: Annotated[Count, says("Bytes.")]
    offset: Annotated[int, says("Bytes from the start of the head; negative in a broken plan.")]
    start: Annotated[Count, says("First place in `steps` at which it is live (a count, from 0).")]
    end: Annotated[Count, says("Place in `steps` after the last at which it is live (a count).")]


class Arena(Document):
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
    bound: Annotated[Bound, says("What arena and tail are.")]
    reserved: Annotated[
        Count, says('Bytes that firmware should give: arena, and a margin where it is "at least".')
    ]
    alignment_slack: Annotated[
        Count, says("Bytes to add when the start of the arena is not aligned to 16.")
    ]


class Wheel(Document):
    """TFLM on the machine that planned (x86-64, reference kernels, recording allocator)."""

    predicted_head: Annotated[Count, says("Predicted bytes of head there.")]
    predicted_tail: Annotated[Count, says("Predicted bytes of tail there.")]
    measured_head: Annotated[
        Count | None, says("Bytes of head that TFLM reported (null: not measured).")
    ]
    measured_tail: Annotated[
        Count | None, says("Bytes of tail that TFLM reported (null: not measured).")
    ]


class Arenas(Document):
    """Smallest arenas that work on the target, in bytes."""

    before: Annotated[Count, says("Bytes of arena of the source.")]
    after: Annotated[Count, says("Bytes of arena of the result.")]
    saved: Annotated[int, says("Bytes: before - after (negative: it grew).")]
    bound: Annotated[Bound, says("What both arenas are, exact or at least.")]


class Head(Document):
    """Predicted head on the target, before and after, in bytes."""

    before: Annotated[Count, says("Bytes of head of the source.")]
    after: Annotated[Count, says("Bytes of head of the result.")]


class Budget(Document):
    """The budget of the arena."""

    bytes: Annotated[Count | None, says("Budget in bytes (null: none given).")]
    met: Annotated[
        bool | None,
        says(
            "Whether arena.after is within it (true without a budget; null: as far as the "
            "arena is known, which is not to the end)."
        ),
    ]


class Fit(Document):
    """Whether the model has room on the board, or in the budget."""

    verdict: Annotated[str, says("The verdict in one line, as the text report begins with it.")]
    known: Annotated[
        bool | None,
        says(
            "Whether it fits beyond doubt: arena and file (null: neither board nor budget was "
            "given)."
        ),
    ]
    board: Annotated[str | None, says("Id of the board (null: none was named).")]
    room: Annotated[
        Count | None, says("Bytes that the arena may take: the budget, or the board's SRAM.")
    ]
    flash: Annotated[Count | None, says("Bytes of the board's flash.")]
    next_command: Annotated[
        str | None, says("What to try next where it does not fit (null: it does).")
    ]


class Rung(Document):
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


class Paste(Document):
    """What goes into the firmware's source."""

    lines: Annotated[list[str], says("Lines of C++: the arena, and the operators.")]
    remarks: Annotated[list[str], says("Which TFLM it needs, and what else is to be known.")]


class Limits(Document):
    """Floors of the head, in bytes, that no plan of a kind can go below."""

    inputs: Annotated[Count, says("L0, bytes: all model inputs together.")]
    order: Annotated[
        Count | None,
        says("L1, bytes: live bytes at the peak, operators in file order (null: not known)."),
    ]
    best_order: Annotated[
        Count | None, says("L2, bytes: the same for the best order (null: not known).")
    ]
    overlap: Annotated[
        Count | None,
        says("L3, bytes: when outputs may also trail inputs inside an operator (null: not known)."),
    ]


class Order(Document):
    """How the order of the operators was found."""

    method: Annotated[str, says("Name of the method.")]
    changed: Annotated[bool, says("Whether it differs from the file's order.")]
    peak: Annotated[Count, says("Bytes live at the peak of this order.")]
    lower_bound: Annotated[Count, says("Bytes: no order has a lower peak.")]
    optimal: Annotated[bool, says("Whether the order is proved best.")]


class Solution(Document):
    """What the allocators found."""

    allocator: Annotated[str, says("Name of the allocator.")]
    height: Annotated[Count, says("Bytes that the plan is high.")]
    lower_bound: Annotated[
        Count, says("Bytes: no plan of this order and these operators is lower.")
    ]
    optimal: Annotated[
        bool, says("Whether the plan is proved best for this order and these operators.")
    ]


class Allocation(Solution):
    """How the offsets were found."""

    aliases: Annotated[list[str], says("Buffers that share memory with another on purpose.")]
    trails: Annotated[list[str], says("Results that trail an operand inside an operator.")]
    replayed: Annotated[
        Count, says("How many of the trails were replayed under the target's contract.")
    ]


class Point(Document):
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
    overhead: Annotated[
        float, says("Instructions relative to the source (a ratio), by the model of latency.", ge=0)
    ]
    added: Annotated[list[str], says("Operators that the firmware must register in addition.")] = (
        msgspec.field(name="added_operators")
    )
    tiles: Annotated[Count, says("Number of regions in tiles.")]
    loops: Annotated[Count, says("Number of regions in loops.")]


class Front(Document):
    """Memory against instructions: the ways that a search found, the largest first."""

    objective: Annotated[Literal["arena", "head"], says("The bytes that were to be lowered.")]
    allowed: Annotated[
        float, says("Instructions allowed, relative to the source (a ratio).", ge=1)
    ] = msgspec.field(name="allowed_overhead")
    bound: Annotated[Bound, says("What the bytes of the points are.")]
    points: Annotated[list[Point], says("Ways to run the model.")]


class Report(Document):
    """What a run of tflm-plan found. All sizes are bytes, all times seconds; K is never used."""

    schema_version: Version
    planner_version: Annotated[str, says("Version of tflm-plan.")]
    target: Annotated[str, says("Target whose arena was minimised, e.g. cortex-m4/cmsis-nn.")]
    source: Annotated[File, says("The model that was read.")]
    destination: Annotated[File, says("The model that was written.")]
    arena: Annotated[
        Arenas,
        says(
            "Smallest arena that works on the target, before and after, in bytes; no more "
            'than "at least" where bound says so.'
        ),
    ]
    head: Annotated[Head, says("Predicted head on the target, before and after, in bytes.")]
    budget: Annotated[Budget, says("The budget of the arena.")]
    fit: Annotated[Fit, says("Whether it fits the board, or the budget.")]
    ladder: Annotated[list[Rung], says("What each further permission reaches, the source first.")]
    paste: Annotated[Paste, says("What goes into the firmware's source.")]
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
        Proof | None, says("The proof for every input (null: nothing was to be proved).")
    ]
    checks: Annotated[list[Check], says("One entry a runtime.")]
    limits: Annotated[
        Limits, says("Floors of the head, in bytes, that no plan of a kind can go below.")
    ]
    order: Annotated[Order, says("How the order of the operators was found.")]
    allocation: Annotated[Allocation, says("How the offsets were found.")]
    front: Annotated[
        Front | None,
        says(
            "Memory against instructions: the ways that a search for tiles found, the "
            "largest first; null where none was made."
        ),
    ]
    io: Annotated[
        list[ConvertedEnd], says("Inputs and outputs that the application converts now (--io).")
    ]
    notes: Annotated[list[str], says("What else is worth knowing.")]
    seconds: Annotated[
        dict[str, Annotated[float, msgspec.Meta(ge=0)]],
        says("Wall-clock seconds, by stage of the run."),
    ]
    before: Annotated[Side, says("The source; all sizes in bytes.")]
    after: Annotated[Side, says("The result; all sizes in bytes.")]


class Inspection(Document):
    """What `tflm-plan inspect` shows of a model as it is. All sizes are bytes."""

    schema_version: Version
    cannot_run: Annotated[list[str], says("What the target's TFLM refuses to run of the model.")]
    limits: Annotated[Limits, says("Floors of the head.")]
    notes: Annotated[list[str], says("What else is worth knowing.")]
    map: Annotated[Map, says("Memory map on stock TFLM.")]


class Verification(Document):
    """What `tflm-plan verify` says of two models."""

    schema_version: Version
    equal: Annotated[bool, says("Whether all bits are equal on the runtimes that compared them.")]
    checks: Annotated[list[Check], says("One entry a runtime.")]
    target: Annotated[str, says("Id of the target of both arenas.")]
    before: Annotated[Arena, says("The arena of the first model; bytes.")]
    after: Annotated[Arena, says("The arena of the second model; bytes.")]


class PlanFault(Document):
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


class PlanVerification(Document):
    """What `tflm-plan verify` says of the plan in one model. All sizes are bytes."""

    schema_version: Version
    target: Annotated[str, says("Id of the target.")]
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
    scratch: Annotated[list[Scratch], says("Scratch buffers where TFLM's first fit puts them.")]
    reads_since: Annotated[str, says("First day whose TFLM reads the plan as it is meant.")]
    faults: Annotated[list[PlanFault], says("What is wrong with the plan.")]
    terms: Annotated[
        Proof | None,
        says(
            "The model in its planned arena, byte by byte, against itself without the plan (null: "
            "there is nothing to compare)."
        ),
    ] = msgspec.field(name="proof")
    notes: Annotated[list[str], says("What could not be judged.")]
    arena: Annotated[
        Arena, says("The arena with the plan, or without it where that is wrong; bytes.")
    ]


class Scratch(Document):
    """A scratch buffer in the head."""

    operator: Annotated[str, says("The operator that asked for it.")]
    size: Annotated[Count, says("Bytes, as asked.")]
    offset: Annotated[Count, says("Bytes from the start of the head.")]


class ArenaParts(Arena):
    """An arena, what its tail and its scratch are, and what to know of it."""

    tail_parts: Annotated[dict[str, Count], says("Bytes of the tail by class.")]
    scratch: Annotated[list[Scratch], says("Scratch buffers.")]
    warnings: Annotated[list[str], says("Why figures are in doubt, and what else is wrong.")]
    cannot_run: Annotated[list[str], says("What the target's TFLM refuses to run of the model.")]


class ArenasApart(Document):
    """Two arenas in place of one, as of MicroAllocator::Create with two of them; bytes."""

    persistent: Annotated[Count, says("Bytes of what stays: structures, parameters, variables.")]
    non_persistent: Annotated[Count, says("Bytes of tensors, scratch and temporary memory.")]


class ArenaOnTarget(ArenaParts):
    """What `tflm-plan arena` says of a model on a target. All sizes are bytes."""

    schema_version: Version
    target: Annotated[str, says("Id of the target.")]
    board: Annotated[str | None, says("Id of the board (null: none was named).")]
    resource_variables: Annotated[
        Count, says("For how many resource variables the arena has room (a count).")
    ]
    apart: Annotated[
        ArenasApart | None,
        says("The same in two arenas (null: the target's TFLM has one only, or is not known)."),
    ]


class ArenaOfSeveral(Document):
    """What `tflm-plan arena --shared` says of several models in one arena. All sizes are bytes."""

    schema_version: Version
    target: Annotated[str, says("Id of the target.")]
    models: Annotated[list[str], says("Paths as they were given, in the order of allocation.")]
    arena: Annotated[Count, says("Bytes of the smallest arena that works for all.")]
    bound: Annotated[Bound, says("What arena and tail are.")]
    reserved: Annotated[
        Count, says('Bytes that firmware should give: arena, and a margin where it is "at least".')
    ]
    alignment_slack: Annotated[
        Count, says("Bytes to add when the start of the arena is not aligned to 16.")
    ]
    head: Annotated[Count, says("Bytes of the largest head.")]
    tail: Annotated[Count, says("Bytes of persistent data of all.")]
    tails: Annotated[list[Count], says("What each model adds to the tail, in order.")]
    warnings: Annotated[list[str], says("Why figures are in doubt.")]
