"""The text form of a model: one operator per line, with shapes, types and bytes.

The form is stable: golden tests compare it, and `inspect --text` prints it. Tensors are numbered
per graph in order of first appearance, so that renaming or dropping unused tensors changes little.

    graph 'main' (%0: int8[1,96,96,3]) -> (%5)
      %1: int8[1,48,48,8] 18432B = CONV_2D(%0, #int8[8,3,3,3], #int32[8])

A tensor that no operator writes, because the plan lays it over others, is printed as VIEW before
the operator that first needs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tflm_planner.model.ir import Graph, Model, Op, Tensor


def to_text(model: Model) -> str:
    """The whole model as text, ending in a newline."""
    lines: list[str] = []
    for graph in model.graphs:
        lines += _graph_lines(graph)
    for s in model.signatures:
        ins = ", ".join(n for n, _ in s.inputs)
        outs = ", ".join(n for n, _ in s.outputs)
        lines.append(f"signature {s.key!r} of {s.graph.name!r} ({ins}) -> ({outs})")
    for m in model.metadata:
        size = 0 if m.buffer.data is None else m.buffer.data.size
        lines.append(f"metadata {m.name!r} {size}B")
    return "\n".join(lines) + "\n"


def _graph_lines(graph: Graph) -> list[str]:
    numbers: dict[Tensor, int] = {}
    ins = ", ".join(f"{_ref(t, numbers)}: {_type(t)}" for t in graph.inputs)
    body: list[str] = []
    for op in graph.ops:
        body += _view_lines(op.operands(), numbers)
        body.append(f"  {_op_line(op, numbers)}")
    body += _view_lines(graph.outputs, numbers)
    outs = ", ".join(_ref(t, numbers) for t in graph.outputs)
    return [f"graph {graph.name!r} ({ins}) -> ({outs})", *body]


def _view_lines(needed: Iterable[Tensor], numbers: dict[Tensor, int]) -> Iterator[str]:
    """A line for each needed tensor that no line before has numbered."""
    for t in needed:
        if t not in numbers and not t.is_constant and not t.is_variable:
            yield f"  {_result(t, numbers)} = VIEW"


def _op_line(op: Op, numbers: dict[Tensor, int]) -> str:
    args = ", ".join("-" if t is None else _ref(t, numbers) for t in op.inputs)
    calls = "".join(f" {k}={[g.name for g in v]}" for k, v in op.graphs.items())
    outs = ", ".join(_result(t, numbers) for t in op.outputs)
    return f"{outs or '()'} = {op.kind}({args}){calls}"


def _result(tensor: Tensor, numbers: dict[Tensor, int]) -> str:
    return f"{_ref(tensor, numbers)}: {_type(tensor)} {tensor.nbytes}B"


def _ref(tensor: Tensor, numbers: dict[Tensor, int]) -> str:
    if tensor.is_constant:
        return f"#{_type(tensor)}"
    mark = "$" if tensor.is_variable else "%"
    return f"{mark}{numbers.setdefault(tensor, len(numbers))}"


def _type(tensor: Tensor) -> str:
    return f"{tensor.type_name}[{','.join(map(str, tensor.shape or ()))}]"
