"""Computes how often each graph of a model runs in one invoke, without a runtime.

    WHILE(i < 1,000,000,000): i += 1     two operators in each of a billion iterations

A file of a kilobyte can declare such a loop, and a runtime would run it for hours. Only values that
decide loops are computed here: small integers that depend on constants alone, by the rules of the
proof by terms. If the condition of a loop depends on an input, its end is unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tflm_planner.cost.loops import turns
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.model.options import BODY, CONDITION, ELSE, THEN
from tflm_planner.ops import has_side_effects
from tflm_planner.ops.terms.calls import OpCall
from tflm_planner.ops.terms.mixing import Mixer
from tflm_planner.ops.terms.movement import reads_shape_alone
from tflm_planner.ops.terms.rules import RULES
from tflm_planner.ops.terms.values import (
    InexpressibleError,
    Symbols,
    Values,
    constant,
)

_TYPES = frozenset({"int32", "int64", "bool"})
_LARGEST = 64
"""The most elements of a tensor that may decide a loop: counters, sizes, shapes."""
_FREE_RUNS = 1 << 17
"""Runs of operators that any file may need: a second of work here, and less for a runtime."""
_BYTES_A_RUN = 16
"""Bytes of the file that allow one more run of an operator."""
KnownValues = dict[Tensor, Values]


class _TooManyError(Exception):
    """More operators would run than are allowed."""


@dataclass(frozen=True)
class Runs:
    """What one invoke runs. times: how often each graph runs, as far as that is known. decided:
    whether no loop's number of iterations depends on an input. too_many: whether more operators run
    than `most`. longest: the innermost loop that was running when `most` was exceeded; None if
    there was none."""

    times: Mapping[Graph, int]
    decided: bool
    too_many: bool
    most: int
    longest: Op | None = None


def runs_of(model: Model, most: int | None = None) -> Runs:
    """What one invoke of a model runs. most: the number of operators after which to stop; None for
    the number that the file's size allows."""
    if most is None:
        most = _FREE_RUNS + model.file_size // _BYTES_A_RUN
    if not any(op.graphs for op in model.ops()):
        return Runs({model.main: 1}, decided=True, too_many=False, most=most)
    walk = _Walk(most)
    try:
        walk.run(model.main, [None] * len(model.main.inputs))
    except _TooManyError:
        return Runs(walk.times, walk.decided, True, most, next(reversed(walk.turning), None))
    return Runs(walk.times, walk.decided, too_many=False, most=most)


class _Walk:
    """Runs a model's control flow. None stands for unknown values. turning: the loops that are
    running, outermost first."""

    def __init__(self, most: int) -> None:
        self.times: Counter[Graph] = Counter()
        self.decided = True
        self.turning: list[Op] = []
        self._left = most
        self._constants: KnownValues = {}
        self._mixer = Mixer()
        self._symbols = Symbols(self._mixer)

    def run(self, graph: Graph, inputs: Sequence[Values | None]) -> list[Values | None]:
        """Run a graph and return its outputs."""
        self.times[graph] += 1
        pairs = zip(graph.inputs, inputs, strict=False)
        known = {t: value for t, value in pairs if value is not None}
        for op in graph.ops:
            self._left -= 1
            if self._left < 0:
                raise _TooManyError
            for tensor, value in zip(op.outputs, self._results(op, known), strict=False):
                if value is not None:
                    known[tensor] = value
        return [self._value(t, known) for t in graph.outputs]

    def _results(self, op: Op, known: KnownValues) -> Sequence[Values | None]:
        if op.graphs:
            return self._call(op, [self._value(t, known) for t in op.inputs])
        if has_side_effects(op) or not _may_decide(op):
            return ()
        operands = [self._operand(op, t, known) for t in op.inputs if t is not None]
        rule = RULES.get(op.kind)
        if rule is None or None in operands or len(operands) < len(op.inputs):
            return ()
        try:
            values = rule(OpCall(op, tuple(operands), self._mixer, self._symbols))
        except InexpressibleError:
            return ()
        return [v if v.known else None for v in values or ()]

    def _call(self, op: Op, values: list[Values | None]) -> Sequence[Values | None]:
        """Run WHILE, IF, or any other operator with graphs, of which every graph may then run."""
        graphs = [graph for called in op.graphs.values() for graph in called]
        if op.kind == "WHILE" and {*op.graphs} == {CONDITION, BODY} and len(graphs) == 2:
            test, body = op.graphs[CONDITION][0], op.graphs[BODY][0]
            self.turning.append(op)
            self._check_counted(op, test, body)
            results = self._turn(test, body, values)
            self.turning.pop()
            return results
        if op.kind == "IF" and values and values[0] is not None and len(graphs) == 2:
            name = THEN if values[0].data.any() else ELSE
            return self.run(op.graphs[name][0], values[1:])
        for graph in graphs:
            self.run(graph, values[1:] if op.kind == "IF" else [])
        return ()

    def _check_counted(self, op: Op, test: Graph, body: Graph) -> None:
        """Raise _TooManyError at once for a counted loop with too many iterations."""
        if (turns(op) or 0) * (len(test.ops) + len(body.ops)) > self._left:
            raise _TooManyError

    def _turn(
        self, test: Graph, body: Graph, values: list[Values | None]
    ) -> Sequence[Values | None]:
        while True:
            verdict = next(iter(self.run(test, values)), None)
            if verdict is None:
                self.decided = False
                self.run(body, [])
                return ()
            if not verdict.data.any():
                return values
            values = self.run(body, values)

    def _operand(self, op: Op, tensor: Tensor, known: KnownValues) -> Values | None:
        if reads_shape_alone(op):
            return Values(np.broadcast_to(np.int8(0), tensor.shape or ()), True)
        return self._value(tensor, known)

    def _value(self, tensor: Tensor | None, known: KnownValues) -> Values | None:
        if tensor is None or not _is_small(tensor):
            return None
        if not tensor.is_constant:
            return known.get(tensor)
        if tensor not in self._constants:
            try:
                self._constants[tensor] = Values(constant(tensor), True)
            except InexpressibleError:
                return None
        return self._constants[tensor]


def _may_decide(op: Op) -> bool:
    """Whether an operator's results may decide how often a loop runs: they are small integers,
    computed from small integers or from shapes."""
    return all(map(_is_small, op.outputs)) and (
        reads_shape_alone(op) or all(map(_is_small, op.operands()))
    )


def _is_small(tensor: Tensor) -> bool:
    return tensor.type_name in _TYPES and tensor.elements <= _LARGEST
