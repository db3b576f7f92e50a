"""Runs a model as terms: operators in order, branches and loops as their known conditions say.

State (variables, resources, what custom operators keep) is one term: every operator that may have
state reads it and changes it. Rewrites keep the order of such operators, so nothing is lost, and
what holds for any state at the beginning holds for any number of invokes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.model.options import BODY, CONDITION, ELSE, INITIAL, THEN
from tflm_planner.ops import has_side_effects
from tflm_planner.verification.terms import (
    mixing,
    movement,
    pointwise,
    products,
    reductions,
    resizing,
    windows,
)  # fmt: skip
from tflm_planner.verification.terms.allowance import Allowance
from tflm_planner.verification.terms.calls import OpCall, Rule
from tflm_planner.verification.terms.field import Residues, add
from tflm_planner.verification.terms.stores import Store
from tflm_planner.verification.terms.unknown import hash_operands
from tflm_planner.verification.terms.values import InexpressibleError, Values

RULES: dict[str, Rule] = {
    **pointwise.RULES,
    **movement.RULES,
    **products.RULES,
    **reductions.RULES,
    **resizing.RULES,
    **windows.RULES,
}
"""By kind. Kinds without a rule are hashed."""
Observer = Callable[[Op, list[Values]], None]


class UndecidedError(InexpressibleError):
    """Nobody knows how often a loop turns: its condition depends on the inputs, or was lost."""

    def __init__(self, op: Op) -> None:
        super().__init__(f"the inputs decide how often {op.label} turns")
        self.op = op


class Machine:
    """Runs one model. observe: told of every operator of the graph and its results. given:
    results that are taken instead of what an operator would make. late_copies: loops as TFLM had
    them until July 2026 (see `tflm.control_flow`). allowance: None for that of the model's file.
    graph: the one that is run; None for the main one."""

    def __init__(
        self,
        model: Model,
        store: Store,
        observe: Observer | None = None,
        given: Mapping[Op, Values] | None = None,
        *,
        late_copies: bool = False,
        allowance: Allowance | None = None,
        graph: Graph | None = None,
    ) -> None:
        self._graph, self._store, self._observe = graph or model.main, store, observe
        self._given = given or {}
        self._mixer, self._symbols = store.mixer, store.symbols
        self._late_copies = late_copies
        self._allowance = allowance or Allowance(model.file_size)
        self._memory: dict[Op, dict[str, Any]] = {}
        self._variables: dict[Tensor, int] = {}
        self.state: Residues = self._symbols.of_name((1,), "state").data[:, 0]

    def run(self, inputs: Sequence[Values | None]) -> list[Values]:
        """The outputs of the graph. inputs: None for one that lies in the store already."""
        for tensor, values in zip(self._graph.inputs, inputs, strict=True):
            if values is not None and not tensor.is_constant:
                self._store.write(tensor, values)
        self._run_graph(self._graph)
        return [self._store.read(t) for t in self._graph.outputs]

    def _run_graph(self, graph: Graph) -> None:
        for op in graph.ops:
            self._allowance.spend(op)
            self._store.begin(op)
            special = _CONTROL.get(op.kind)
            if special is not None:
                special(self, op)
            else:
                self._run_op(op, graph)
            if self._observe is not None and graph is self._graph:
                self._observe(op, [self._store.read(t) for t in op.outputs])
            self._store.end(op)

    def _run_op(self, op: Op, graph: Graph) -> None:
        """Damaged models have operands whose shapes do not fit each other: arrays then raise."""
        try:
            self._compute(op, graph)
        except (ValueError, IndexError) as error:
            raise InexpressibleError(f"the parts of {op.label} do not fit each other") from error

    def _compute(self, op: Op, graph: Graph) -> None:
        if op.graphs:
            raise InexpressibleError(f"{op.label} calls graphs in a way that is not known")
        has_state = has_side_effects(op)
        operands = tuple(None if t is None else self._operand(op, t, has_state) for t in op.inputs)
        memory = None if graph is self._graph else self._memory.setdefault(op, {})
        call = OpCall(op, operands, self._mixer, self._symbols, memory)
        if op in self._given:
            results = [self._given[op]]
        elif has_state:
            results, digest = hash_operands(call, self.state, self._variables_of(op))
            self.state = self._mixer.mix(
                add(self.state, digest)[:, None], mixing.key("next state")
            )[:, 0]
        else:
            rule = RULES.get(op.kind)
            terms = None if rule is None else rule(call)
            results = hash_operands(call)[0] if terms is None else terms
        for tensor, values in zip(op.outputs, results, strict=True):
            self._store.write(tensor, values)

    def _operand(self, op: Op, tensor: Tensor, has_state: bool) -> Values | None:
        if movement.reads_shape_alone(op) and not has_state:
            return Values(np.zeros(tensor.shape or (), np.int8), True)
        if tensor.is_variable and has_state:
            return None  # it is in the state
        return self._store.read(tensor, op)

    def _variables_of(self, op: Op) -> list[int | None]:
        """Which of the model's variables an operator has, numbered as they are first used: that
        order is kept, as operators with state keep theirs."""
        return [
            self._variables.setdefault(t, len(self._variables))
            if t is not None and t.is_variable
            else None
            for t in (*op.inputs, *op.outputs)
        ]

    # --- control flow ---

    def _copy_all(self, sources: Sequence[Tensor | None], results: Sequence[Tensor]) -> None:
        for source, result in zip(sources, results, strict=True):
            if source is not None and source is not result:
                self._allowance.move(self._store.copy(source, result))

    def _condition(self, tensor: Tensor) -> Values:
        values = self._store.read(tensor)
        if values.size != 1:
            raise InexpressibleError(f"the condition {tensor.name!r} is not one element")
        return values

    def _loop(self, op: Op) -> None:
        """WHILE: every copy that TFLM makes, in its order."""
        test, body = _graph_of(op, CONDITION), _graph_of(op, BODY)
        self._copy_all(op.inputs, test.inputs)
        if not self._late_copies:
            self._copy_all(op.inputs, op.outputs)
        self._run_graph(test)
        goes_on = self._goes_on(op, test)
        if self._late_copies:
            self._copy_all(op.inputs, body.inputs)
            self._copy_all(op.inputs, op.outputs)
        while goes_on:
            self._copy_all(op.outputs, body.inputs)
            self._run_graph(body)
            self._copy_all(body.outputs, op.outputs)
            self._copy_all(op.outputs, test.inputs)
            self._run_graph(test)
            goes_on = self._goes_on(op, test)

    def _goes_on(self, op: Op, test: Graph) -> bool:
        verdict = self._condition(test.outputs[0])
        if not verdict.known:
            raise UndecidedError(op)
        return bool(verdict.data.reshape(-1)[0])

    def _branch(self, op: Op) -> None:
        """IF: one branch if it is known which, else both, and one of them by the condition."""
        if op.inputs[0] is None:
            raise InexpressibleError(f"{op.label} has no condition")
        choice = self._condition(op.inputs[0])
        branches = _graph_of(op, THEN), _graph_of(op, ELSE)
        if choice.known:
            self._run_branch(op, branches[0 if choice.data.reshape(-1)[0] else 1])
            return
        self._allowance.move(3 * self._store.bytes_kept)
        before, state = self._store.snapshot(), self.state
        self._run_branch(op, branches[0])
        then, state_then = self._store.snapshot(), self.state
        self._store.restore(before)
        self.state = state
        self._run_branch(op, branches[1])
        element = choice.data.reshape(-1, 1)[:, 0]
        self._store.merge(element, then, op.outputs)
        states = (Values(s[:, None], False) for s in (self.state, state_then))
        self.state = self._store.choose(element, *states).data[:, 0]

    def _run_branch(self, op: Op, graph: Graph) -> None:
        self._copy_all(op.inputs[1:], graph.inputs)
        self._run_graph(graph)
        self._copy_all(graph.outputs, op.outputs)

    def _run_once(self, op: Op) -> None:
        """CALL_ONCE: at the first invoke alone, so that either may be the state."""
        state = self.state
        self._run_graph(_graph_of(op, INITIAL))
        both = add(state, self._mixer.mix(self.state[:, None], mixing.key("once"))[:, 0])
        self.state = self._mixer.mix(both[:, None], mixing.key("since once"))[:, 0]


def _graph_of(op: Op, name: str) -> Graph:
    graphs = op.graphs.get(name, [])
    if len(graphs) != 1:
        raise InexpressibleError(f"{op.label} does not say which graph it runs")
    return graphs[0]


_CONTROL: dict[str, Callable[[Any, Op], None]] = {
    "WHILE": Machine._loop,  # pyright: ignore[reportPrivateUsage]
    "IF": Machine._branch,  # pyright: ignore[reportPrivateUsage]
    "CALL_ONCE": Machine._run_once,  # pyright: ignore[reportPrivateUsage]
}
