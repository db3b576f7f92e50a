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
    """A board on which a target sits."""

    id: str
    """What it is called on the command line."""
    name: str
    """What it is called in reports."""
    target: str
    """Id of its target."""
    sram: int
    """Bytes of SRAM."""
    flash: int
    """Bytes of flash."""
    clock: int
    """Hz."""
    active_microwatts: int = 0
    """Power while a model runs, for estimates of energy; 0 where nobody stated it (no built-in
    board has one: datasheets give the core's, not the board's)."""
    vendor: str = ""
    """Who sells it."""
    psram: int = 0
    """Bytes of slower RAM outside of the chip, for people: no arena is planned for it."""


@dataclass(frozen=True)
class Target:
    """What decides the arena."""

    id: str
    """What it is called on the command line."""
    name: str
    """What it is called in reports."""
    core: str
    """The processor."""
    kernels: str
    """Name of the kernel library (`tflm.kernels.library_of`)."""
    extension: Extension = "none"
    """The core's vector instructions, for which libraries have other kernels."""
    pointer: int = 4
    """Bytes of a pointer."""
    short_enums: bool = True
    """Whether enums take the smallest integer (bare-metal Arm)."""
    version: Version = "current"
    """Of TFLM."""
    optimized: Optimized = "speed"
    """What CMSIS-NN was built for."""
    static_memory: bool = True
    """Whether TFLM is built with TF_LITE_STATIC_MEMORY."""
    recording: bool = False
    """Whether its allocator is the one that records, as in the Python package."""
    compression: bool = False
    """Whether it is built with USE_TFLM_COMPRESSION, as the Python package is."""
    lean: bool = False
    """Whether the firmware has the lean library (arduino_runner/src/lean)."""
    tflm: str = ""
    """The day of TFLM's sources, if another one than its version's (`versions`): it says what
    operators there are."""
    board: Board | None = None
    """If one was named."""

    @property
    def core_family(self) -> str:
        """The architecture of the core: "Cortex", "Xtensa", "RISC" or "x86"."""
        return self.core.partition(" ")[0].partition("-")[0]

    @property
    def is_arduino_2023(self) -> bool:
        """Whether structures and kernels are those of the Arduino library of 2023."""
        return self.version == "arduino-2023"
