from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.report_samples import HOSTILE, chain, with_solution
from tflm_planner.report.document import HeadLimits, MemoryMap, Report, RuntimeCheck
from tflm_planner.report.html import to_html
from tflm_planner.report.text.inspection import render_inspection
from tflm_planner.report.text.report import limit_sentence, render_report
from tflm_planner.report.text.safe import safe_text
from tflm_planner.report.text.words import display_width, shorten
from tflm_planner.verification.verdict import HostAllocation


def test_the_report_says_what_a_run_found(report: Report) -> None:
    text = render_report(report)
    for words in (
        "vww.tflite -> vww-planned.tflite",
        "64,512 B (63.0 KiB) -> 55,296 B (54.0 KiB)",
        "9,216 B, 10.1 %",
        "proved optimal for this order",
        "kept (exact), peak 55,296 B, proved best",
        "1 alias; 1 result overlapping an operand",
        "LiteRT: equal on 64 inputs",
        "FITS in 90,000 B: arena 82,276 of 90,000 B",
        "head 55,296 B (as predicted), tail 35,048 B",
        "not reordered: the graph is a chain",
        "7,489,664 -> 7,500,000, +0.14 %",
        "1.71 (order 0.01, allocate 0.20, verify 1.50)",
    ):
        assert words in text


def test_scratch_above_an_optimal_plan_is_said(report: Report) -> None:
    """The tensors lie as low as they can; what TFLM places itself may still end above them."""
    arena = replace(report.after.arena, head=report.allocation.solution.height + 96)
    higher = replace(report, after=replace(report.after, arena=arena))
    assert "scratch that TFLM places ends 96 B above" in limit_sentence(higher)
    assert "scratch that TFLM places" not in limit_sentence(report)
    assert ">optimal<" in to_html(report) and ">optimal<" not in to_html(higher)


def test_the_report_says_what_failed(report: Report) -> None:
    text = render_report(
        replace(
            with_solution(report, optimal=False, lower_bound=50_000),
            budget=50_000,
            verified=False,
            checks=(RuntimeCheck("TFLM", "different", 3, True, "output 0\nbyte 7"),),
            after=replace(
                report.after,
                host=replace(report.after.host, measured=HostAllocation(55_312, 35_048)),
            ),
        )
    )
    assert "DOES NOT FIT in 50,000 B: arena 82,276 B, 32,276 B more" in text
    assert "TFLM: different on 3 inputs: output 0 byte 7" in text
    assert "NO: the outputs differ" in text
    assert "predicted 55,296 B, off by +16 B" in text
    assert "lower bound 50,000 B (48.8 KiB), gap 5,296 B (10.6 %), not proved" in text


def test_equal_outputs_that_never_vary_are_told(report: Report) -> None:
    checks = (RuntimeCheck("TFLM", "equal", 1, False, ""),)
    text = render_report(replace(report, checks=checks))
    assert "equal on 1 input (the outputs never vary" in text


def test_the_report_stays_short(report: Report) -> None:
    long = replace(
        report,
        notes=("why " * 40,) * 50,
        checks=report.checks * 20,
        allocation=replace(report.allocation, aliases=("x" * 300,) * 500),
    )
    lines = render_report(long).splitlines()
    assert len(lines) <= 45
    assert max(map(display_width, lines)) <= 100
    assert "and 41 more" in render_report(long)
    assert len(render_report(report).splitlines()) <= 21


def test_the_inspection_shows_operators_peak_and_limits(before: MemoryMap) -> None:
    limits = HeadLimits(27648, 55296, None, 36864)
    text = render_inspection("vww.tflite", before, limits, ["a note"])
    lines = text.splitlines()
    peak = next(line for line in lines if "<- peak" in line)
    assert ">2" in peak and "55,296" in peak and "█" * 20 in peak
    assert "Peak: 55,296 B (54.0 KiB) live at operator 2 CONV_2D" in text
    after = lines[lines.index("Peak: 55,296 B (54.0 KiB) live at operator 2 CONV_2D") + 1 :]
    assert after[0].split() == ["36,864", "B", "66.7", "%", "block/3"]
    assert after[1].split() == ["18,432", "B", "33.3", "%", "block/2"]
    assert "L2  best order      not known" in text
    assert "L3  overlap          36,864 B  57.1 % of the head" in text
    assert "  - a note" in text
    assert "scratch" not in lines[2] and "shared" not in lines[2]


def test_columns_align_and_bars_grow_with_live_bytes(before: MemoryMap) -> None:
    text = render_inspection("m", before, HeadLimits(1, 1, 1, 1), [])
    rows = text.splitlines()[3 : 3 + len(before.steps)]
    bars = {step.live_bytes: row.count("█") for step, row in zip(before.steps, rows, strict=True)}
    assert [bars[size] for size in sorted(bars)] == sorted(bars.values())
    assert len({row.index("block/") for row in rows}) == 1


def test_operators_of_sub_graphs_are_indented(before: MemoryMap) -> None:
    inner = replace(before.steps[1], graph=1, workspace_bytes=512)
    nested = replace(before, steps=(before.steps[0], inner, *before.steps[2:]))
    lines = render_inspection("m", nested, HeadLimits(1, 1, 1, 1), []).splitlines()
    assert lines[4].index("DEPTHWISE") == lines[3].index("CONV_2D") + 2
    assert "scratch" in lines[2] and " 512 " in lines[4]


def test_an_encoding_without_blocks_gets_ascii(before: MemoryMap, hostile: Report) -> None:
    text = render_inspection("modèle", before, HeadLimits(1, 1, 1, 1), [], encoding="ascii")
    assert text.isascii() and "#" * 20 in text
    assert render_report(hostile, encoding="ascii").isascii()
    assert render_report(hostile, encoding="no such encoding").isascii()


def test_hostile_names_cannot_reach_the_terminal(hostile: Report) -> None:
    inspection = render_inspection(HOSTILE, hostile.before.map, hostile.limits, [HOSTILE])
    for text in (inspection, render_report(hostile)):
        assert all(line.isprintable() for line in text.split("\n"))
        text.encode("utf-8")
        assert "\\x1b" in text


def test_an_empty_model_is_not_an_error() -> None:
    text = render_inspection("empty", MemoryMap((), (), 0), HeadLimits(0, 0, 0, 0), [])
    assert "(no operators)" in text and "Peak" not in text


def test_ten_thousand_operators_are_shown() -> None:
    n = 10_000
    big = chain(
        [16 * (1 + i % 97) for i in range(n + 1)], 4096, [0] * (n + 1), "a/long/name/" * 20 + "{}"
    )
    text = render_inspection("big", big, HeadLimits(1, 1, 1, 1), [])
    assert text.count("\n") > n
    assert max(map(display_width, text.splitlines())) <= 120


@pytest.mark.parametrize("width", range(12))
def test_shorten_never_exceeds_its_width(width: int) -> None:
    for text in ("", "abc", "x" * 100_000, "入力テンソル" * 9, "e\u0301" * 30, HOSTILE):
        assert display_width(shorten(text, width)) <= width


def test_shorten_keeps_both_ends() -> None:
    assert shorten("model/block_1/conv/BiasAdd", 15) == "model/b..iasAdd"
    assert shorten("short", 15) == "short"


def test_safe_text_spells_out_what_is_not_printable() -> None:
    assert safe_text("a\x1b[2J\n\u202e\ud800é入") == "a\\x1b[2J\\n\\u202e\\ud800é入"
