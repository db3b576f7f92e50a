"""What must be reported with the figures of an arena: why they are not exact, or why a model
cannot run.

    doubt     the figure is a guess: kernels that nobody has read, operators without an entry
    warning   the figure is right, and still something is wrong

There is one mechanism for all doubts: every report calls `bound_of` for the word beside a figure,
and everything that is pasted into firmware calls `bytes_to_reserve` for the bytes to write there.
What the target's TFLM refuses to run is in `refusals`. It must not know bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tflm_planner.model.ir import ETHOS_U, Op
from tflm_planner.support.units import align_up
from tflm_planner.tflm.declared_shapes import misdeclaration
from tflm_planner.tflm.kernels import library_of
from tflm_planner.tflm.kernels.custom_ops import crashing_factor
from tflm_planner.tflm.kernels.known_faults import known_faults
from tflm_planner.tflm.kernels.operator_allocations import OperatorAllocations
from tflm_planner.tflm.liveness import Timeline
from tflm_planner.tflm.refusals import UNPLACED_SCRATCH, message
from tflm_planner.tflm.remedies import remedy_of, written_as
from tflm_planner.tflm.resolver_methods import resolver_method
from tflm_planner.tflm.targets import Target
from tflm_planner.tflm.versions import day_of, day_of_version

BoundKind = Literal["exact", "enough", "at least", "about"]
"""How far a figure can be trusted, in this order: it is exact; it is enough, although less may work
too; more may be needed, but hardly less; more may be needed, or less."""

_UNREAD_KERNELS_SHARE = 1.25
"""Share of the prediction to add for kernels that nobody has read: ESP-NN on an ESP32-S3 needed up
to 2.1 times as much as the kernels that are known (keyword spotting, ESP-NN 1.1.2)."""
_OTHER_RELEASE_SHARE = 0.62
"""The share for another release of a library: a keyword spotting model needs 61 % more with ESP-NN
1.1.2 than with 1.2.3, and a wake word model 31 % more with 1.2.1 than with 1.1.2."""
_ASSUMED_OPERATORS_SHARE = 0.25
"""The share for operators without an entry, for which a generous size is already assumed."""
_OTHER_TFLM_SHARE = 0.05
"""The share for the structures of another TFLM, which differ by a few bytes each."""
_FFT_CRASH = "TFLM crashes on a transform whose length has factors other than 2, 3 and 5"


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """Why a figure is not exact. words: the reason. margin: the share of the arena to add to the
    size that is pasted into firmware. in_head: whether the head is uncertain too, or only the tail.
    bound: what the figure then is."""

    words: str
    margin: float
    in_head: bool = True
    bound: BoundKind = "at least"


def bound_of(uncertainties: Iterable[Uncertainty]) -> BoundKind:
    """How certain a figure is under all these doubts."""
    given = {uncertainty.bound for uncertainty in uncertainties}
    if "about" in given:
        return "about"
    return "at least" if "at least" in given else "enough" if given else "exact"


def may_need_more(bound: BoundKind) -> bool:
    """Whether a board may need more than a figure with this bound."""
    return bound in ("at least", "about")


def head_bound_of(uncertainties: Iterable[Uncertainty]) -> BoundKind:
    """How certain the head is under all these doubts."""
    return bound_of(uncertainty for uncertainty in uncertainties if uncertainty.in_head)


def bytes_to_reserve(arena: int, uncertainties: Iterable[Uncertainty]) -> int:
    """Bytes to write into firmware: with a margin if a board may need more."""
    margin = max((uncertainty.margin for uncertainty in uncertainties), default=0.0)
    return align_up(arena + int(arena * margin)) if margin else arena


def uncertainties(
    ops: Sequence[Op], costs: Sequence[OperatorAllocations], target: Target
) -> Iterator[Uncertainty]:
    """The reasons why the figures of these operators are not exact. costs: of each operator."""
    library = library_of(target)
    if not library.is_read:
        yield Uncertainty(
            f"kernel library {target.kernels!r}, which nobody has read: it may need twice as much "
            "(ESP-NN on an ESP32-S3 does, which is a target of its own: esp32s3/esp-nn); measure "
            "the arena on the board",
            _UNREAD_KERNELS_SHARE,
        )
    elif not library.is_exact:
        yield Uncertainty(
            "kernel library 'any': scratch and tail are the largest of the reference kernels and "
            "CMSIS-NN in current TFLM; others may need more",
            0.0,
            bound="enough",
        )
    if library.doubt:
        yield Uncertainty(library.doubt, _OTHER_RELEASE_SHARE, bound="about")
    for op in ops:
        if (reason := library.doubt_of(op, target)) is not None:
            yield Uncertainty(
                f"{op.label}: {reason}; measure the arena on the board", _ASSUMED_OPERATORS_SHARE
            )
    assumed = [op for op, c in zip(ops, costs, strict=True) if not c.known]
    for reason, labels in sorted(_labels_by(_why_assumed, assumed).items()):
        more = f" and {len(labels) - 1} more" if labels[1:] else ""
        yield Uncertainty(
            f"{labels[0]}{more}: {reason}; its share of the tail and its scratch are "
            "assumed: a word for each element it touches",
            _ASSUMED_OPERATORS_SHARE,
            bound="about",
        )
    sources_day = day_of_version(target.version)
    if day_of(target) != sources_day:
        yield Uncertainty(
            f"operators are those of TFLM of {day_of(target)}; sizes of its structures, and so the "
            f"tail, are those of {sources_day}: measure the arena once",
            _OTHER_TFLM_SHARE,
            in_head=False,
            bound="about",
        )


def _labels_by(reason_of: Callable[[Op], str], ops: Iterable[Op]) -> dict[str, list[str]]:
    """Labels of operators by the reason that they share, so that it is said once."""
    labels: dict[str, dict[str, None]] = {}
    for op in ops:
        labels.setdefault(reason_of(op), {})[op.label] = None
    return {reason: sorted(each) for reason, each in labels.items()}


def _why_assumed(op: Op) -> str:
    """Why nobody knows what an operator allocates. It is no refusal: firmware may have a kernel of
    its own."""
    if op.code.custom is None and resolver_method(op.kind) is None:
        return f"TFLM has no kernel for {op.kind}: the firmware needs one of its own{_way_out(op)}"
    return "no entry for this operator, or its parameters cannot be read"


def _way_out(op: Op) -> str:
    remedy = written_as(op) or remedy_of(op)
    return "" if remedy is None else f", or {remedy}"


def warnings(ops: Sequence[Op], target: Target) -> Iterator[str]:
    """Warnings about operators on a target, whatever they allocate."""
    for op in ops:
        if (factor := crashing_factor(op)) is not None:
            yield f"{op.label}: {_FFT_CRASH}; this one has {factor}"
    yield from known_faults(ops, target)
    if (wrong := misdeclaration(ops)) is not None:
        yield f"{wrong}. `tflm-plan IN OUT` mostly can declare them as they are"
    if any(op.kind == ETHOS_U for op in ops):
        yield (
            "ethos-u: the NPU driver is taken to have its own memory outside the arena, as "
            "Arm's does; what the NPU itself uses of the arena are tensors of the model"
        )


def wild_scratch(
    ops: Sequence[Op], requests: Sequence[Sequence[int]], timeline: Timeline
) -> Iterator[str]:
    """A warning about scratch that TFLM never places, in the words in which `refusals` refuses it
    where the kernels were read. requests: bytes requested by each operator."""
    wild = [
        (number, op)
        for number, (op, sizes) in enumerate(zip(ops, requests, strict=True))
        if sizes and op not in timeline.scopes
    ]
    if wild:
        yield message(wild, UNPLACED_SCRATCH)
