"""Many plans of one model, each proved by terms: legal ones, made of each other by chance.

    the plan as made -> spoiled a little, if that is legal -> spoiled again -> .. -> from the first

The original is run once, and the model in the arenas of all plans step by step: what it means apart
from any memory is proved once by whoever calls this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tests.fuzz.random_plans import spoil
from tests.fuzz.seeds import Draws
from tflm_planner.memory.problem import Plan, Problem, validate
from tflm_planner.model.ir import Model, Tensor
from tflm_planner.model.reachability import entry_graphs
from tflm_planner.ops.terms.mixing import Mixer
from tflm_planner.ops.terms.values import InexpressibleError, Symbols
from tflm_planner.tflm.liveness import planning_problem, timeline_of
from tflm_planner.tflm.placement import Placement, placement_of
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.transforms.attach_plan import AttachPlan, carried_plan
from tflm_planner.transforms.base import run
from tflm_planner.verification.terms import TermsProof, prove_by_terms
from tflm_planner.verification.terms.compare import error_log2, first_unequal
from tflm_planner.verification.terms.ends import inputs_of_both
from tflm_planner.verification.terms.layout import ArenaLayout
from tflm_planner.verification.terms.machine import Machine
from tflm_planner.verification.terms.memory import ArenaStore
from tflm_planner.verification.terms.stores import SeparateStore

_TRIES_FOR_EACH = 5
"""Plans that are tried for each that is wanted: a fifth of them and more are legal."""
_FROM_EACH_OTHER = 5
"""Then the next is made of the first again, which is the tightest."""


def proofs_of_plans(
    original: Model, model: Model, kernels: TargetKernels, seed: int, wanted: int
) -> Iterator[TermsProof]:
    """The proofs of so many other plans of a planned model (which is changed). None for a model
    that cannot be written as terms."""
    carried = carried_plan(model)
    if carried is None:
        return
    placements = list(legal_placements(model, carried, kernels, seed, wanted))
    layouts = [ArenaLayout(p, kernels, model.file_size) for p in placements]
    try:
        proofs = _proofs_in_step(original, model, layouts)
    except InexpressibleError:
        return
    for placement, proof in zip(placements, proofs, strict=True):
        if proof is None or proof.status != "equal":
            # What differs is told by the proof of the product, which also finds the place.
            run(model, AttachPlan(offsets_of(placement)))
            proof = prove_by_terms(original, model, kernels)
        yield proof


def offsets_of(placement: Placement) -> dict[Tensor, int]:
    """Of tensors: what a plan says."""
    return dict(zip(placement.timeline.planned, placement.offsets, strict=False))


def legal_placements(
    model: Model, carried: Mapping[Tensor, int], kernels: TargetKernels, seed: int, wanted: int
) -> Iterator[Placement]:
    line = timeline_of(model, kernels.scratch_of, entries=entry_graphs(model))
    problem = planning_problem(line, kernels.input_overlaps_of)
    first = placement_of(line, carried).plan
    rng, plan, found = Draws(seed), first, 0
    for _ in range(_TRIES_FOR_EACH * wanted):
        spoiled = spoil(plan, problem, rng)
        if _collides(spoiled, plan, problem, len(line.planned)):
            continue
        placed = placement_of(line, dict(zip(line.planned, spoiled.offsets, strict=False)))
        if placed.offsets == plan.offsets or validate(problem, placed.plan):
            continue
        found += 1
        plan = placed.plan if found % _FROM_EACH_OTHER else first
        yield placed
        if found == wanted:
            return


def _collides(spoiled: Plan, legal: Plan, problem: Problem, tensors: int) -> bool:
    """Whether a tensor that was moved lies over another one: what the validator finds as well, but
    goes through all pairs for. Scratch is placed anew, and left out."""
    at = spoiled.offsets
    return any(
        j < tensors
        and at[i] < at[j] + problem.buffers[j].size
        and at[j] < at[i] + problem.buffers[i].size
        and not problem.may_share(i, j, at[j] - at[i])
        for i in range(tensors)
        if at[i] != legal.offsets[i]
        for j in problem.neighbours[i]
    )


def _proofs_in_step(
    original: Model, model: Model, layouts: Sequence[ArenaLayout]
) -> list[TermsProof | None]:
    """Whether a model is equal to the original in each of so many arenas, with loops in one order
    of copies and the other in turn; None for each where they do not go step by step."""
    symbols = Symbols(mixer := Mixer())
    ours, theirs, given = inputs_of_both(original.main, model.main, symbols, mixer)
    machine = Machine(original, SeparateStore(original, mixer, symbols), given=given)
    (wanted,), (state,) = machine.run(ours), machine.states
    stores = [
        ArenaStore(layout, mixer, symbols, late_copies=i % 2 > 0)
        for i, layout in enumerate(layouts)
    ]
    if not stores:
        return []
    machine = Machine(model, *stores)
    try:
        outputs = machine.run(theirs)
    except InexpressibleError:
        return [None] * len(stores)
    error = error_log2(mixer.made)
    return [
        TermsProof("equal", error)
        if np.array_equal(state, left)
        and all(first_unequal(a, b, symbols) is None for a, b in zip(wanted, got, strict=True))
        else TermsProof("different")
        for got, left in zip(outputs, machine.states, strict=True)
    ]
