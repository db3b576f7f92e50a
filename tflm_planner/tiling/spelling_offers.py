"""What other spellings of an operator cost, and how many bytes they save.

    instructions of an inference
      ^  rows of 2
      |      .  rows of 4            an offer is kept if it is the best one at some rate, in
      |           .                  instructions per byte of distance (lower convex hull)
      |                 .  as it is
      +--------------------------> bytes that the result must lie below its operand

Networks repeat operators of one form (`tflm.kernels.forms`), and tiles repeat them more often,
so offers are made once for each form. This module knows what kernels allow and cost, not the offset
of any tensor.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tflm_planner.cost import cost_of
from tflm_planner.memory.problem import UNBOUNDED
from tflm_planner.model.ir import Op
from tflm_planner.support.units import align_up
from tflm_planner.tflm.kernels import adds_pixels_alike
from tflm_planner.tflm.kernels.forms import operator_form
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.transforms.spelling import (
    SPELLABLE,
    Spelling,
    SpellingRefusedError,
    spell,
    ways_of,
)


@dataclass(frozen=True)
class Offer:
    """A way to write one operator."""

    spelling: Spelling | None
    """None: the operator as it is."""
    instructions: int
    """Instructions in addition to those of the operator as it is."""
    distance: int
    """Smallest number of bytes by which the result must lie below its operand, plus bytes of
    scratch."""

    def at(self, position: int) -> Offer:
        """The same for the operator at another position."""
        spelling = self.spelling
        return self if spelling is None else replace(self, spelling=replace(spelling, op=position))


@dataclass(frozen=True)
class FormOffers:
    """The ways to write the operators of one form. freed: smallest number of bytes by which the
    result may lie below its operand, over all spellings; None if no spelling allows less than the
    operator as it is. scratch: smallest number of bytes of scratch, over all spellings and the
    operator as it is. offers: those that are best at some rate, the cheapest first, all for
    position 0."""

    freed: int | None
    scratch: int = 0
    offers: tuple[Offer, ...] = ()


class OfferMemo:
    """Makes offers for the kernels of a target, once for each form."""

    def __init__(self, kernels: TargetKernels) -> None:
        self._kernels = kernels
        self._known: dict[Hashable, FormOffers | None] = {}

    def of(self, op: Op, *, rows: bool) -> FormOffers | None:
        """The offers for an operator; None if it has no other spelling. rows: whether spellings in
        rows are permitted."""
        if op.kind not in SPELLABLE:
            return None
        scales = (len(t.quantization.scales) for t in op.operands())
        key = rows, adds_pixels_alike(op), operator_form(op), *scales
        if key not in self._known:
            try:
                spellings = [*ways_of(op, reshaped=rows)]
            except SpellingRefusedError:
                spellings = []
            self._known[key] = _make_offers(op, self._kernels, spellings) if spellings else None
        return self._known[key]


def rate_between(cheap: Offer, dear: Offer) -> float:
    """Instructions per byte saved, when the more expensive one of two offers replaces the other."""
    return (dear.instructions - cheap.instructions) / (cheap.distance - dear.distance)


def convex(offers: Iterable[Offer]) -> list[Offer]:
    """The offers that are best at some rate (the lower convex hull), the cheapest first."""
    hull = list[Offer]()
    for offer in sorted(offers, key=lambda o: (o.instructions, o.distance)):
        if hull and offer.distance >= hull[-1].distance:
            continue
        while len(hull) > 1 and rate_between(hull[-2], hull[-1]) >= rate_between(hull[-1], offer):
            hull.pop()
        hull.append(offer)
    return hull


def _make_offers(op: Op, kernels: TargetKernels, spellings: Sequence[Spelling]) -> FormOffers:
    drafts = [(spelling, spell(op, spelling)) for spelling in spellings]
    as_it_is = min(_lows(op, kernels), default=UNBOUNDED)
    freed = min(
        (low for _, drafted in drafts for low in _lows(drafted, kernels)), default=UNBOUNDED
    )
    if freed >= as_it_is:
        return FormOffers(None)
    scratch = min(_scratch_bytes(o, kernels) for o in (op, *(drafted for _, drafted in drafts)))
    return FormOffers(freed, scratch, tuple(convex(_offers(op, drafts, kernels))))


def _offers(
    op: Op, drafts: Iterable[tuple[Spelling, Op]], kernels: TargetKernels
) -> Iterator[Offer]:
    """The operator as it is, then each spelling."""
    before = cost_of(op, kernels.target).instructions
    yield Offer(None, 0, align_up(op.outputs[0].nbytes))
    for spelling, drafted in drafts:
        lows = _lows(drafted, kernels)
        if lows:
            distance = min(lows) + _scratch_bytes(drafted, kernels)
            instructions = cost_of(drafted, kernels.target).instructions - before
            yield Offer(spelling, instructions, distance)


def _scratch_bytes(op: Op, kernels: TargetKernels) -> int:
    return sum(map(align_up, kernels.scratch_of(op)))


def _lows(op: Op, kernels: TargetKernels) -> list[int]:
    return [overlap.low for overlap in kernels.input_overlaps_of(op)]
