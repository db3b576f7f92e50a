"""A tiling or a split that fails the proof or a guard is given up for the next best one, and said
to be."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.models.small import narrow_rows
from tests.short_searches import short_search
from tests.transforms.row_loops import chain
from tflm_planner.pipeline import api
from tflm_planner.pipeline import prove as proving
from tflm_planner.pipeline.planning import tiling_job
from tflm_planner.pipeline.planning.refusals import MOST_REFUSED
from tflm_planner.pipeline.stream_input import pairs
from tflm_planner.pipeline.stream_input.render import render_streamed, streamed_to_json
from tflm_planner.support.errors import (
    ForbiddenOperatorsError,
    OutputsDifferError,
    UnsoundPlanError,
)
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion
from tflm_planner.verification import VerifyOptions
from tflm_planner.verification.pairs import Pair
from tflm_planner.verification.verdict import CANNOT_RUN, DIFFERENT, EQUAL, RuntimeCheck, Verdict

FAR = 1 << 60


SMALL = short_search(1_000)
"""A few tilings are enough."""


class FakeRuntimes:
    """In place of the runtimes: finds the first `refusals` files different, all others equal."""

    def __init__(self, monkeypatch, refusals: int) -> None:
        self.refusals, self.files = refusals, list[bytes]()
        monkeypatch.setattr(proving, "compare_with_twin", self)

    def __call__(self, original, made, options, on_progress) -> Verdict:
        self.files.append(made.data)
        refused = len(self.files) <= self.refusals
        status, detail = (DIFFERENT, "byte 7 of 'out'") if refused else (EQUAL, "")
        return Verdict((RuntimeCheck("TFLM", status, 8, True, detail),))


def planned(tmp_path=None, arena_limit=None, **permission) -> api.PlanResult:
    """A model in tiles of its own operators, proved by whatever the proof is."""
    tiles = api.TilePermission(max_slowdown=1.3, workers=1, search_budget=SMALL, **permission)
    options = api.PlanOptions(tiles=tiles, given_arena_limit=arena_limit)
    return api.plan(narrow_rows(48), tmp_path and tmp_path / "out.tflite", options)


def fails_for(monkeypatch, data: bytes, fault: Exception) -> None:
    """The tiling whose file would be `data` cannot be made."""
    make = tiling_job.plan_tiling

    def guarded(*arguments: Any):
        made = make(*arguments)
        if made.data == data:
            raise fault
        return made

    monkeypatch.setattr(tiling_job, "plan_tiling", guarded)


def makes_larger(monkeypatch, arenas: Callable[[list[int]], int | None]) -> list[int]:
    """The arenas of the files made, each the one that `arenas` asks for after those before it, if
    any."""
    make, made = tiling_job.plan_tiling, list[int]()

    def larger(*arguments: Any):
        tiled = make(*arguments)
        asked = arenas(made)
        if asked is not None:
            needs = replace(tiled.inspection.arena, arena=asked)
            tiled = replace(tiled, inspection=replace(tiled.inspection, arena=needs))
        made.append(tiled.inspection.arena.arena)
        return tiled

    monkeypatch.setattr(tiling_job, "plan_tiling", larger)
    return made


def refusals(result: api.PlanResult) -> list[str]:
    return [n for n in result.report.notes if n.startswith("REFUSED")]


def arena(result: api.PlanResult) -> int:
    return result.report.after.arena.arena


@pytest.mark.parametrize("dialect", [True, pytest.param(False, marks=pytest.mark.long)])
@pytest.mark.slow
def test_the_next_best_is_made_where_the_best_is_not_equal(tmp_path, monkeypatch, dialect):
    allowed = api.AllowedOperators
    permission = {"dialect": dialect, "operators": allowed.NONE if dialect else allowed.ALL}
    FakeRuntimes(monkeypatch, 0)
    best = planned(**permission)
    assert not refusals(best)
    runtimes = FakeRuntimes(monkeypatch, 1)
    found = planned(tmp_path, **permission)
    (note,) = refusals(found)
    assert "byte 7 of 'out'" in note and "please report" in note
    assert ("operators 0-1 in 6 parts" in note) is dialect
    assert arena(best) < arena(found) < found.report.before.arena.arena
    assert len(runtimes.files) == 2 and found.report.verified
    written = (tmp_path / "out.tflite").read_bytes()
    assert runtimes.files == [best.data, written] and best.data != written
    assert found.report.sha256_after == hashlib.sha256(written).hexdigest()
    assert all(p.size > arena(best) for p in found.report.front.points)  # no way to have it
    assert not any(f"{arena(best):,} B" in n for n in found.report.notes if n != note)


@pytest.mark.slow
def test_the_plan_without_tiles_is_the_last_to_fall_back_on(monkeypatch):
    runtimes = FakeRuntimes(monkeypatch, MOST_REFUSED)
    found = planned()
    assert len(refusals(found)) == MOST_REFUSED == len(set(runtimes.files)) - 1
    assert any("none that stood the proof lowers" in n for n in found.report.notes)
    FakeRuntimes(monkeypatch, 0)
    plain = api.plan(narrow_rows(48), options=api.PlanOptions(api.MemoryOptions()))
    assert arena(found) == arena(plain) and found.report.verified


@pytest.mark.parametrize("more", [0, 16, 4096])
@pytest.mark.mostly_slow(fast=1)
def test_a_tiling_that_came_out_no_smaller_is_not_kept(monkeypatch, more: int):
    """Estimates promised less than the file that was made needs."""
    FakeRuntimes(monkeypatch, 0)
    plain = arena(api.plan(narrow_rows(48), options=api.PlanOptions(api.MemoryOptions())))
    make = tiling_job.plan_tiling

    def larger(*arguments: Any):
        tiled = make(*arguments)
        needs = replace(tiled.inspection.arena, arena=plain + more)
        return replace(tiled, inspection=replace(tiled.inspection, arena=needs))

    monkeypatch.setattr(tiling_job, "plan_tiling", larger)
    found = planned()
    assert arena(found) == plain and found.report.verified
    assert any("none lowers the arena" in note for note in found.report.notes)


@pytest.mark.parametrize("all_miss", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.slow
def test_what_misses_the_budget_gives_way_to_what_promises_less(monkeypatch, all_miss: bool):
    """The fastest tiling within the budget is made first. Its file needs more than was promised;
    if all do, the smallest is taken."""
    FakeRuntimes(monkeypatch, 0)
    sizes = sorted({p.size for p in planned().report.front.points if p.tiles})
    limit = sizes[-1]
    assert len(sizes) > 1
    later = limit + 16 if all_miss else None
    made = makes_larger(monkeypatch, lambda before: later if before else limit + 32)
    found = planned(arena_limit=limit)
    assert len(made) > 1 and made[0] > limit
    assert arena(found) == (min(made) if all_miss else made[1])
    assert found.report.within_budget is not all_miss


@pytest.mark.slow
def test_a_file_larger_than_promised_gives_way_to_what_promises_less(monkeypatch):
    """Without a limit too: the smallest of the files is taken."""
    FakeRuntimes(monkeypatch, 0)
    second = sorted({p.size for p in planned().report.front.points if p.tiles})[1]
    made = makes_larger(monkeypatch, lambda before: None if before else second + 16)
    found = planned()
    assert made[0] == second + 16 and arena(found) == made[1] <= second


@pytest.mark.slow
def test_what_needs_operators_that_may_not_be_added_is_left_out(monkeypatch):
    """The report tells what was tried all the same: nothing was refused for an error of ours."""
    FakeRuntimes(monkeypatch, 0)
    best = planned()
    fails_for(monkeypatch, best.data, ForbiddenOperatorsError("its plan needs SLICE"))
    found = planned()
    assert arena(best) < arena(found) < found.report.before.arena.arena
    assert found.report.trials and not any("SLICE" in note for note in found.report.notes)


@pytest.mark.slow
def test_nothing_is_written_where_nothing_is_equal(tmp_path, monkeypatch):
    runtimes = FakeRuntimes(monkeypatch, FAR)
    with pytest.raises(OutputsDifferError, match="byte 7 of 'out'; nothing was written"):
        planned(tmp_path)
    assert len(runtimes.files) == MOST_REFUSED + 1 and list(tmp_path.iterdir()) == []


def test_what_was_asked_for_by_hand_is_made_or_nothing_is(tmp_path, monkeypatch):
    runtimes = FakeRuntimes(monkeypatch, 1)
    with pytest.raises(OutputsDifferError):
        planned(
            tmp_path, by_hand=(TiledRegion((0, 1), (Split(1, 5),)),), operators=AllowedOperators.ALL
        )
    assert len(runtimes.files) == 1 and list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_guard_passes_the_best_over(monkeypatch):
    """Before any runtime runs it: scratch of the dialect, or a plan that the validator refuses."""
    FakeRuntimes(monkeypatch, 0)
    best = planned()
    fails_for(monkeypatch, best.data, UnsoundPlanError("scratch lies over 'x'"))
    found = planned()
    (note,) = (n for n in found.report.notes if n.startswith("passed over"))
    assert note.endswith("scratch lies over 'x'") and not refusals(found)
    assert arena(best) < arena(found) < found.report.before.arena.arena


# --- a model split for streamed input -----------------------------------------------------------


class PairProof:
    """In place of the runtimes: refuses the first so many pairs."""

    def __init__(self, monkeypatch, refusals: int) -> None:
        self.refusals, self.pairs = refusals, list[Pair]()
        monkeypatch.setattr(proving, "verify_pair", self)

    def __call__(self, original, pair, options, on_progress) -> Verdict:
        self.pairs.append(pair)
        refused = len(self.pairs) <= self.refusals
        status, detail = (DIFFERENT, "byte 7 of 'out'") if refused else (EQUAL, "")
        return Verdict((RuntimeCheck("TFLM", status, 8, True, detail),))


DEEP = ((3, 1, 8), (3, 2, 8), (3, 1, 8), (3, 2, 16), (3, 2, 16))
FAT = ((3, 1, 4), (1, 1, 64), (3, 2, 4))
"""The second tensor is best made in tiles."""


def streamed(tmp_path=None, layers=DEEP, tiles=None, **options) -> api.SplitResult:
    wanted = api.StreamOptions(tiles=tiles, **options)
    paths = tmp_path and (tmp_path / "front.tflite", tmp_path / "back.tflite")
    return api.stream_input(chain(*layers, size=32), paths, wanted)


@pytest.mark.slow
def test_the_next_best_split_is_made_where_the_best_is_not_equal(tmp_path, monkeypatch):
    PairProof(monkeypatch, 0)
    best = streamed()
    assert best.pair.refused == ()
    proof = PairProof(monkeypatch, 1)
    made = streamed(tmp_path)
    (note,) = made.pair.refused
    assert f"{best.pair.sram:,} B, the front to operator {best.pair.ops[-1]}: " in note
    assert note.startswith("REFUSED") and note.endswith("byte 7 of 'out'")
    assert made.pair.ops != best.pair.ops and made.pair.sram >= best.pair.sram
    assert [p.front for p in proof.pairs] == [best.pair.front.data, made.pair.front.data]
    assert (tmp_path / "front.tflite").read_bytes() == made.pair.front.data
    assert (tmp_path / "back.tflite").read_bytes() == made.pair.back.data
    assert made.verdict is not None and made.verdict.proved
    target = api.MemoryOptions().kernels.target
    text = "\n".join(render_streamed(made.pair, made.before, made.verdict))
    assert "notes        REFUSED" in text
    assert streamed_to_json(made.pair, 0, target, None)["refused"] == [note]


@pytest.mark.slow
def test_a_split_that_was_asked_for_is_made_without_tiles_or_not_at_all(tmp_path, monkeypatch):
    tiles = api.TilePermission(
        max_slowdown=1.5, workers=1, operators=AllowedOperators.ALL, search_budget=SMALL
    )
    wanted = {"layers": FAT, "tiles": tiles, "end": 0, "max_slowdown": 3.0}
    PairProof(monkeypatch, 0)
    best = streamed(**wanted).pair
    assert best.back.tiled
    proof = PairProof(monkeypatch, 1)
    found = streamed(**wanted).pair
    assert found.ops == best.ops and not found.back.tiled and found.sram > best.sram
    assert ", the back in tiles: computes something else" in found.refused[0]
    proof = PairProof(monkeypatch, FAR)
    with pytest.raises(OutputsDifferError, match="without --end the model is split elsewhere"):
        streamed(tmp_path, **wanted)
    assert len(proof.pairs) == 2 and list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_no_split_is_written_where_none_is_equal(tmp_path, monkeypatch):
    proof = PairProof(monkeypatch, FAR)
    with pytest.raises(OutputsDifferError, match="--end names another"):
        streamed(tmp_path)
    assert len({p.front for p in proof.pairs}) == len(proof.pairs) == MOST_REFUSED + 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_guard_passes_the_best_split_over(monkeypatch):
    PairProof(monkeypatch, 0)
    best, checked = streamed().pair, pairs.check_states

    def guarded(front, states):
        if front.data == best.front.data:
            raise UnsoundPlanError("the front's plan moves 'x'")
        checked(front, states)

    monkeypatch.setattr(pairs, "check_states", guarded)
    found = streamed().pair
    assert found.ops != best.ops
    assert found.refused == (
        f"passed over: the split behind operator {best.ops[-1]}: the front's plan moves 'x'",
    )
    with pytest.raises(UnsoundPlanError, match="moves 'x'"):
        streamed(end=best.ops[-1])


def test_what_only_the_twin_of_a_back_proves_is_not_enough(monkeypatch):
    """The back in the dialect did not run."""
    checks = (
        RuntimeCheck("LiteRT", EQUAL, 8, True, ""),
        RuntimeCheck("TFLM", CANNOT_RUN, 0, True, ""),
    )
    monkeypatch.setattr(proving, "verify_pair", lambda *_: Verdict(checks))
    for twin, proved in ((None, True), (b"", False)):
        pair = Pair(b"", b"", None, twin)  # type: ignore[arg-type]
        assert proving.compare_pair(b"", pair, VerifyOptions(), print).proved is proved
