"""Nothing unproved is handed out: what no runtime here could prove is refused before the search,
and every file that is made is compared with the original.

    check_provable    before a search: does any runtime here run the original at all?
    Prover            file -> compared -> Proof: equal, or refused and why
    check_..._proved  of the last file: an error unless it was proved equal

Which file is made next, should one be refused, is for those who make them to know.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline.memory_plan import Progress
from tflm_planner.pipeline.options import TilePermission
from tflm_planner.pipeline.planned_model import PlannedModel
from tflm_planner.pipeline.refusals import Proof, Refusal
from tflm_planner.pipeline.runtime_failures import explain
from tflm_planner.pipeline.stream_input.split import StreamedPair
from tflm_planner.support.errors import ModelError, OutputsDifferError
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.element_types import form_of, newly_unsupported
from tflm_planner.tflm.kernels.operator_allocations import OPERATORS
from tflm_planner.tflm.targets import HOST_RUNTIME, load_target
from tflm_planner.verification import Options, RuntimeCheck, Tolerance, Verdict, verify, why_unable
from tflm_planner.verification.pairs import Pair, verify_pair
from tflm_planner.verification.verdict import CLOSE, DIFFERENT, EQUAL

_PORTABLE = "--portable makes a file that LiteRT can prove, "
_NO_PROOF = "--no-verify writes it unproved"
_TOO_FAR = (
    "Shares of sums may be a step off each, and what follows makes more of it than is tolerated: "
    "split a sum that fewer operators follow, or into fewer shares"
)


def check_provable(
    data: bytes,
    model: Model,
    tiles: TilePermission | None,
    options: Options,
    report_progress: Progress,
) -> TilePermission | None:
    """What tiling may do (`tiles`) to `model`, which is in `data`, as far as it can be proved here:
    only TFLM can prove files in its dialect.

    Raises ModelError where a search would be in vain: no runtime here runs the original, or TFLM
    knows all its operators and does not run them so, nor will a board. Operators that TFLM does
    not know may be known to the firmware: LiteRT may prove portable files of them.
    """
    report_progress("running the model on TFLM")
    on_tflm = why_unable(data, "TFLM", options)
    if on_tflm is None:
        return tiles
    elsewhere = why_unable(data, "LiteRT", options)
    on_tflm = explain(model, on_tflm)
    if elsewhere is not None:
        raise ModelError(
            f"no runtime here can run the model (LiteRT: {explain(model, elsewhere)}; TFLM: "
            f"{on_tflm}), so that nothing made of it could be proved; nothing was searched for. "
            f"{_NO_PROOF}"
        )
    if tiles is None or not tiles.dialect:
        return tiles
    if any(op.kind not in OPERATORS for op in model.ops()):
        return replace(tiles, dialect=False)
    raise ModelError(
        f"TFLM cannot run the model ({on_tflm}), so that tiles for TFLM could not be proved; "
        f"nothing was searched for. {_PORTABLE}{_NO_PROOF}"
    )


class Prover:
    """Compares files with the original. seconds: that this took so far."""

    def __init__(
        self, original: bytes, options: Options | None, report_progress: Progress, stop: Stop
    ) -> None:
        """`options`: None leaves everything unproved. `stop`: of the search that makes the files;
        a proof is no search that it could end."""
        self._original = original
        self._options = options
        self._report_progress = report_progress
        self._stop = stop
        self.seconds = 0.0

    def provable_tiles(self, model: Model, tiles: TilePermission | None) -> TilePermission | None:
        """What tiling may do to the original, which is `model`, as far as it can be proved here
        (see `check_provable`)."""
        if self._options is None:
            return tiles
        started = time.monotonic()
        with self._stop.not_searching():
            tiles = check_provable(
                self._original, model, tiles, self._options, self._report_progress
            )
        self.seconds += time.monotonic() - started
        return tiles

    def prove_model(self, planned: PlannedModel) -> Proof:
        """Whether a planned model computes the same as the original. A tiling that does not is a
        fault of this tool, and the one that is next best may be none."""
        options = self._options
        if options is None:
            return Proof()
        tolerance = None if planned.exact else options.tolerance or Tolerance()
        with_tolerance = replace(options, tolerance=tolerance)
        verdict = self._compare(
            lambda: compare_with_twin(
                self._original, planned, with_tolerance, self._report_progress
            )
        )
        return Proof(verdict, _explain(planned, verdict) if verdict.differs else None)

    def prove_pair(self, pair: StreamedPair) -> Proof:
        """Whether both halves of a split model together compute the same as the original."""
        options = self._options
        if options is None:
            return Proof()
        files = Pair(pair.front.data, pair.back.data, pair.schedule, pair.back.twin)
        verdict = self._compare(
            lambda: compare_pair(self._original, files, options, self._report_progress)
        )
        return Proof(verdict, Refusal(_difference(verdict)) if verdict.differs else None)

    def _compare(self, compare: Callable[[], Verdict]) -> Verdict:
        started = time.monotonic()
        with self._stop.proving():
            verdict = compare()
        self.seconds += time.monotonic() - started
        return verdict


def _explain(planned: PlannedModel, verdict: Verdict) -> Refusal:
    """Why a file was refused, with the operator at fault as far as the runtime named one."""
    check = next(c for c in verdict.checks if c.status == DIFFERENT)
    file = planned.twin if planned.twin is not None and check.of_twin else planned.data
    reason, culprit = _difference(verdict), check.culprit
    if culprit is None:
        return Refusal(reason)
    ops = read_model(file, dialect=True).main.ops
    op = ops[culprit.position] if culprit.position < len(ops) else None
    if op is None or op.kind != culprit.kind or not op.outputs:
        return Refusal(reason)
    return Refusal(reason, op.outputs[0].name, form_of(op) if culprit.fails else None)


def _difference(verdict: Verdict) -> str:
    check = next(c for c in verdict.checks if c.status == DIFFERENT)
    return f"computes something else on {check.runtime}: {check.detail}"


def check_model_proved(planned: PlannedModel, proof: Proof) -> None:
    """Raise OutputsDifferError or ModelError unless the model was proved, or was not to be."""
    advice = "Please report this model" if planned.exact else _TOO_FAR
    model = planned.inspection.model
    _check_proved(proof.verdict, "planned model", advice, planned.twin, model)


def check_pair_proved(pair: StreamedPair, proof: Proof, elsewhere: str) -> None:
    """Raise OutputsDifferError or ModelError unless the pair was proved, or was not to be.
    `elsewhere`: how to have it split at another operator."""
    advice = f"Please report this model; {elsewhere}"
    model = pair.back.inspection.model
    _check_proved(proof.verdict, "split model", advice, pair.back.twin, model)


def _check_proved(
    verdict: Verdict | None, what: str, advice: str, twin: bytes | None, model: Model
) -> None:
    """`what`: was proved. `advice`: should it differ. `twin`: the portable one of a file for TFLM
    alone. `model`: whose operators a runtime may name."""
    if verdict is None:
        return
    if verdict.differs:
        raise OutputsDifferError(
            f"the {what} {_difference(verdict)}; nothing was written. {advice}"
        )
    if not verdict.proved:
        reasons = "; ".join(
            f"{c.runtime}: {c.status}, {explain(model, c.detail)}" for c in verdict.checks
        )
        raise ModelError(
            f"no runtime could compare the {what} with the original ({reasons}); nothing was "
            f"written. {_PORTABLE if twin is not None else ''}{_NO_PROOF}"
        )


def compare_with_twin(
    original: bytes, planned: PlannedModel, options: Options, report_progress: Progress
) -> Verdict:
    """The result against the original. A result in the TFLM dialect runs on TFLM only: its
    portable twin is compared as well, on every runtime that runs it, and must not differ either.
    TFLM need not run the twin: what the dialect leaves out (SLICE of uint8, say) no kernel may
    know."""
    if planned.twin is None:
        return verify(original, planned.data, options, report_progress)
    for_twin = _without_unable(original, planned.twin, options)
    checks = verify(original, planned.twin, for_twin, report_progress).checks
    on_tflm = replace(options, runtimes=("TFLM",))
    verdict = verify(original, planned.data, on_tflm, report_progress)
    if planned.exact:
        return _with_twin(verdict, checks)
    # the dialect must be its twin, bit by bit
    strict = replace(on_tflm, tolerance=None)
    against_twin = verify(planned.twin, planned.data, strict, report_progress).checks
    return _with_twin(verdict, checks, against_twin)


def _without_unable(original: bytes, twin: bytes, options: Options) -> Options:
    """The options, without TFLM where it cannot run the twin of an original that it runs."""
    ops = read_model(original).ops(), read_model(twin).ops()
    if newly_unsupported(*ops, (load_target(HOST_RUNTIME),)) is None:
        return options
    return replace(options, runtimes=tuple(r for r in options.runtimes if r != "TFLM"))


def compare_pair(
    original: bytes, pair: Pair, options: Options, report_progress: Progress
) -> Verdict:
    """A split model against the original: LiteRT has run the portable twin of a back in the TFLM
    dialect."""
    verdict = verify_pair(original, pair, options, report_progress)
    if pair.twin is None:
        return verdict
    twin = [c for c in verdict.checks if c.runtime != "TFLM"]
    return _with_twin(
        replace(verdict, checks=tuple(c for c in verdict.checks if c.runtime == "TFLM")), twin
    )


def _with_twin(
    verdict: Verdict, of_twin: Iterable[RuntimeCheck], against: Iterable[RuntimeCheck] = ()
) -> Verdict:
    """A verdict of a file for TFLM alone, with what was found of its twin (`of_twin`) and of both
    (`against`). What only the twin proves is not enough."""
    checks = [replace(c, runtime=f"{c.runtime}, portable twin", of_twin=True) for c in of_twin]
    checks += [replace(c, runtime=f"{c.runtime}, against the twin") for c in against]
    if not verdict.proved:
        checks = [c for c in checks if c.status not in (EQUAL, CLOSE)]
    return replace(verdict, checks=(*checks, *verdict.checks))
