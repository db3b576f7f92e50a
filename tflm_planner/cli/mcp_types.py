"""The types of what the tools of `tflm-plan mcp` take and give. The schemas that clients see are
made from them.

A result is the document of `--json` where that is short, and otherwise its decisive parts: somebody
who asks whether a model fits need not read a map of all operators.
"""

from __future__ import annotations

from typing import Annotated, Literal

from tflm_planner.cli.choices import Firmware
from tflm_planner.report.json.arena import ArenaJson
from tflm_planner.report.json.common import CannotRun, Count, Notes, TargetId
from tflm_planner.report.json.memory_map import LimitsJson
from tflm_planner.report.json.report import ArenasJson, FitJson, PasteJson, RungJson
from tflm_planner.support import defaults
from tflm_planner.support.documents import Document, says

_Model = Annotated[str, says("Path of the .tflite model, in the folder that is served.")]
_Target = Annotated[
    str,
    says(
        "A target or board, such as nano33ble, cortex-m4/cmsis-nn, esp32s3/esp-nn-1.2.3, or a TOML "
        "file of the folder."
    ),
]


class ArenaCall(Document):
    """What `arena` is asked."""

    model: _Model
    target: _Target = defaults.TARGET


class CompareCall(Document):
    """What `compare` is asked."""

    model: _Model
    boards: Annotated[
        str,
        says("Boards whose id, name, vendor or target this is a part of, as nano*; empty: all."),
    ] = ""
    planned: Annotated[
        bool, says("Whether to plan the model for each board, too: seconds, nothing is written.")
    ] = False


class InspectCall(Document):
    """What `inspect` is asked."""

    model: _Model
    target: _Target = defaults.TARGET
    operators: Annotated[
        int, says("How many operators to list, those with most live bytes first.", ge=1, le=200)
    ] = 10


class PlanCall(Document):
    """What `plan` is asked."""

    model: _Model
    output: Annotated[str, says("Path of the .tflite to write, in the folder that is served.")]
    target: _Target = defaults.TARGET
    budget: Annotated[
        str | None,
        says(
            'Bytes that the arena may take, as "60K"; null: the SRAM of the board, if one is named.'
        ),
    ] = None
    firmware: Annotated[
        Firmware,
        says(
            "What the firmware may become: as it is, with more operators registered, or with the "
            "lean library and more operators."
        ),
    ] = "as-is"
    max_slowdown: Annotated[
        float, says("Instructions that tiles may take, relative to the model as it is.", ge=1)
    ] = defaults.SLOWDOWN
    force: Annotated[bool, says("Whether to replace a file that exists.")] = False


class PeakTensorJson(Document):
    """A tensor that is live at the peak."""

    name: Annotated[str, says("Name of the tensor.")]
    size: Annotated[Count, says("Bytes.")]
    own: Annotated[Count, says("Bytes of it on which no larger one of this list lies.")]


class LiveOperatorJson(Document):
    """An operator, with what must exist while it runs."""

    index: Annotated[Count, says("Place in the order of execution (a count, from 0).")]
    operator: Annotated[str, says("Type, as in CONV_2D.")]
    name: Annotated[str, says("Name of its first result.")]
    live_bytes: Annotated[Count, says("Bytes that must exist at the same time.")]
    workspace_bytes: Annotated[Count, says("Of these, scratch of the kernel.")]


class InspectionSummaryJson(Document):
    """What decides of `tflm-plan inspect`. All sizes are bytes."""

    target: TargetId
    operators: Annotated[Count, says("Number of operators.")]
    arena: ArenaJson
    peak: Annotated[
        LiveOperatorJson | None, says("The operator that needs most (null: there is none).")
    ]
    peak_tensors: Annotated[list[PeakTensorJson], says("What is live at the peak.")]
    largest: Annotated[list[LiveOperatorJson], says("Operators with most live bytes.")]
    limits: Annotated[LimitsJson, says("Floors of the head that no plan of a kind goes below.")]
    cannot_run: CannotRun
    notes: Notes


class PlanSummaryJson(Document):
    """What decides of `tflm-plan IN OUT`. All sizes are bytes."""

    output: Annotated[str, says("Path of the file that was written.")]
    target: TargetId
    arena: Annotated[ArenasJson, says("Smallest arena that works, before and after.")]
    fits: Annotated[
        bool,
        says("Whether arena and file are within the board's memory or the budget, beyond doubt."),
    ]
    fit: Annotated[FitJson, says("The same in words, and what to try next.")]
    verified: Annotated[bool, says("Whether outputs were equal on the runtimes of this machine.")]
    proof: Annotated[
        Literal["equal", "different", "not run"],
        says("The proof by terms, for every input."),
    ]
    tflm_only: Annotated[bool, says("Whether no other runtime runs the file.")]
    ladder: Annotated[list[RungJson], says("What each further permission would reach.")]
    paste: Annotated[PasteJson, says("What goes into the firmware's source.")]
    notes: Notes


class ToolErrorJson(Document):
    """Why a tool gave no result."""

    code: Annotated[int, says("The exit code that the command has for it.", ge=1)]
    kind: Annotated[
        Literal["internal", "usage", "outputs differ", "model"],
        says("What the code stands for."),
    ]
    message: Annotated[str, says("What is wrong, where, and what to try.")]
