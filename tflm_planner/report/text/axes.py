"""Renders, for people, the axes along which the cells of a graph can be split.

    cell 1: operators 4 to 7
         3  ADD                      1  32 A  32 B  16 C
         4  CONV_2D                  1  16 A  16 B  32 D   sums over C
    A   32 16  whole cell            exact: --split 4-7:rows=N
    C   16     summed up by 4, 6     NOT exact: --split 4:sum=N --allow-inexact

Axes with the same letter are split together or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, islice
from string import ascii_uppercase

from tflm_planner.model.ir import Graph, Op, Tensor
from tflm_planner.report.text.words import shorten
from tflm_planner.transforms.axis_graph import (
    REDUCE,
    Axis,
    Vertex,
    axis_graph,
    cells,
    schemes_along,
)

_NAME = 30
_NAMES = {1: "rows", 2: "columns", 3: "channels"}


def axes_text(graph: Graph) -> str:
    """The axes of each cell of a graph: one line for each tensor, then one for each axis."""
    position = {op: i for i, op in enumerate(graph.ops)}
    lines = [
        "Axes with one letter are split together or not at all; a length without a letter cannot "
        "be split.",
        "",
    ]
    for number, cell in enumerate(cells(graph)):
        lines += [*_Cell(graph, number, cell, position).lines(), ""]
    return "\n".join(line.rstrip() for line in lines)


def _letters() -> Iterator[str]:
    """Yield A to Z, then A1 to Z1, and so on."""
    for round_ in count():
        yield from (c + (str(round_) if round_ else "") for c in ascii_uppercase)


class _Cell:
    def __init__(
        self, graph: Graph, number: int, ops: Sequence[Op], position: dict[Op, int]
    ) -> None:
        self._graph, self._number, self._ops, self._position = graph, number, ops, position
        axes = [a for a in axis_graph(ops).axes() if a.sizes[:1] != (1,)]
        names = islice(_letters(), len(axes))
        self._axes = sorted(zip(names, axes, strict=True), key=lambda p: p[0])
        self._of = {v: letter for letter, axis in self._axes for v in axis.vertices}

    def lines(self) -> Iterator[str]:
        """Yield lines for the cell, its tensors and its axes."""
        first, last = (self._position[op] for op in (self._ops[0], self._ops[-1]))
        operators = f"operator {first}" if first == last else f"operators {first} to {last}"
        yield f"cell {self._number}: {operators}"
        results = {t for op in self._ops for t in op.outputs}
        entering = [
            t for op in self._ops for t in op.operands() if not t.is_constant and t not in results
        ]
        for t in dict.fromkeys(entering):
            yield self._tensor(t)
        for op in self._ops:
            for t in op.outputs:
                yield self._tensor(t)
        for letter, axis in self._axes:
            yield self._axis(letter, axis)
        if not self._axes:
            yield "    no axis can be split"

    def _tensor(self, tensor: Tensor) -> str:
        op = tensor.producer
        index = "in" if op is None else str(self._position[op])
        kind = "" if op is None else op.kind
        cells = [
            f"{size:>5} {self._of.get(Vertex(tensor, axis + 1), ''):<2}"
            for axis, size in enumerate(tensor.shape or ())
        ]
        summed = self._of.get(Vertex(tensor, REDUCE), "")
        inside = op is not None and any(op is o for o in self._ops)
        sums = f"  sums over {summed}" if summed and inside else ""
        name = shorten(tensor.name, _NAME)
        return f"  {index:>4}  {kind:<18}  {name:<{_NAME}}  {''.join(cells)}{sums}"

    def _axis(self, letter: str, axis: Axis) -> str:
        length = " ".join(map(str, axis.sizes))
        line = f"  {letter:>4}  length {length:<12}"
        if axis.reduces:
            by = ", ".join(str(self._position[op]) for op in axis.reduces)
            line += f"  summed up by {by}"
        return f"{line}  {self._verdict(axis)}"

    def _verdict(self, axis: Axis) -> str:
        """Whether the operators with this axis can be split along it, and with which option."""
        ops = [op for op in self._ops if self._runs_through(op, axis)]
        if not ops:
            return "of what enters alone"
        scheme = schemes_along(self._graph, ops, axis, 2)
        faults = scheme.faults()
        span = _spans([self._position[op] for op in ops])
        inner = [op for op in axis.reduces if not {*op.outputs} & {*scheme.outputs}]
        if inner:
            by = ", ".join(str(self._position[op]) for op in inner)
            return f"not in one piece: {by} sums over it on the way"
        if faults:
            return f"not in one piece: {faults[0]}"
        if scheme.exact and self._length(scheme.outputs, axis) < 2:
            return "its results have length 1"
        if not scheme.exact:
            return f"NOT exact: --split {span}:sum=N --allow-inexact"
        return f"exact: --split {span}:{self._axis_name(scheme.outputs, axis)}=N"

    def _runs_through(self, op: Op, axis: Axis) -> bool:
        touched = {v.tensor for v in axis.vertices}
        return any(t in touched for t in op.outputs)

    def _length(self, outputs: Sequence[Tensor], axis: Axis) -> int:
        ends = {v for v in axis.vertices if v.axis != REDUCE and v.tensor in outputs}
        return max(((v.tensor.shape or ())[v.axis - 1] for v in ends), default=0)

    def _axis_name(self, outputs: Sequence[Tensor], axis: Axis) -> str:
        places = {v.axis - 1 for t in outputs for v in axis.vertices if v.tensor is t}
        ranks = {len(t.shape or ()) for t in outputs}
        place = min(places, default=0)
        return _NAMES.get(place, f"axis{place}") if ranks == {4} else f"axis{place}"


def _spans(numbers: Sequence[int]) -> str:
    """Positions in the form of --split, as in "4,6-8"."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    return ",".join(str(r[0]) if len(r) == 1 else f"{r[0]}-{r[-1]}" for r in runs)
