"""Hand-made maps, and a hostile name, for the tests of the renderings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tflm_planner.report.document import MapBlock, MapStep, MemoryMap, Report

HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[31m\n\x00\u202e\ud800]]>&\"'"
"""A name that attacks HTML, XML, the terminal, line formats, reading direction and encoders."""


def unbroken(page: str) -> str:
    """A page without what keeps the words of a command whole."""
    return page.replace("<span>", "").replace("</span>", "")


def chain(sizes: list[int], head: int, offsets: list[int], name: str = "block/{}") -> MemoryMap:
    """A chain: operator i reads buffer i and writes buffer i + 1."""
    last = len(sizes) - 1
    names = [name.format(i) for i in range(len(sizes))]
    blocks = tuple(
        MapBlock(
            names[i],
            "input" if i == 0 else "output" if i == last else "activation",
            size,
            offsets[i],
            max(0, i - 1),
            min(last, i + 1),
        )
        for i, size in enumerate(sizes)
    )
    steps = tuple(
        MapStep(
            index=i,
            operator="DEPTHWISE_CONV_2D" if i % 2 else "CONV_2D",
            name=names[i + 1],
            graph=0,
            input_bytes=sizes[i],
            output_bytes=sizes[i + 1],
            other_bytes=0,
            workspace_bytes=0,
            shared_bytes=0,
            live=(names[i], names[i + 1]),
        )
        for i in range(last)
    )
    return MemoryMap(steps, blocks, head)


def with_solution(report: Report, **changes: Any) -> Report:
    """The report with another outcome of the allocators."""
    solution = replace(report.allocation.solution, **changes)
    return replace(report, allocation=replace(report.allocation, solution=solution))
