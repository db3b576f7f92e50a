"""Runs the operators in an order with a smaller peak of live bytes.

Every graph is ordered; bodies come before the graphs that call them, because the peak of a body is
the workspace of its caller. Operators with side effects keep their relative order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tflm_planner.memory.order import Absorb, Dag, Node, OrderResult
from tflm_planner.model.edit import reorder
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.ops import Sharing, has_side_effects, sharings
from tflm_planner.ops.axes import ELEMENT_WISE, ROW_WISE
from tflm_planner.ops.roles import RESHAPES
from tflm_planner.support.units import ALIGNMENT, align_up
from tflm_planner.tflm.aliases import ByteClasses, classes_of, is_view
from tflm_planner.tflm.kernels.contracts import InputOverlap
from tflm_planner.tflm.kernels.scratch import ScratchModel
from tflm_planner.tflm.liveness import InputOverlapRule, no_input_overlaps, planned_bytes

OrderSearch = Callable[[Dag], OrderResult]


@dataclass(frozen=True)
class Reorder:
    """search: finds an order of a DAG. scratch_of, input_overlaps_of: scratch and permitted
    overlaps of the target's kernels. problems: order problems of graphs in their present order, if
    the caller has them; missing ones are built here."""

    search: OrderSearch
    scratch_of: ScratchModel
    input_overlaps_of: InputOverlapRule = no_input_overlaps
    problems: Mapping[Graph, OrderProblem] = field(default_factory=dict[Graph, "OrderProblem"])

    def apply(self, model: Model) -> list[str]:
        """Order every graph; `results` also returns what the search found."""
        self.results(model)
        return []

    def results(self, model: Model) -> dict[Graph, OrderResult]:
        """Order every graph; returns graph -> what the search found."""
        results = self.find(model)
        for graph, result in results.items():
            if result.order != tuple(range(len(graph.ops))):
                reorder(graph, [graph.ops[i] for i in result.order])
        return results

    def find(self, model: Model) -> dict[Graph, OrderResult]:
        """Graph -> the order found for it. The model is not changed."""
        results: dict[Graph, OrderResult] = {}
        for graph in callees_first(model):
            peaks = {key: result.peak for key, result in results.items()}
            problem = self.problems.get(graph) or OrderProblem.of(graph, self.scratch_of)
            result = self.search(problem.dag(peaks, self.input_overlaps_of))
            results[graph] = result
        return results


def order_problems(model: Model, scratch_of: ScratchModel) -> dict[Graph, OrderProblem]:
    """Graph -> its order problem, in the present order of operators."""
    return {graph: OrderProblem.of(graph, scratch_of) for graph in model.graphs}


def callees_first(model: Model) -> list[Graph]:
    """The graphs, each after all graphs that it calls."""
    ordered: dict[Graph, None] = {}

    def visit(graph: Graph) -> None:  # recursion is as deep as the nesting of control flow
        if graph not in ordered:
            for op in graph.ops:
                for called in op.called_graphs():
                    visit(called)
            ordered[graph] = None

    for graph in model.graphs:
        visit(graph)
    return list(ordered)


@dataclass(frozen=True)
class ChosenOrder:
    """The order of one candidate: what the searches of all graphs found; the main graph's is last.

    changed: whether the order of any graph differs from the file's. peak, lower_bound: live bytes
    of the main graph, bodies and scratch included.
    """

    method: str
    changed: bool
    peak: int
    lower_bound: int
    optimal: bool


@dataclass(frozen=True)
class OrderProblem:
    """A graph as input of the order search, before overlaps of results with operands are added.

    Its tensors are classes of bytes: bytes that views share count once and live until the last
    reader of any of the views, so that a tensor whose parts are views dies part by part. `plain`
    has neither input overlaps nor the peaks of called graphs. sizes: bytes of tensors, rounded up
    to multiples of 16.
    """

    ops: tuple[Op, ...]
    classes: ByteClasses
    sizes: dict[Tensor, int]
    graph_outputs: frozenset[Tensor]
    plain: Dag

    @staticmethod
    def of(graph: Graph, scratch_of: ScratchModel) -> OrderProblem:
        """The problem of a graph with its operators in their present order."""
        graph_outputs = frozenset(graph.outputs)
        # An input that no operator reads is not live when the first operator runs.
        read = {t for t in graph.inputs if t.consumers or t in graph_outputs}
        alive = [t for t in graph.tensors if t.producer is not None or t in read]
        shared = [list(sharings(op)) for op in graph.ops]
        views = [s for of_op in shared for s in of_op if is_view(s)]
        sized = [(t, n) for t in alive if (n := planned_bytes(t)) > 0]
        classes = classes_of(sized, views)
        nodes = _nodes(graph, classes, graph_outputs, shared, scratch_of)
        inputs, outputs = (_indices(t, classes) for t in (graph.inputs, graph.outputs))
        plain = Dag.of(classes.sizes, nodes, inputs, outputs)
        sizes = {t: align_up(n) for t, n in sized}
        return OrderProblem(tuple(graph.ops), classes, sizes, graph_outputs, plain)

    def dag(self, peaks: dict[Graph, int], input_overlaps_of: InputOverlapRule) -> Dag:
        """The graph with the overlaps that `input_overlaps_of` permits. `peaks`: graph -> peak in
        bytes."""
        nodes: list[Node] = []
        for op, node in zip(self.ops, self.plain.nodes, strict=True):
            body = _body_bytes(op, peaks) if op.graphs else 0
            input_overlaps = [
                t for t in input_overlaps_of(op) if self._can_share(t.operand, t.result)
            ]
            if input_overlaps:
                node = self._trailing(op, node, input_overlaps)
            nodes.append(replace(node, workspace=node.workspace + body) if body else node)
        return self.plain.with_node_costs(tuple(nodes))

    def _can_share(self, operand: Tensor, result: Tensor) -> bool:
        of = self.classes.of
        return operand in of and result in of and operand not in self.graph_outputs

    def _trailing(self, op: Op, node: Node, input_overlaps: list[InputOverlap]) -> Node:
        """The node with the bytes that a result saves if it overlaps its operand at a distance: the
        bytes that the two then need less than side by side."""
        saved = _Saved(self.classes, {a.tensor: a.saved for a in node.absorbs})
        for t in input_overlaps:
            operand, result = self.sizes[t.operand], self.sizes[t.result]
            saved.enter(t.operand, operand + result - max(operand + t.low, result))
        exclusive = not saved.spans_classes(op)
        return Node(
            node.reads, node.writes, node.after, saved.absorbs(), exclusive, node.workspace
        )  # fmt: skip


def _body_bytes(op: Op, peaks: dict[Graph, int]) -> int:
    """A lower bound on the bytes that the graphs of a control-flow operator need beside its
    operands and results. While such a graph runs, the results of WHILE and IF have no contents yet,
    and the operands of IF are no longer needed: the graph's inputs and outputs may use their
    memory."""
    most = max((peaks[g] for g in op.called_graphs()), default=0)
    around = {"WHILE": op.outputs, "IF": [*op.operands(), *op.outputs]}.get(op.kind, [])
    return max(most - sum(align_up(planned_bytes(t)) for t in around), 0)


def _as_litert_runs(graph: Graph) -> list[list[int]]:
    """For each operator, the operators that must stay before it so that LiteRT computes the same.

    LiteRT keeps the result of a RESHAPE in its operand's memory, and may then compute an
    element-wise operator in place: another reader of the operand gets different values before and
    after that. So pairs of such operators keep the file's order. That holds even where the file's
    order is itself wrong, so that there are no cycles.
    """
    root_of: dict[Tensor, Tensor] = {}
    members: dict[Tensor, list[Tensor]] = {}
    for op in graph.ops:
        if op.kind in RESHAPES and op.inputs and op.inputs[0]:
            root = root_of.get(op.inputs[0], op.inputs[0])
            root_of[op.outputs[0]] = root
            members.setdefault(root, [root]).append(op.outputs[0])
    position = {op: i for i, op in enumerate(graph.ops)}
    before: list[set[int]] = [set() for _ in graph.ops]
    for i, op in enumerate(graph.ops):
        if op.kind not in ELEMENT_WISE | ROW_WISE | {"DYNAMIC_UPDATE_SLICE"}:
            continue
        roots = [root_of[t] for t in op.operands() if t in root_of]
        for j in {position[c] for r in roots for m in members[r] for c in m.consumers}:
            if j != i:
                before[max(i, j)].add(min(i, j))
    return [sorted(earlier) for earlier in before]


def _indices(tensors: Sequence[Tensor], classes: ByteClasses) -> tuple[int, ...]:
    return tuple(dict.fromkeys(c for t in tensors for c in classes.of.get(t, ())))


def _nodes(
    graph: Graph,
    classes: ByteClasses,
    graph_outputs: frozenset[Tensor],
    shared: list[list[Sharing]],
    scratch_of: ScratchModel,
) -> tuple[Node, ...]:
    """The operators without input overlaps. `shared`: the sharings of each operator."""
    maker = {s.result: i for i, of_op in enumerate(shared) for s in of_op if is_view(s)}
    safe = _as_litert_runs(graph)
    written = set(_indices(graph.inputs, classes))
    last_effect: tuple[int, ...] = ()
    nodes: list[Node] = []
    for i, op in enumerate(graph.ops):
        absorbs, exclusive = _absorbs(op, shared[i], classes, graph_outputs)
        effects = has_side_effects(op)
        writes = tuple(c for c in _indices(op.outputs, classes) if c not in written)
        written.update(writes)
        # No operator writes the bytes of a view, so its readers must be told to wait for its maker.
        views = [maker[t] for t in op.operands() if t in maker]
        nodes.append(
            Node(
                reads=_indices(op.operands(), classes),
                writes=writes,
                after=tuple(dict.fromkeys((*(last_effect if effects else ()), *views, *safe[i]))),
                absorbs=absorbs,
                exclusive=exclusive,
                workspace=sum(map(align_up, scratch_of(op))),
            )
        )
        last_effect = (i,) if effects else last_effect
    return tuple(nodes)


class _Saved:
    """The bytes of each class that the results of an operator may reuse.

    If an operand consists of several classes, each is credited with the full saving. That is never
    too little, so that lower bounds hold.
    """

    def __init__(self, classes: ByteClasses, saved: dict[int, int]) -> None:
        self._classes, self._saved = classes, saved

    def enter(self, operand: Tensor, bytes_saved: int) -> None:
        sizes = self._classes.sizes
        for c in self._classes.of[operand]:
            self._saved[c] = max(self._saved.get(c, 0), min(bytes_saved, sizes[c]))

    def absorbs(self) -> tuple[Absorb, ...]:
        return tuple(Absorb(t, b) for t, b in self._saved.items() if b > 0)

    def spans_classes(self, op: Op) -> bool:
        """Whether an operand consists of several classes; then these are not exclusive."""
        return any(len(self._classes.of.get(t, ())) > 1 for t in op.operands())


def _absorbs(
    op: Op, shared: list[Sharing], classes: ByteClasses, graph_outputs: frozenset[Tensor]
) -> tuple[tuple[Absorb, ...], bool]:
    """What the results of `op` may reuse of operands that die at it, and whether they may reuse
    only one operand. A result in place saves the smaller of both tensors."""
    usable = [
        s
        for s in shared
        if s.operand in classes.of
        and s.result in classes.of
        and s.operand not in graph_outputs
        and s.distance % ALIGNMENT == 0
        and not s.same_bytes
    ]
    if not usable:
        return (), False
    saved = _Saved(classes, {})
    for s in usable:
        saved.enter(s.operand, align_up(min(planned_bytes(s.operand), planned_bytes(s.result))))
    return saved.absorbs(), any(s.exclusive for s in usable) and not saved.spans_classes(op)
