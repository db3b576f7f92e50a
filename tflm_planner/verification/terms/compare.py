"""Compares original and result as terms: equal for every input, with a known error probability.

    original --separate tensors--------------------> terms of its outputs and its state
    result   --separate tensors, or in its arena---> the same?

See docs/proof.md for why this is a proof, and of what.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.model.reachability import entry_graphs
from tflm_planner.ops.terms.field import LANES, Residues
from tflm_planner.ops.terms.mixing import Mixer
from tflm_planner.ops.terms.values import (
    InexpressibleError,
    OutsideError,
    Symbols,
    Values,
)
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.transforms.attach_plan import carried_plan
from tflm_planner.verification.ends import differing_ends
from tflm_planner.verification.terms.allowance import Allowance
from tflm_planner.verification.terms.ends import inputs_of_both, output_as_original
from tflm_planner.verification.terms.foreign_elements import (
    ForeignElements,
    KnownElements,
    first_that_matters,
    replaced,
)
from tflm_planner.verification.terms.layout import ArenaLayout, layout_of
from tflm_planner.verification.terms.machine import Machine, Observer, UndecidedError
from tflm_planner.verification.terms.memory import ArenaStore
from tflm_planner.verification.terms.stores import SeparateStore, Store
from tflm_planner.verification.verdict import Culprit

Status = Literal["equal", "different", "not run"]
_DEGREE = 3
"""Degree of a sum as a polynomial in random elements: factor of a place, weight or second operand,
operand."""
_LIKELIEST = 3 / (1 << 32)
"""Probability of the most probable residue of a mixed element: 32 bits are reduced modulo 2^31 -
1."""
MOST_ERROR = -100.0
"""The largest probability of an error, as a logarithm to base 2, with which models are called
equal."""


@dataclass(frozen=True, slots=True)
class TermsProof:
    """The outcome of the proof by terms. error_log2: logarithm to base 2 of the probability that
    two different models pass as equal; None if nothing was compared. detail: what differs, or why
    nothing was compared. culprit: the first operator that computes something else, if known."""

    status: Status
    error_log2: float | None = None
    detail: str = ""
    culprit: Culprit | None = None


def prove_by_terms(
    original: Model, result: Model, kernels: TargetKernels | None = None
) -> TermsProof:
    """Whether two models compute the same function of every input. kernels: those of the target
    whose arena the result is planned for; None to run the result with separate tensors only. A file
    that every runtime runs must be right both in its arena and with separate tensors: a plan may
    place a wrong operand on the bytes of the right one, and runtimes that ignore plans would then
    compute something else."""

    def begin() -> TermsComparison:
        size = max(original.file_size, result.file_size)
        check_size(original, size)
        check_size(result, size)
        if kernels is not None and carried_plan(result) is None:
            raise InexpressibleError("the result carries no plan")
        return _Comparison(original, result, kernels)

    proofs = [conclude(begin)]
    for key, graphs in _further_entries(original, result):
        if proofs[-1].status != "equal":
            break
        proof = conclude(partial(_Comparison, original, result, None, graphs))
        detail = proof.detail and f"signature {key!r}: {proof.detail}"
        proofs.append(replace(proof, detail=detail, culprit=None))  # culprits are of the main graph
    return _together(proofs)


def _further_entries(original: Model, result: Model) -> list[tuple[str, tuple[Graph, Graph]]]:
    """The graphs that signatures of both models offer besides the main graph, by key. TFLM runs
    only the main graph, so plans are ignored for the others."""
    entries, theirs = entry_graphs(original), {s.key: s.graph for s in result.signatures}
    return [
        (s.key, (s.graph, theirs[s.key]))
        for s in original.signatures
        if s.key in theirs and any(s.graph is g for g in entries)
    ]


def _together(proofs: Sequence[TermsProof]) -> TermsProof:
    """One proof of several: equal if all are, with the sum of their error probabilities; else the
    last one, which is not equal."""
    if proofs[-1].status != "equal":
        return proofs[-1]
    errors = [p.error_log2 for p in proofs if p.error_log2 is not None]
    return TermsProof("equal", math.log2(math.fsum(2.0**e for e in errors)))


class TermsComparison(Protocol):
    """A comparison of original and result, which are run as terms."""

    @property
    def made(self) -> int:
        """How many elements have been made."""
        ...

    def difference(self) -> Difference | None:
        """What differs; None if nothing does."""
        ...


def conclude(begin: Callable[[], TermsComparison]) -> TermsProof:
    """Run a comparison and turn its outcome into a proof."""
    try:
        comparison = begin()
        with threadpool_limits(1, user_api="blas"):  # small products: threads would only wait
            wrong = comparison.difference()
    except InexpressibleError as why:
        return TermsProof("not run", detail=str(why))
    if wrong is not None:
        return TermsProof("different", detail=wrong.said, culprit=wrong.culprit)
    error = error_log2(comparison.made)
    if error > MOST_ERROR:
        return TermsProof("not run", detail="the model has too many elements for so small an error")
    return TermsProof("equal", error)


def error_log2(elements: int) -> float:
    """Logarithm to base 2 of the probability that, among this many elements, any two that stand for
    different terms are equal (in all lanes)."""
    pairs = 2 * math.log2(max(elements, 2)) - 1
    return pairs + LANES * math.log2(_DEGREE * _LIKELIEST)


def check_size(model: Model, file_size: int, times: int = 1) -> None:
    """Raise InexpressibleError, before anything is computed, if a model exceeds the allowance of a
    file of `file_size` bytes even if each operator runs only `times` times."""
    allowance = Allowance(file_size)
    allowance.move(times * sum(t.elements for t in model.main.inputs))
    for op in model.ops():
        allowance.spend(op, times)


def first_unequal(expected: Values, actual: Values, symbols: Symbols) -> int | None:
    """The index of the first element that differs; None if all are equal."""
    a, b = (symbols.elements(v).reshape(LANES, -1) for v in (expected, actual))
    if a.shape != b.shape:
        return 0
    unequal = np.flatnonzero((a != b).any(0))
    return int(unequal[0]) if unequal.size else None


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference. said: what differs, in words. culprit: the operator at fault, if it is
    known."""

    said: str
    culprit: Culprit | None = None


@dataclass(frozen=True, slots=True)
class _Execution:
    """How the result runs. in_arena: in its arena, or with separate tensors. late_copies: which of
    two orders of copies loops have. said: words that precede the message of a difference."""

    in_arena: bool = True
    late_copies: bool = False
    said: str = ""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The outputs of a run, and the state that it leaves."""

    outputs: list[Values]
    state: Residues


def _outcomes_of(machine: Machine, inputs: Sequence[Values]) -> list[_Outcome]:
    """Run a machine: its outputs and state in each memory."""
    outputs = machine.run(inputs)
    return [_Outcome(*pair) for pair in zip(outputs, machine.states, strict=True)]


class _Comparison:
    """Runs both models, and runs them again to find where they differ."""

    def __init__(
        self,
        original: Model,
        result: Model,
        kernels: TargetKernels | None,
        graphs: tuple[Graph, Graph] | None = None,
    ) -> None:
        """graphs: the graphs of both models that are run; None for the main graphs."""
        self._outer, self._inner = graphs or (original.main, result.main)
        differing = differing_ends(self._outer, self._inner)
        if differing:
            raise InexpressibleError(f"the models have {differing}")
        self._original, self._result, self._kernels = original, result, kernels
        self._size = max(original.file_size, result.file_size)
        self._layout: ArenaLayout | None = None
        self._mixer = Mixer()
        self._symbols = Symbols(self._mixer)
        ends = inputs_of_both(self._outer, self._inner, self._symbols, self._mixer)
        self._ours, self._theirs, self._given = ends

    @property
    def made(self) -> int:
        """How many elements have been made."""
        return self._mixer.made

    def difference(self) -> Difference | None:
        """What differs; None if all outputs and the state are equal."""
        expected = self._run_original()
        executions = self._executions()
        runs = self._run_together(executions)
        for execution, run in zip(executions, runs, strict=True):
            wrong = self._difference_from(expected, execution, run)
            if wrong is not None:
                return wrong
        return None

    def _executions(self) -> list[_Execution]:
        """All executions in which the result must equal the original."""
        if self._kernels is None:
            return [_Execution(in_arena=False)]
        executions = [_Execution()]
        if any(op.kind == "WHILE" for op in self._result.ops()):
            executions.append(
                _Execution(late_copies=True)
            )  # in an arena the order of copies matters
        if not self._result.has_views:
            said = "where no plan is taken notice of: "
            executions.append(_Execution(in_arena=False, said=said))
        return executions

    def _run_together(self, executions: Sequence[_Execution]) -> Sequence[_Outcome | None]:
        """The outcomes of all executions, in lockstep. None for each if one of them fails, or runs
        a loop or branch differently, so that they cannot run in lockstep."""
        if len(executions) > 1:
            with contextlib.suppress(InexpressibleError):
                return self._run_result(executions)
        return [None] * len(executions)

    def _difference_from(
        self, expected: _Outcome, execution: _Execution, run: _Outcome | None
    ) -> Difference | None:
        """The difference in one execution. The result is run if `run` is None."""
        try:
            actual = run or self._run_result([execution])[0]
        except OutsideError as wrong:
            return Difference(execution.said + str(wrong))
        except UndecidedError as lost:
            if not execution.in_arena:
                raise
            # The original's loops end for known reasons, and loops that were added count constants.
            return Difference(f"the condition of {lost.op.label} is overwritten in the arena")
        for i, (outer, inner) in enumerate(
            zip(self._outer.outputs, self._inner.outputs, strict=True)
        ):
            values = output_as_original(outer, inner, actual.outputs[i], self._symbols, self._mixer)
            where = first_unequal(expected.outputs[i], values, self._symbols)
            if where is not None:
                place = self._place(execution, inner)
                said = f"{execution.said}output {i} ({outer.name!r}) differs at element {where}"
                return Difference(said + place.said, place.culprit)
        if not np.array_equal(expected.state, actual.state):
            place = self._place(execution)
            said = f"{execution.said}the state that it leaves differs"
            return Difference(said + place.said, place.culprit)
        return None

    def _run_original(self, observe: Observer | None = None) -> _Outcome:
        machine = Machine(
            self._original,
            SeparateStore(self._original, self._mixer, self._symbols),
            observe=observe,
            given=self._given,
            allowance=Allowance(self._size),
            graph=self._outer,
        )
        return _outcomes_of(machine, self._ours)[0]

    def _run_result(
        self, executions: Sequence[_Execution], observe: Observer | None = None
    ) -> list[_Outcome]:
        return self._run_in(self._stores(executions), observe)

    def _run_in(self, stores: Sequence[Store], observe: Observer | None = None) -> list[_Outcome]:
        """Run the result in these memories."""
        machine = Machine(
            self._result,
            *stores,
            observe=observe,
            allowance=Allowance(self._size),
            graph=self._inner,
        )
        return _outcomes_of(machine, self._theirs)

    def _stores(self, executions: Sequence[_Execution]) -> list[Store]:
        """The memory of each execution."""
        stores: list[Store] = []
        for execution in executions:
            if execution.in_arena and self._kernels is not None:
                if self._layout is None:
                    self._layout = layout_of(self._result, self._kernels)
                late = execution.late_copies
                stores.append(
                    ArenaStore(self._layout, self._mixer, self._symbols, late_copies=late)
                )
            else:
                stores.append(SeparateStore(self._result, self._mixer, self._symbols))
        return stores

    def _place(self, execution: _Execution, output: Tensor | None = None) -> Difference:
        """The first operator of the result that makes an element which the original never makes and
        on which what differs depends. If there is none, so that elements only lie in other places,
        the operator that writes the differing output."""
        found = self._foreign_elements(execution)
        actual = self._run_result([execution])[0]
        first = first_that_matters(
            found, lambda elements: self._changes(execution, actual, elements)
        )
        maker = None if output is None else output.producer
        if first is not None:
            op, what, where = first.op, "first at", f", element {first.places[0]}"
        elif maker is not None and maker in self._inner.ops:
            op, what, where = maker, "elements in other places, written by", ""
        else:
            return Difference("")
        position = self._inner.ops.index(op)
        said = f", {what} operator {position} of the result ({op.label}){where}"
        return Difference(said, Culprit(position, op.kind, fails=False))

    def _foreign_elements(self, execution: _Execution) -> list[ForeignElements]:
        """What each operator of the result makes that the original never makes, in their order."""
        known, found = KnownElements(), list[ForeignElements]()
        bytes_of_padding = self._symbols.of_numbers(np.arange(-128, 128, dtype=np.int8))
        known.add([Values(bytes_of_padding, False), Values(self._symbols.of_number(0.0), False)])
        known.add(self._ours)
        self._run_original(lambda _, results: known.add(results))
        self._run_result([execution], lambda op, made: found.append(known.foreign(op, made)))
        return [elements for elements in found if elements.places.size]

    def _changes(
        self, execution: _Execution, actual: _Outcome, elements: Sequence[ForeignElements]
    ) -> bool:
        """Whether the result ends otherwise than in `actual` with other elements in these places,
        or no longer runs."""
        by_op = {each.op: each for each in elements}
        stores = self._stores([execution])

        def spoil(op: Op, results: list[Values]) -> None:
            if op in by_op:
                others = replaced(results, by_op[op], self._symbols)
                for tensor, values in zip(op.outputs, others, strict=True):
                    stores[0].write(tensor, values)

        try:
            spoiled = self._run_in(stores, spoil)[0]
        except InexpressibleError:
            return True
        pairs = zip(actual.outputs, spoiled.outputs, strict=True)
        same = all(first_unequal(a, b, self._symbols) is None for a, b in pairs)
        return not (same and np.array_equal(actual.state, spoiled.state))
