"""Chooses which operators to write in other spellings (`transforms.spelling`), so that the peak
gets lower.

    bytes live at an operator                     offsets of a chain: each result lies below its
    73,728 |  ##                                  operand, at least as far as its spelling needs
           |  ##      ##                               |----- x ------|
    level  |--++------++-----------------           |----- y ------|          rows of 2 pixels
    36,864 |# ##  ##  ##  ##                    |----- z ------|              rows of 4 pixels

A level is a height that a plan may have. Operators that need fewer bytes stay as they are. The
results of all others overlap their operands at a distance, and along a chain the distances add up.
So each spelling of an operator costs instructions and a number of bytes (the distance). One rate,
in instructions per byte, chooses the spellings of all operators: that gives the fewest bytes for
the instructions spent. Only plans show how low the head gets. This module knows what kernels allow
and cost; it must not make plans.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Generic, TypeVar

from tflm_planner.memory.allocators.live_kernel import live_bound, needs_at
from tflm_planner.memory.allocators.problem_table import ProblemTable
from tflm_planner.memory.problem import UNBOUNDED, Overlap, Problem
from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.tflm.liveness import Timeline, hands_over
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.tiling.spelling_offers import FormOffers, Offer, OfferMemo, rate_between
from tflm_planner.transforms.spelling import Spelling

P = TypeVar("P")

_CHEAPEST_RATES = 4
"""Number of rates for which a plan is made in order to find the lowest plan: the cheapest of those
that are affordable. The search for the cheapest plan tries as many as a bisection needs. 1 to 16:
the same bytes on vww_96_int8, mobilenet_v2_030_80 and mobilenet_v1_025_96."""
_TOLERANCE_DIVISOR = 200
"""A plan may have 1/200 more bytes than the lowest one if its spellings are cheaper: on
vww_96_int8, rows of 2 pixels instead of 16 save 112 of 64,176 bytes for 4.5 % more instructions."""


@dataclass(frozen=True)
class _Offers:
    """The ways to write one operator. pair: indices of its result and its operand among the buffers
    of the problem. need: bytes that live while it runs as it is. offers: the operator as it is
    first; each further offer takes more instructions, at a higher rate, for a smaller distance."""

    pair: tuple[int, int]
    need: int
    offers: Sequence[Offer]

    @property
    def rates(self) -> list[float]:
        """For each offer but the first, the rate from which on it is chosen."""
        return [rate_between(a, b) for a, b in pairwise(self.offers)]

    def at(self, rate: float) -> Offer:
        """The last offer that is worth it at this rate: it takes at most `rate` instructions per
        byte that it saves compared with the offer before it."""
        return self.offers[bisect_right(self.rates, rate)]


class SpellingChoice:
    """The spellings of a model that runs in a given order. timeline, problem: those of the model,
    with the overlaps that its target allows. rows: whether spellings in rows, which need RESHAPEs,
    are permitted. memo: offers that were made before."""

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
        offers_of = partial((memo or OfferMemo(kernels)).of, rows=rows)
        self._problem = problem
        gaining = list(_pointwise(model, timeline, problem, offers_of))
        self._scratch = _scratch_buffers(timeline)
        freed = tuple(Overlap(*p.pair, p.freed, UNBOUNDED) for p in gaining)
        freest = self._with_scratch({p.position: p.form.scratch for p in gaining})
        freest = freest.permitting((*problem.overlaps, *freed))
        self.floor = live_bound(ProblemTable.of(freest))
        """A lower bound on the height of plans with any spellings."""
        self._operators = [p.offers for p in gaining if p.need > self.floor]
        self._spelled = {o.spelling: (p.pair, o) for p in self._operators for o in p.offers}

    @property
    def rates(self) -> list[float]:
        """The rates at which the choice changes, the lowest first."""
        return sorted({rate for operator in self._operators for rate in operator.rates})

    @property
    def levels(self) -> list[int]:
        """The levels at which the choice changes, the lowest first; empty if nothing can be
        gained."""
        needs = {operator.need for operator in self._operators}
        return [self.floor, *sorted(needs)[:-1]] if needs else []

    def at(self, rate: float, level: int) -> tuple[Spelling, ...]:
        """The spellings of the operators above a level."""
        chosen = (operator.at(rate) for operator in self._operators if operator.need > level)
        return tuple(o.spelling for o in chosen if o.spelling is not None)

    def outlined(self, spellings: Sequence[Spelling]) -> tuple[Problem, int]:
        """The problem with these spellings, without the views that they need and with their scratch
        as part of the distances, and the instructions that they add."""
        chosen = [self._spelled[spelling] for spelling in spellings]
        nearer = (Overlap(*pair, offer.distance, UNBOUNDED) for pair, offer in chosen)
        as_it_is = self._with_scratch(dict.fromkeys((spelling.op for spelling in spellings), 0))
        problem = as_it_is.permitting((*self._problem.overlaps, *nearer))
        return problem, sum(offer.instructions for _, offer in chosen)

    def _with_scratch(self, sizes: Mapping[int, int]) -> Problem:
        """The problem where the operators at some positions have at most so many bytes of
        scratch."""
        buffers, smaller = self._problem.buffers, dict[int, int]()
        for position, most in sizes.items():
            for i in self._scratch.get(position, ()):
                smaller[i] = min(most, buffers[i].size)
                most -= smaller[i]
        if all(buffers[i].size == size for i, size in smaller.items()):
            return self._problem
        kept = [
            replace(buffer, size=smaller.get(i, buffer.size))
            for i, buffer in enumerate(buffers)  # scratch is last: indices of tensors stay
            if smaller.get(i, buffer.size)
        ]
        return Problem.of(kept, self._problem.overlaps)

    def price(self, rate: float, level: int) -> int:
        """Additional instructions of the spellings that `at` returns."""
        return sum(
            operator.at(rate).instructions for operator in self._operators if operator.need > level
        )


@dataclass(frozen=True)
class _Pointwise:
    """A 1x1 convolution that is the last reader of its operand and gains from another spelling.

    position: of the operator in the schedule. pair: indices of its result and its operand among the
    buffers of the problem. need: bytes that live while it runs. freed: with the other spelling, the
    smallest distance in bytes at which the result may lie below the operand."""

    position: int
    pair: tuple[int, int]
    need: int
    freed: int
    form: FormOffers

    @property
    def offers(self) -> _Offers:
        """The ways to write this operator."""
        return _Offers(
            self.pair, self.need, [offer.at(self.position) for offer in self.form.offers]
        )


def _scratch_buffers(timeline: Timeline) -> dict[int, list[int]]:
    """Position of an operator in the main graph -> the buffers of its scratch in the problem."""
    places = {op: i for i, op in enumerate(timeline.ops)}
    buffers = dict[int, list[int]]()
    for i, scratch in enumerate(timeline.scratch, start=len(timeline.planned)):
        buffers.setdefault(places[scratch.op], []).append(i)
    return buffers


def _pointwise(
    model: Model,
    timeline: Timeline,
    problem: Problem,
    offers_of: Callable[[Op], FormOffers | None],
) -> Iterator[_Pointwise]:
    """The operators of the main graph that gain from another spelling."""
    place = {t: i for i, t in enumerate(timeline.planned)}
    found: list[tuple[int, tuple[Tensor, Tensor], FormOffers, int]] = []
    for position, op in enumerate(model.main.ops):
        form, operand = offers_of(op), op.inputs[0] if op.inputs else None
        if form is None or form.freed is None or operand is None:
            continue
        if hands_over(op, operand, op.outputs[0], timeline):
            found.append((position, (op.outputs[0], operand), form, form.freed))
    times = [timeline.spans[result].first for _, (result, _), _, _ in found]
    needs = needs_at(ProblemTable.of(problem), times)
    for (position, (result, operand), form, freed), need in zip(found, needs, strict=True):
        yield _Pointwise(position, (place[result], place[operand]), need, freed, form)


@dataclass(frozen=True)
class SpellingPermission:
    """How much slower other spellings may make a model. max_slowdown: instructions relative to the
    model as it is. instructions: limit for one inference; if given, `max_slowdown` is not used.
    rows: whether RESHAPEs for spellings in rows are permitted. preferred: instructions above which
    a plan is taken only if none is within them; None if all within the limit are as good."""

    max_slowdown: float = 1.10
    instructions: int | None = None
    rows: bool = True
    preferred: int | None = None

    def limit(self, as_it_is: int) -> int:
        """The limit of instructions, for a model that takes `as_it_is` instructions as it is."""
        return int(as_it_is * self.max_slowdown) if self.instructions is None else self.instructions


@dataclass(frozen=True)
class PlanFigures:
    """The figures of a plan. bytes: the bytes to minimise, of the arena or of its head."""

    bytes: int
    head: int
    instructions: int


@dataclass(frozen=True)
class Respelling(Generic[P]):
    """How the caller makes and measures plans. respell: makes a plan of the model with these
    spellings. measure: the figures of a plan."""

    respell: Callable[[tuple[Spelling, ...]], P]
    measure: Callable[[P], PlanFigures]


def best_spellings(
    choice: SpellingChoice, as_it_is: P, permission: SpellingPermission, respelling: Respelling[P]
) -> P:
    """The best of a few plans within `permission`: the lowest bytes, then the fewest instructions.
    The affordable spellings with the smallest distances are planned first, then cheaper ones."""
    search = _Search(choice, as_it_is, permission, respelling)
    for rate, level in search.affordable():
        search.try_out(rate, level)
    search.save()
    return search.best


class _Search(Generic[P]):
    """The plans that are made for one model."""

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
        """Affordable (rate, lowest level at which it is affordable), from the highest rate on."""
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
        Among the plans that are, `best` is the one with the fewest instructions."""
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
        """The plan with these spellings; cached."""
        if spellings not in self._known:
            plan = self._respelling.respell(spellings)
            self._known[spellings] = plan, self._respelling.measure(plan)
        return self._known[spellings]

    def save(self) -> None:
        """Save instructions: restore operators that need less than the best plan's height, and find
        the lowest rate that still reaches this height, by bisection."""
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
