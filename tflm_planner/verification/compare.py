"""Compares original and result bit by bit on real runtimes.

The two models run in parallel in child processes. Each gets the same inputs in the same order on
one interpreter (so that differences in state show), and both must answer with the same bytes.
"""

from __future__ import annotations

import importlib.util
import re
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tflm_planner.model.ir import Graph, Model
from tflm_planner.model.serde import read_model
from tflm_planner.support import defaults
from tflm_planner.support.errors import ModelError, UsageError
from tflm_planner.support.progress import Progress, silent
from tflm_planner.verification.ends import as_original, differing_ends
from tflm_planner.verification.inputs import Array, input_sets
from tflm_planner.verification.locate import Place, first_difference
from tflm_planner.verification.session import (
    Child,
    RuntimeFailureError,
    RuntimeTimeoutError,
    Session,
)
from tflm_planner.verification.stand_ins import as_registered, cleaned_up, first_choice, is_refused
from tflm_planner.verification.tolerance import Differences, Tolerance
from tflm_planner.verification.verdict import (
    CANNOT_RUN,
    CLOSE,
    DIFFERENT,
    EQUAL,
    NOT_AVAILABLE,
    CheckStatus,
    Culprit,
    HostAllocation,
    RuntimeCheck,
    Verdict,
)  # fmt: skip
from tflm_planner.verification.workload import (
    MACS_BESIDE_TERMS,
    MOST_MACS,
    answer_limit,
    inputs_within,
    roomy_arena,
    why_miscomputed,
    why_misread,
    why_unfit,
    work_in_words,
)

PACKAGES = {"LiteRT": "ai_edge_litert", "TFLM": "tflite_micro"}


@dataclass(frozen=True)
class VerifyOptions:
    """How two models are compared, and for how long."""

    seed: int = defaults.SEED
    """Seed of the random inputs."""
    inputs: int = defaults.INPUTS
    """Number of inputs to compare."""
    most_macs: int = MOST_MACS
    """Limit on the multiply-accumulates of all inputs together. If the inputs would exceed it,
    fewer are compared, but at least two."""
    time_limit: float = 300.0
    """Seconds that a runtime may take for one answer. After that it is taken to hang."""
    arena: int = 0
    """Bytes of arena for TFLM; 0 to choose."""
    runtimes: tuple[str, ...] = tuple(PACKAGES)
    """The runtimes that take part. A result in the TFLM dialect runs on TFLM only."""
    tolerance: Tolerance | None = None
    """How far outputs may be apart. None: they must be equal."""

    def __post_init__(self) -> None:
        if self.inputs < 1:
            raise UsageError(f"{self.inputs} inputs prove nothing; compare 1 or more")
        if self.seed < 0:
            raise UsageError(f"the seed {self.seed} is negative; take 0 or more")

    @property
    def beside_terms(self) -> VerifyOptions:
        """The options for models that terms have proved equal for every input: large ones are
        compared on fewer inputs, unless more than the usual number were asked for."""
        if self.inputs > defaults.INPUTS:
            return self
        return replace(self, most_macs=min(self.most_macs, MACS_BESIDE_TERMS))


def verify(
    original: bytes,
    result: bytes,
    options: VerifyOptions | None = None,
    on_progress: Progress = silent,
) -> Verdict:
    """Compare two models on every runtime that is installed here.

    Raises ModelError if their inputs or outputs do not match: then they are not versions of one
    model.
    """
    options = options or VerifyOptions()
    models = read_model(original), read_model(result, dialect=True)
    _check_comparable(*models)
    left_out = _checks_left_out(models, options)
    asked = [name for name in PACKAGES if name in options.runtimes]
    checks: list[RuntimeCheck] = []
    arenas: list[HostAllocation | None] = [None, None]
    with ExitStack() as stack:
        runs = _Runs(stack, original, models, options)
        # A result that TFLM refuses, too, is no plan: it is not held against a cleaned-up original.
        is_plan = not is_refused("TFLM", models[1])
        given = {
            name: first_choice(name, original, models[0]) if is_plan else original
            for name in asked
            if name not in left_out
        }
        pairs = {name: runs.start(name, file, result) for name, file in given.items()}
        for name in asked:
            if name in left_out:
                checks.append(left_out[name])
                continue
            on_progress(f"comparing on {name}")
            pair, check = pairs[name], pairs[name].compare()
            if (
                name == "TFLM"
                and check.status == CANNOT_RUN
                and is_plan
                and given[name] is original
            ):
                given[name] = cleaned_up(original) or original
                if given[name] is not original:
                    pair = runs.start(name, given[name], result)
                    check = pair.compare()
            checks.append(check)
            if name == "TFLM":
                arenas = [pair.arenas[0] if given[name] is original else None, pair.arenas[1]]
    return Verdict(tuple(checks), *arenas)


def _checks_left_out(
    models: tuple[Model, Model], options: VerifyOptions
) -> dict[str, RuntimeCheck]:
    """The requested runtimes that cannot compare the models, each with a check that says why.
    models: original and result."""
    unfit, alone = map(_for_tflm_alone, models)
    checks: dict[str, RuntimeCheck] = {}
    for name in (n for n in PACKAGES if n in options.runtimes):
        if importlib.util.find_spec(PACKAGES[name]) is None or (alone and name == "LiteRT"):
            reason = f"the result is {alone}" if alone else "not installed here"
            checks[name] = RuntimeCheck(name, NOT_AVAILABLE, 0, False, reason)
        elif unfit and name == "LiteRT":
            checks[name] = RuntimeCheck(name, CANNOT_RUN, 0, False, f"it is {unfit}")
        elif (why := why_unfit(models[0], name)) is not None:
            checks[name] = RuntimeCheck(name, CANNOT_RUN, 0, False, why)
        elif name == "TFLM" and (why := why_misread(models[1])) is not None:
            checks[name] = RuntimeCheck(name, DIFFERENT, 0, False, f"in the result, {why}")
        elif name == "LiteRT" and (why := why_miscomputed(models[1])) is not None:
            checks[name] = RuntimeCheck(name, NOT_AVAILABLE, 0, False, f"in the result, {why}")
    return checks


class _Runs:
    """Starts the runs of original and result, which load at once, and end with a stack."""

    def __init__(
        self, stack: ExitStack, original: bytes, models: tuple[Model, Model], options: VerifyOptions
    ) -> None:
        """`models`: original and result."""
        self._stack, self._models, self._options = stack, models, options
        self._arena = options.arena or roomy_arena(original, models[0])

    def start(self, runtime: str, original: bytes, result: bytes) -> SideBySide:
        """Load two files on a runtime, beside each other."""
        arena, model, options = self._arena, self._models[0], self._options
        outputs, limit = len(model.main.outputs), answer_limit(model, options.time_limit)
        given = (original, result), self._models
        files = [as_registered(runtime, data, model) for data, model in zip(*given, strict=True)]
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        paths = folder / "original.tflite", folder / "result.tflite"
        write_temporary(paths, files)
        sessions = [
            self._stack.enter_context(
                Session(runtime, path, arena=arena, outputs=outputs, time_limit=limit)
            )
            for path in paths
        ]

        def where(values: list[Array]) -> Place:
            return first_difference(runtime, files[0], files[1], values, arena)

        return SideBySide(runtime, model, sessions, options, where, self._models[1].main)


def write_temporary(paths: Sequence[Path], files: Sequence[bytes]) -> None:
    """Write the models to files that the runtimes read. Raises UsageError if they cannot be
    written."""
    try:
        for path, data in zip(paths, files, strict=True):
            path.write_bytes(data)
    except OSError as error:
        raise UsageError(
            f"cannot write the models to compare to {paths[0].parent}: "
            f"{(error.strerror or str(error)).lower()}; set TMPDIR to a folder with room"
        ) from error


def _check_comparable(original: Model, result: Model) -> None:
    differing = differing_ends(original.main, result.main)
    if differing:
        swapped = not differing_ends(result.main, original.main)
        hint = "; give them the other way round: what has floats there goes first" * swapped
        raise ModelError(f"the models have {differing}{hint}")


def _for_tflm_alone(model: Model) -> str:
    """What LiteRT cannot run of a planned model that TFLM can run; empty if LiteRT can."""
    if model.has_views:  # it would take views for tensors without a value
        return "in the TFLM dialect"
    if any(t.quantization.lacks_zero_points for t in model.tensors()):
        return "stripped for TFLM: filters with one zero point for all channels"
    return ""


class SideBySide:
    """Original and result on one runtime."""

    def __init__(
        self,
        runtime: str,
        model: Model,
        sessions: Sequence[Child],
        options: VerifyOptions,
        where: Callable[[list[Array]], Place],
        result: Graph | None = None,
    ) -> None:
        """`model`: the original. `sessions`: those of original and result. `where`: finds the place
        of a difference, given inputs on which the outputs differ. `result`: the result's main
        graph, needed if its inputs or outputs have other types than the original's; else None."""
        self._runtime, self._where = runtime, where
        self._model = model
        self._result = result or model.main
        self._sessions = sessions
        self._options = options
        self.arenas: list[HostAllocation | None] = [None, None]

    def compare(self) -> RuntimeCheck:
        """Run both models until their outputs differ, or all inputs are used."""
        unfit = why_unfit(self._model, self._runtime)
        if unfit is not None:
            return self._check(CANNOT_RUN, 0, False, unfit)
        failing: tuple[CheckStatus, CheckStatus] = (CANNOT_RUN, DIFFERENT)
        for side, status in enumerate(failing):
            try:
                answer: dict[str, int] = self._sessions[side].receive()
            except RuntimeFailureError as failure:
                self._check_answered(failure, side)
                what = "" if status == CANNOT_RUN else "the result does not load: "
                return self._check(status, 0, False, f"{what}{failure}", _culprit_in(str(failure)))
            if "head" in answer:
                self.arenas[side] = HostAllocation(answer["head"], answer["tail"])
        return self._invoke_all()

    def _invoke_all(self) -> RuntimeCheck:
        answers: set[bytes] = set()
        compared = 0
        differences = Differences(self._options.tolerance)
        sets = input_sets(self._result, self._options.seed, count=self._count())
        for label, values in sets:
            try:
                expected, actual = self._invoke(values)
            except RuntimeFailureError as failure:
                if compared == 0:
                    return self._check(CANNOT_RUN, 0, False, f"{label} input: {failure}")
                reason = f"stopped at {label} input: {failure}"
                return self._check(
                    CLOSE if differences.any else EQUAL, compared, len(answers) > 1, reason
                )
            if isinstance(actual, RuntimeFailureError):
                self._check_answered(actual, 1)
                crash = self._sessions[0].crash()
                if crash is not None:
                    detail = f"the runtime damages its own memory on it ({crash})"
                    return self._check(CANNOT_RUN, compared, len(answers) > 1, detail)
                detail = f"{label} input: the result fails where the original runs: {actual}"
                return self._check(
                    DIFFERENT, compared, len(answers) > 1, detail, _culprit_in(str(actual))
                )
            compared += 1
            answers.add(b"".join(a.tobytes() for a in expected))
            wrong, why = _first_unequal(expected, actual, differences)
            if wrong is not None:
                name = self._model.main.outputs[wrong].name
                detail = f"{label} input: output {wrong} ({name!r}) differs{why}"
                place = self._where(values)
                detail += place.said
                return self._check(DIFFERENT, compared, len(answers) > 1, detail, place.culprit)
        detail = str(differences) or self._why_fewer(compared)
        return self._check(CLOSE if differences.any else EQUAL, compared, len(answers) > 1, detail)

    def _why_fewer(self, compared: int) -> str:
        """Why fewer inputs were compared than were asked for; empty if none were left out."""
        requested = self._options.inputs
        if compared >= requested:
            return ""
        work = work_in_words(self._model)
        return f"not on {requested}, as each takes {work}"

    def _check_answered(self, failure: RuntimeFailureError, side: int) -> None:
        """Raise ModelError if the result did not answer in time. It may hang, or the machine may be
        slow, so a verdict must not depend on it."""
        if side and isinstance(failure, RuntimeTimeoutError):
            raise ModelError(
                f"the planned model gave {failure} on {self._runtime}, so that nothing is proved; "
                "nothing was written. Try again when the machine has less to do"
            )

    def _count(self) -> int:
        """How many inputs to compare. It is limited by counted work, not by time, so that every
        machine compares the same inputs."""
        return inputs_within(self._model, self._options.inputs, self._options.most_macs)

    def _invoke(self, values: list[Array]) -> tuple[list[Any], list[Any] | RuntimeFailureError]:
        original, result = self._sessions
        original.send(as_original(self._model.main.inputs, self._result.inputs, values))
        try:
            result.send(values)
        except RuntimeFailureError as failure:
            return original.receive(), failure
        expected = original.receive()
        try:
            actual = result.receive()
            return expected, as_original(self._model.main.outputs, self._result.outputs, actual)
        except RuntimeFailureError as failure:
            return expected, failure

    def _check(
        self,
        status: CheckStatus,
        inputs: int,
        vary: bool,
        detail: str,
        culprit: Culprit | None = None,
    ) -> RuntimeCheck:
        return RuntimeCheck(self._runtime, status, inputs, vary, detail, culprit)


def _culprit_in(failure: str) -> Culprit | None:
    """The operator that a runtime's message names: "Node SLICE (number 3) ..."."""
    match = re.search(r"\bnode ([A-Z0-9_]+) \(number (\d+)\b", failure, re.IGNORECASE)
    return None if match is None else Culprit(int(match[2]), match[1], fails=True)


def _first_unequal(
    expected: list[Any], actual: list[Any], differences: Differences
) -> tuple[int | None, str]:
    """The first output that differs by more than is tolerated, and by how much."""
    for i, (a, b) in enumerate(zip(expected, actual, strict=True)):
        why = differences.add(a, b)
        if why is not None:
            return i, f": {why}" if why else ""
    return None, ""
