"""Runs the operators in an order with a smaller peak of live bytes.

Every graph is ordered, bodies before the graphs that call them: a body's peak is the workspace
of its caller. Operators with side effects keep their order against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tflm_planner.ir import Graph, Model, Op, Tensor
from tflm_planner.ops import has_side_effects, sharings
from tflm_planner.planning.lifetimes import TrailRule, no_trails, planned_bytes
from tflm_planner.planning.order import Absorb, Dag, Node, OrderResult
from tflm_planner.rewriter import reorder
from tflm_planner.tflm.scratch import ScratchModel
from tflm_planner.units import ALIGNMENT, align_up

OrderSearch = Callable[[Dag], OrderResult]


@dataclass(frozen=True)
class Reorder:
    """search: from a DAG to an order. scratch_of, trails_of: the target's kernel scratch, and
    what its kernels may overlap."""

    search: OrderSearch
    scratch_of: ScratchModel
    trails_of: TrailRule = no_trails

    def apply(self, model: Model) -> list[str]:
        """Order every graph; see `results` for what the search said of them."""
        self.results(model)
        return []

    def results(self, model: Model) -> dict[int, OrderResult]:
        """Order every graph; graph identity -> what the search found."""
        found: dict[int, OrderResult] = {}
        for graph in called_first(model):
            peaks = {key: result.peak for key, result in found.items()}
            result = self.search(dag_of(graph, peaks, self.scratch_of, self.trails_of))
            found[id(graph)] = result
            reorder(graph, [graph.ops[i] for i in result.order])
        return found


def called_first(model: Model) -> list[Graph]:
    """The graphs, each after all that it calls."""
    done: dict[int, Graph] = {}

    def visit(graph: Graph) -> None:  # as deep as control flow is nested
        if id(graph) not in done:
            for op in graph.ops:
                for called in op.called():
                    visit(called)
            done[id(graph)] = graph

    for graph in model.graphs:
        visit(graph)
    return list(done.values())


def dag_of(
    graph: Graph,
    peaks: dict[int, int],
    scratch_of: ScratchModel,
    trails_of: TrailRule = no_trails,
) -> Dag:
    """The graph as the order search sees it. `peaks`: graph identity -> peak in bytes."""
    kept = {id(t) for t in graph.outputs}
    # An input that nobody reads is gone before the first operator runs.
    read = {id(t) for t in graph.inputs if t.consumers or id(t) in kept}
    alive = [t for t in graph.tensors if t.producer is not None or id(t) in read]
    tensors = [t for t in alive if planned_bytes(t) > 0]
    index = {id(t): i for i, t in enumerate(tensors)}
    last_effect: tuple[int, ...] = ()
    nodes: list[Node] = []
    for i, op in enumerate(graph.ops):
        absorbs, exclusive = _absorbs(op, index, kept, trails_of)
        body = max((peaks[id(g)] for g in op.called()), default=0)
        effects = has_side_effects(op)
        nodes.append(
            Node(
                reads=_indices(op.operands(), index),
                writes=_indices(op.outputs, index),
                after=last_effect if effects else (),
                absorbs=absorbs,
                exclusive=exclusive,
                workspace=body + sum(map(align_up, scratch_of(op))),
            )
        )
        last_effect = (i,) if effects else last_effect
    return Dag(
        tuple(align_up(planned_bytes(t)) for t in tensors),
        tuple(nodes),
        _indices(graph.inputs, index),
        _indices(graph.outputs, index),
    )


def _indices(tensors: Sequence[object], index: dict[int, int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(index[id(t)] for t in tensors if id(t) in index))


def _absorbs(
    op: Op, index: dict[int, int], kept: set[int], trails_of: TrailRule
) -> tuple[tuple[Absorb, ...], bool]:
    """What the results of `op` may reuse of an operand that dies there, and whether of one
    operand only.

    An alias saves the smaller of both tensors, parts of one operand (SPLIT) all together. A
    result that trails its operand by D bytes saves what the two do not need side by side.
    """
    saved: dict[int, int] = {}
    exclusive = False

    def usable(operand: Tensor, result: Tensor) -> bool:
        return id(operand) in index and id(result) in index and id(operand) not in kept

    for s in sharings(op):
        if usable(s.operand, s.result) and s.distance % ALIGNMENT == 0:
            exclusive = exclusive or s.exclusive
            size = align_up(min(planned_bytes(s.operand), planned_bytes(s.result)))
            whole = align_up(planned_bytes(s.operand))
            key = index[id(s.operand)]
            saved[key] = min(saved.get(key, 0) + size, whole)
    for t in trails_of(op):
        if usable(t.operand, t.result):
            operand, result = (align_up(planned_bytes(x)) for x in (t.operand, t.result))
            together = max(operand + t.low, result)
            key = index[id(t.operand)]
            saved[key] = max(saved.get(key, 0), operand + result - together)
            exclusive = True
    return tuple(Absorb(t, b) for t, b in saved.items() if b > 0), exclusive
