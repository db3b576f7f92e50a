"""The command beside a point of the Pareto front asks for that point."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from tests.command import Run
from tests.conftest import CNN, PUBLISHED
from tflm_planner.pipeline import api
from tflm_planner.pipeline.guidance.point_commands import with_commands, without
from tflm_planner.pipeline.guidance.rung_commands import stream_command
from tflm_planner.report.document import ParetoFront, ParetoPoint

FRONT = ParetoFront(
    "arena",
    1.1,
    (
        ParetoPoint("stock", 900, 1.0),
        ParetoPoint("plan", 800, 1.0),
        ParetoPoint("tiled", 700, 1.02, ("PAD", "WHILE"), 1, 1),
        ParetoPoint("chosen", 600, 1.05, (), 1),
        ParetoPoint("slower", 500, 1.1234, (), 2),
    ),
)


def commands(options: api.PlanOptions, front: ParetoFront = FRONT) -> list[str]:
    return [point.command for point in with_commands(front, options, "a.tflite").points]


def test_each_point_is_asked_for_by_its_bytes() -> None:
    words = ("tflm-plan", "a.tflite", "--budget", "1K", "--target", "x", "--max-slowdown", "1.1")
    tiles = api.TilePermission(1.1)
    assert commands(api.PlanOptions(tiles=tiles, command=(*words, "--force"))) == [
        "",
        "tflm-plan a.tflite --target x --force --search none",
        "tflm-plan a.tflite --target x --force --ops PAD,WHILE --budget 700",
        "",
        "tflm-plan a.tflite --target x --force --budget 500 --max-slowdown 1.13",
    ]


def test_what_was_allowed_stays_allowed() -> None:
    options = api.PlanOptions(tiles=api.TilePermission(1.5), io="int8")
    found = commands(options)
    target = "tflm-plan a.tflite --target cortex-m4/cmsis-nn --io int8"
    assert found[2] == f"{target} --ops PAD,WHILE --budget 700 --max-slowdown 1.5"


def test_lean_firmware_stays_lean() -> None:
    kernels = api.kernels_of(api.load_target("cortex-m4/cmsis-nn", lean=True))
    options = api.PlanOptions(api.MemoryOptions(kernels=kernels), api.TilePermission())
    assert "--firmware lean --budget 700" in commands(options)[2]
    assert "--ops" not in commands(options)[2]


def test_a_lower_head_cannot_be_asked_for() -> None:
    assert set(commands(api.PlanOptions(), replace(FRONT, objective="head"))) == {""}


def test_options_are_left_out_with_their_values() -> None:
    assert without(("a", "--x", "1", "b", "--x", "2"), ("--x", "--y")) == ("a", "b")


@pytest.mark.slow
def test_the_commands_of_a_report_reach_their_points(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = PUBLISHED / "kws_ref_model.tflite", tmp_path / "out.tflite"
    options = api.PlanOptions(tiles=api.TilePermission(1.02), verify=None)
    front = api.plan(model, None, options).report.front
    assert front is not None
    asked = [point for point in front.points if point.command]
    assert asked
    for point in (asked[0], asked[-1]):
        words = shlex.split(point.command)
        assert Run([*words[1:2], out, *words[2:], "--force", "--no-verify", "-q"], capsys).code == 0
        arena = api.arena(out, options.target).arena
        assert arena <= point.size


@pytest.mark.parametrize(("more", "tail"), [((), ""), (("--firmware", "lean"), "+lean")])
def test_rows_are_streamed_for_a_target_file_too(
    more: tuple[str, ...], tail: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its id and its board's name lead to no target."""
    path = tmp_path / "mine.toml"
    path.write_text(
        '[target]\nbase = "cortex-m4/cmsis-nn"\nid = "mine"\n'
        '[board]\nid = "brett"\nname = "Brett"\nsram = 65536\nflash = 131072\nclock = 64\n'
    )
    out = tmp_path / "out.tflite"
    done = Run(
        ["plan", CNN, out, "--target", path, "--search", "none", "--no-verify", *more], capsys
    )
    (line,) = [line for line in done.out.splitlines() if "stream-input" in line]
    assert line.endswith(f"--target {path}{tail}")


def test_rows_are_streamed_for_the_same_tflm() -> None:
    given = ("tflm-plan", "in.tflite", "out.tflite", "--tflm", "2025-06", "--force")
    of_firmware = stream_command(api.PlanOptions(command=given), "in.tflite")
    assert of_firmware.endswith("--tflm 2025-06")
    assert "--tflm" not in stream_command(api.PlanOptions(command=given[:3]), "in.tflite")


def test_stream_input_plans_for_a_tflm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parts = [tmp_path / name for name in ("front.tflite", "back.tflite")]
    words = ["--end", 4, "--search", "none", "--no-verify", "--tflm"]
    assert Run(["stream-input", CNN, *parts, *words, "2025-06"], capsys).code == 0
    assert Run(["stream-input", CNN, *parts, *words, "never", "--force"], capsys).code == 2
