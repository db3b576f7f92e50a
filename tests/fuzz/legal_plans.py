"""Many plans of one model, each proved by terms: legal ones, made of each other by chance.

    the plan as made -> spoiled a little, if that is legal -> spoiled again -> .. -> from the first

The original is run once, and the model in its arena once for every plan: what both mean apart from
any memory is proved once by whoever calls this.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.fuzz.random_plans import spoil
from tflm_planner.memory.problem import Plan, validate
from tflm_planner.model.ir import Model
from tflm_planner.tflm.liveness import planning_problem, timeline_of
from tflm_planner.tflm.placement import placement_of
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.transforms.attach_plan import AttachPlan, carried_plan
from tflm_planner.transforms.base import run
from tflm_planner.verification.terms import TermsProof, prove_by_terms
from tflm_planner.verification.terms.compare import error_log2, first_unequal
from tflm_planner.verification.terms.ends import inputs_of_both
from tflm_planner.verification.terms.layout import ArenaLayout
from tflm_planner.verification.terms.machine import Machine
from tflm_planner.verification.terms.memory import ArenaStore
from tflm_planner.verification.terms.mixing import Mixer
from tflm_planner.verification.terms.stores import Apart
from tflm_planner.verification.terms.values import InexpressibleError, Symbols

_TRIES_FOR_EACH = 5
"""Plans that are tried for each that is wanted: a fifth of them and more are legal."""
_FROM_EACH_OTHER = 5
"""Then the next is made of the first again, which is the tightest."""


def proofs_of_plans(
    original: Model, model: Model, kernels: TargetKernels, seed: int, wanted: int
) -> Iterator[TermsProof]:
    """The proofs of so many other plans of a planned model (which is changed). None for a model
    that cannot be written as terms."""
    offsets = carried_plan(model)
    if offsets is None:
        return
    try:
        same = _SameInArena(original, model, kernels)
    except InexpressibleError:
        return
    for i, plan in enumerate(_legal_plans(model, kernels, seed, wanted)):
        run(model, plan)
        proof = same.proof(late_copies=i % 2 > 0)
        # What differs is told by the proof of the product, which also finds the place.
        yield proof if proof.status == "equal" else prove_by_terms(original, model, kernels)


def _legal_plans(
    model: Model, kernels: TargetKernels, seed: int, wanted: int
) -> Iterator[AttachPlan]:
    line = timeline_of(model, kernels.scratch_of)
    problem = planning_problem(line, kernels.input_overlaps_of)
    first = placement_of(line, carried_plan(model) or {}).plan
    rng, plan, found = np.random.default_rng(seed), first, 0
    for _ in range(_TRIES_FOR_EACH * wanted):
        spoiled = spoil(plan, problem, rng)
        at = dict(zip(line.planned, spoiled.offsets, strict=False))
        placed: Plan = placement_of(line, at).plan
        if placed.offsets == plan.offsets or validate(problem, placed):
            continue
        found += 1
        plan = placed if found % _FROM_EACH_OTHER else first
        yield AttachPlan(at)
        if found == wanted:
            return


class _SameInArena:
    """Compares a model, each time in the arena of the plan that it then has, with the original,
    which is run once."""

    def __init__(self, original: Model, model: Model, kernels: TargetKernels) -> None:
        self._model, self._kernels = model, kernels
        self._mixer = Mixer()
        self._symbols = Symbols(self._mixer)
        ends = inputs_of_both(original.main, model.main, self._symbols, self._mixer)
        ours, self._theirs, given = ends
        machine = Machine(original, Apart(original, self._mixer, self._symbols), given=given)
        (self._wanted,), (self._state,) = machine.run(ours), machine.states
        self._once = self._mixer.made

    def proof(self, *, late_copies: bool) -> TermsProof:
        """Whether it is equal, loops in one of the orders that TFLM has had."""
        self._mixer.made = self._once
        layout = ArenaLayout(self._model, self._kernels)
        store = ArenaStore(layout, self._mixer, self._symbols, late_copies=late_copies)
        machine = Machine(self._model, store)
        try:
            (got,) = machine.run(self._theirs)
        except InexpressibleError as why:
            return TermsProof("not run", detail=str(why))
        pairs = zip(self._wanted, got, strict=True)
        outputs = all(first_unequal(a, b, self._symbols) is None for a, b in pairs)
        if outputs and np.array_equal(self._state, machine.states[0]):
            return TermsProof("equal", error_log2(self._mixer.made))
        return TermsProof("different")
