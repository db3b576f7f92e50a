"""Writes CAST of uint8 to float32, which TFLM's kernel does not take, as DEQUANTIZE.

    the bytes of a camera: image uint8 --CAST--> float32 --MUL 1/255-->
    image uint8, scale 1, zero 0 --DEQUANTIZE--> float32 --MUL 1/255-->

A byte of scale 1 stands for itself. Keras writes so what has an input of uint8 and a Rescaling.
This module must not know memory.
"""

from __future__ import annotations

from tflm_planner.model.draft import Draft
from tflm_planner.model.edit import set_quantization
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.model.quantization import Quantization
from tflm_planner.support.words import count


def dequantize_bytes(model: Model) -> list[str]:
    """Replace them; returns a note if there were any."""
    replaced = sum(
        _replace_after(model, graph, tensor) for graph in model.graphs for tensor in graph.tensors
    )
    if not replaced:
        return []
    operators = count(replaced, "CAST", "CASTs")
    return [f"{operators} of uint8 to float32 written as DEQUANTIZE of scale 1"]


def _replace_after(model: Model, graph: Graph, data: Tensor) -> int:
    """Replace the CASTs of a tensor if nothing else reads it; returns how many."""
    readers = list(data.consumers)
    if data.type_name != "uint8" or data.quantization.scales or data.is_constant:
        return 0
    if data in graph.outputs or not readers or not all(map(_is_cast, readers)):
        return 0
    set_quantization(data, Quantization.of([1.0], 0))
    for op in readers:
        draft = Draft(model, graph)
        draft.op("DEQUANTIZE", [data], op.outputs)
        draft.commit([op])
    return len(readers)


def _is_cast(op: Op) -> bool:
    """Whether it is a CAST to float32 that changes no shape."""
    if op.kind != "CAST" or len(op.inputs) != 1 or len(op.outputs) != 1:
        return False
    (data,), (result,) = op.operands(), op.outputs
    if data.is_variable or result.is_variable:
        return False
    return result.type_name == "float32" and data.shape == result.shape
