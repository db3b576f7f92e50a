"""Types that the modules of this package share. It must not know operators."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

KernelFamily = Literal["reference", "plain", "dsp", "mve", "pie-s3"]
"""Which kernels run: the reference ones; CMSIS-NN for a core without vector instructions
(Cortex-M0+, M3), with the DSP extension (M4, M7, M33), or with MVE (M55, M85); ESP-NN on an
ESP32-S3."""
Counts = dict[str, int]
"""How often each piece of a kernel's code runs."""


@dataclass(frozen=True, slots=True)
class Work:
    """The work of a kernel for one operator. path: which kernel. macs: multiplications of the
    mathematical operation, including those with padding. typed: whether the cost depends on the
    element type. in_place: the counts that remain if the bytes are already where they must be."""

    path: str
    counts: Counts
    macs: int
    typed: bool = True
    in_place: Counts = field(default_factory=Counts)
