"""The shapes behind the overlaps measured on real kernels, and where the measurements lie."""

import json
from typing import Any

from tests.conftest import TRUTH
from tests.tflm.kernel_loops import Shape
from tflm_planner.tflm.kernels.libraries.cmsis_nn.access_orders import BUILD_2022, DSP, MVE, PLAIN
from tflm_planner.tflm.kernels.libraries.reference import REFERENCE

PATH = TRUTH / "overlap.json"

TARGETS = {
    "m4-ref": REFERENCE,
    "m4-cmsis": DSP,
    "m3-cmsis": PLAIN,
    "m55-cmsis": MVE,
    "m4-ard": BUILD_2022,
}

SHAPES = {
    "conv3x3s1 C8": Shape("conv", 6, 6, 8, 8, 3, 3),
    "conv3x3s2 8->8": Shape("conv", 8, 8, 8, 8, 3, 3, 2, 2),
    "conv3x3s2 8->16": Shape("conv", 8, 8, 8, 16, 3, 3, 2, 2),
    "conv3x3 valid 16->16": Shape("conv", 6, 6, 16, 16, 3, 3, same=False),
    "conv5x5s1 C4": Shape("conv", 7, 7, 4, 4, 5, 5),
    "conv1x1 16->16": Shape("conv", 6, 6, 16, 16),
    "conv1x1 16->8": Shape("conv", 6, 6, 16, 8),
    "conv1x1 8->16": Shape("conv", 6, 6, 8, 16),
    "conv1x1 dil2 16->16": Shape("conv", 6, 6, 16, 16, dh=2, dw=2),
    "conv1x1 s2 16->16": Shape("conv", 8, 8, 16, 16, sh=2, sw=2),
    "conv1x1 Co=2 16->2": Shape("conv", 6, 6, 16, 2),
    "conv1x9 C8 H1": Shape("conv", 1, 40, 8, 8, 1, 9),
    "conv3x3 groups2 16->16": Shape("conv", 6, 6, 16, 16, 3, 3, groups=2),
    "dw3x3s1 C16": Shape("depthwise", 6, 6, 16, 16, 3, 3),
    "dw3x3s2 C16": Shape("depthwise", 8, 8, 16, 16, 3, 3, 2, 2),
    "dw5x5s1 C16": Shape("depthwise", 7, 7, 16, 16, 5, 5),
    "dw3x3s1 C124": Shape("depthwise", 4, 4, 124, 124, 3, 3),
    "dw3x3s1 C136": Shape("depthwise", 4, 4, 136, 136, 3, 3),
    "dw3x3s2 C136": Shape("depthwise", 6, 6, 136, 136, 3, 3, 2, 2),
    "dw3x3 mult2 C8": Shape("depthwise", 6, 6, 8, 16, 3, 3),
    "dw Ci1 mult8": Shape("depthwise", 8, 8, 1, 8, 3, 3),
    "maxpool2x2s2 C16": Shape("max", 8, 8, 16, 16, 2, 2, 2, 2),
    "maxpool3x3s1": Shape("max", 6, 6, 16, 16, 3, 3),
    "avgpool2x2s2 C16": Shape("average", 8, 8, 16, 16, 2, 2, 2, 2),
    "avgpool2x2s2": Shape("average", 8, 8, 16, 16, 2, 2, 2, 2),
    "avgpool3x3s1": Shape("average", 6, 6, 16, 16, 3, 3),
}


def records() -> list[dict[str, Any]]:
    """All measurements; none where they are not at hand."""
    return json.loads(PATH.read_text())
