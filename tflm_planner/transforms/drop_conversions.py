"""Gives a model's inputs and outputs the types in which it computes.

    x float32 --QUANTIZE--> x' int8 --CONV_2D ...-- y' int8 --DEQUANTIZE--> y float32
                            x int8  --CONV_2D ...-- y  int8

Converters by default make the inputs and outputs of an integer network float32: the input then
takes four bytes per element, which often fills the arena, and there are two more operators. Without
them the application converts: q = round(x / scale) + zero point, x = scale * (q - zero point); for
a camera's bytes a subtraction often suffices. Names are kept, so that applications find their
tensors. For the same integers the network computes the same bits. This module must not know memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tflm_planner.model.edit import drop_operators, move_end, rename
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.model.number_formats import is_shifted

_INTEGERS = frozenset({"int8", "uint8", "int16"})


GraphSide = Literal["input", "output"]


@dataclass(frozen=True, slots=True)
class ConvertedEnd:
    """An input or output whose type changed. type: the new type. was: the old type. A number q of
    the new type stands for scale * (q - zero_point). shift: the number to add to a byte of the old
    type to get one of the new type; None if the old type is float32."""

    side: GraphSide
    name: str
    type: str
    was: str
    scale: float
    zero_point: int
    shift: int | None = None

    def __str__(self) -> str:
        return (
            f"{self.side} {self.name!r} is {self.type} now, and was {self.was}: "
            f"the application converts, {self._rule}"
        )

    @property
    def _rule(self) -> str:
        """The formula that turns an outside value x into the number q, or q into x."""
        if self.shift is not None:
            return f"q = x {self.shift:+d}" if self.side == "input" else f"x = q {-self.shift:+d}"
        if self.side == "input":
            return f"q = round(x / {self.scale:.9g}) {self.zero_point:+d}"
        return f"x = {self.scale:.9g} * (q {-self.zero_point:+d})"


def drop_conversions(model: Model) -> list[ConvertedEnd]:
    """Drop QUANTIZE and DEQUANTIZE at the inputs and outputs of the main graph where the
    application can convert without loss. Returns the inputs and outputs whose types changed."""
    graph = model.main
    converted: list[ConvertedEnd] = []
    for tensor in list(graph.inputs):
        inner = inner_input(graph, tensor)
        if inner is not None:
            converted.append(_converted_end("input", tensor, inner))
            _drop_input_conversion(model, graph, tensor, inner)
    for tensor in list(graph.outputs):
        inner = inner_output(graph, tensor)
        if inner is not None:
            converted.append(_converted_end("output", tensor, inner))
            _drop_output_conversion(model, graph, tensor, inner)
    return converted


def inner_input(graph: Graph, tensor: Tensor) -> Tensor | None:
    """The tensor of integers into which the network first converts an input; None if it also reads
    the input itself, converts it in several ways, or if the types are equal."""
    results = [op.outputs[0] for op in tensor.consumers if op.kind == "QUANTIZE"]
    if not results or len(results) < len(tensor.consumers) or tensor in graph.outputs:
        return None
    first = results[0]
    ends = {*graph.inputs, *graph.outputs}
    single = first.quantization.single
    alike = all(
        t.type == first.type and t.quantization.single == single and t not in ends for t in results
    )
    return first if alike and _is_plain(tensor, first) else None


def inner_output(graph: Graph, tensor: Tensor) -> Tensor | None:
    """The tensor of integers from which the network finally makes an output; None if an operator
    also reads the output, or if that tensor itself is an input, output or constant."""
    op = tensor.producer
    if op is None or op.kind not in ("QUANTIZE", "DEQUANTIZE") or tensor.consumers:
        return None
    operand = op.inputs[0]
    if operand is None or operand.producer is None or graph.outputs.count(tensor) != 1:
        return None
    if operand in graph.outputs or operand.is_constant:
        return None
    return operand if _is_plain(tensor, operand) else None


def _is_plain(outer: Tensor, inner: Tensor) -> bool:
    """Whether every integer inside stands for exactly one value outside."""
    if inner.type_name not in _INTEGERS or inner.quantization.single is None:
        return False
    if outer.is_variable or inner.is_variable or outer.shape != inner.shape:
        return False
    return outer.type_name == "float32" or is_shifted(outer, inner)


def _drop_input_conversion(model: Model, graph: Graph, outer: Tensor, inner: Tensor) -> None:
    conversions = list(outer.consumers)
    move_end(model, graph, outer, inner)
    rename(inner, outer.name)
    same = {op.outputs[0]: inner for op in conversions if op.outputs[0] is not inner}
    drop_operators(model, graph, conversions, same)


def _drop_output_conversion(model: Model, graph: Graph, outer: Tensor, inner: Tensor) -> None:
    conversion: Op | None = outer.producer
    assert conversion is not None
    move_end(model, graph, outer, inner)
    rename(inner, outer.name)
    drop_operators(model, graph, [conversion])


def _converted_end(side: GraphSide, outer: Tensor, inner: Tensor) -> ConvertedEnd:
    inside, outside = inner.quantization.single, outer.quantization.single
    assert inside is not None
    scale, zero = inside
    if outer.type_name == "float32":
        outside = None
    shift = None if outside is None else zero - outside[1]
    return ConvertedEnd(
        side=side,
        name=outer.name,
        type=inner.type_name,
        was=outer.type_name,
        scale=scale,
        zero_point=zero,
        shift=shift,
    )
