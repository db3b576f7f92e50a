"""Proves files. Models whose results could not be proved here are refused before the search, and
every file that is made is compared with the original.

    check_provable    before a search: can results be proved here at all?
    check_runs_...    without a search, after the proof: did TFLM run the original?
    Prover            file -> terms beside runtimes -> Proof: equal, or refused with a reason
    check_..._proved  for the last file: raises an error unless it was proved equal

Callers decide which file is made next if one is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from tflm_planner.model.edit import set_origins
from tflm_planner.model.ir import Model, Op
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline.options import TilePermission
from tflm_planner.pipeline.planning.planned_file import PlannedFile
from tflm_planner.pipeline.planning.refusals import Proof, Refusal
from tflm_planner.pipeline.proof_beside_runtimes import compare_beside
from tflm_planner.pipeline.runtime_failures import explain, is_of_this_machine
from tflm_planner.pipeline.stream_input.pairs import StreamedPair
from tflm_planner.support.background import in_background
from tflm_planner.support.errors import ModelError, OutputsDifferError
from tflm_planner.support.progress import Progress
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.element_types import form_of, new_refusal
from tflm_planner.tflm.kernels.operator_allocations import OPERATORS, lacks_operators
from tflm_planner.tflm.refusals import cannot_run
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.tflm.targets import HOST_RUNTIME, load_target
from tflm_planner.verification import (
    RuntimeCheck,
    Tolerance,
    Verdict,
    VerifyOptions,
    any_installed,
    verify,
    why_unable,
    why_untried,
)
from tflm_planner.verification.pairs import Pair, verify_pair
from tflm_planner.verification.terms import (
    Halves,
    TermsProof,
    prove_by_terms,
    prove_pair_by_terms,
)
from tflm_planner.verification.verdict import CANNOT_RUN, CLOSE, DIFFERENT, EQUAL, Culprit

Found = TypeVar("Found")
_PORTABLE_HINT = "--portable makes a file that LiteRT can prove, "
_UNPROVED_HINT = "--no-verify writes it unproved"
_INEXACT_HINT = (
    "Each partial sum may be off by one quantisation step, and later operators amplify that beyond "
    "the tolerance: split a sum nearer the output, or into fewer parts."
)


def check_provable(
    data: bytes,
    model: Model,
    tiles: TilePermission | None,
    options: VerifyOptions,
    on_progress: Progress,
) -> TilePermission | None:
    """The part of the tile permission `tiles` whose results can be proved here for `model`, the
    model in `data`. For example, only TFLM can prove files in its dialect.

    Raises ModelError if a search would be useless, which has two reasons: no runtime here runs the
    original, and it cannot be expressed as terms; or TFLM has all its operators but does not run
    them with these types or parameters, so no board will either. Operators that TFLM lacks may be
    kernels of the firmware; LiteRT may then prove portable files. Without tiles the file is one
    that LiteRT runs, and what only this machine lacks does not count.
    """
    on_progress("running the model on TFLM")
    on_tflm = why_unable(data, "TFLM", options)
    if on_tflm is None:
        return tiles
    elsewhere = why_unable(data, "LiteRT", options)
    why = _why_on_tflm(model, on_tflm)
    if elsewhere is not None and not _terms_stand_alone(model):
        raise ModelError(
            f"no runtime here can run the model (LiteRT: {explain(model, elsewhere)}; TFLM: "
            f"{why}), so that nothing made of it could be proved; nothing was searched for. "
            f"{_UNPROVED_HINT}"
        )
    if tiles is None and _fails_on_boards(model, on_tflm, options):
        raise ModelError(
            f"TFLM cannot run the model ({why}); nothing was searched for. {_UNPROVED_HINT}"
        )
    if tiles is None or not tiles.dialect:
        return tiles
    if lacks_operators(model):
        return replace(tiles, dialect=False)
    raise ModelError(
        f"TFLM cannot run the model ({why}), so that tiles for TFLM could not be proved; "
        f"nothing was searched for. {_PORTABLE_HINT}{_UNPROVED_HINT}"
    )


def check_runs_on_boards(model: Model, proof: Proof, options: VerifyOptions | None) -> None:
    """Raise ModelError if the proof of a file without tiles shows that TFLM on boards does not run
    the original `model`, which LiteRT runs. `check_provable` tells before a search; without one the
    proof is soon at hand, and asking first would run the model once more."""
    checks = () if proof.verdict is None else proof.verdict.checks
    failed = (c.detail for c in checks if (c.runtime, c.status) == ("TFLM", CANNOT_RUN))
    why = next(failed, None)
    if why is not None and options is not None and _fails_on_boards(model, why, options):
        raise ModelError(
            f"TFLM cannot run the model ({explain(model, why)}); nothing was written. "
            f"{_UNPROVED_HINT}"
        )


def _why_on_tflm(model: Model, why: str) -> str:
    """TFLM's message `why`, explained; where it names no operator, as one of a process that ended,
    what TFLM is known not to run."""
    explained = explain(model, why)
    known = cannot_run(model, load_target(HOST_RUNTIME)) if explained == why else []
    return known[0] if known else explained


def _fails_on_boards(model: Model, why: str, options: VerifyOptions) -> bool:
    """Whether TFLM on boards fails as it did here, with the message `why`. A known reason does not
    count: the target's TFLM may be older, or have other kernels, and was judged by itself."""
    was_tried = why_untried(model, "TFLM", options) is None and not options.arena
    return (
        was_tried
        and not is_of_this_machine(why)
        and not lacks_operators(model)
        and not cannot_run(model, load_target(HOST_RUNTIME))
    )


def _terms_stand_alone(model: Model) -> bool:
    """Whether the proof by terms suffices if no runtime here runs a model. It does if no runtime is
    installed, or if the model has custom operators of the firmware. Otherwise TFLM has kernels for
    all operators but does not run them here, and no board runs them either."""
    is_own = any(op.code.custom and op.kind not in OPERATORS for op in model.ops())
    if not is_own and any_installed():
        return False
    return prove_by_terms(model, model).status == EQUAL


class Prover:
    """Compares files with the original. seconds: the time spent on that so far."""

    def __init__(
        self,
        original: bytes,
        options: VerifyOptions | None,
        kernels: TargetKernels,
        on_progress: Progress,
        stop: Stop,
    ) -> None:
        """`options`: None to prove nothing. `kernels`: the kernels for which files are made.
        `stop`: the stop of the search that makes the files; it does not end a proof."""
        self._original = original
        self._options = options
        self._kernels = kernels
        self._on_progress = on_progress
        self._stop = stop
        self.seconds = 0.0

    def provable_tiles(self, model: Model, tiles: TilePermission | None) -> TilePermission | None:
        """The part of the tile permission whose results can be proved here for the original `model`
        (see `check_provable`)."""
        if self._options is None:
            return tiles
        started = time.monotonic()
        with self._stop.not_searching():
            tiles = check_provable(self._original, model, tiles, self._options, self._on_progress)
        self.seconds += time.monotonic() - started
        return tiles

    def prove_model(self, planned: PlannedFile) -> Proof:
        """Compare a planned model with the original. A tiling that computes something else is an
        error of this tool; the next best one may be right."""
        options = self._options
        if options is None:
            return Proof()

        def compare(options: VerifyOptions) -> Verdict:
            return compare_with_twin(self._original, planned, options, self._on_progress)

        if not planned.exact:
            terms = TermsProof("not run", detail="a sum is split, which is not exact")
            tolerance = options.tolerance or Tolerance()
            verdict = self._time(lambda: compare(replace(options, tolerance=tolerance)))
        else:
            exactly = replace(options, tolerance=None)
            terms, verdict = self._prove_and_compare(self._terms_of(planned), compare, exactly)
        if verdict is None:
            return Proof(None, _explain_terms(planned, terms), terms)
        return Proof(verdict, _explain(planned, verdict) if verdict.differs else None, terms)

    def _terms_of(self, planned: PlannedFile) -> Callable[[], TermsProof]:
        """The proof by terms that a planned model, in its arena, computes the same function of
        every input; what is returned waits for it."""
        self._on_progress("proving it equal for every input")
        models = read_model(self._original), read_model(planned.data, dialect=True)
        return in_background(lambda: prove_by_terms(*models, self._kernels))

    def prove_pair(self, pair: StreamedPair) -> Proof:
        """Compare the two halves of a split model, run together, with the original."""
        options = self._options
        if options is None:
            return Proof()
        files = Pair(pair.front.data, pair.back.data, pair.schedule, pair.back.twin)

        def compare(options: VerifyOptions) -> Verdict:
            return compare_pair(self._original, files, options, self._on_progress)

        terms, verdict = self._prove_and_compare(self._terms_of_pair(pair), compare, options)
        if verdict is None:
            return Proof(None, Refusal(_difference_of_terms(terms)), terms)
        return Proof(verdict, Refusal(_difference(verdict)) if verdict.differs else None, terms)

    def _terms_of_pair(self, pair: StreamedPair) -> Callable[[], TermsProof]:
        """The proof by terms that both halves, in the memory that they share, together compute the
        same function of every input; what is returned waits for it."""
        self._on_progress("proving the pair equal for every input")
        front, back = (read_model(h.data, dialect=True) for h in (pair.front, pair.back))
        halves = Halves(front, back, pair.schedule)
        original = read_model(self._original)
        return in_background(lambda: prove_pair_by_terms(original, halves, self._kernels))

    def _prove_and_compare(
        self,
        terms_of: Callable[[], TermsProof],
        compare: Callable[[VerifyOptions], Verdict],
        options: VerifyOptions,
    ) -> tuple[TermsProof, Verdict | None]:
        original = read_model(self._original)
        return self._time(lambda: compare_beside(terms_of, compare, original, options))

    def _time(self, prove: Callable[[], Found]) -> Found:
        started = time.monotonic()
        with self._stop.finishing():
            outcome = prove()
        self.seconds += time.monotonic() - started
        return outcome


def _explain(planned: PlannedFile, verdict: Verdict) -> Refusal:
    """Why a file was refused, with the operator at fault if it is known."""
    check = next(c for c in verdict.checks if c.status == DIFFERENT)
    if planned.twin is not None and check.of_twin:
        ops = _operators_with(planned.twin, planned.twin_origins)
    else:
        ops = planned.inspection.model.main.ops
    return _refusal(_difference(verdict), check.culprit, ops)


def _explain_terms(planned: PlannedFile, terms: TermsProof) -> Refusal:
    ops = planned.inspection.model.main.ops
    return _refusal(_difference_of_terms(terms), terms.culprit, ops)


def _operators_with(file: bytes, origins: Sequence[frozenset[int]]) -> list[Op]:
    """The operators of a file's main graph, with the given origins."""
    model = read_model(file)
    set_origins(model, origins)
    return model.main.ops


def _refusal(reason: str, culprit: Culprit | None, ops: Sequence[Op]) -> Refusal:
    """A refusal of a file with the operators `ops`. culprit: the operator at fault, if it is
    known."""
    if culprit is None:
        return Refusal(reason)
    op = ops[culprit.position] if culprit.position < len(ops) else None
    if op is None or op.kind != culprit.kind or not op.outputs:
        return Refusal(reason)
    return Refusal(reason, op.origins, form_of(op) if culprit.fails else None)


def _difference_of_terms(terms: TermsProof) -> str:
    return f"computes something else for some inputs, as its terms show: {terms.detail}"


def _difference(verdict: Verdict) -> str:
    check = next(c for c in verdict.checks if c.status == DIFFERENT)
    return f"computes something else on {check.runtime}: {check.detail}"


def check_model_proved(planned: PlannedFile, proof: Proof) -> None:
    """Raise OutputsDifferError or ModelError unless the model was proved, or no proof was asked
    for."""
    advice = "Please report this model" if planned.exact else _INEXACT_HINT
    _check_proved(proof, "planned model", advice, planned.twin, planned.inspection.model)


def check_pair_proved(pair: StreamedPair, proof: Proof, elsewhere: str) -> None:
    """Raise OutputsDifferError or ModelError unless the pair was proved, or no proof was asked for.
    `elsewhere`: how to split at another operator, in words."""
    advice = f"Please report this model; {elsewhere}"
    _check_proved(proof, "split model", advice, pair.back.twin, pair.back.inspection.model)


def _check_proved(
    proof: Proof, subject: str, advice: str, twin: bytes | None, model: Model
) -> None:
    """`subject`: what was compared, in words. `advice`: what to do if it differs. `twin`: the
    portable twin of a file that only TFLM runs. `model`: the model to which messages of runtimes
    refer."""
    terms, verdict = proof.terms, proof.verdict
    if terms is not None and terms.status == DIFFERENT:
        raise OutputsDifferError(
            f"the {subject} {_difference_of_terms(terms)}; nothing was written. {advice}"
        )
    is_proved = terms is not None and terms.status == EQUAL
    if is_proved and not (verdict and verdict.differs) and _terms_stand_alone(model):
        return
    if verdict is None:
        return
    if verdict.differs:
        raise OutputsDifferError(
            f"the {subject} {_difference(verdict)}; nothing was written. {advice}"
        )
    if not verdict.proved:
        reasons = "; ".join(
            f"{c.runtime}: {c.status}, {explain(model, c.detail)}" for c in verdict.checks
        )
        raise ModelError(
            f"no runtime could compare the {subject} with the original ({reasons}); nothing was "
            f"written. {_PORTABLE_HINT if twin is not None else ''}{_UNPROVED_HINT}"
        )


def compare_with_twin(
    original: bytes, planned: PlannedFile, options: VerifyOptions, on_progress: Progress
) -> Verdict:
    """Compare the result with the original. A result in the TFLM dialect runs on TFLM only, so its
    portable twin is compared as well on every runtime that runs it, and must not differ either.
    TFLM need not run the twin, which may have operators that the dialect drops and that have no
    kernel (SLICE of uint8, for example)."""
    if planned.twin is None:
        return verify(original, planned.data, options, on_progress)
    for_twin = _without_unable(original, planned.twin, options)
    checks = verify(original, planned.twin, for_twin, on_progress).checks
    on_tflm = replace(options, runtimes=("TFLM",))
    verdict = verify(original, planned.data, on_tflm, on_progress)
    if planned.exact:
        return _with_twin(verdict, checks)
    # the dialect must equal its twin bit by bit
    strict = replace(on_tflm, tolerance=None)
    against_twin = verify(planned.twin, planned.data, strict, on_progress).checks
    return _with_twin(verdict, checks, against_twin)


def _without_unable(original: bytes, twin: bytes, options: VerifyOptions) -> VerifyOptions:
    """The options, without TFLM if TFLM cannot run the twin although it runs the original."""
    ops = read_model(original).ops(), read_model(twin).ops()
    if new_refusal(*ops, (load_target(HOST_RUNTIME),)) is None:
        return options
    return replace(options, runtimes=tuple(r for r in options.runtimes if r != "TFLM"))


def compare_pair(
    original: bytes, pair: Pair, options: VerifyOptions, on_progress: Progress
) -> Verdict:
    """Compare a split model with the original. If the back is in the TFLM dialect, LiteRT runs its
    portable twin."""
    verdict = verify_pair(original, pair, options, on_progress)
    if pair.twin is None:
        return verdict
    twin = [c for c in verdict.checks if c.runtime != "TFLM"]
    return _with_twin(
        replace(verdict, checks=tuple(c for c in verdict.checks if c.runtime == "TFLM")), twin
    )


def _with_twin(
    verdict: Verdict, of_twin: Iterable[RuntimeCheck], against: Iterable[RuntimeCheck] = ()
) -> Verdict:
    """The verdict on a file that only TFLM runs, with the checks of its twin (`of_twin`), and of
    the file against the twin (`against`). A proof of the twin alone is not enough."""
    checks = [replace(c, runtime=f"{c.runtime}, portable twin", of_twin=True) for c in of_twin]
    checks += [replace(c, runtime=f"{c.runtime}, against the twin") for c in against]
    if not verdict.proved:
        checks = [c for c in checks if c.status not in (EQUAL, CLOSE)]
    return replace(verdict, checks=(*checks, *verdict.checks))
