"""A small report made by hand: a chain of six operators like the start of a person detector."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.report_samples import HOSTILE, chain
from tflm_planner.memory.allocators.portfolio import Solution
from tflm_planner.memory.problem import Plan
from tflm_planner.report.document import (
    Allocation,
    HeadLimits,
    HostRuntime,
    MemoryMap,
    ModelFigures,
    Report,
    RuntimeCheck,
)
from tflm_planner.tflm.arena.predict import Arena
from tflm_planner.transforms.reorder import ChosenOrder
from tflm_planner.verification.verdict import HostAllocation


def arena(head: int, tail: int = 26_980) -> Arena:
    return Arena(head, tail, {}, 3_000, 2_000, 0, 0, head + tail, 15, (), ())


def host(head: int) -> HostRuntime:
    return HostRuntime(arena(head, 35_048), HostAllocation(head, 35_048))


@pytest.fixture
def before() -> MemoryMap:
    return chain(
        [27648, 18432, 18432, 36864, 9216, 9216, 16],
        64512,
        [0, 27648, 46080, 0, 36864, 46080, 0],
    )


@pytest.fixture
def after() -> MemoryMap:
    return chain(
        [27648, 18432, 18432, 36864, 9216, 9216, 16],
        55296,
        [0, 27648, 0, 18432, 0, 9216, 0],
    )


@pytest.fixture
def report(before: MemoryMap, after: MemoryMap) -> Report:
    return Report(
        version="0.1.0",
        target="cortex-m4/cmsis-nn",
        source="models/vww.tflite",
        destination="models/vww-planned.tflite",
        sha256_before="ab" * 32,
        sha256_after="cd" * 32,
        before=ModelFigures(
            6,
            7,
            300_568,
            arena(64512),
            host(64512),
            before,
            7_489_664,
        ),
        after=ModelFigures(6, 7, 300_800, arena(55296), host(55296), after, 7_500_000),
        limits=HeadLimits(
            input_bytes=27648, file_order_bytes=55296, best_order_bytes=55296, overlap_bytes=36864
        ),
        order=ChosenOrder("exact", False, 55296, 55296, True),
        allocation=Allocation(
            Solution(Plan(()), 55296, 55296, True, "exact"), ("block/3 in block/2",), ("b",), 1
        ),
        checks=(
            RuntimeCheck("LiteRT", "equal", 64, True, ""),
            RuntimeCheck("TFLM", "equal", 64, True, ""),
        ),
        verified=True,
        budget=90_000,
        notes=("not reordered: the graph is a chain",),
        seconds={"order": 0.01, "allocate": 0.2, "verify": 1.5},
    )


@pytest.fixture
def hostile(report: Report) -> Report:
    """The same report, with a hostile text wherever a text can stand."""
    bad = chain([64, 64, 16], 128, [0, 64, 0], HOSTILE + "{}")
    bad = MemoryMap(
        tuple(replace(s, operator="=" + HOSTILE, name="=cmd()" + HOSTILE) for s in bad.steps),
        bad.blocks,
        bad.head,
    )
    return replace(
        report,
        version=HOSTILE,
        target=HOSTILE,
        source=HOSTILE,
        destination=HOSTILE,
        before=replace(report.before, map=bad),
        after=replace(report.after, map=bad),
        order=replace(report.order, method=HOSTILE),
        allocation=replace(
            report.allocation,
            solution=replace(report.allocation.solution, allocator=HOSTILE),
            aliases=(HOSTILE,),
            input_overlaps=(HOSTILE,),
        ),
        checks=(RuntimeCheck(HOSTILE, "not available", 0, False, HOSTILE),),
        verified=False,
        notes=(HOSTILE,),
        seconds={HOSTILE: 1.0},
    )
