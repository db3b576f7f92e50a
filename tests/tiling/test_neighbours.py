"""Models near another: which are made, and around which models a search looks for them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import cast

import pytest

from tests.conftest import published
from tests.models.small import narrow_rows
from tests.tiling.small_searches import options
from tflm_planner.ops.window import ROWS
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tiling.budget import DEFAULT_BUDGET, SearchBudget
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.model_evaluations import EvaluatedCandidate, ModelEvaluations
from tflm_planner.tiling.moves.neighbours import (
    FASTER,
    RESIZED,
    SMALLER,
    loops_otherwise,
    neighbours,
)
from tflm_planner.tiling.refinements import Refinements
from tflm_planner.tiling.search import search_tiles
from tflm_planner.tiling.tilings import Region, Tiling
from tflm_planner.tiling.work import WorkBudget
from tflm_planner.transforms.row_loop import LOOP_BORDERS, LoopedRegion
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion, band

LOOP = LoopedRegion((0, 1, 2), 2, "peeled")


def test_rows_and_border_of_one_loop_change_together():
    tiles = band(4, 6, 2)
    made = list(loops_otherwise(Candidate((LOOP, tiles), True), (-2, 1)))
    assert {c.regions[0] for c in made} == {
        LoopedRegion(LOOP.ops, 3, border) for border in LOOP_BORDERS if border != "peeled"
    }  # none with 0 rows
    assert all(c.regions[1] == tiles and c.bind_views for c in made)


def test_tiles_have_no_rows_to_change():
    assert not list(loops_otherwise(Candidate((band(0, 2, 2),), True)))


TWO = Candidate((band(0, 2, 4), band(3, 5, 4)), True)


@pytest.mark.parametrize("kinds", [SMALLER, FASTER])
def test_smaller_and_faster_are_the_same_changes_in_another_order(kinds):
    for candidate in (TWO, Candidate((LOOP, band(4, 6, 2)), False)):
        made = list(neighbours(candidate, 8, kinds))
        assert {*made} == {*neighbours(candidate, 8, SMALLER)}
        assert candidate not in made and made


@pytest.mark.parametrize(("peak", "first"), [(0, 0), (2, 0), (4, 1), (7, 1), (None, 0)])
def test_regions_have_their_turns_and_the_one_at_the_peak_is_the_first(peak, first):
    changed = [
        next(k for k in (0, 1) if TWO.regions[k] not in made.regions)
        for made in islice(neighbours(TWO, 8, SMALLER, peak), 6)
    ]
    assert changed == [first, 1 - first] * 3


def test_what_is_to_become_faster_gets_fewer_parts_before_other_ends():
    made = [c.regions[0] for c in neighbours(Candidate((band(2, 3, 8),), True), 8, FASTER)]
    fewer = made.index(band(2, 3, 6))
    assert all(region.ops == (2, 3) for region in made[:fewer])
    assert band(2, 4, 8) in made[fewer:]


def test_two_regions_that_are_cut_alike_become_one():
    assert Candidate((band(0, 5, 4),), True) in [*neighbours(TWO, 8, FASTER)]
    unlike = Candidate((band(0, 2, 4), band(3, 5, 2)), True)
    assert all(len(c.regions[0].ops) < 6 for c in neighbours(unlike, 8, FASTER))


def test_resized_parts_are_one_less_or_as_many_and_uneven_and_loops_get_other_rows():
    made = [c.regions[0] for c in neighbours(Candidate((band(2, 3, 3),), True), 8, RESIZED)]
    assert {r.ops for r in made} == {(2, 3)}
    splits = [r.splits[0] for r in made if isinstance(r, TiledRegion)]
    steps = DEFAULT_BUDGET.growth_steps
    uneven = [Split(ROWS, parts, growth) for parts in (2, 3) for growth in steps]
    assert splits == [*uneven, *(Split(ROWS, parts) for parts in (2, 4, 5))]
    extreme = TiledRegion((2, 3), (Split(ROWS, 2, 90),))
    grown = [*neighbours(Candidate((extreme,), True), 8, RESIZED)]
    growths = {r.splits[0].growth for c in grown for r in c.regions if isinstance(r, TiledRegion)}
    assert growths == {90, 70, 60}  # a part has elements, and two parts do not get fewer
    loops = [c.regions[0] for c in neighbours(Candidate((LOOP,), False), 8, RESIZED)]
    assert loops == [replace(LOOP, rows=rows) for rows in (1, 3, 4)]


@dataclass
class Ranked:
    """Models that were evaluated, the best first; what comes of others is remembered only."""

    regions: list[tuple[Region, ...]]
    asked: list[Candidate] = field(default_factory=list[Candidate])
    work: WorkBudget = field(default_factory=lambda: WorkBudget(1_000))

    def ranking(self) -> list[EvaluatedCandidate]:
        return [
            EvaluatedCandidate(Candidate(r, False), Tiling(r, 100 + k, 1.0, None, False))
            for k, r in enumerate(self.regions)
        ]

    def work_of(self, _: Candidate) -> int:
        return 1

    def peak_of(self, _: Candidate) -> int | None:
        return None

    def affordable(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        return candidates

    def add(self, candidates: Sequence[Candidate]) -> None:
        self.asked += candidates

    def add_changed(self, candidates: Sequence[Candidate]) -> None:
        self.asked += candidates


def looked_around(*regions: Region) -> tuple[bool, bool]:
    """Whether models near one with tiles, and near one with a loop, are asked for, where models of
    one region each were found."""
    models = Ranked([(r,) for r in regions])
    Refinements(cast("ModelEvaluations", models), options(), tuple(range(8))).evaluate_neighbours()
    asked = [r for c in models.asked for r in c.regions]
    return (
        any(isinstance(r, TiledRegion) for r in asked),
        any(isinstance(r, LoopedRegion) for r in asked),
    )


def resized(*, gains: int, **budget: int) -> list[Candidate]:
    """What is asked for near the smallest model, where `gains` times a changed one is smaller."""

    class Gaining(Ranked):
        def add_changed(self, candidates: Sequence[Candidate]) -> None:
            super().add_changed(candidates)
            if len(self.regions) <= gains:
                self.regions.insert(0, candidates[0].regions)

    models = Gaining([(band(0, 2, 9),)])
    chosen = replace(options(), search_budget=SearchBudget(**budget))
    Refinements(cast("ModelEvaluations", models), chosen, tuple(range(8))).resize_parts()
    return models.asked


def test_parts_of_the_smallest_are_resized_while_that_makes_it_smaller() -> None:
    near = len([*neighbours(Candidate((band(0, 2, 9),), False), 8, RESIZED)])
    assert len(resized(gains=0, resized_batch=4)) == near == 12
    assert len(resized(gains=2, resized_batch=4)) == 2 * 4 + near
    assert len(resized(gains=0, resized_batch=4, resizing_work=3)) == 4


@pytest.mark.parametrize(
    ("gained", "operators", "regions", "goes_on"),
    [(0, 8, 1, False), (5, 8, 1, False), (20, 8, 1, True), (0, 9, 1, True), (0, 8, 0, True)],
)
def test_large_models_go_on_where_their_front_gained(
    gained: int, operators: int, regions: int, goes_on: bool
) -> None:
    """Of 1,000 bytes at least 1 % must go, unless there are no regions that could be changed;
    models of fewer operators than `large_model` are always resized."""

    class Front(Ranked):
        least = 1_000

        @property
        def tilings(self) -> list[Tiling]:
            return [Tiling(self.regions[0], self.least, 1.0, None, False)]

        def front(self) -> list[EvaluatedCandidate]:
            return self.ranking()

        def add_changed(self, candidates: Sequence[Candidate]) -> None:
            super().add_changed(candidates)
            self.least = 1_000 - gained

    models = Front([(band(0, 2, 9),) * regions])
    budget = SearchBudget(large_model=operators - 1, settling_gain=100, front_work=10)
    if operators == 9:
        budget = replace(budget, large_model=operators)
    chosen = replace(options(), search_budget=budget)
    refinements = Refinements(cast("ModelEvaluations", models), chosen, tuple(range(operators)))
    refinements.refine_pareto_front()
    asked = len(models.asked)
    refinements.resize_parts()
    assert (len(models.asked) > asked) == (goes_on and regions > 0)
    assert refinements.is_settled != goes_on


def test_the_best_model_with_loops_is_changed_too_where_tiles_lead():
    assert looked_around(band(0, 2, 2), band(0, 2, 3), band(0, 2, 4), LOOP) == (True, True)


def test_a_model_with_loops_behind_others_is_left_alone():
    models = Ranked([(LOOP,), (band(0, 2, 2),), (LoopedRegion((4, 5), 1, "masked"),)])
    Refinements(cast("ModelEvaluations", models), options(), tuple(range(8))).evaluate_neighbours()
    assert not any(5 in r.ops for c in models.asked for r in c.regions)


def test_without_loops_tiles_alone_are_changed():
    assert looked_around(band(0, 2, 2), band(0, 2, 3)) == (True, False)


@pytest.mark.long
def test_what_is_best_for_a_cortex_m4_does_not_beat_the_search_for_a_cortex_m55():
    """There loops are dear: tiles lead, and the tiling of the M4 (a loop, then tiles), which comes
    to 32,160 bytes here, is three changes away from the best model with a loop."""
    on_m55 = options(
        "cortex-m55/cmsis-nn", operators=AllowedOperators.ALL, search_budget=SearchBudget()
    )
    best = search_tiles(published("pretrainedResnet_quant"), on_m55).best
    assert best.bytes < 32_160


def test_what_needs_many_more_bytes_is_evaluated_in_one_order_only():
    """Two tiles are slower than five, and need more."""
    given = options(operators=AllowedOperators.ALL)
    with closing(Workers(narrow_rows(), given)) as workers:
        models = ModelEvaluations(workers, given, 2, WorkBudget(1_000))
        five, two = (Candidate((band(0, 1, parts),), False) for parts in (5, 2))
        models.add_changed([five, two])
        assert five in models and replace(five, tile_order="best") in models
        assert two in models and replace(two, tile_order="best") not in models
        models.add([two])
        assert replace(two, tile_order="best") in models
