"""What of a file no TFLM reads, or reads wrong, without an error:

    data outside of the flatbuffer    what AI Edge Quantizer writes behind it, or in another file;
                                      such constants lie in the arena, and nobody fills them
    sparse data                       taken as if it were dense
    several scales                    DEQUANTIZE and EMBEDDING_LOOKUP take the first for all
                                      channels (dequantize_common.cc:47 and embedding_lookup.cc:49
                                      of tflite-micro 90b983c); "weight-only" quantisation has them

FULLY_CONNECTED with several scales depends on the day and the library: `channel_scales`.
"""

from __future__ import annotations

from tflm_planner.model.ir import Op, Tensor

_DEQUANTISED = {"DEQUANTIZE": 0, "EMBEDDING_LOOKUP": 1}
"""Kinds that turn numbers into floats by one scale -> the operand that has the numbers."""
_INSIDE = "`tflm-plan IN OUT` writes them inside"
_ELSEWHERE = "convert the model again, into one file"
_DENSE = "convert it without sparsity"
_REMEDIES = {
    "DEQUANTIZE": "`tflm-plan IN OUT` writes constants as floats, which take more flash; or "
    "quantise activations, too",
    "EMBEDDING_LOOKUP": "quantise activations, too",
}
_OPTIONS_OUTSIDE = f"its options lie outside of the flatbuffer, where TFLM reads none; {_INSIDE}"


def why_unread(tensor: Tensor) -> str | None:
    """Why TFLM does not read a tensor as it is meant; None if it does."""
    if tensor.is_sparse:
        return "TFLM reads sparse tensors as if they were dense"
    if tensor.external_data:
        return "TFLM reads no data of other files"
    if tensor.buffer.external and tensor.is_constant:
        return "TFLM reads no data outside of the flatbuffer"
    return None


def refusals_of_unread(op: Op) -> list[str]:
    """Why TFLM computes garbage of the operands of an operator, and what to do."""
    reasons = (
        *map(_of_operand, op.operands()),
        _OPTIONS_OUTSIDE if op.custom_options_external else None,
        _of_scales(op),
    )
    return [*dict.fromkeys(filter(None, reasons))]


def _of_operand(tensor: Tensor) -> str | None:
    why = why_unread(tensor)
    if why is None:
        return None
    remedy = _DENSE if tensor.is_sparse else _ELSEWHERE if tensor.external_data else _INSIDE
    return f"{why}, and computes garbage; {remedy}"


def _of_scales(op: Op) -> str | None:
    place = _DEQUANTISED.get(op.kind)
    numbers = op.inputs[place] if place is not None and place < len(op.inputs) else None
    if numbers is None or not numbers.quantization.is_per_channel:
        return None
    if op.outputs[0].type_name != "float32":
        return None
    return (
        f"{op.kind} of {numbers.type_name} with a scale for each channel: TFLM takes the first for "
        f"all, and computes garbage; {_REMEDIES[op.kind]}"
    )
