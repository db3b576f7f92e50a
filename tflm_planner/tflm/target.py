"""What determines the arena: processor core x kernel library x version of TFLM; and boards.

Plain records without defaults for any target: `targets` reads them from TOML files. This module
must not know models, operators or kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Extension = Literal["none", "dsp", "mve", "pie-s3", "pie-p4"]
"""Vector instructions of a core, by which a library chooses its kernels: those of Arm cores
(CMSIS-NN), and the PIE of the ESP32-S3 and of the ESP32-P4 (ESP-NN)."""
Version = Literal["current", "arduino-2023"]
"""TFLM: 90b983c of August 2026, or the Arduino library of 2023."""
Optimized = Literal["speed", "size"]
"""How CMSIS-NN kernels were built (KERNELS_OPTIMIZED_FOR_SPEED, TFLM's default, or _SIZE)."""
LEAN_SUFFIX = "+lean"
"""Suffix of a target's or board's id: with the lean library."""


@dataclass(frozen=True)
class Board:
    """A board, and the target that its processor is."""

    id: str
    """Its id on the command line."""
    name: str
    """Its name in reports."""
    target: str
    """Id of its target."""
    sram: int
    """Bytes of SRAM."""
    flash: int
    """Bytes of flash."""
    clock: int
    """Clock frequency in Hz."""
    active_microwatts: int = 0
    """Power in microwatts while a model runs, for estimates of energy; 0 if nobody stated it (no
    built-in board has one, because datasheets give the power of the core, not of the board)."""
    vendor: str = ""
    """Who sells it."""
    psram: int = 0
    """Bytes of slower RAM outside of the chip, for people: no arena is planned in it."""


@dataclass(frozen=True)
class Target:
    """Everything that determines the arena."""

    id: str
    """Its id on the command line."""
    name: str
    """Its name in reports."""
    core: str
    """The processor."""
    kernels: str
    """Name of the kernel library (`tflm.kernels.library_of`)."""
    extension: Extension = "none"
    """The core's vector instructions, for which libraries have special kernels."""
    pointer: int = 4
    """Bytes of a pointer."""
    short_enums: bool = True
    """Whether enums take the smallest integer (bare-metal Arm)."""
    version: Version = "current"
    """The version of TFLM."""
    optimized: Optimized = "speed"
    """Whether CMSIS-NN was built for speed or for size."""
    static_memory: bool = True
    """Whether TFLM is built with TF_LITE_STATIC_MEMORY."""
    recording: bool = False
    """Whether its allocator is the recording one, as in the Python package."""
    compression: bool = False
    """Whether TFLM is built with USE_TFLM_COMPRESSION, as the Python package is."""
    lean: bool = False
    """Whether the firmware has the lean library (arduino_runner/src/lean)."""
    tflm: str = ""
    """The date of TFLM's sources, if it is not that of `version` (`versions`): it determines which
    operators exist."""
    board: Board | None = None
    """The board, if one was named."""
    file: str = field(default="", compare=False)
    """Path of the user's file that it was read from; empty for a built-in one."""

    @property
    def word(self) -> str:
        """What `--target` takes for it."""
        name = self.id if self.board is None else self.board.id
        return (self.file or name).removesuffix(LEAN_SUFFIX) + LEAN_SUFFIX * self.lean

    @property
    def core_family(self) -> str:
        """The architecture of the core: "Cortex", "Xtensa", "RISC" or "x86"."""
        return self.core.partition(" ")[0].partition("-")[0]

    @property
    def is_arduino_2023(self) -> bool:
        """Whether structures and kernels are those of the Arduino library of 2023."""
        return self.version == "arduino-2023"
