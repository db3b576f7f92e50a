"""What to tile: all of the search, end to end."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest

from tests.conftest import needs_tflm
from tests.models.generator import random_model
from tests.models.small import Chain, narrow_rows, wide
from tests.tiling.small_searches import ALL_BUT_LOOPS, SMALL, of_windows_alone, options, search
from tflm_planner.pipeline import api
from tflm_planner.support.errors import UsageError
from tflm_planner.support.stopping import Stop
from tflm_planner.tiling.model_evaluations import ModelEvaluations
from tflm_planner.tiling.search import search_tiles
from tflm_planner.tiling.tilings import Tiling, pareto_front
from tflm_planner.transforms.tile.box_plan import Split


@pytest.mark.parametrize("method", [pytest.param("regions", marks=pytest.mark.long), "motes"])
@pytest.mark.slow
def test_searches_lower_the_arena(cnn, method):
    data = narrow_rows() if method == "motes" else cnn
    found = search(data, method=method, overlaps_of=of_windows_alone)
    plain = search(data, method=method, max_slowdown=1.0, overlaps_of=of_windows_alone).best
    assert found.evaluated > 10 and found.best.arena <= plain.arena
    assert found.best.slowdown <= 1.1
    assert found.best.arena < 80_000, "untiled: 91,180 and 119,632"
    rising = [t.bytes for t in found.front]
    assert rising == sorted(rising)
    assert all(a.slowdown > b.slowdown for a, b in itertools.pairwise(found.front))


def test_tiles_that_save_more_than_they_repeat_are_free():
    """A pool leaves seven of 39 rows unread: tiles do not compute them, and repeat two."""
    chain = Chain((1, 39, 16, 8))
    for channels in (16, 32):
        chain.conv(channels, 3)
    chain.pool(size=8)
    chain.conv(8, 1)
    data, without = chain.finish(), replace(SMALL, slowdown_slack=0.0)
    assert not search(data, max_slowdown=1.0, search_budget=without).best.regions
    best = search(data, max_slowdown=1.0).best
    assert best.regions and best.slowdown < 0.96 and best.arena < 13_000


@pytest.mark.slow
def test_what_tiles_add_and_other_spellings_save_is_free_too(cnn):
    """Two operators in three tiles take 0.04 % more instructions than before; where others are
    spelled otherwise too, 0.01 % fewer, in a plan with fewer copies."""
    least = replace(SMALL, search_work=500, front_work=0, resizing_work=0)
    without, found = (
        search(
            cnn, max_slowdown=1.0, overlaps_of=of_windows_alone,
            search_budget=replace(least, free_parts_work=work),
        ).best
        for work in (0, 4_000)
    )  # fmt: skip
    assert without.arena > 90_000
    assert found.arena <= 80_632 and found.slowdown < 1 and found.respell is not None


@pytest.mark.slow
def test_the_whole_arena_counts_by_default():
    """Every tile has a tail: what lowers the head most is not what lowers the arena most. Both
    searches end by counting, whatever the machine has to do besides."""
    chain = Chain((1, 24, 24, 4))
    chain.conv(64, 3)
    chain.conv(4, 1)
    data = chain.finish()
    arena, head = (search(data, objective=o, max_slowdown=2.0).best for o in ("arena", "head"))
    assert arena.arena < head.arena and head.head < arena.head


def test_parts_of_the_input_are_views_where_they_can_be():
    """With the firmware's own operators: 15 tiles of four rows each, though the list of usual
    numbers does not hold 15."""
    assert 15 not in SMALL.part_counts
    own = search(narrow_rows(), operators=api.AllowedOperators.NONE, max_slowdown=1.2).best
    assert own.regions and own.regions[0].splits == (Split(1, 15),) and not own.new_kinds


@pytest.mark.slow
def test_unbound_views_may_cost_no_operator_either(monkeypatch):
    """The search without new operators evaluates them too, after bound ones."""
    evaluated = []
    add = ModelEvaluations.add

    def record(self, candidates, **how):
        add(self, candidates, **how)
        tiled = [c for c in candidates if c.regions and not how]
        evaluated.extend((c.bind_views, t) for c in tiled for t in self.tilings_of(c))

    monkeypatch.setattr("tflm_planner.tiling.model_evaluations.ModelEvaluations.add", record)
    found = search(wide(), operators=api.AllowedOperators.NONE)
    assert {bind_views for bind_views, _ in evaluated} == {True, False}
    assert all(not tiling.new_kinds for _, tiling in evaluated)
    assert found.best.bytes <= min(tiling.bytes for _, tiling in evaluated)


@pytest.mark.slow
def test_a_limit_takes_the_fastest_that_fits():
    data = narrow_rows()
    smallest = search(data)
    assert len(smallest.front) > 2
    limit = smallest.front[1].bytes  # a point that the search is known to reach
    found = search(data, arena_limit=limit).best
    assert found.bytes <= limit
    assert found.slowdown < smallest.best.slowdown


def test_an_interrupt_keeps_the_best_so_far():
    """Before neighbours of a tiling are looked at, of which a whole search tells."""
    stop, said, all_said = Stop(), [], []

    def interrupt(message):
        said.append(message)
        if re.search(r" B so far, .* parts of the model tried", message):
            stop.interrupt()

    asked = options(operators=api.AllowedOperators.NONE, max_slowdown=1.2)
    search_tiles(narrow_rows(), asked, all_said.append)
    assert any("regions changed one at a time" in message for message in all_said)
    assert search_tiles(narrow_rows(), asked, interrupt, stop=stop).best.regions
    assert stop.is_over and said[-1].endswith("parts of the model tried")
    assert not any("regions changed one at a time" in message for message in said)


def test_the_front_holds_tilings_that_none_beats():
    made = [Tiling((), a, o, None, False) for a, o in ((9, 1.0), (5, 1.2), (7, 1.1), (8, 1.3))]
    assert [t.arena for t in pareto_front(made)] == [5, 7, 9]


@pytest.mark.parametrize("wrong", [{"method": "luck"}, {"objective": "fame"}])
def test_unknown_choices_are_refused(wrong):
    with pytest.raises(UsageError, match="choose from"):
        options(**wrong)


@needs_tflm
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dialect", [True, False])
@pytest.mark.slow
def test_the_best_tiling_is_proved(seed, dialect):
    data = random_model(seed + 40, steps=8)
    tiles = api.TilePermission(
        max_slowdown=2.0,
        dialect=dialect,
        operators=ALL_BUT_LOOPS,
        objective="head",
        search_budget=SMALL,
    )
    memory = api.MemoryOptions(time_limit=20.0)
    report = api.plan(data, options=api.PlanOptions(memory, tiles=tiles)).report
    assert report.verified
    plain = api.plan(data, options=api.PlanOptions(memory, verify=None)).report
    assert report.after.head <= plain.after.head
