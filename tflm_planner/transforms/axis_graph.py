"""The Axis Connecting Graph: along which axes parts of a graph can be split together.

    u (N, C) --FULLY_CONNECTED--> v (N, K)     u@1 -- v@1   the same spatial axis
                                               u@2 -- v@0   the reduce axis of v

Vertices are (tensor, axis), where axes count from 1 as in the paper; (tensor, 0) is the reduce axis
of the operator that makes the tensor. Connected axes are split together or not at all. The graph is
built from the operators' axis maps alone. Source: MOTES, section 4.3. It must not change a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tflm_planner.model.ir import Graph, Op, Tensor
from tflm_planner.ops.axes import axis_map

REDUCE = 0
"""The number that stands for the reduce axis of an operator."""


@dataclass(frozen=True, slots=True)
class Vertex:
    """An axis of a tensor: `axis` counts from 1; REDUCE is the reduce axis of its operator."""

    tensor: Tensor
    axis: int


@dataclass(frozen=True)
class Axis:
    """A connected component of the axis connecting graph: one axis of a part of the graph.

    names: its vertices in running order, as "name@axis". sizes: the distinct lengths along it, the
    longest first. reduces: the operators that sum over it.
    """

    vertices: frozenset[Vertex]
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    reduces: tuple[Op, ...]


@dataclass(frozen=True)
class AxisGraph:
    """The axis connecting graph of some operators. positions: the tensors in running order,
    numbered. edges: the neighbours of each vertex, in both directions."""

    positions: dict[Tensor, int]
    edges: dict[Vertex, frozenset[Vertex]]

    def axes(self) -> list[Axis]:
        """The axes: connected components with more than one vertex, the largest first."""
        axes: list[Axis] = []
        seen: set[Vertex] = set()
        for start in self.edges:
            if start not in seen:
                group = self._walk_component(start)
                seen.update(group)
                if len(group) > 1:
                    axes.append(self._axis(group))
        return sorted(axes, key=lambda a: -len(a.vertices))

    def axis_of(self, vertex: Vertex) -> Axis | None:
        """The axis that a vertex belongs to; None if it is not connected to any other."""
        return self._axis(self._walk_component(vertex)) if self.edges.get(vertex) else None

    def _walk_component(self, start: Vertex) -> list[Vertex]:
        group, seen = [start], {start}
        for vertex in group:
            fresh = sorted(self.edges[vertex] - seen, key=self._rank)
            seen.update(fresh)
            group += fresh
        return group

    def _rank(self, vertex: Vertex) -> tuple[int, int]:
        return self.positions[vertex.tensor], vertex.axis

    def _axis(self, group: Sequence[Vertex]) -> Axis:
        ordered = sorted(group, key=self._rank)
        names = tuple(f"{v.tensor.name}@{v.axis}" for v in ordered)
        sizes = {(v.tensor.shape or ())[v.axis - 1] for v in group if v.axis != REDUCE}
        makers = (v.tensor.producer for v in ordered if v.axis == REDUCE)
        reduces = tuple(op for op in makers if op is not None)
        return Axis(frozenset(group), names, tuple(sorted(sizes, reverse=True)), reduces)


def axis_graph(ops: Iterable[Op]) -> AxisGraph:
    """The graph of the operators' tensors that are not constant."""
    positions: dict[Tensor, int] = {}
    edges: dict[Vertex, set[Vertex]] = {}

    def join(a: Vertex, b: Vertex) -> None:
        edges.setdefault(a, set()).add(b)
        edges.setdefault(b, set()).add(a)

    for op in ops:
        operands = [t for t in op.operands() if not t.is_constant]
        for t in (*operands, *op.outputs):
            positions.setdefault(t, len(positions))
            for axis in range(len(t.shape or ())):
                edges.setdefault(Vertex(t, axis + 1), set())
        axes = axis_map(op)
        for link in axes.links:
            operand, result = op.inputs[link.operand], op.outputs[link.result]
            if operand is not None and not operand.is_constant:
                join(Vertex(operand, link.axis + 1), Vertex(result, link.out_axis + 1))
        for operand_index, axis in axes.reduces:
            operand = op.inputs[operand_index]
            if operand is not None and not operand.is_constant:
                join(Vertex(operand, axis + 1), Vertex(op.outputs[0], REDUCE))
    return AxisGraph(positions, {v: frozenset(near) for v, near in edges.items()})


@dataclass(frozen=True)
class PartitionScheme:
    """MOTES's p = (S, A, V_I, V_O, n): the operators `ops` are split along `axis` into `parts`;
    SLICE splits the tensors `inputs`, and CONCATENATION (or ADD, along a reduce axis) joins the
    parts of the tensors `outputs`."""

    ops: tuple[Op, ...]
    axis: Axis
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    parts: int

    def faults(self) -> list[str]:
        """The reasons why the scheme is invalid; empty if both conditions of MOTES hold and every
        operator can compute a part of its result along the axis."""
        final = set(self.outputs)
        touched = {v.tensor for v in self.axis.vertices}
        reasons = [
            f"output {t.name!r} is neither split nor reduced along the axis"
            for t in self.outputs
            if t not in touched
        ]
        reasons += [
            f"{op.label} is no output and would be split along its reduce axis"
            for op in self.ops
            for t in op.outputs
            if t not in final and Vertex(t, REDUCE) in self.axis.vertices
        ]
        return reasons + [
            f"{op.label} cannot compute a part of axis {v.axis} of its result"
            for op in self.ops
            for i, t in enumerate(op.outputs)
            for v in sorted(self.axis.vertices & _vertices(t), key=lambda v: v.axis)
            if v.axis != REDUCE
            and (t.shape or ())[v.axis - 1] > 1
            and not axis_map(op).links_of(v.axis - 1, i)
        ]

    @property
    def exact(self) -> bool:
        """Whether every element is still computed by one sum: no reduce axis is split."""
        return not any(Vertex(t, REDUCE) in self.axis.vertices for t in self.outputs)


def _vertices(tensor: Tensor) -> frozenset[Vertex]:
    rank = len(tensor.shape or ())
    return frozenset(Vertex(tensor, axis) for axis in range(REDUCE, rank + 1))


def schemes_along(graph: Graph, ops: Sequence[Op], axis: Axis, parts: int) -> PartitionScheme:
    """The scheme that splits `ops` (of `graph`) along an axis: its inputs and outputs are the
    tensors that enter and leave `ops`."""
    inner = set(ops)
    results = {t for op in ops for t in op.outputs}
    touched = {v.tensor for v in axis.vertices if v.axis != REDUCE}
    inputs = dict.fromkeys(
        t
        for op in ops
        for t in op.operands()
        if not t.is_constant and t not in results and t in touched
    )
    graph_outputs = set(graph.outputs)
    outputs = [
        t
        for op in ops
        for t in op.outputs
        if t in graph_outputs or any(c not in inner for c in t.consumers)
    ]
    return PartitionScheme(tuple(ops), axis, tuple(inputs), tuple(outputs), parts)


LONGEST_CELL = 40
"""Number of operators. In networks whose cells read the two cells before them, single cells are
shorter than this."""


def cells(graph: Graph) -> list[list[Op]]:
    """The operators in running order, cut into cells wherever later operators need only a single
    tensor; adjacent cells without branches are merged. Cells longer than LONGEST_CELL are cut where
    later operators need two tensors (as in NASNet), if that makes them shorter."""
    cells_so_far: list[list[Op]] = []
    for cell in _cut_where(graph, graph.ops, 1):
        finer = _cut_where(graph, cell, 2) if len(cell) > LONGEST_CELL else [cell]
        cells_so_far += finer
    return cells_so_far


def _cut_where(graph: Graph, ops: Sequence[Op], width: int) -> list[list[Op]]:
    """The operators in running order, cut after each branching part where later operators need at
    most `width` of their results."""
    last_use = _last_uses(graph)
    position = {op: i for i, op in enumerate(graph.ops)}
    alive: set[Tensor] = set()
    groups: list[list[Op]] = [[]]
    branching = False
    for op in ops:
        groups[-1].append(op)
        alive |= set(op.outputs)
        alive = {t for t in alive if last_use.get(t, -1) > position[op]}
        if len(alive) > width:
            branching = True
        elif branching:
            groups.append([])
            branching = False
    return [cell for cell in groups if cell]


def blocks(graph: Graph) -> list[list[Op]]:
    """The operators in running order, cut wherever later operators need only a single tensor that
    is no larger than those at the neighbouring cut points. So an inverted bottleneck is one block,
    with or without its residual."""
    ends = _cut_points(graph)
    sizes = [graph.ops[i].outputs[0].nbytes for i in ends]
    narrow = [
        end
        for k, end in enumerate(ends[:-1])
        if sizes[k] <= min(sizes[max(k - 1, 0)], sizes[k + 1]) and (k or sizes[0] < sizes[1])
    ]
    blocks_so_far: list[list[Op]] = []
    start = 0
    for end in (*narrow, len(graph.ops) - 1):
        blocks_so_far.append(graph.ops[start : end + 1])
        start = end + 1
    return [block for block in blocks_so_far if block]


def _cut_points(graph: Graph) -> list[int]:
    """Positions of operators whose result is the only tensor that later operators need."""
    last_use = _last_uses(graph)
    alive: set[Tensor] = set()
    positions: list[int] = []
    for i, op in enumerate(graph.ops):
        alive |= set(op.outputs)
        alive = {t for t in alive if last_use.get(t, -1) > i}
        waiting = any(last_use.get(t, -1) > i for t in graph.inputs)
        if len(alive) == 1 and op.outputs[0] in alive and not waiting:
            positions.append(i)
    return positions


def _last_uses(graph: Graph) -> dict[Tensor, int]:
    last_use: dict[Tensor, int] = {}
    for i, op in enumerate(graph.ops):
        for t in op.operands():
            last_use[t] = i
    return last_use | {t: len(graph.ops) for t in graph.outputs}
