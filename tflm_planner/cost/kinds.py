"""Words that the modules of this package share. It must not know operators."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

KernelFamily = Literal["reference", "plain", "dsp", "mve", "pie-s3"]
"""Which kernels run: the reference ones; CMSIS-NN for a core without vector instructions
(Cortex-M0+, M3), with the DSP extension (M4, M7, M33), with MVE (M55, M85); ESP-NN on an
ESP32-S3."""
Counts = dict[str, int]
"""How often each piece of a kernel's code runs."""


@dataclass(frozen=True, slots=True)
class Work:
    """What an operator makes a kernel do. path: which kernel. macs: multiplications that its
    mathematics asks for, positions in the padding included. typed: whether what the kernel takes
    depends on the type of elements. in_place: the counts that are left where the bytes lie where
    they go already."""

    path: str
    counts: Counts
    macs: int
    typed: bool = True
    in_place: Counts = field(default_factory=Counts)
