"""Several changes of a model at once, and where the front is changed first."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from tests.conftest import published
from tests.tiling.small_searches import SMALL, search
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.front_gaps import FrontGaps
from tflm_planner.tiling.model_evaluations import EvaluatedCandidate, ModelEvaluations
from tflm_planner.tiling.moves.combinations import combinations
from tflm_planner.tiling.tilings import Region, Tiling, mean_bytes
from tflm_planner.transforms.schedules import Effort
from tflm_planner.transforms.tile.tile import band

A, B, C = band(0, 2, 4), band(3, 5, 4), band(6, 8, 4)
MODEL = Candidate((A, B, C), True)


def with_regions(*regions: Region) -> Candidate:
    return replace(MODEL, regions=regions)


def figures(size: int, slowdown: float) -> Tiling:
    return Tiling((), size, slowdown, None, True)


A2, B2, C2 = band(0, 2, 2), band(3, 5, 2), band(6, 8, 2)
SLOW = figures(100, 1.09)
FIRST, THIRD = with_regions(A2, B, C), with_regions(A, B, C2)
CHANGED = {FIRST: figures(120, 1.07), THIRD: figures(110, 1.06)}


def test_changes_together_need_the_most_bytes_and_save_what_both_save():
    (both,) = combinations(MODEL, SLOW, CHANGED)
    assert both.candidate == with_regions(A2, B, C2)
    assert (both.bytes, both.slowdown) == (120, pytest.approx(1.04))


def test_each_limit_of_bytes_has_its_own_combination():
    more = {**CHANGED, with_regions(A, B2, C): figures(150, 1.08)}
    two, three = combinations(MODEL, SLOW, more)
    assert two.candidate == with_regions(A2, B, C2)
    assert three.candidate == with_regions(A2, B2, C2)
    assert (three.bytes, three.slowdown) == (150, pytest.approx(1.03))


def test_smaller_changes_do_not_lower_what_is_promised():
    below = {model: replace(tiling, arena=90) for model, tiling in CHANGED.items()}
    (both,) = combinations(MODEL, SLOW, below)
    assert both.bytes == SLOW.bytes


def test_of_two_changes_of_the_same_operators_the_one_that_saves_more_is_taken():
    longer = with_regions(band(0, 4, 4), C)  # takes the place of A and B
    (both,) = combinations(MODEL, SLOW, {**CHANGED, longer: figures(115, 1.05)})
    assert both.candidate == with_regions(band(0, 4, 4), C2)
    assert (both.bytes, both.slowdown) == (115, pytest.approx(1.02))


def test_what_is_not_faster_is_no_part_of_a_combination():
    assert not [*combinations(MODEL, SLOW, {**CHANGED, FIRST: figures(80, 1.09)})]


@dataclass
class Evaluated:
    """Stands for the models of a search, by their figures; the first is the unchanged one."""

    known: dict[Candidate, Tiling]
    tilings: list[Tiling] = field(init=False)

    def __post_init__(self) -> None:
        self.tilings = [*self.known.values()]

    def __contains__(self, candidate: object) -> bool:
        return candidate in self.known

    def figures_of(self, candidate: Candidate) -> Tiling | None:
        return self.known.get(candidate)

    def beat(self, size: int, slowdown: float) -> bool:
        return any(t.bytes <= size and t.slowdown <= slowdown for t in self.tilings)

    def front(self) -> list[EvaluatedCandidate]:
        return [EvaluatedCandidate(c, t) for c, t in self.known.items() if c.regions]


PLANNED = replace(MODEL, effort=Effort.CLIMB)
SMALLEST, MIDDLE = replace(PLANNED, regions=(A,)), replace(PLANNED, regions=(B,))


def gaps_of(known: dict[Candidate, Tiling], changes: dict[Candidate, list[Candidate]]) -> FrontGaps:
    whole = {replace(PLANNED, regions=()): figures(200, 1.0)}
    models = cast(ModelEvaluations, Evaluated({**whole, **known}))
    return FrontGaps(models, lambda model: iter(changes[model]))


@pytest.mark.parametrize(
    ("middle", "first"),
    [((110, 1.08), MIDDLE), ((190, 1.01), SMALLEST)],
    ids=["near-the-smallest", "near-the-fastest"],
)
def test_the_model_at_the_widest_gap_is_changed_first(middle: tuple[int, float], first: Candidate):
    known = {SMALLEST: figures(100, 1.09), MIDDLE: figures(*middle)}
    other = MIDDLE if first is SMALLEST else SMALLEST
    changes = {SMALLEST: [FIRST, THIRD], MIDDLE: [with_regions(B2)]}
    assert [*gaps_of(known, changes).untried()] == [*changes[first], *changes[other]]


def test_what_was_evaluated_is_not_tried_again():
    gaps = gaps_of(
        {SMALLEST: SLOW, FIRST: figures(300, 1.2)}, {SMALLEST: [FIRST, THIRD], FIRST: []}
    )
    assert [*gaps.untried()] == [THIRD]


def test_without_a_front_there_is_nothing_to_change():
    gaps = gaps_of({}, {})
    assert [*gaps.untried()] == [] and gaps.combined() == []


def test_only_what_promises_to_join_the_front_is_combined():
    changed = {replace(c, effort=Effort.CLIMB): t for c, t in CHANGED.items()}
    changes = {PLANNED: [*changed], **{c: [] for c in changed}}
    both = replace(PLANNED, regions=(A2, B, C2))
    gaps = gaps_of({PLANNED: SLOW, **changed}, changes)
    assert [*gaps.untried()] == [] and gaps.combined() == [both]
    better = {replace(PLANNED, regions=(C,)): figures(120, 1.03)}
    gaps = gaps_of({PLANNED: SLOW, **changed, **better}, {**changes, **{c: [] for c in better}})
    assert [*gaps.untried()] == [] and gaps.combined() == []


@pytest.mark.slow
def test_closed_gaps_lower_the_mean_of_the_front_and_take_nothing_away():
    data, budget = published("kws_ref_model"), replace(SMALL, batch=36, gap_batch=18)
    plain, closed = (
        search(data, operators=AllowedOperators.NONE, search_budget=replace(budget, gap_work=work))
        for work in (0, 6_000)
    )
    assert mean_bytes(closed.front, 1.1) < mean_bytes(plain.front, 1.1)
    for tiling in plain.front:
        assert any(t.bytes <= tiling.bytes and t.slowdown <= tiling.slowdown for t in closed.front)
