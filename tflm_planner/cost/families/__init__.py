"""The families of kernels whose loops were read, by name.

    reference        TFLM's own kernels
    plain, dsp, mve  CMSIS-NN for a core without vector instructions (Cortex-M0+, M3), with the DSP
                     extension (M4, M7, M33), with MVE (M55, M85)
    pie-s3           ESP-NN on an ESP32-S3

This module is the only place where the name in a table of constants becomes a family.
"""

from __future__ import annotations

from tflm_planner.cost.families.base import KernelFamily
from tflm_planner.cost.families.cmsis_nn import DSP, PLAIN
from tflm_planner.cost.families.cmsis_nn_mve import MVE
from tflm_planner.cost.families.esp_nn_s3 import PIE_S3
from tflm_planner.cost.families.reference import REFERENCE

__all__ = ["FAMILIES", "KernelFamily"]

FAMILIES = {family.name: family for family in (REFERENCE, PLAIN, DSP, MVE, PIE_S3)}
