"""Memory in control flow: when the variables of a WHILE are really needed, and which of their five
tensors may lie in the same place; likewise for what an IF passes to its branches.

In TFLM's life spans, the operands and results of a WHILE live from its start to its end. The kernel
(kernels/while.cc) needs less: operands are copied to the condition's inputs and to the results
before the body runs; the body's inputs are copies of the results, and its outputs are copied to the
results when it ends. A copy of bytes onto themselves changes nothing.

TFLM from 20 July 2026 on (#3633) copies operands to results before the condition runs for the first
time. Older versions read the operands again after that, and first wrote the body's inputs from
them. A plan must be right for both, which costs nothing, because the results need that memory
anyway.

    scope     s  s+1 cond   b  body ...  e   after
    x  ------------------------|                 operand: dead once the body may run
    w         |-----------------|        |---    result: not read while the body runs
    c            |----|                          condition's input: a copy of w
    b                       |---- . . .          body's input: a copy of w, live until its last read
    o                          . . . ----|       body's output: copied to w

So two of x, w, c, b and o of one variable may lie in the same place if they are equal whenever the
bytes of both are needed. A variable that the body returns unchanged is equal in all five tensors at
all times.

An IF copies its operands to the inputs of the branch that runs, one after the other, and finally
that branch's outputs to its results. The other branch does not run, but TFLM counts its scopes.

    scope     s  t then ... t'  f else ... f'  after
    x  ---------|               |                     operand: read where a branch is entered
    w                       |                 |---    result: written where a branch ends
    i           |---- . . .                           then's input: a copy of x
    o              . . . ---|                         then's output: copied to w

This module knows graphs and scopes; it must not know offsets.
Source: tflite-micro 90b983c and 62cbc8e3e, micro/kernels/while.cc, if.cc and kernel_util.cc.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tflm_planner.model.ir import Graph, Op, Tensor
from tflm_planner.model.options import BODY, CONDITION, ELSE, THEN

Span = tuple[int, int]
"""First and last scope, both included."""


class LoopVariable(NamedTuple):
    """The five tensors of one variable of a WHILE: x, w, c, b and o above."""

    operand: Tensor | None
    result: Tensor
    condition_input: Tensor
    body_input: Tensor
    body_output: Tensor


@dataclass(frozen=True)
class LoopCall:
    """A WHILE that runs at one place, with graphs that no other operator calls. whole: the scopes
    of the operator; condition, body: those of its graphs, from the scope at which they are
    entered."""

    op: Op
    whole: Span
    condition: Span
    body: Span

    @property
    def graphs(self) -> tuple[Graph, Graph]:
        """Condition and body."""
        return self.op.graphs[CONDITION][0], self.op.graphs[BODY][0]

    def variables(self) -> Iterator[LoopVariable]:
        """The variables of the loop, in order."""
        condition, body = self.graphs
        for tensors in zip(
            self.op.inputs, self.op.outputs, condition.inputs, body.inputs, body.outputs,
            strict=True,
        ):  # fmt: skip
            yield LoopVariable(*tensors)


def while_calls(
    ops: list[Op], scopes: Mapping[Op, list[Span]], entered: Mapping[Graph, list[Span]]
) -> list[LoopCall]:
    """The WHILEs whose variables can be tracked: they run at one place only, and no other operator
    calls their graphs.

    scopes: the spans of each operator. entered: the spans of each graph, one for every time it is
    entered.
    """
    calls: list[LoopCall] = []
    for op in ops:
        if op.kind != "WHILE" or len(scopes.get(op, ())) != 1:
            continue
        graphs = [op.graphs.get(name, []) for name in (CONDITION, BODY)]
        if [len(g) for g in graphs] != [1, 1] or graphs[0][0] is graphs[1][0]:
            continue
        condition, body = graphs[0][0], graphs[1][0]
        once = all(len(entered.get(g, ())) == 1 for g in (condition, body))
        ends = (op.outputs, condition.inputs, body.inputs, body.outputs)
        if once and all(len(e) == len(op.inputs) for e in ends):
            calls.append(LoopCall(op, scopes[op][0], entered[condition][0], entered[body][0]))
    return calls


@dataclass(frozen=True)
class Branching:
    """An IF that runs at one place, with branches that no other operator calls. whole: the scopes
    of the operator; branches: (graph, its scopes from the one at which it is entered), in running
    order."""

    op: Op
    whole: Span
    branches: tuple[tuple[Graph, Span], ...]

    def unneeded_spans(
        self, last: Mapping[Tensor, int], graph_outputs: set[Tensor]
    ) -> Iterator[tuple[Tensor, Span]]:
        """What the function `unneeded_spans` below yields, for one IF."""
        entries = [span[0] for _, span in self.branches]
        ends = [span[1] for _, span in self.branches]
        for x in dict.fromkeys(t for t in self.op.inputs[1:] if t is not None):
            if last.get(x) == self.whole[1] and x not in graph_outputs:
                for low, high in zip(entries, (*entries[1:], self.whole[1] + 1), strict=True):
                    yield x, (low + 1, high - 1)
        for w in self.op.outputs:
            for low, high in zip((self.whole[0] - 1, *ends[:-1]), ends, strict=True):
                yield w, (low + 1, high - 1)

    def unneeded_once_written(
        self, last: Mapping[Tensor, int], graph_outputs: set[Tensor]
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """(tensor, result) if the last operator of a branch is the last reader of the tensor: the
        result is written in the same scope, but after that read."""
        for graph, (_, end) in self.branches:
            for t in graph.tensors:
                if last.get(t) == end and t not in graph_outputs:
                    yield from ((t, w) for w in self.op.outputs)

    def same_places(self) -> Iterator[tuple[Tensor, Tensor]]:
        """What the function `same_places` below yields, for one IF. An input equals its operand
        while both live; a tensor that a branch writes over its input needs a permit against the
        operand too."""
        for graph, _ in self.branches:
            for x, i in zip(self.op.inputs[1:], graph.inputs, strict=True):
                if x is not None and not x.is_constant and sum(t is i for t in graph.inputs) == 1:
                    yield x, i
            yield from zip(graph.outputs, self.op.outputs, strict=True)


def if_calls(
    ops: list[Op], scopes: Mapping[Op, list[Span]], entered: Mapping[Graph, list[Span]]
) -> list[Branching]:
    """The IFs whose values can be tracked, like `while_calls`."""
    branchings: list[Branching] = []
    for op in ops:
        if op.kind != "IF" or len(scopes.get(op, ())) != 1:
            continue
        graphs = [g for name in (THEN, ELSE) for g in op.graphs.get(name, [])]
        has_two_branches = len(graphs) == 2 and graphs[0] is not graphs[1]
        if has_two_branches and all(
            len(entered.get(g, ())) == 1
            and len(g.inputs) == len(op.inputs) - 1
            and len(g.outputs) == len(op.outputs)
            for g in graphs
        ):
            branches = sorted(((g, entered[g][0]) for g in graphs), key=lambda b: b[1])
            branchings.append(Branching(op, scopes[op][0], tuple(branches)))
    return branchings


def unneeded_spans(
    call: LoopCall, last: Mapping[Tensor, int], graph_outputs: set[Tensor]
) -> Iterator[tuple[Tensor, Span]]:
    """(tensor, scopes at which TFLM counts it as live although its bytes are not needed).

    last: last scope of each planned tensor. graph_outputs: outputs of all graphs.
    """
    for variable in call.variables():
        x = variable.operand
        if x is not None and last.get(x) == call.whole[1] and x not in graph_outputs:
            yield x, (call.body[0] + 1, call.whole[1])
        yield variable.result, (call.body[0] + 1, call.body[1] - 1)


def same_places(
    call: LoopCall, unneeded: Mapping[Tensor, list[Span]]
) -> Iterator[tuple[Tensor, Tensor]]:
    """Pairs of tensors that may lie in the same place, because they are equal whenever both are
    needed."""
    _, body = call.graphs
    dead_once_copied = (call.body[0] + 1, call.whole[1])
    for x, w, c, b, o in call.variables():
        steady = b is o
        input_is_copied = steady or not any(t is b for t in body.outputs)
        output_is_made = steady or not any(t is o for t in body.inputs)
        yield w, c
        if (
            x is not None
            and not x.is_constant
            and (steady or dead_once_copied in unneeded.get(x, ()))
        ):
            yield x, w
            yield x, c
            if input_is_copied:
                yield x, b
        if input_is_copied:
            yield w, b
        if output_is_made:
            yield o, w
