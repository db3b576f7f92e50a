"""Runs the operators in an order with a smaller peak of live bytes.

Every graph is ordered, bodies before the graphs that call them: a body's peak is the workspace
of its caller. Operators with side effects keep their order against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tflm_planner.ir import Graph, Model, Op, Tensor
from tflm_planner.ops import has_side_effects, sharings
from tflm_planner.ops.axes import ELEMENT_WISE
from tflm_planner.planning.lifetimes import TrailRule, no_trails, planned_bytes
from tflm_planner.planning.order import Absorb, Dag, Node, OrderResult
from tflm_planner.planning.views import ByteClasses, byte_classes, copies
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
    """The graph as the order search sees it. `peaks`: graph identity -> peak in bytes.

    Its tensors are classes of bytes: what views share is there once, needed by whoever reads one
    of them, so that a tensor whose parts were taken as views dies part by part.
    """
    kept = {id(t) for t in graph.outputs}
    # An input that nobody reads is gone before the first operator runs.
    read = {id(t) for t in graph.inputs if t.consumers or id(t) in kept}
    alive = [t for t in graph.tensors if t.producer is not None or id(t) in read]
    classes = byte_classes([(t, n) for t in alive if (n := planned_bytes(t)) > 0], graph.ops)
    position = {id(op): i for i, op in enumerate(graph.ops)}
    copied = {id(s.result) for op in graph.ops for s in copies(op)}
    safe = _as_litert_runs(graph)
    written = set(_indices(graph.inputs, classes))
    last_effect: tuple[int, ...] = ()
    nodes: list[Node] = []
    for i, op in enumerate(graph.ops):
        absorbs, exclusive = _absorbs(op, classes, kept, trails_of)
        body = _body_bytes(op, peaks)
        effects = has_side_effects(op)
        writes = tuple(c for c in _indices(op.outputs, classes) if c not in written)
        written.update(writes)
        # Nobody writes the bytes of a view: its readers must be told to wait for it.
        views = (position[id(t.producer)] for t in op.operands() if id(t) in copied)
        nodes.append(
            Node(
                reads=_indices(op.operands(), classes),
                writes=writes,
                after=tuple(dict.fromkeys((*(last_effect if effects else ()), *views, *safe[i]))),
                absorbs=absorbs,
                exclusive=exclusive,
                workspace=body + sum(map(align_up, scratch_of(op))),
            )
        )
        last_effect = (i,) if effects else last_effect
    return Dag(
        classes.sizes,
        tuple(nodes),
        _indices(graph.inputs, classes),
        _indices(graph.outputs, classes),
    )


def _body_bytes(op: Op, peaks: dict[int, int]) -> int:
    """Bytes that the graphs of a control-flow operator need at least beside its results. Those of
    WHILE hold nothing while its body runs: the body's inputs and outputs may take their place."""
    most = max((peaks[id(g)] for g in op.called()), default=0)
    own = sum(align_up(planned_bytes(t)) for t in op.outputs) if op.kind == "WHILE" else 0
    return max(most - own, 0)


def _as_litert_runs(graph: Graph) -> list[list[int]]:
    """For each operator those that must stay before it so that LiteRT computes what it did.

    LiteRT keeps the result of a RESHAPE in its operand, and computes element by element in place
    even there: whoever reads the operand too gets other values before than after. Pairs of such
    operators stay in the file's order, right or wrong, so that there are no cycles.
    """
    whole: dict[int, Tensor] = {}
    members: dict[int, list[Tensor]] = {}
    for op in graph.ops:
        if op.kind in ("RESHAPE", "SQUEEZE", "EXPAND_DIMS") and op.inputs and op.inputs[0]:
            root = whole.get(id(op.inputs[0]), op.inputs[0])
            whole[id(op.outputs[0])] = root
            members.setdefault(id(root), [root]).append(op.outputs[0])
    position = {id(op): i for i, op in enumerate(graph.ops)}
    before: list[set[int]] = [set() for _ in graph.ops]
    for i, op in enumerate(graph.ops):
        if op.kind not in ELEMENT_WISE | {"SOFTMAX", "DYNAMIC_UPDATE_SLICE"}:
            continue
        roots = [whole[id(t)] for t in op.operands() if id(t) in whole]
        for j in {position[id(c)] for r in roots for m in members[id(r)] for c in m.consumers}:
            if j != i:
                before[max(i, j)].add(min(i, j))
    return [sorted(earlier) for earlier in before]


def _indices(tensors: Sequence[Tensor], classes: ByteClasses) -> tuple[int, ...]:
    return tuple(dict.fromkeys(c for t in tensors for c in classes.of.get(id(t), ())))


def _absorbs(
    op: Op, classes: ByteClasses, kept: set[int], trails_of: TrailRule
) -> tuple[tuple[Absorb, ...], bool]:
    """What the results of `op` may reuse of an operand that dies there, and whether of one
    operand only.

    A result in place saves the smaller of both tensors. One that trails its operand by D bytes
    saves what the two do not need side by side. Of an operand in several classes each may give
    all that is saved: never too little, so that bounds hold.
    """
    saved: dict[int, int] = {}
    exclusive = False

    def enter(operand: Tensor, bytes_saved: int) -> None:
        for c in classes.of[id(operand)]:
            saved[c] = max(saved.get(c, 0), min(bytes_saved, classes.sizes[c]))

    def usable(operand: Tensor, result: Tensor) -> bool:
        of = classes.of
        return id(operand) in of and id(result) in of and id(operand) not in kept

    for s in sharings(op):
        if usable(s.operand, s.result) and s.distance % ALIGNMENT == 0 and not s.same_bytes:
            exclusive = exclusive or s.exclusive
            enter(s.operand, align_up(min(planned_bytes(s.operand), planned_bytes(s.result))))
    for t in trails_of(op):
        if usable(t.operand, t.result):
            operand, result = (align_up(planned_bytes(x)) for x in (t.operand, t.result))
            enter(t.operand, operand + result - max(operand + t.low, result))
            exclusive = True
    several = any(len(classes.of.get(id(t), ())) > 1 for t in op.operands())
    return tuple(Absorb(t, b) for t, b in saved.items() if b > 0), exclusive and not several
