"""A trick for CMSIS-NN: give 1x1 convolutions a dilation of 2.

A 1x1 kernel has nothing to dilate, so the result is the same. But CMSIS-NN then takes its general
kernel, whose output may trail its input, instead of its 1x1 kernel, which reads the whole input
once for every pair of output channels. It costs scratch (4 bytes an input channel, rounded up to 4)
and speed. Source: CMSIS-NN, arm_nnsupportfunctions.h, arm_convolve_wrapper_s8.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tflm_planner.model.edit import set_option
from tflm_planner.model.ir import Model, Op
from tflm_planner.ops.window import window_of

_DILATION = 2


@dataclass(frozen=True)
class Dilate:
    """Dilates the chosen 1x1 convolutions."""

    ops: Collection[Op]

    def apply(self, model: Model) -> list[str]:
        """See the class."""
        for op in model.ops():
            if op in self.ops:
                for side in ("dilationHFactor", "dilationWFactor"):
                    set_option(op, side, _DILATION)
        return []


@dataclass(frozen=True)
class Undilate:
    """Takes `Dilate` back for the chosen operators."""

    ops: Collection[Op]

    def apply(self, model: Model) -> list[str]:
        """See the class."""
        for op in model.ops():
            if op in self.ops:
                for side in ("dilationHFactor", "dilationWFactor"):
                    set_option(op, side, 1)
        return []


def dilatable(op: Op) -> bool:
    """Whether `op` is a 1x1 int8 convolution with stride 1 that is not dilated."""
    window = window_of(op) if op.kind == "CONV_2D" else None
    return (
        window is not None
        and window.kernel == window.stride == window.dilation == (1, 1)
        and window.groups == 1
        and op.outputs[0].type_name == "int8"
    )
