"""Chooses which operators to write in other spellings (`transforms.spelling`), so that the peak
gets lower.

    bytes live at an operator                     offsets of a chain: each result lies below its
    73,728 |  ##                                  operand, at least as far as its spelling says
           |  ##      ##                               |----- x ------|
    level  |--++------++-----------------           |----- y ------|          rows of 2 pixels
    36,864 |# ##  ##  ##  ##                    |----- z ------|              rows of 4 pixels

A level is a height that a plan may have. Operators that need less stay as they are. The results of
all others trail their operands, and along a chain the distances add up. So each spelling of an
operator has a cost (instructions) and an expense (bytes of distance), and a single rate, in
instructions for a byte, chooses the spellings of all operators: that gives the fewest bytes for the
price. Only plans show how low the head gets. This module knows what kernels allow and cost; it must
not make plans.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Generic, TypeVar

from tflm_planner.memory.bounds import Needs, live_bound
from tflm_planner.memory.problem import UNBOUNDED, Overlap, Problem
from tflm_planner.model.ir import Model, Op
from tflm_planner.tflm.liveness import Timeline, hands_over
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.tiling.spelling_offers import FormOffers, Offer, OfferMemo, rate_between
from tflm_planner.transforms.spelling import Spelling

P = TypeVar("P")

_CHEAPEST_RATES = 4
"""Rates that are tried out for the lowest plan, the cheapest of those that are affordable; the
search for the cheapest plan takes as many as a bisection needs. 1 to 16: the same bytes on
vww_96_int8, mobilenet_v2_030_80 and mobilenet_v1_025_96."""
_TOLERANCE_DIVISOR = 200
"""One part in this many of the bytes is given up for cheaper spellings: rows of 2 pixels in place
of 16 save 112 of 64,176 bytes of vww_96_int8 for 4.5 % more instructions."""


@dataclass(frozen=True)
class _Offers:
    """The ways to write one operator. need: bytes that live while it runs as it is. offers: as it
    is first; each further one takes more instructions, at a higher rate, for a smaller distance."""

    need: int
    offers: Sequence[Offer]

    @property
    def rates(self) -> list[float]:
        """The rates from which on each but the first is chosen."""
        return [rate_between(a, b) for a, b in pairwise(self.offers)]

    def at(self, rate: float) -> Offer:
        """The last offer that pays at this rate: at most `rate` instructions for each byte that it
        saves against the offer before it."""
        return self.offers[bisect_right(self.rates, rate)]


class SpellingChoice:
    """The spellings of a model that runs in a given order. timeline, problem: of that model, with
    the overlaps that its target allows. rows: whether there may be rows, with their RESHAPEs. memo:
    offers that were made before."""

    def __init__(
        self,
        model: Model,
        timeline: Timeline,
        problem: Problem,
        kernels: TargetKernels,
        *,
        rows: bool = True,
        memo: OfferMemo | None = None,
    ) -> None:
        offers_of = partial((memo or OfferMemo(kernels)).of, model, rows=rows)
        gaining = list(_pointwise(model, timeline, problem, offers_of))
        freed = tuple(Overlap(*p.pair, p.freed, UNBOUNDED) for p in gaining)
        self.floor = live_bound(problem.permitting((*problem.overlaps, *freed)))
        """No spelling makes a plan that is lower."""
        self._operators = [p.offers for p in gaining if p.need > self.floor]

    @property
    def rates(self) -> list[float]:
        """The rates at which the choice changes, the lowest first."""
        return sorted({rate for operator in self._operators for rate in operator.rates})

    @property
    def levels(self) -> list[int]:
        """The levels at which it changes, the lowest first; none where nothing is gained."""
        needs = {operator.need for operator in self._operators}
        return [self.floor, *sorted(needs)[:-1]] if needs else []

    def at(self, rate: float, level: int) -> tuple[Spelling, ...]:
        """The spellings of the operators above a level."""
        chosen = (operator.at(rate) for operator in self._operators if operator.need > level)
        return tuple(o.spelling for o in chosen if o.spelling is not None)

    def price(self, rate: float, level: int) -> int:
        """Instructions that they take."""
        return sum(
            operator.at(rate).instructions for operator in self._operators if operator.need > level
        )


@dataclass(frozen=True)
class _Pointwise:
    """A 1x1 convolution whose operand dies with it, and which gains from another spelling. pair:
    its result and its operand among the buffers of the model's problem. need: bytes that live
    while it runs. freed: bytes from which on the result may then lie below its operand."""

    position: int
    pair: tuple[int, int]
    need: int
    freed: int
    form: FormOffers

    @property
    def offers(self) -> _Offers:
        """The ways to write it."""
        return _Offers(self.need, [offer.at(self.position) for offer in self.form.offers])


def _pointwise(
    model: Model,
    timeline: Timeline,
    problem: Problem,
    offers_of: Callable[[Op], FormOffers | None],
) -> Iterator[_Pointwise]:
    """The operators of the main graph that gain from another spelling."""
    place = {t: i for i, t in enumerate(timeline.planned)}
    needs = Needs(problem)
    for position, op in enumerate(model.main.ops):
        form, operand = offers_of(op), op.inputs[0] if op.inputs else None
        if form is None or form.freed is None or operand is None:
            continue
        result = op.outputs[0]
        if not hands_over(op, operand, result, timeline):
            continue
        need = needs.at(timeline.spans[result].first)
        yield _Pointwise(position, (place[result], place[operand]), need, form.freed, form)


@dataclass(frozen=True)
class SpellingPermission:
    """How much slower other spellings may make a model. max_slowdown: instructions relative to the
    model as it is spelled. instructions: of one inference; if given, it takes the place of
    `max_slowdown`. rows: whether there may be RESHAPEs for rows."""

    max_slowdown: float = 1.10
    instructions: int | None = None
    rows: bool = True

    def limit(self, as_it_is: int) -> int:
        """The most instructions, for a model that takes `as_it_is` as it is spelled."""
        return int(as_it_is * self.max_slowdown) if self.instructions is None else self.instructions


@dataclass(frozen=True)
class PlanFigures:
    """What a plan takes. bytes: to be lowered, of the arena or of its head."""

    bytes: int
    head: int
    instructions: int


@dataclass(frozen=True)
class Respelling(Generic[P]):
    """How whoever plans a model plans it again. respell: a plan of it with such spellings."""

    respell: Callable[[tuple[Spelling, ...]], P]
    measure: Callable[[P], PlanFigures]


def best_spellings(
    choice: SpellingChoice, as_it_is: P, permission: SpellingPermission, respelling: Respelling[P]
) -> P:
    """The best of a few plans that `permission` allows: the lowest bytes, as few instructions as
    possible. The freest affordable spellings are planned first, then cheaper ones."""
    search = _Search(choice, as_it_is, permission, respelling)
    for rate, level in search.affordable():
        search.try_out(rate, level)
    search.save()
    return search.best


class _Search(Generic[P]):
    """Plans that are made for one model."""

    def __init__(
        self,
        choice: SpellingChoice,
        as_it_is: P,
        permission: SpellingPermission,
        respelling: Respelling[P],
    ) -> None:
        self._choice, self._respelling = choice, respelling
        self.best, self._figures = as_it_is, respelling.measure(as_it_is)
        self._as_it_is, self._instructions = as_it_is, self._figures.instructions
        self._limit = permission.limit(self._instructions)
        self._known: dict[tuple[Spelling, ...], tuple[P, PlanFigures]] = {
            (): (as_it_is, self._figures)
        }
        self._rate, self._least = 0.0, self._figures.bytes

    def affordable(self) -> list[tuple[float, int]]:
        """Rates, from the highest on, each with the lowest level at which it may be paid."""
        choice, allowance = self._choice, self._limit - self._instructions
        affordable = list[tuple[float, int]]()
        for rate in reversed(choice.rates):
            levels = choice.levels
            level = next((one for one in levels if choice.price(rate, one) <= allowance), None)
            if level is not None and (not affordable or level < affordable[-1][1]):
                affordable.append((rate, level))
        return affordable[-_CHEAPEST_RATES:]

    def try_out(self, rate: float, level: int) -> bool:
        """Plan with these spellings; returns whether the result is within 0.5 % of the lowest plan.
        Of the plans that are, `best` keeps the one with the fewest instructions."""
        spellings = self._choice.at(rate, level)
        if not spellings:
            return False
        plan, figures = self._planned(spellings)
        if figures.instructions > self._limit:
            return False
        self._least = min(self._least, figures.bytes)
        enough = self._least + self._least // _TOLERANCE_DIVISOR
        if self._figures.bytes > enough >= figures.bytes or (
            figures.bytes <= enough and figures.instructions < self._figures.instructions
        ):
            self.best, self._figures, self._rate = plan, figures, rate
        return figures.bytes <= enough

    def _planned(self, spellings: tuple[Spelling, ...]) -> tuple[P, PlanFigures]:
        """The plan with these spellings, made once."""
        if spellings not in self._known:
            plan = self._respelling.respell(spellings)
            self._known[spellings] = plan, self._respelling.measure(plan)
        return self._known[spellings]

    def save(self) -> None:
        """Save instructions: leave operators as they are that need less than the best plan's
        height, and find the lowest rate that reaches this height, by bisection."""
        if self.best is self._as_it_is:
            return
        self.try_out(self._rate, self._figures.head)
        rates = [rate for rate in self._choice.rates if rate < self._rate]
        low, high = 0, len(rates)
        while low < high:
            middle = (low + high) // 2
            if self.try_out(rates[middle], self._figures.head):
                high = middle
            else:
                low = middle + 1
