"""Inputs and outputs of both models as terms. A result may take or give integers where the original
has floats (or shifted integers) that stand for them; see `verification.ends`."""

from __future__ import annotations

from tflm_planner.model.ir import Graph, Op, Tensor
from tflm_planner.ops.terms import mixing
from tflm_planner.ops.terms.mixing import Mixer
from tflm_planner.ops.terms.parameters import all_of, quantisation
from tflm_planner.ops.terms.values import InexpressibleError, Symbols, Values

_CONVERSIONS = ("QUANTIZE", "DEQUANTIZE")


def inputs_of_both(
    original: Graph, result: Graph, symbols: Symbols, mixer: Mixer
) -> tuple[list[Values], list[Values], dict[Op, Values]]:
    """Inputs of the original, inputs of the result, and the results of the original's QUANTIZE
    operators that read converted inputs: they give back the integers."""
    result_inputs = [
        symbols.of_name(t.shape or (), "input", i) for i, t in enumerate(result.inputs)
    ]
    original_inputs: list[Values] = []
    requantised: dict[Op, Values] = {}
    for outer, inner, values in zip(original.inputs, result.inputs, result_inputs, strict=True):
        if outer.type == inner.type:
            original_inputs.append(values)
            continue
        name = ("stands for", quantisation(inner), quantisation(outer))
        original_inputs.append(Values(mixer.mix(values.data, mixing.key(*name)), False))
        for op in outer.consumers:
            if op.kind == "QUANTIZE" and quantisation(op.outputs[0]) == quantisation(inner):
                requantised[op] = values
    return original_inputs, result_inputs, requantised


def output_as_original(
    outer: Tensor, inner: Tensor, values: Values, symbols: Symbols, mixer: Mixer
) -> Values:
    """An output of the result, converted as by the operator that makes the original's output."""
    if outer.type == inner.type:
        return values
    op = outer.producer
    if op is None or op.kind not in _CONVERSIONS:
        raise InexpressibleError(f"nothing converts the output {outer.name!r}")
    name = mixing.key(*all_of(op, (inner, outer)))
    return Values(mixer.mix(symbols.elements(values), name), False)
