"""Products of int16 with a bias of int32, which few of TFLM's kernels read as such; the others read
it as int64, beyond its end, and say nothing:

    CONV_2D             the reference kernel; CMSIS-NN's since 29 April 2024
    FULLY_CONNECTED     the reference kernel since 17 March 2025; CMSIS-NN's never
                        (EvalQuantizedInt16, cmsis_nn/fully_connected.cc of tflite-micro 90b983c)
    DEPTHWISE_CONV_2D, TRANSPOSE_CONV     none

Converters write int64 unless they are told otherwise.
"""

from __future__ import annotations

from datetime import date

from tflm_planner.model.ir import Op
from tflm_planner.ops.roles import PRODUCTS
from tflm_planner.tflm.kernels import library_of
from tflm_planner.tflm.targets import Target
from tflm_planner.tflm.versions import day_of, since_behaviour


def refusal_of_narrow_bias(op: Op, target: Target) -> str | None:
    """Why the target's TFLM computes garbage of a product of int16 with a bias of int32, and what
    to do; None if it reads such a bias, as far as is known, and for any other operator."""
    first = narrow_bias_since(op, target)
    if first is not None and day_of(target) >= first:
        return None
    library = library_of(target)
    return (
        f"{op.kind} of int16 with a bias of int32: {library.title or 'TFLM'} of {day_of(target)} "
        "reads it as int64, and computes garbage; convert without "
        "converter._experimental_full_integer_quantization_bias_type, which leaves int64"
    )


def narrow_bias_since(op: Op, target: Target) -> date | None:
    """The day from which the target's kernel reads the bias of an operator as int32, if that is
    what it is: `date.min` if it always did, if nobody knows, or if the bias is another; None if it
    does not today."""
    library = library_of(target)
    if not has_narrow_bias(op) or not library.is_exact:
        return date.min
    if op.kind not in library.narrow_biases:
        return None
    behaviour = library.narrow_biases[op.kind]
    return date.min if behaviour is None else since_behaviour(behaviour)


def has_narrow_bias(op: Op) -> bool:
    """Whether it is a product of int16 with a bias of int32."""
    roles = PRODUCTS.get(op.kind)
    if roles is None or len(op.inputs) <= roles.bias:
        return False
    data, bias = op.inputs[roles.data], op.inputs[roles.bias]
    if data is None or bias is None:
        return False
    return data.type_name == "int16" and bias.type_name == "int32"
