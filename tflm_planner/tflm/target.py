"""What decides the arena: processor core x kernel library x version of TFLM; and boards.

Plain records, without defaults of any target: `targets` reads them from TOML files. This module
must not know models, operators or kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Extension = Literal["none", "dsp", "mve", "pie-s3", "pie-p4"]
"""Vector instructions of a core, which choose among a library's implementations: of Arm cores
(CMSIS-NN), and the PIE of the ESP32-S3 and of the ESP32-P4 (ESP-NN)."""
Version = Literal["current", "arduino-2023"]
"""TFLM: 90b983c of August 2026, or the Arduino library of 2023."""
Optimized = Literal["speed", "size"]
"""How CMSIS-NN kernels were built (KERNELS_OPTIMIZED_FOR_SPEED, TFLM's default, or _SIZE)."""


@dataclass(frozen=True)
class Board:
    """A board on which a target sits. sram, flash: bytes. clock: Hz. active_microwatts: power
    while a model runs, for estimates of energy; 0 where nobody stated it (no built-in board has
    one: datasheets give the core's, not the board's). vendor: who sells it. psram: bytes of slower
    RAM outside of the chip, for people: no arena is planned for it."""

    id: str
    name: str
    target: str
    sram: int
    flash: int
    clock: int
    active_microwatts: int = 0
    vendor: str = ""
    psram: int = 0


@dataclass(frozen=True)
class Target:
    """What decides the arena.

    kernels: name of the kernel library (`tflm.kernels.library_of`). pointer: bytes of a pointer.
    short_enums: enums take the smallest integer (bare-metal Arm). static_memory: built with
    TF_LITE_STATIC_MEMORY. recording: the allocator that records, as in the Python package.
    compression: built with USE_TFLM_COMPRESSION, as the Python package is. lean: with the lean
    library (arduino_runner/src/lean). tflm: the day of its sources, if another one than its
    version's (`versions`): what operators it has. board: if a board was named.
    """

    id: str
    name: str
    core: str
    kernels: str
    extension: Extension = "none"
    pointer: int = 4
    short_enums: bool = True
    version: Version = "current"
    optimized: Optimized = "speed"
    static_memory: bool = True
    recording: bool = False
    compression: bool = False
    lean: bool = False
    tflm: str = ""
    board: Board | None = None

    @property
    def core_family(self) -> str:
        """The architecture of the core: "Cortex", "Xtensa", "RISC" or "x86"."""
        return self.core.partition(" ")[0].partition("-")[0]

    @property
    def is_arduino_2023(self) -> bool:
        """Whether structures and kernels are those of the Arduino library of 2023."""
        return self.version == "arduino-2023"
