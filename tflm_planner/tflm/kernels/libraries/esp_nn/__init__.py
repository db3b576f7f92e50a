"""ESP-NN, Espressif's kernels as esp-tflite-micro runs them: where they differ from the reference.

extension   none: generic C (ESP32, S2, C3, C6, H2)     pie-s3: ESP32-S3      pie-p4: ESP32-P4
release     of the component esp-nn; each release that was read is a library of its own

esp-tflite-micro replaces ADD, CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED, MUL, the pools and
SOFTMAX; all else is TFLM's reference. Built with CONFIG_NN_ANSI_C, ESP-NN is plain C that goes
element by element and requests no scratch, the same in every release; esp-tflite-micro's structures
are then the same as with its other kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tflm_planner.model.ir import Op
from tflm_planner.ops.window import CONVOLUTIONS
from tflm_planner.tflm.kernels.base import KernelBuild
from tflm_planner.tflm.kernels.libraries.esp_nn.access_orders import EspNnBuild
from tflm_planner.tflm.kernels.libraries.esp_nn.known_faults import fault_of, groups_fault_of
from tflm_planner.tflm.kernels.libraries.esp_nn.releases import NEWEST, RELEASES, Release, spell
from tflm_planner.tflm.kernels.libraries.esp_nn.scratch import (
    INDEX_BYTES,
    own_scratch_requests,
    part_scratch_requests,
    softmax_width,
)
from tflm_planner.tflm.kernels.libraries.reference import REFERENCE, ReferenceKernels
from tflm_planner.tflm.kernels.operands import element_type
from tflm_planner.tflm.target import Target
from tflm_planner.tflm.versions import Behaviour

__all__ = ["LIBRARIES", "EspNn", "PlainEspNn"]

_NAME = "esp-nn"
_MOST_ELEMENTS = 0xFFFF
"""Largest size along an axis: ESP-NN stores it in 16 bits."""


class PlainEspNn(ReferenceKernels):
    """ESP-NN as CONFIG_NN_ANSI_C builds it, in any release."""

    name = f"{_NAME}-ansi"
    title = "ESP-NN in plain C (CONFIG_NN_ANSI_C)"
    chips = "espressif"
    id_on_chips = "reference"
    can_be_lean = False
    channel_scales: ClassVar[Mapping[str, Behaviour]] = {
        "int8": "scales_of_channels_esp_nn", "int16": "scales_of_channels_int16",
    }  # fmt: skip

    def op_data_bytes(self, op: Op, target: Target) -> int:
        """With the index of a scratch buffer for convolutions and SOFTMAX."""
        return super().op_data_bytes(op, target) + INDEX_BYTES.get(op.kind, 0)

    def all_builds(self) -> tuple[KernelBuild, ...]:
        """No builds: plans for `any` or `unknown` libraries do not include ESP-NN's."""
        return ()

    def fault_of(self, op: Op, target: Target) -> str | None:
        """Grouped convolutions."""
        return groups_fault_of(op)


class EspNn(PlainEspNn):
    """One release of ESP-NN; without a release, what a build gets that does not name one."""

    id_on_chips = ""

    def __init__(self, release: Release | None) -> None:
        self.release = release or NEWEST
        self.name = _NAME if release is None else f"{_NAME}-{spell(release)}"
        self.title = f"ESP-NN {spell(release)}" if release else "ESP-NN, any release"
        if release is None:
            self.doubt = (
                f"the release of ESP-NN is not named: the figures are those of {spell(NEWEST)}, "
                "the newest that was read, and scratch changes between releases; pin that release "
                f"in idf_component.yml and name it (esp32s3/esp-nn-{spell(NEWEST)}, say), or "
                "measure the arena on the board"
            )

    def scratch_requests(self, op: Op, target: Target) -> tuple[int, ...]:
        """After the reference's own: copies of filter and input, by chip and release."""
        common = super().scratch_requests(op, target)  # int4: the unpacked filter is first
        return (*common, *own_scratch_requests(op, target, self.release))

    def part_scratch(self, op: Op, target: Target, axis: int, size: int) -> tuple[int, ...] | None:
        """Fewer channels need less of the filter, fewer rows less of the input."""
        part = part_scratch_requests(op, target, self.release, axis, size)
        return super().part_scratch(op, target, axis, size) if part is None else part

    def builds(self, target: Target) -> tuple[KernelBuild, ...]:
        """A single build; generic C goes element by element, like the reference."""
        if target.extension == "none":
            return (REFERENCE,)
        name = f"{_NAME}-{spell(self.release)} ({target.extension})"
        return (EspNnBuild(name, target.extension, self.release),)

    def fault_of(self, op: Op, target: Target) -> str | None:
        """Convolutions that are grouped or padded on one side, and SOFTMAX of several
        dimensions."""
        return fault_of(op, target, self.release)

    def latency_profiles(self, target: Target) -> tuple[str, ...]:
        """Counted in the sources for the S3; for other chips that of the reference."""
        return ("s3-esp-nn",) if target.extension == "pie-s3" else super().latency_profiles(target)

    def doubt_of(self, op: Op, target: Target) -> str | None:
        """Sizes that ESP-NN reads from a wrong place, or truncates."""
        if element_type(op) != "int8":
            return None
        shape = op.operands()[0].shape or ()
        if softmax_width(op) is not None and len(shape) < 2:
            return "ESP-NN asks for scratch by a second dimension, which this tensor lacks"
        large = op.kind in CONVOLUTIONS and max(shape, default=0) > _MOST_ELEMENTS
        return "ESP-NN keeps its dimensions in 16 bits, which are too few" if large else None


LIBRARIES = (PlainEspNn(), *map(EspNn, (None, *RELEASES)))
"""In plain C; in a release that is not named; in each that was read."""
