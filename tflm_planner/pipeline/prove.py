"""Nothing unproved is handed out: what no runtime here could prove is refused first, and of the
files that are offered the first one is taken that stands the proof.

    provable    before a search: does any runtime here run the original at all?
    offers ---> file ---> compared ---> Verdict: equal? taken    different? the next one, and why

Which file is the next best one is for those who offer them to know.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline.memory_plan import Progress
from tflm_planner.pipeline.planned_model import PlannedModel, TilePermission
from tflm_planner.pipeline.refusals import Refusal
from tflm_planner.pipeline.stream_input.split import StreamedPair
from tflm_planner.support.errors import ModelError, OutputsDifferError
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.element_types import form_of, newly_unsupported
from tflm_planner.tflm.kernels.operator_allocations import OPERATORS
from tflm_planner.tflm.targets import HOST_RUNTIME, load_target
from tflm_planner.verification import Options, RuntimeCheck, Tolerance, Verdict, verify, why_unable
from tflm_planner.verification.compare import named_in
from tflm_planner.verification.pairs import Pair, verify_pair
from tflm_planner.verification.verdict import CLOSE, DIFFERENT, EQUAL

_Offer = TypeVar("_Offer")
_PORTABLE = "--portable makes a file that LiteRT can prove, "
_NO_PROOF = "--no-verify writes it unproved"
_TOO_FAR = (
    "Shares of sums may be a step off each, and what follows makes more of it than is tolerated: "
    "split a sum that fewer operators follow, or into fewer shares"
)


def check_provable(
    data: bytes, model: Model, tiles: TilePermission | None, options: Options, say: Progress
) -> TilePermission | None:
    """What tiling may do (`tiles`) to `model`, which is in `data`, as far as it can be proved here:
    only TFLM can prove files in its dialect.

    Raises ModelError where a search would be in vain: no runtime here runs the original, or TFLM
    knows all its operators and does not run them so, nor will a board. Operators that TFLM does
    not know may be known to the firmware: LiteRT may prove portable files of them.
    """
    say("running the model on TFLM")
    on_tflm = why_unable(data, "TFLM", options)
    if on_tflm is None:
        return tiles
    elsewhere = why_unable(data, "LiteRT", options)
    if elsewhere is not None:
        raise ModelError(
            f"no runtime here can run the model (LiteRT: {elsewhere}; TFLM: {on_tflm}), so that "
            f"nothing made of it could be proved; nothing was searched for. {_NO_PROOF}"
        )
    if tiles is None or not tiles.dialect:
        return tiles
    if any(op.kind not in OPERATORS for op in model.ops()):
        return replace(tiles, dialect=False)
    raise ModelError(
        f"TFLM cannot run the model ({on_tflm}), so that tiles for TFLM could not be proved; "
        f"nothing was searched for. {_PORTABLE}{_NO_PROOF}"
    )


def prove_first(
    original: bytes,
    offered: Generator[PlannedModel, Refusal | None, None],
    options: Options | None,
    say: Progress,
    stop: Stop,
) -> tuple[PlannedModel, Verdict | None, float]:
    """The first file that computes the same, and what proves it; seconds that proofs took. A tiling
    that does not is a fault of this tool, and the one that is next best may be none. stop: of the
    search for what is offered."""
    if options is None:
        return next(offered), None, 0.0

    def proof(made: PlannedModel) -> Verdict:
        tolerance = None if made.exact else options.tolerance or Tolerance()
        return compare_with_twin(original, made, replace(options, tolerance=tolerance), say)

    made, verdict, spent = _first_equal(offered, proof, _blamed, stop)
    advice = "Please report this model" if made.exact else _TOO_FAR
    _check_sound(verdict, "planned model", advice, made.twin)
    return made, verdict, spent


def prove_first_pair(
    original: bytes,
    offered: Generator[StreamedPair, Refusal | None, None],
    options: Options | None,
    elsewhere: str,
    say: Progress,
    stop: Stop,
) -> tuple[StreamedPair, Verdict | None]:
    """The first split model that computes the same, and what proves it. `elsewhere`: how to have
    another one, should none."""
    if options is None:
        return next(offered), None

    def proof(found: StreamedPair) -> Verdict:
        pair = Pair(found.front.data, found.back.data, found.strips, found.back.twin)
        return compare_pair(original, pair, options, say)

    def blame(_: StreamedPair, verdict: Verdict) -> Refusal:
        return Refusal(_difference(verdict))

    found, verdict, _ = _first_equal(offered, proof, blame, stop)
    advice = f"Please report this model; {elsewhere}"
    _check_sound(verdict, "split model", advice, found.back.twin)
    return found, verdict


def _first_equal(
    offered: Generator[_Offer, Refusal | None, None],
    proof: Callable[[_Offer], Verdict],
    blame: Callable[[_Offer, Verdict], Refusal],
    stop: Stop,
) -> tuple[_Offer, Verdict, float]:
    """The first that does not differ, or else the last; its verdict; seconds that proofs took.
    blame: why one was refused."""
    spent, made = 0.0, next(offered)
    while True:
        started = time.monotonic()
        with stop.proving():
            verdict = proof(made)
        spent += time.monotonic() - started
        if verdict.differs:
            with suppress(StopIteration):
                made = offered.send(blame(made, verdict))
                continue
        return made, verdict, spent


def _blamed(made: PlannedModel, verdict: Verdict) -> Refusal:
    """Why a file was refused, with the operator at fault as far as the runtime named one."""
    check = next(c for c in verdict.checks if c.status == DIFFERENT)
    file = made.twin if made.twin is not None and "twin" in check.runtime else made.data
    said = _difference(verdict)
    if check.culprit is None:
        return Refusal(said)
    ops = read_model(file, dialect=True).main.ops
    op = ops[check.culprit] if check.culprit < len(ops) else None
    if op is None or op.kind not in check.detail or not op.outputs:
        return Refusal(said)
    fails = named_in(check.detail) is not None
    return Refusal(said, op.outputs[0].name, form_of(op) if fails else None)


def _difference(verdict: Verdict) -> str:
    found = next(c for c in verdict.checks if c.status == DIFFERENT)
    return f"computes something else on {found.runtime}: {found.detail}"


def _check_sound(verdict: Verdict, what: str, advice: str, twin: bytes | None) -> None:
    """Raise OutputsDifferError or ModelError unless the verdict proves something. `what`: was
    proved. `advice`: should it differ. `twin`: the portable one of a file for TFLM alone."""
    if verdict.differs:
        raise OutputsDifferError(
            f"the {what} {_difference(verdict)}; nothing was written. {advice}"
        )
    if not verdict.proved:
        reasons = "; ".join(f"{c.runtime}: {c.status}, {c.detail}" for c in verdict.checks)
        raise ModelError(
            f"no runtime could compare the {what} with the original ({reasons}); nothing was "
            f"written. {_PORTABLE if twin is not None else ''}{_NO_PROOF}"
        )


def compare_with_twin(
    original: bytes, made: PlannedModel, options: Options, say: Progress
) -> Verdict:
    """The result against the original. A result in the TFLM dialect runs on TFLM only: its
    portable twin is compared as well, on every runtime that runs it, and must not differ either.
    TFLM need not run the twin: what the dialect leaves out (SLICE of uint8, say) no kernel may
    know."""
    if made.twin is None:
        return verify(original, made.data, options, say)
    checks = verify(original, made.twin, _as_it_runs(original, made.twin, options), say).checks
    verdict = verify(original, made.data, replace(options, runtimes=("TFLM",)), say)
    if made.exact:
        return _with_twin(verdict, checks)
    # the dialect must be its twin, bit by bit
    strict = replace(options, runtimes=("TFLM",), tolerance=None)
    same = verify(made.twin, made.data, strict, say).checks
    return _with_twin(verdict, checks, same)


def _as_it_runs(original: bytes, twin: bytes, options: Options) -> Options:
    """The options, without TFLM where it cannot run the twin of an original that it runs."""
    ops = read_model(original).ops(), read_model(twin).ops()
    if newly_unsupported(*ops, (load_target(HOST_RUNTIME),)) is None:
        return options
    return replace(options, runtimes=tuple(r for r in options.runtimes if r != "TFLM"))


def compare_pair(original: bytes, pair: Pair, options: Options, say: Progress) -> Verdict:
    """A split model against the original: LiteRT has run the portable twin of a back in the TFLM
    dialect."""
    verdict = verify_pair(original, pair, options, say)
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
    checks = [replace(c, runtime=f"{c.runtime}, portable twin") for c in of_twin]
    checks += [replace(c, runtime=f"{c.runtime}, against the twin") for c in against]
    if not verdict.proved:
        checks = [c for c in checks if c.status not in (EQUAL, CLOSE)]
    return replace(verdict, checks=(*checks, *verdict.checks))
