"""What the options of the command come to."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import get_args

from tests.cli.plain_plans import PLAIN, files
from tests.conftest import CNN
from tests.fuzz.shell import COMMAND
from tflm_planner.cli import choices
from tflm_planner.cli.plan import PlanArguments
from tflm_planner.pipeline.options import ALLOCATORS, IO_TYPES, ORDERS, Firmware
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tiling.search import OBJECTIVES


def test_every_option_of_plan_reaches_its_place(tmp_path: Path) -> None:
    given = PlanArguments(
        Path("in"), tmp_path / "out", budget="1K", target="cortex-m7/cmsis-nn", tflm="2025-06",
        firmware="lean", order="rpo", allocator="greedy", time_limit=3.0, seed=4, no_overlap=True,
        strip=True, max_slowdown=1.2, ops="+pad,SLICE", search="motes", objective="head",
        workers=3, inputs=5, force=True,
    )  # fmt: skip
    options = given.options()
    search, tiles = options.memory, options.tiles
    assert options.given_arena_limit == 1024 and options.force and options.verify is not None
    assert (options.verify.seed, options.verify.inputs) == (4, 5)
    assert search.kernels.target.id == "cortex-m7/cmsis-nn+lean"
    assert search.kernels.target.tflm == "2025-06"
    assert (search.order, search.allocator, search.time_limit, search.seed) == (
        "rpo", "greedy", 3.0, 4,
    )  # fmt: skip
    assert not search.overlap and search.strip == "unread by TFLM"
    assert tiles is not None and tiles.dialect
    assert (tiles.max_slowdown, tiles.method, tiles.objective, tiles.workers) == (
        1.2, "motes", "head", 3,
    )  # fmt: skip
    assert tiles.operators == AllowedOperators.of(("PAD", "SLICE"))
    assert not tiles.spellings_only
    plain = PlanArguments(Path("in")).options()
    assert plain.tiles is not None and plain.tiles.operators == AllowedOperators.NONE
    assert (plain.tiles.max_slowdown, plain.memory.strip, plain.io) == (1.1, "nothing", "keep")
    more = PlanArguments(Path("in"), firmware="more-ops").options().tiles
    assert more is not None and more.operators == AllowedOperators.ALL
    respelled = PlanArguments(Path("in"), search="spellings", max_slowdown=1.01).options().tiles
    assert respelled is not None and respelled.spellings_only and respelled.max_slowdown == 1.01
    bare = PlanArguments(Path("in"), search="none", strip=True, portable=True).options()
    assert bare.memory.strip == "unread" and bare.tiles is None


def test_the_words_of_help_are_those_that_are_known() -> None:
    """`choices` has them once more, so that help loads nothing heavy."""
    assert set(get_args(choices.Order)) == set(ORDERS)
    assert set(get_args(choices.Allocator)) == set(ALLOCATORS)
    assert get_args(choices.IoTypes) == IO_TYPES
    assert choices.Firmware == Firmware
    assert get_args(choices.Objective) == OBJECTIVES


def test_the_output_is_named_after_the_input(run, model: Path, tmp_path: Path) -> None:
    assert run(model, "--no-verify", "-q").code == 0
    assert files(tmp_path) == {"in.tflite", "in.planned.tflite"}
    assert "exists" in run(model, "--no-verify", "-q").refused(2)
    assert run(model, "--no-verify", "-q", "--force").code == 0


def test_a_model_through_a_pipe(model: Path, tmp_path: Path, run) -> None:
    """From stdin to stdout: the report is on stderr then."""
    options = ["--no-verify", *PLAIN]
    done = subprocess.run(
        [*COMMAND, "-", "-", *options], input=model.read_bytes(), capture_output=True, check=True
    )
    assert files(tmp_path) == {"in.tflite"}
    assert run(model, tmp_path / "out", "-q", "--no-verify").code == 0
    assert done.stdout == (tmp_path / "out").read_bytes()
    assert b"kTensorArenaSize" in done.stderr
    assert "say where to write" in run("-").refused(2)
    assert "--report FILE.json" in run("-", "-", "--json").refused(2)


def test_strip_writes_a_smaller_file(run, model: Path, tmp_path: Path) -> None:
    plain, small = tmp_path / "plain.tflite", tmp_path / "small.tflite"
    assert run(model, plain, "-q").code == 0
    assert run(model, small, "--strip", "--portable", "-q").code == 0
    assert small.stat().st_size < plain.stat().st_size


def test_an_unknown_version_is_refused(run, model: Path, tmp_path: Path) -> None:
    line = run(model, tmp_path / "out.tflite", "--tflm", "soon").refused(2)
    assert "soon" in line and "2025-06" in line


def test_characters_that_a_code_page_lacks_are_escaped(tmp_path: Path) -> None:
    """Windows' code pages, for names of files of any language."""
    path = tmp_path / "模型.tflite"
    path.write_bytes(CNN.read_bytes())
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252"}
    for words in (["arena"], ["check", "--max-arena", "200K"]):
        command = [*COMMAND, words[0], str(path), *words[1:]]
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        assert rb"\u6a21\u578b.tflite" in done.stdout
