"""A user's target file: a table `target`, whole or built on a built-in one, and perhaps a board.

    TOML --TargetFile--> keys that were given --> the built-in target with these keys replaced

The type checks the file and gives schema/target.schema.json. It must not know the built-in targets.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from tflm_planner.support.documents import Document, says
from tflm_planner.tflm.target import Extension, Optimized, Version

_Positive = Annotated[int, msgspec.Meta(ge=1)]
_Day = Annotated[str, msgspec.Meta(pattern=r"^(current|\d{4}-\d{2}(-\d{2})?)?$")]
_WHOLE_OR_BASED: dict[str, Any] = {
    "anyOf": [{"required": ["base"]}, {"required": ["id", "name", "core", "kernels"]}]
}


class TargetTable(Document, omit_defaults=True):
    """What decides the arena. Without `base`, the keys id, name, core and kernels are needed."""

    base: Annotated[
        str | UnsetType, says("Id of a built-in target; keys given here replace its own.")
    ] = UNSET
    id: Annotated[str | UnsetType, says("How reports name the target.")] = UNSET
    name: Annotated[str | UnsetType, says("For people.")] = UNSET
    core: Annotated[str | UnsetType, says("Processor core, for people.")] = UNSET
    kernels: Annotated[
        str | UnsetType,
        says(
            "Kernel library: `reference`, `cmsis-nn`, `esp-nn-1.2.3` (and other releases), or one "
            "that was added "
            "(docs/kernel-libraries.md); `any`: all known ones, `unknown`: the same figures, and "
            "no order of reads and writes is trusted."
        ),
    ] = UNSET
    extension: Annotated[
        Extension | UnsetType,
        says(
            "Vector instructions, which choose a library's implementations: of Arm cores, of the "
            "ESP32-S3 (pie-s3) or of the ESP32-P4 (pie-p4) (none)."
        ),
    ] = UNSET
    pointer: Annotated[Literal[4, 8] | UnsetType, says("Bytes of a pointer (4).")] = UNSET
    short_enums: Annotated[
        bool | UnsetType,
        says("Enums take the smallest integer, as with bare-metal Arm compilers (true)."),
    ] = UNSET
    version: Annotated[
        Version | UnsetType,
        says("TFLM: August 2026, or the Arduino library of 2023 (current)."),
    ] = UNSET
    optimized: Annotated[
        Optimized | UnsetType, says("KERNELS_OPTIMIZED_FOR_SPEED or _SIZE (speed).")
    ] = UNSET
    static_memory: Annotated[bool | UnsetType, says("Built with TF_LITE_STATIC_MEMORY (true).")] = (
        UNSET
    )
    recording: Annotated[
        bool | UnsetType, says("RecordingMicroAllocator, as in the Python wheel (false).")
    ] = UNSET
    compression: Annotated[bool | UnsetType, says("Built with USE_TFLM_COMPRESSION (false).")] = (
        UNSET
    )
    lean: Annotated[
        bool | UnsetType,
        says(
            "With the lean library (arduino_runner/src/lean); also written as +lean behind an id."
        ),
    ] = UNSET
    tflm: Annotated[
        _Day | UnsetType,
        says(
            "A day or month of TFLM's sources, if others than those of `version`: which operators "
            "exist, and what a plan may rest on. Sizes stay those of `version`."
        ),
    ] = UNSET


class BoardTable(Document, omit_defaults=True):
    """The board on which the target sits."""

    id: Annotated[str, says("How reports name the board.")]
    name: Annotated[str, says("For people.")]
    sram: Annotated[_Positive, says("Bytes of SRAM in one piece.")]
    flash: Annotated[_Positive, says("Bytes.")]
    clock: Annotated[_Positive, says("Hz.")]
    target: Annotated[str | UnsetType, says("Set by the file's own target.")] = UNSET
    active_microwatts: Annotated[
        _Positive | UnsetType,
        says("Power of the board while a model runs, in microwatts, for estimates of energy."),
    ] = UNSET
    vendor: Annotated[str | UnsetType, says("Who sells the board, for people.")] = UNSET
    psram: Annotated[
        _Positive | UnsetType, says("Bytes of slower RAM outside of the chip, for people.")
    ] = UNSET


class TargetFile(Document):
    """A user's target file: a table `target`, whole or built on a built-in one by `base`, and
    optionally a table `board`."""

    target: Annotated[TargetTable, msgspec.Meta(extra_json_schema=_WHOLE_OR_BASED)]
    board: BoardTable | UnsetType = UNSET


def given_keys(table: Document) -> dict[str, Any]:
    """The keys that a file gives, with their values."""
    return {k: v for k, v in msgspec.structs.asdict(table).items() if v is not UNSET}
