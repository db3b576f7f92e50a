"""Judges whether two models compute the same: for every input by terms, and on some inputs by the
runtimes.

    terms \\ runtimes   equal                     different   none ran
    equal              EQUAL for every input     DIFFERENT   EQUAL for every input, unrun
    not run            EQUAL on these inputs     DIFFERENT   nothing is known
    different          NOT PROVED                DIFFERENT   NOT PROVED

Terms that differ do not show an input on which outputs differ: sums of floats in another order, or
a converter that folds a constant, are other terms as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tflm_planner.model.serde import read_model
from tflm_planner.support.progress import Progress, silent
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.transforms.attach_plan import carried_plan
from tflm_planner.verification.compare import VerifyOptions, verify
from tflm_planner.verification.prepared import as_in
from tflm_planner.verification.terms import TermsProof, prove_by_terms
from tflm_planner.verification.verdict import (
    DIFFERENT,
    EQUAL,
    HostAllocation,
    RuntimeCheck,
    Verdict,
)


@dataclass(frozen=True, slots=True)
class Equality:
    """Whether two models compute the same. runtimes: what the runtimes say. terms: the proof for
    every input; not run if a tolerance was allowed."""

    runtimes: Verdict
    terms: TermsProof

    def __repr__(self) -> str:
        said = (f"{check.runtime} {check.status}" for check in self.checks)
        return f"<Equality: {', '.join((f'terms {self.terms.status}', *said))}>"

    @property
    def checks(self) -> tuple[RuntimeCheck, ...]:
        """What each runtime says."""
        return self.runtimes.checks

    @property
    def original_arena(self) -> HostAllocation | None:
        """The arena of the first model that TFLM reported on this machine."""
        return self.runtimes.original_arena

    @property
    def result_arena(self) -> HostAllocation | None:
        """The arena of the second model that TFLM reported on this machine."""
        return self.runtimes.result_arena

    @property
    def differs(self) -> bool:
        """Whether outputs were different on a runtime."""
        return self.runtimes.differs

    @property
    def proved(self) -> bool:
        """Whether the models are proved equal for every input, and no runtime disagrees."""
        return self.terms.status == EQUAL and not self.differs

    @property
    def refuted(self) -> bool:
        """Whether anything speaks against equality: outputs, or terms."""
        return self.differs or self.terms.status == DIFFERENT

    @property
    def equal(self) -> bool:
        """Whether all bits were equal wherever anybody compared the models, and somebody did."""
        compared = self.runtimes.proved and self.runtimes.exact
        return not self.refuted and (compared or self.proved)

    @property
    def close(self) -> bool:
        """Whether outputs differ, but no more than was allowed."""
        return self.runtimes.proved and not self.runtimes.exact


def judge_equality(
    original: bytes,
    result: bytes,
    kernels: TargetKernels,
    options: VerifyOptions | None = None,
    on_progress: Progress = silent,
) -> Equality:
    """Compare two models for every input, and on the runtimes that are installed here. kernels:
    those for which a plan in the result is judged, in the arena that it lays out.

    Raises ModelError if their inputs or outputs do not match: then they are not versions of one
    model.
    """
    options = options or VerifyOptions()
    original = as_in(original, read_model(result, dialect=True), on_progress)
    verdict = verify(original, result, options, on_progress)
    if options.tolerance is not None:
        return Equality(verdict, TermsProof("not run", detail="small differences are allowed"))
    on_progress("comparing for every input")
    before, after = read_model(original), read_model(result, dialect=True)
    if carried_plan(after) is None:
        return Equality(verdict, prove_by_terms(before, after))
    proof = prove_by_terms(before, after, kernels)
    if proof.status == DIFFERENT:
        arena = f"in the arena that it plans, with the kernels of {kernels.target.id}"
        hint = "if it was planned for another target, name that with --target"
        proof = replace(proof, detail=f"{arena}: {proof.detail}; {hint}")
    return Equality(verdict, proof)
