"""On an ESP32-S3 copies of filters in scratch are the peak: whole networks, as the command plans
them."""

from __future__ import annotations

import pytest

from tests.conftest import published
from tflm_planner.pipeline import api

S3 = api.load_target("esp32s3/esp-nn-1.2.3")


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "by_hand"), [("vww_96_int8", 87_108), ("pretrainedResnet_quant", 93_412)]
)
def test_networks_come_below_what_was_found_by_hand(name: str, by_hand: int) -> None:
    """With the firmware's own operators and at most 10 % more of the instructions that ESP-NN's
    kernels take there, filters that bands of rows sum up again among them."""
    kernels = api.kernels_of(S3)
    tiles = api.TilePermission(workers=1, max_slowdown=1.1)
    options = api.PlanOptions(api.MemoryOptions(kernels=kernels), tiles, verify=None)
    report = api.plan(published(name), options=options).report
    rung = next(rung for rung in report.ladder if rung.taken)
    assert report.after.arena.arena <= by_hand
    assert rung.slowdown is not None and rung.slowdown <= 1.1
