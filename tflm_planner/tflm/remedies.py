"""Advice about operators that a runtime lacks, or that it does not support for some types, for the
person who builds and converts the model. It must not know runtimes."""

from __future__ import annotations

FREE_BATCH = (
    "it mostly counts a batch that was left free: convert a function of a fixed batch, with "
    "TFLiteConverter.from_concrete_functions"
)
_FLOAT_ALONE = "keep it in float, behind a DEQUANTIZE, or leave it to the application"
REMEDIES = {
    "TILE": f"{FREE_BATCH}; or repeat by concatenating, or by resizing to the nearest neighbour",
    "FILL": FREE_BATCH,
    "PACK": FREE_BATCH,
    "STRIDED_SLICE": FREE_BATCH,
    "ELU": "take RELU, LEAKY_RELU or HARD_SWISH, or keep it in float",
    "EXP": f"take SOFTMAX or LOGISTIC where one is meant; else {_FLOAT_ALONE}",
    "SQRT": _FLOAT_ALONE,
    "RSQRT": _FLOAT_ALONE,
    "ARG_MAX": "leave it to the application, which finds the largest output in a line",
    "SELECT_V2": "compute both branches, and add them up weighted by the mask",
}
"""Advice by kind of operator; for other kinds the only advice is to avoid them."""
