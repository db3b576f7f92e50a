"""The proof by terms and the comparison on runtimes, at the same time.

terms      |---- proof for every input, in a thread ---->| equal: the few inputs are enough
runtimes   |-- few inputs, in child processes -->|         not run: all inputs are compared
                                                           different: no verdict counts
"""

from __future__ import annotations

from collections.abc import Callable

from tflm_planner.model.ir import Model
from tflm_planner.support.errors import PlannerError
from tflm_planner.verification import Verdict, VerifyOptions
from tflm_planner.verification.terms import TermsProof
from tflm_planner.verification.verdict import DIFFERENT, EQUAL
from tflm_planner.verification.workload import inputs_within


def compare_beside(
    terms_of: Callable[[], TermsProof],
    compare: Callable[[VerifyOptions], Verdict],
    original: Model,
    options: VerifyOptions,
) -> tuple[TermsProof, Verdict | None]:
    """The proof by terms, and the comparison on runtimes. terms_of: waits for the proof, which goes
    on beside the comparison.

    Compared are as few inputs as models need that terms have proved equal. If terms then do not
    prove it, all inputs are compared, where that is more. If terms differ, there is no verdict:
    what runtimes say of a few inputs does not count."""
    few = options.beside_terms
    verdict: Verdict | None = None
    failure: PlannerError | None = None
    try:
        verdict = compare(few)
    except PlannerError as error:
        failure = error
    terms = terms_of()
    if terms.status == DIFFERENT:
        return terms, None
    if verdict is None:
        assert failure is not None
        raise failure
    enough = terms.status == EQUAL or verdict.differs
    if enough or _inputs_of(original, few) == _inputs_of(original, options):
        return terms, verdict
    return terms, compare(options)


def _inputs_of(original: Model, options: VerifyOptions) -> int:
    return inputs_within(original, options.inputs, options.most_macs)
