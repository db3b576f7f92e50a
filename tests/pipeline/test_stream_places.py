"""Which places are planned to choose where to split: all that can be the best in a short model, and
few in a long one. Work is counted in plans and operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.conftest import PUBLISHED
from tests.models.small import Chain
from tests.transforms.row_loops import chain, random_blocks
from tests.transforms.stream_inputs import cleaned
from tflm_planner.pipeline import api
from tflm_planner.pipeline.stream_input import pairs, shortlist, split, split_points
from tflm_planner.support.errors import ModelError

M4, WHEEL = "cortex-m4/cmsis-nn", "x86-64/wheel"


def options_on(target: str, *, lean: bool = False, tiles: bool = False) -> api.StreamOptions:
    memory = api.MemoryOptions(kernels=api.kernels_of(api.load_target(target, lean=lean)))
    permission = api.TilePermission(workers=1) if tiles else None
    return api.StreamOptions(memory, permission, verify=None)


def long_chain(count: int, *, channels: int = 4) -> bytes:
    chained = Chain((1, 16, 4, 4))
    for _ in range(count):
        chained.conv(channels, 3)
    return chained.finish()


def test_an_operator_without_a_result_is_no_internal_error() -> None:
    """okay_nabu assigns variables; its input has no rows."""
    data = (PUBLISHED / "okay_nabu.tflite").read_bytes()
    with pytest.raises(ModelError, match="the input cannot be streamed"):
        split.split_for_rows(data, options_on(M4))


def narrow_wide_narrow() -> bytes:
    """Nothing but tiles lowers the peak at the two convolutions in the middle."""
    chained = Chain((1, 24, 24, 4))
    for channels in (4, 4, 4, 4, 4, 24, 24, 4, 4, 4, 4, 4):
        chained.conv(channels, 1)
    return chained.finish()


def count_calls(monkeypatch: pytest.MonkeyPatch, place: Any, name: str) -> list[tuple[Any, ...]]:
    """The arguments of all calls of `place.name` from now on."""
    made: list[tuple[Any, ...]] = []
    real: Callable[..., Any] = getattr(place, name)

    def counted(*arguments: Any) -> Any:
        made.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(place, name, counted)
    return made


def test_without_tiles_only_what_may_still_be_the_best_is_planned_in_full(monkeypatch) -> None:
    """ResNet8 is planned at several places, quickly."""
    plans = count_calls(monkeypatch, split, "plan_split")
    data = (PUBLISHED / "pretrainedResnet_quant.tflite").read_bytes()
    pair, _ = split.split_for_rows(data, options_on("nano33ble"))
    in_full = [ops for _, ops, _, options, *_ in plans if options.memory.climb_effort == 1]
    assert len(plans) > 3 and in_full == [pair.ops]


def test_few_splits_of_a_long_chain_are_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    """What each operator adds to the front's persistent memory is in the bounds, so the first plan
    rules out all others, and is only made again in full."""
    plans = count_calls(monkeypatch, split, "plan_split")
    halves = count_calls(monkeypatch, split_points, "split_model")
    samples = count_calls(monkeypatch, shortlist, "split_model")
    pair, _ = split.split_for_rows(long_chain(150), options_on(M4))
    assert pair.ops == (0,) and len(plans) == 2
    assert len(halves) == 4096 // 150 and len(samples) == 9


def test_the_geometry_of_a_long_chain_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fronts of 400 operators have 80,200 operators together."""
    seen = count_calls(monkeypatch, split_points, "can_split")
    points, _ = split_points.points_by_geometry(cleaned(long_chain(400)), options_on(M4))
    kept = sum(len(point.ops) for point in points)
    assert 50_000 < kept < 50_400
    assert len(seen) <= 2 * len(points) + 1  # each asks for the rows of the image first
    assert [len(point.ops) for point in points] == list(range(1, len(points) + 1))


@pytest.mark.parametrize("target", [M4, WHEEL])
def test_a_short_list_reaches_behind_the_peak(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No bound of the front knows of the peak. What is lost is no more than the estimates are
    wrong."""
    data, options = narrow_wide_narrow(), options_on(target)
    best, _ = split.split_for_rows(data, options)
    assert best.ops[-1] >= 6
    monkeypatch.setattr(shortlist, "_PLANNED_WORK", 0)
    monkeypatch.setattr(shortlist, "_FEWEST_PLACES", 4)
    plans = count_calls(monkeypatch, split, "plan_split")
    again, _ = split.split_for_rows(data, options)
    assert again.sram <= 1.02 * best.sram
    assert len({arguments[1] for arguments in plans}) <= 4


def test_no_split_needs_less_than_its_bound() -> None:
    """Plans without tiles, at every place, with the runtime's bytes of both halves counted."""
    models = [chain((3, 1, 4), (3, 2, 4), (1, 1, 8), (3, 1, 8)), narrow_wide_narrow()]
    models += [random_blocks(seed, 5) for seed in range(6)]
    checked = 0
    for number, data in enumerate(models):
        model, options = cleaned(data), options_on(M4, lean=number % 2 == 1)
        try:
            points = split_points.split_points(model, options)
        except ModelError:
            continue
        for point in points[:4]:
            pair = pairs.plan_split(model, point.ops, point.rows, split._quick_options(options))
            assert pair.sram >= point.least_sram
            checked += 1
    assert checked > 15


@pytest.mark.parametrize(("most", "searched"), [(16, 9), (1, 2)])
def test_few_backs_of_a_long_model_are_searched(
    most: int, searched: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nine places could be the best with tiles, by what their backs need without. If one search is
    permitted, it is for the first of them, and the best without tiles is made in full besides. The
    search itself is left out here."""
    in_full: list[tuple[int, ...]] = []
    real = split.plan_split

    def without_search(model: Any, ops: tuple[int, ...], rows: int, options: Any, *rest: Any):
        if options.tiles is not None:
            in_full.append(ops)
        return real(model, ops, rows, replace(options, tiles=None), *rest)

    monkeypatch.setattr(split, "plan_split", without_search)
    monkeypatch.setattr(shortlist, "_TILED_WORK", 0)
    monkeypatch.setattr(shortlist, "_FEWEST_TILED", most)
    split.split_for_rows(narrow_wide_narrow(), options_on(M4, tiles=True))
    assert len(in_full) == searched
