"""Operators that TFLM has, in place of those that it lacks or computes wrongly, with equal bits.

    STABLEHLO_COMPOSITE                     what it is composed of       inline_composites
    TILE                                    RESIZE_NEAREST_NEIGHBOR      resize_repeats
    constants of float16, or of int8 that   constants of float32         widen_constants
    have a scale for each channel
    FILL of bool or int16                   constants                    fold_fills
    EXPAND_DIMS and SQUEEZE of bool         RESHAPE                      reshape_axes
    CAST of uint8 to float32                DEQUANTIZE of scale 1        dequantize_bytes
    REDUCE_MAX of int16                     MAX_POOL_2D                  pool_maxima
    SELECT                                  SELECT_V2                   select_v2
    SELECT_V2 of int32                      sums and products            select_integers
    ONE_HOT                                 EQUAL and SELECT_V2          one_hot
    convolutions of parts of images         dilated convolutions         fold_dilation
    STRIDED_SLICE of many axes              of fewer                     merge_axes
    CONCATENATION of many operands          several of few               join_in_parts
    FULLY_CONNECTED with many scales        CONV_2D                      convolve_rows

All but the last are what no TFLM runs: `substitute` writes them. For the last the target counts.
(What LiteRT has to be asked is in `verification/declare` and `verification/tabulate`.)
"""

from __future__ import annotations

from tflm_planner.model.ir import Model
from tflm_planner.transforms.substitutes.dequantize_bytes import dequantize_bytes
from tflm_planner.transforms.substitutes.fold_dilation import fold_dilations
from tflm_planner.transforms.substitutes.fold_fills import fold_fills
from tflm_planner.transforms.substitutes.inline_composites import inline_composites
from tflm_planner.transforms.substitutes.join_in_parts import join_in_parts
from tflm_planner.transforms.substitutes.merge_axes import merge_sliced_axes
from tflm_planner.transforms.substitutes.one_hot import compare_for_one_hot
from tflm_planner.transforms.substitutes.pool_maxima import pool_maxima
from tflm_planner.transforms.substitutes.reshape_axes import reshape_axes
from tflm_planner.transforms.substitutes.resize_repeats import resize_repeats
from tflm_planner.transforms.substitutes.select_integers import select_integers
from tflm_planner.transforms.substitutes.select_v2 import select_v2
from tflm_planner.transforms.substitutes.widen_constants import widen_constants

_FOR_ALL_TARGETS = (
    inline_composites, fold_fills, widen_constants, dequantize_bytes, reshape_axes, pool_maxima,
    select_v2, select_integers, compare_for_one_hot, fold_dilations, merge_sliced_axes,
    resize_repeats, join_in_parts,
)  # fmt: skip


def substitute(model: Model) -> list[str]:
    """Write what no TFLM runs in what it has; returns notes on what was done."""
    return [note for rewrite in _FOR_ALL_TARGETS for note in rewrite(model)]
