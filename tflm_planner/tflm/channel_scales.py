"""FULLY_CONNECTED with per-channel quantisation, a scale for each channel of its weights, which
TensorFlow's converter writes since 2024, and which few of TFLM's kernels take:

    before 28 May 2024     the first scale is taken for all channels, whose sums are then wrong
    until 27 September     refused
    from then on           weights of int8; beside data of int16 since March 2025, but not with
                           CMSIS-NN, whose Prepare refuses it (cmsis_nn/fully_connected.cc:115 of
                           tflite-micro 90b983c); with ESP-NN the first scale was taken until
                           February 2025. Weights of int4 are refused

A convolution of one pixel computes the same, and takes such scales in every TFLM
(`transforms/substitutes/convolve_rows`). Source: git log of fully_connected_common.cc, and of
esp_nn of esp-tflite-micro. The days are in data/history.toml.
"""

from __future__ import annotations

from datetime import date

from tflm_planner.model.ir import Op
from tflm_planner.ops.roles import ROWS_BY_MATRIX
from tflm_planner.tflm.kernels import LIBRARIES, library_of
from tflm_planner.tflm.targets import Target
from tflm_planner.tflm.versions import can, day_of, since_behaviour

_REMEDY = (
    "`tflm-plan IN OUT` mostly writes it as a CONV_2D, which takes them; or convert with "
    "converter._experimental_disable_per_channel_quantization_for_dense_layers = True"
)


def refusal_of_channel_scales(op: Op, target: Target) -> str | None:
    """Why the target's TFLM cannot run a FULLY_CONNECTED of weights with a scale for each channel,
    or computes garbage, and what to do; None if it takes it, or for any other operator."""
    if takes_channel_scales(op, target):
        return None
    data, weights = (t.type_name for t in op.operands()[:2])
    types = f"{ROWS_BY_MATRIX} of {data} and {weights} with a scale for each channel"
    first = channel_scales_since(op, target)
    if first is None:
        return f"{types}: {library_of(target).title or 'TFLM'} takes one scale for all; {_REMEDY}"
    shared = LIBRARIES["reference"].channel_scales[data]
    if can(target, "refuses_scales_of_channels") and not can(target, shared):
        return f"{types}: TFLM of {day_of(target)} refuses it (since {first}); {_REMEDY}"
    return (
        f"{types}: TFLM of {day_of(target)} takes the first scale for all channels, and computes "
        f"garbage (right since {first}); {_REMEDY}"
    )


def takes_channel_scales(op: Op, target: Target) -> bool:
    """Whether the target's kernel computes an operator with all scales of its weights, as far as is
    known; true for any operator without such scales."""
    if not has_channel_scales(op):
        return True
    first = channel_scales_since(op, target)
    return first is not None and day_of(target) >= first


def channel_scales_since(op: Op, target: Target) -> date | None:
    """The day from which the target's kernel computes an operator with all scales of its weights:
    `date.min` if it always did, or if nobody knows; None if it does not today."""
    library = library_of(target)
    if not has_channel_scales(op) or not library.is_exact:
        return date.min
    data, weights = op.operands()[:2]
    behaviour = library.channel_scales.get(data.type_name)
    return None if behaviour is None or weights.type_name == "int4" else since_behaviour(behaviour)


def has_channel_scales(op: Op) -> bool:
    """Whether it is a FULLY_CONNECTED of integers whose weights have several scales."""
    if op.kind != ROWS_BY_MATRIX or len(op.inputs) < 2:
        return False
    data, weights = op.inputs[:2]
    if data is None or weights is None or len(weights.quantization.scales) < 2:
        return False
    return data.type_name in ("int8", "int16") and weights.type_name in ("int8", "int4")
