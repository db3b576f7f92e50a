"""CMSIS-NN, Arm's kernels for Cortex-M: where they differ from the reference kernels.

extension   none: Cortex-M0+, M3       dsp: M4, M7, M33       mve: M55, M85
version     current, or the CMSIS-NN of August 2022 in the Arduino library of 2023
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import ClassVar

from tflm_planner.model.ir import Op
from tflm_planner.tflm.kernels.base import KernelBuild
from tflm_planner.tflm.kernels.libraries.cmsis_nn.access_orders import BUILD_2022, DSP, MVE, PLAIN
from tflm_planner.tflm.kernels.libraries.cmsis_nn.known_faults import MAX_TRANSPOSE_AXES, fault_of
from tflm_planner.tflm.kernels.libraries.cmsis_nn.operators import served
from tflm_planner.tflm.kernels.libraries.cmsis_nn.packed_depthwise import computes_part
from tflm_planner.tflm.kernels.libraries.cmsis_nn.persistent_allocations import keeps_row_sums
from tflm_planner.tflm.kernels.libraries.cmsis_nn.single_rows import computes_single_row
from tflm_planner.tflm.kernels.libraries.cmsis_nn.wide_sums import adds_pixels_alike
from tflm_planner.tflm.kernels.libraries.reference import ReferenceKernels
from tflm_planner.tflm.kernels.operator_memory import OperatorMemory
from tflm_planner.tflm.target import Extension, Target
from tflm_planner.tflm.versions import Behaviour

_BUILDS: dict[Extension, KernelBuild] = {"none": PLAIN, "dsp": DSP, "mve": MVE}
_PROFILES: dict[Extension, str] = {"none": "m3-cmsis", "dsp": "m4-cmsis", "mve": "m55-cmsis"}


class CmsisNn(ReferenceKernels):
    """CMSIS-NN, which calls the reference kernels for operators that it does not implement."""

    name = "cmsis-nn"
    title = "CMSIS-NN"
    most_transposed_axes = MAX_TRANSPOSE_AXES
    channel_scales: ClassVar[Mapping[str, Behaviour]] = {"int8": "scales_of_channels_int8"}
    narrow_biases: ClassVar[Mapping[str, Behaviour | None]] = {
        "CONV_2D": "int32_bias_of_cmsis_nn_conv"
    }

    def memory_of(self, kind: str, target: Target) -> OperatorMemory:
        """By version and extension, for the operators that it serves."""
        return served(kind, target) or super().memory_of(kind, target)

    def op_data_key(self, op: Op, target: Target) -> Hashable | None:
        """Sizes of filter and result; None with row sums of the filter, because their address
        counts."""
        weights = op.inputs[1]
        if weights is None or keeps_row_sums(op, target):
            return None
        return weights.shape, op.outputs[0].elements

    def builds(self, target: Target) -> tuple[KernelBuild, ...]:
        """The build for the target's version and its core's extension."""
        return (BUILD_2022 if target.is_arduino_2023 else _BUILDS.get(target.extension, PLAIN),)

    def all_builds(self) -> tuple[KernelBuild, ...]:
        """One build for each of three instruction set extensions, and the build of 2022."""
        return (DSP, PLAIN, MVE, BUILD_2022)

    def variants(self, target: Target) -> tuple[Target, ...]:
        """Today's three extensions, and the Arduino library. Built for size, row sums are
        scratch."""
        current = replace(target, version="current", optimized="size")
        return (
            *(replace(current, extension=extension) for extension in ("dsp", "none", "mve")),
            replace(current, extension="dsp", version="arduino-2023"),
        )

    def fault_of(self, op: Op, target: Target) -> str | None:
        """TRANSPOSE of int8, and rows of pixels on MVE."""
        return fault_of(op, target)

    def computes_single_row(self, op: Op, width: int, out: int, pad: int) -> bool:
        """True but for some shapes with MVE (Helium)."""
        return computes_single_row(op, width, out, pad)

    def adds_pixels_alike(self, op: Op) -> bool:
        """True but for int16 convolutions whose sums may exceed 32 bits."""
        return adds_pixels_alike(op)

    def computes_part(self, op: Op, batch: int, channels: int) -> bool:
        """True but for int4 depthwise convolutions of an odd number of channels."""
        return computes_part(op, batch, channels)

    def latency_profiles(self, target: Target) -> tuple[str, ...]:
        """The profile of the core's extension."""
        return (_PROFILES.get(target.extension, "m3-cmsis"),)


LIBRARIES = (CmsisNn(),)
