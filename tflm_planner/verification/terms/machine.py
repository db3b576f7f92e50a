"""Runs a model on terms: operators in order, branches and loops by their known conditions.

State (variables, resources, the state of custom operators) is one term. Every operator that may
have state reads and changes it. Rewrites keep the order of such operators, so this loses no
precision. The initial state is arbitrary, so the result holds for any number of invokes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.model.options import BODY, CONDITION, DECOMPOSITION, ELSE, INITIAL, THEN
from tflm_planner.ops import has_side_effects
from tflm_planner.ops.terms import (  # fmt: skip
    mixing,
    movement,
)
from tflm_planner.ops.terms.calls import OpCall
from tflm_planner.ops.terms.field import Residues, add
from tflm_planner.ops.terms.rules import RULES
from tflm_planner.ops.terms.values import InexpressibleError, Values
from tflm_planner.verification.terms.allowance import Allowance
from tflm_planner.verification.terms.stores import Store
from tflm_planner.verification.terms.unknown import hash_operands

Observer = Callable[[Op, list[Values]], None]
Operands = tuple[Values | None, ...]


class UndecidedError(InexpressibleError):
    """The number of iterations of a loop is unknown: its condition depends on the inputs, or was
    overwritten."""

    def __init__(self, op: Op) -> None:
        super().__init__(f"the inputs decide how often {op.label} turns")
        self.op = op


class PartedError(InexpressibleError):
    """A condition differs between the memories in which a model runs in lockstep."""


@dataclass(slots=True)
class _Track:
    """A memory in which a model runs, and the model's state there."""

    store: Store
    state: Residues


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What stays the same in all runs of an operator. constants: the values of operands that are
    constant, or of which only the shape is read; None for operands that are read from a memory.
    memory: see `OpCall`."""

    has_state: bool
    constants: tuple[Values | None, ...]
    memory: dict[str, Any] | None


class Machine:
    """Runs one model in one memory, or in several memories in lockstep, where each operator is
    computed once for all memories in which its operands are the same. observe: is called with each
    operator of the graph and its results in the first memory. given: results that replace those of
    an operator. allowance: limits the work; None for that of the model's file. graph: the graph to
    run; None for the main graph."""

    def __init__(
        self,
        model: Model,
        *stores: Store,
        observe: Observer | None = None,
        given: Mapping[Op, Values] | None = None,
        allowance: Allowance | None = None,
        graph: Graph | None = None,
    ) -> None:
        self._graph, self._observe, self._given = graph or model.main, observe, given or {}
        self._mixer, self._symbols = stores[0].mixer, stores[0].symbols
        self._allowance = allowance or Allowance(model.file_size)
        self._prepared: dict[Op, _Prepared] = {}
        self._variables: dict[Tensor, int] = {}
        state = self._symbols.of_name((1,), "state").data[:, 0]
        self._tracks = [_Track(store, state) for store in stores]
        self._late = [t for t in self._tracks if t.store.late_copies]
        self._early = [t for t in self._tracks if not t.store.late_copies]

    @property
    def states(self) -> list[Residues]:
        """The current state in each memory."""
        return [track.state for track in self._tracks]

    def run(self, inputs: Sequence[Values | None]) -> list[list[Values]]:
        """Run the graph and return its outputs in each memory. inputs: None for an input that is
        already in the memories. Raises PartedError if the memories differ in the iterations of a
        loop or in a branch."""
        for track in self._tracks:
            for tensor, values in zip(self._graph.inputs, inputs, strict=True):
                if values is not None and not tensor.is_constant:
                    track.store.write(tensor, values)
        self._run_graph(self._graph)
        return [[track.store.read(t) for t in self._graph.outputs] for track in self._tracks]

    def _run_graph(self, graph: Graph) -> None:
        for op in graph.ops:
            self._allowance.spend(op)
            for track in self._tracks:
                track.store.begin(op)
            special = _CONTROL.get(op.kind)
            if special is not None:
                special(self, op)
            else:
                self._run_op(op, graph)
            if self._observe is not None and graph is self._graph:
                self._observe(op, [self._tracks[0].store.read(t) for t in op.outputs])
            for track in self._tracks:
                track.store.end(op)

    def _run_op(self, op: Op, graph: Graph) -> None:
        """Run an operator. Raises InexpressibleError if the shapes of its operands do not fit each
        other, as in damaged models."""
        try:
            self._compute(op, graph)
        except (ValueError, IndexError) as error:
            raise InexpressibleError(f"the parts of {op.label} do not fit each other") from error

    def _compute(self, op: Op, graph: Graph) -> None:
        fixed = self._prepare(op, graph)
        made: list[tuple[Operands, Sequence[Values]]] = []
        for track in self._tracks:
            results = None if fixed.has_state else self._made_before(op, fixed, track.store, made)
            if results is None:
                operands = self._operands(op, fixed, track.store)
                results = self._results(op, fixed, operands, track)
                made.append((operands, results))
            for tensor, values in zip(op.outputs, results, strict=True):
                track.store.write(tensor, values)

    def _made_before(
        self,
        op: Op,
        fixed: _Prepared,
        store: Store,
        made: Sequence[tuple[Operands, Sequence[Values]]],
    ) -> Sequence[Values] | None:
        """The results from another memory, if this memory holds the same operands; else None."""
        for operands, results in made:
            read = zip(op.inputs, operands, fixed.constants, strict=True)
            if all(
                constant is not None or t is None or v is None or store.holds(t, op, v)
                for t, v, constant in read
            ):
                return results
        return None

    def _prepare(self, op: Op, graph: Graph) -> _Prepared:
        if op not in self._prepared:
            if op.graphs:
                raise InexpressibleError(f"{op.label} calls graphs in a way that is not known")
            has_state = has_side_effects(op)
            constants = tuple(self._constant(op, t, has_state) for t in op.inputs)
            self._prepared[op] = _Prepared(
                has_state, constants, None if graph is self._graph else {}
            )
        return self._prepared[op]

    def _constant(self, op: Op, tensor: Tensor | None, has_state: bool) -> Values | None:
        if tensor is None:
            return None
        if movement.reads_shape_alone(op) and not has_state:
            return Values(np.zeros(tensor.shape or (), np.int8), True)
        return self._symbols.of_constant(tensor) if tensor.is_constant else None

    def _operands(self, op: Op, fixed: _Prepared, store: Store) -> Operands:
        return tuple(
            store.read(tensor, op)
            if constant is None
            and tensor is not None
            and not (tensor.is_variable and fixed.has_state)  # it is in the state
            else constant
            for tensor, constant in zip(op.inputs, fixed.constants, strict=True)
        )

    def _results(
        self, op: Op, fixed: _Prepared, operands: Operands, track: _Track
    ) -> Sequence[Values]:
        call = OpCall(op, operands, self._mixer, self._symbols, fixed.memory)
        if op in self._given:
            return [self._given[op]]
        if fixed.has_state:
            results, digest = hash_operands(call, track.state, self._variables_of(op))
            state = add(track.state, digest)[:, None]
            track.state = self._mixer.mix(state, mixing.key("next state"))[:, 0]
            return results
        rule = RULES.get(op.kind)
        terms = None if rule is None else rule(call)
        return hash_operands(call)[0] if terms is None else terms

    def _variables_of(self, op: Op) -> list[int | None]:
        """For each operand and result, the number of the variable that it is, else None. Variables
        are numbered in the order of first use, which rewrites keep because they keep the order of
        operators with state."""
        return [
            self._variables.setdefault(t, len(self._variables))
            if t is not None and t.is_variable
            else None
            for t in (*op.inputs, *op.outputs)
        ]

    # --- control flow ---

    def _copy_all(
        self,
        sources: Sequence[Tensor | None],
        results: Sequence[Tensor],
        tracks: Sequence[_Track] | None = None,
    ) -> None:
        """Copy tensors from graph to graph, as memcpy does. tracks: the memories in which to copy;
        None for all."""
        for source, result in zip(sources, results, strict=True):
            if source is not None and source is not result:
                there = self._tracks if tracks is None else tracks
                moved = [track.store.copy(source, result) for track in there]
                self._allowance.move(max(moved, default=0))

    def _conditions(self, tensor: Tensor) -> list[Values]:
        """A condition in each memory. It is known and equal in all memories, or unknown in all.
        Raises PartedError otherwise."""
        conditions = [track.store.read(tensor) for track in self._tracks]
        if any(values.size != 1 for values in conditions):
            raise InexpressibleError(f"the condition {tensor.name!r} is not one element")
        if len({bool(v.data.reshape(-1)[0]) if v.known else None for v in conditions}) > 1:
            raise PartedError(f"the condition {tensor.name!r} is not the same in all memories")
        return conditions

    def _loop(self, op: Op) -> None:
        """WHILE, with every copy that TFLM makes, in TFLM's order."""
        test, body = _graph_of(op, CONDITION), _graph_of(op, BODY)
        self._copy_all(op.inputs, test.inputs)
        self._copy_all(op.inputs, op.outputs, self._early)
        self._run_graph(test)
        goes_on = self._goes_on(op, test)
        self._copy_all(op.inputs, body.inputs, self._late)
        self._copy_all(op.inputs, op.outputs, self._late)
        while goes_on:
            self._copy_all(op.outputs, body.inputs)
            self._run_graph(body)
            self._copy_all(body.outputs, op.outputs)
            self._copy_all(op.outputs, test.inputs)
            self._run_graph(test)
            goes_on = self._goes_on(op, test)

    def _goes_on(self, op: Op, test: Graph) -> bool:
        verdict = self._conditions(test.outputs[0])[0]
        if not verdict.known:
            raise UndecidedError(op)
        return bool(verdict.data.reshape(-1)[0])

    def _branch(self, op: Op) -> None:
        """IF: run one branch if the condition is known, else both, and merge them by the
        condition."""
        if op.inputs[0] is None:
            raise InexpressibleError(f"{op.label} has no condition")
        choices = self._conditions(op.inputs[0])
        branches = _graph_of(op, THEN), _graph_of(op, ELSE)
        if choices[0].known:
            self._run_branch(op, branches[0 if choices[0].data.reshape(-1)[0] else 1])
            return
        self._allowance.move(3 * max(track.store.bytes_kept for track in self._tracks))
        before, states = [track.store.snapshot() for track in self._tracks], self.states
        self._run_branch(op, branches[0])
        then, states_then = [track.store.snapshot() for track in self._tracks], self.states
        for track, snapshot, state in zip(self._tracks, before, states, strict=True):
            track.store.restore(snapshot)
            track.state = state
        self._run_branch(op, branches[1])
        for i, track in enumerate(self._tracks):
            element = choices[i].data.reshape(-1, 1)[:, 0]
            track.store.merge(element, then[i], op.outputs)
            ends = (Values(s[:, None], False) for s in (track.state, states_then[i]))
            track.state = track.store.choose(element, *ends).data[:, 0]

    def _run_branch(self, op: Op, graph: Graph) -> None:
        self._copy_all(op.inputs[1:], graph.inputs)
        self._run_graph(graph)
        self._copy_all(graph.outputs, op.outputs)

    def _run_composite(self, op: Op) -> None:
        """STABLEHLO_COMPOSITE: run what it is composed of, as LiteRT does."""
        graph = _graph_of(op, DECOMPOSITION)
        self._copy_all(op.inputs, graph.inputs)
        self._run_graph(graph)
        self._copy_all(graph.outputs, op.outputs)

    def _run_once(self, op: Op) -> None:
        """CALL_ONCE: its graph runs only at the first invoke, so the state may be the one before or
        after it."""
        before = self.states
        self._run_graph(_graph_of(op, INITIAL))
        for track, state in zip(self._tracks, before, strict=True):
            once = self._mixer.mix(track.state[:, None], mixing.key("once"))[:, 0]
            both = add(state, once)[:, None]
            track.state = self._mixer.mix(both, mixing.key("since once"))[:, 0]


def _graph_of(op: Op, name: str) -> Graph:
    graphs = op.graphs.get(name, [])
    if len(graphs) != 1:
        raise InexpressibleError(f"{op.label} does not say which graph it runs")
    return graphs[0]


_CONTROL: dict[str, Callable[[Any, Op], None]] = {
    "WHILE": Machine._loop,  # pyright: ignore[reportPrivateUsage]
    "IF": Machine._branch,  # pyright: ignore[reportPrivateUsage]
    "CALL_ONCE": Machine._run_once,  # pyright: ignore[reportPrivateUsage]
    "STABLEHLO_COMPOSITE": Machine._run_composite,  # pyright: ignore[reportPrivateUsage]
}
