"""Advice about operators that a runtime lacks, or that it does not support for some types, for the
person who builds and converts the model. It must not know runtimes."""

from __future__ import annotations

from tflm_planner.model.ir import Op

FREE_BATCH = (
    "it mostly counts a batch that was left free: `tflm-plan IN OUT` computes that ahead; else "
    "convert a function of a fixed batch, with TFLiteConverter.from_concrete_functions"
)
_APPLICATION = "leave it to the application"
_FLOAT_ALONE = f"keep it in float, behind a DEQUANTIZE, or {_APPLICATION}"
_REMEDIES = {
    "TILE": "`tflm-plan IN OUT` writes it as RESIZE_NEAREST_NEIGHBOR where it repeats int8, int16 "
    "or float32; repeat other types by concatenating",
    "FILL": f"make what it fills a constant of the model, or {_APPLICATION}",
    "ELU": "take RELU, LEAKY_RELU or HARD_SWISH, or keep it in float",
    "EXP": f"take SOFTMAX or LOGISTIC where one is meant; else {_FLOAT_ALONE}",
    "SQRT": _FLOAT_ALONE,
    "RSQRT": _FLOAT_ALONE,
    "ARG_MAX": "ask for numbers of int32 (tf.argmax(..., output_type=tf.int32)), or leave it to "
    "the application, which finds the largest output in a line",
    "SELECT": "`tflm-plan IN OUT` writes it as SELECT_V2 where all operands have one shape",
    "STABLEHLO_COMPOSITE": "`tflm-plan IN OUT` writes the operators of its sub-graph instead",
    "SELECT_V2": "compute both branches, and add them up weighted by the mask",
}
"""Advice by kind of operator; for other kinds the only advice is to avoid them."""
_PLANNED = "`tflm-plan IN OUT`"
_TABLE = f"{_PLANNED} looks it up in a table of 256 numbers"
_WRITTEN = {
    ("EXP", "int8"): _TABLE,
    ("GELU", "int8"): _TABLE,
    ("LOG", "int8"): _TABLE,
    ("RELU_0_TO_1", "int8"): _TABLE,
    ("SQRT", "int8"): _TABLE,
    ("SELECT_V2", "int32"): f"{_PLANNED} writes it as sums and products",
    ("FILL", "bool"): f"{_PLANNED} computes it ahead where it fills with a constant",
    ("FILL", "int16"): f"{_PLANNED} computes it ahead where it fills with a constant",
    ("EXPAND_DIMS", "bool"): f"{_PLANNED} writes it as RESHAPE",
    ("SQUEEZE", "bool"): f"{_PLANNED} writes it as RESHAPE",
    ("CAST", "uint8"): f"{_PLANNED} writes one to float32 as DEQUANTIZE",
    ("REDUCE_MAX", "int16"): f"{_PLANNED} writes it as MAX_POOL_2D where axes lie side by side",
}
"""What becomes of operators that TFLM does not take, by kind and a type of a tensor."""
_IN_FLOAT = {
    "ELU": "take RELU, LEAKY_RELU or HARD_SWISH",
    "EXP": f"take SOFTMAX or LOGISTIC where one is meant; else {_APPLICATION}",
    "SQRT": _APPLICATION,
    "RSQRT": _APPLICATION,
}
"""The same for operators that are in float as they are."""
_COUNTS = ("int32", "int64")
"""Types of counts and indices."""


def remedy_of(op: Op) -> str | None:
    """Advice about this operator; None if there is none for its kind."""
    remedy = _REMEDIES.get(op.kind)
    types = {t.type_name for t in (*op.operands(), *op.outputs)}
    if counts_a_shape(op):
        return f"{FREE_BATCH}; or {remedy}" if op.kind == "TILE" else FREE_BATCH
    return _IN_FLOAT.get(op.kind, remedy) if types == {"float32"} else remedy


def written_as(op: Op) -> str | None:
    """What a plan writes in place of an operator that TFLM does not take; None if it stays."""
    types = [t.type_name for t in (*op.operands(), *op.outputs)]
    return next((_WRITTEN[op.kind, t] for t in types if (op.kind, t) in _WRITTEN), None)


def counts_a_shape(op: Op) -> bool:
    """Whether integers that this operator reads come of a SHAPE: that operator is in a file only
    where an axis, mostly the batch, was left free."""
    waiting = [t for t in op.operands() if t.type_name in _COUNTS]
    seen = set(waiting)
    while waiting:
        maker = waiting.pop().producer
        if maker is None:
            continue
        if maker.kind == "SHAPE":
            return True
        more = [t for t in maker.operands() if t.type_name in _COUNTS and t not in seen]
        seen.update(more)
        waiting += more
    return False
