"""A search is ended by counts, by a time limit that was asked for, or by Ctrl-C; the file is proved
in any case."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import needs_tflm
from tests.models.small import narrow_rows
from tests.short_searches import short_search
from tflm_planner.memory.allocators import compiling
from tflm_planner.pipeline import api
from tflm_planner.support.interrupts import Presses, ending_in_order
from tflm_planner.support.stopping import PartOfStop, Stop
from tflm_planner.tiling.budget import DEFAULT_BUDGET, SearchBudget

CNN = Path(__file__).parents[1] / "models" / "cnn_int8.tflite"
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "[signal.signal(s, signal.SIG_DFL) for s in (signal.SIGHUP, signal.SIGQUIT)]; "
    "from tflm_planner.cli.app import main; main()"
)
"""As a shell starts it: whoever runs tests in the background has some signals ignored."""
LONG = pytest.mark.long
ACKNOWLEDGED, ASKED = "stopping: keeping the best so far", "press Ctrl-C again"


def tiled(budget: SearchBudget = DEFAULT_BUDGET, **more: object) -> api.PlanOptions:
    tiles = api.TilePermission(operators=api.AllowedOperators.ALL, workers=1, search_budget=budget)
    return api.PlanOptions(api.MemoryOptions(**more), tiles=tiles, verify=None)  # type: ignore


@pytest.mark.slow
def test_an_absurd_clock_changes_no_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    data, small = narrow_rows(16), short_search(60)
    wanted = api.plan(data, options=tiled(small)).data
    hours = itertools.count(0, 3600)
    for clock in ("monotonic", "perf_counter", "time", "process_time"):
        monkeypatch.setattr(time, clock, lambda: float(next(hours)))
    assert api.plan(data, options=tiled(small)).data == wanted
    assert next(hours) > 0  # it was asked, for the report


@pytest.mark.slow
def test_a_time_limit_ends_the_search_and_says_so() -> None:
    found = api.plan(CNN, options=tiled(time_limit=1e-6))
    assert found.report.stopped == "time limit"
    assert "stopped by --time-limit" in " ".join(found.report.notes)
    assert found.report.after.arena.arena <= found.report.before.arena.arena


def test_no_limit_reads_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked() -> float:
        raise AssertionError("the clock was read")

    with monkeypatch.context() as without_clock:
        without_clock.setattr(time, "monotonic", asked)
        stop = Stop()
        assert not stop.is_over and not PartOfStop(stop, 0.5).is_over


def test_a_part_that_is_over_leaves_the_whole_alone() -> None:
    whole = Stop(1000.0)
    part = PartOfStop(whole, 0.0)
    assert part.is_over and not whole.is_over
    assert whole.reason == "time limit"  # something was cut short
    whole.interrupt()
    assert PartOfStop(whole, 1.0).is_over and whole.reason == "interrupted"


def test_presses_are_counted_once_whoever_notices_them(capfd: pytest.CaptureFixture[str]) -> None:
    stop = Stop()
    presses = Presses(stop)
    presses.notice(1)
    presses.notice(0)
    assert stop.reason == "interrupted" and capfd.readouterr().err.count(ACKNOWLEDGED) == 1
    with stop.finishing():
        presses.notice(0)
        presses.notice(1)
        assert capfd.readouterr().err.count(ASKED) == 1
        with pytest.raises(KeyboardInterrupt):
            presses.handle(signal.SIGINT, None)
        presses.handle(signal.SIGINT, None)  # what is closed then is not interrupted


def test_a_press_after_the_proof_leaves_out_what_is_beyond_it(
    capfd: pytest.CaptureFixture[str],
) -> None:
    stop = Stop()
    presses = Presses(stop)
    stop.interrupt()  # the search was ended before
    with pytest.raises(KeyboardInterrupt), stop.skippable():
        presses.handle(signal.SIGINT, None)
    assert "the proved file is written" in capfd.readouterr().err
    presses.handle(signal.SIGINT, None)  # what is written then is not interrupted
    assert ASKED in capfd.readouterr().err


def test_ctrl_c_in_the_ladder_costs_no_proved_file(tmp_path: Path) -> None:
    """Whoever presses while further steps are looked for."""
    out, asked = tmp_path / "out.tflite", list[str]()

    def press_at_last(text: str) -> None:
        if "further permissions" in text:
            asked.append(text)
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        options = api.PlanOptions(verify=None)
        report = api.plan(CNN, out, options, press_at_last).report
    finally:
        signal.signal(signal.SIGINT, before)
    assert asked and out.exists() and report.stopped == "interrupted"
    assert [rung.kind for rung in report.ladder if rung.taken] == ["plan"]


def test_what_is_compiled_is_not_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = (compiling.CLIMBING,)
    assert compiling.ready(groups, Stop())
    assert all(group.stamp.exists() for group in groups)

    def start_module(*_: object) -> None:
        raise AssertionError("a child was started")

    spec = importlib.util.find_spec(compiling.__name__)
    assert spec is not None and spec.loader is not None
    fresh = importlib.util.module_from_spec(spec)  # as in a process that has compiled nothing yet
    spec.loader.exec_module(fresh)
    monkeypatch.setattr(fresh, "start_module", start_module)
    assert fresh.ready((fresh.CLIMBING,), Stop())


def test_where_nothing_may_be_written_children_share_a_temporary_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import numba

    from tflm_planner.memory.allocators import machine_code

    made, refusals = numba.njit, [RuntimeError("cannot cache function: no locator available")]

    def njit(*given: object, **options: object):
        if refusals and not given:
            raise refusals.pop()
        return made(*given, **options)

    monkeypatch.setattr(numba, "njit", njit)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    assert machine_code.compiled(lambda a: a)(1) == 1
    assert Path(os.environ["NUMBA_CACHE_DIR"]).is_dir() and not refusals


# --- real processes and signals -------------------------------------------------------------------


class Run:
    """`tflm-plan ARGUMENTS` in a process group of its own, as a shell starts it."""

    def __init__(self, folder: Path, *arguments: object) -> None:
        self.out = folder / "out.tflite"
        self.errors = folder / "errors"
        with self.errors.open("wb") as errors, (folder / "printed").open("wb") as printed:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, *map(str, arguments)],
                stdout=printed, stderr=errors, start_new_session=True,
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            )  # fmt: skip

    @property
    def said(self) -> str:
        return self.errors.read_text()

    def wait_for(self, text: str, times: int = 1) -> float:
        """Seconds until it was said."""
        begun = time.monotonic()
        while self.said.count(text) < times:
            assert self.process.poll() is None, f"ended: {self.said}"
            assert time.monotonic() - begun < 300
            time.sleep(0.02)
        return time.monotonic() - begun

    def children(self) -> list[int]:
        """Processes that it has started, those of former ones too."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == self.process.pid:  # its session
                found.append(int(stat.parent.name))
        return [pid for pid in found if pid != self.process.pid]

    def press(self, *, everyone: bool = True) -> None:
        """Ctrl-C: to the foreground, as a terminal does, or to the parent alone."""
        (os.killpg if everyone else os.kill)(self.process.pid, signal.SIGINT)

    def ended(self) -> int:
        code = self.process.wait(timeout=300)
        time.sleep(0.2)
        assert self.children() == []
        assert "Traceback" not in self.said
        return code


posix_only = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")


@needs_tflm
@posix_only
@pytest.mark.parametrize(
    "moment",
    [
        "ordering",
        "estimating",
        *(pytest.param(m, marks=LONG) for m in ("planned with care", "packing")),
    ],
)
@pytest.mark.parametrize("everyone", [True, pytest.param(False, marks=LONG)])
@pytest.mark.slow
def test_ctrl_c_keeps_the_best_so_far(tmp_path: Path, moment: str, everyone: bool) -> None:
    page = tmp_path / "page.html"
    run = Run(
        tmp_path, CNN, tmp_path / "out.tflite", "--firmware", "more-ops", "-v", "--json",
        "--inputs", 2, "--report", page,
    )  # fmt: skip
    run.wait_for(moment)
    run.press(everyone=everyone)
    run.wait_for(ACKNOWLEDGED)
    assert run.ended() == 0
    report = json.loads((tmp_path / "printed").read_text())
    assert report["verified"] and report["stopped"] == "interrupted"
    assert "interrupted" in " ".join(report["notes"]) and "interrupted" in page.read_text()
    assert run.out.exists()


@pytest.mark.slow
@needs_tflm
@posix_only
@pytest.mark.parametrize("everyone", [True, False])
@pytest.mark.mostly_long(short=1)
def test_ctrl_c_during_the_proof_asks_once(tmp_path: Path, everyone: bool) -> None:
    options = ("--search", "none", "-v", "--inputs", 20_000)
    run = Run(tmp_path, CNN, tmp_path / "out.tflite", *options)
    run.wait_for("comparing on")
    run.press(everyone=everyone)
    run.wait_for(ASKED)
    time.sleep(0.5)
    assert run.process.poll() is None  # the proof goes on
    run.press(everyone=everyone)
    assert run.ended() == 130
    assert not run.out.exists() and "nothing was written" in run.said


@needs_tflm
@posix_only
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGQUIT"])
@pytest.mark.mostly_slow(fast=1)
def test_what_ends_the_program_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """No temporary folder, no process, no file."""
    scratch, number = tmp_path / "scratch", getattr(signal, name)
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    options = ("--search", "none", "-v", "--inputs", 20_000)
    run = Run(tmp_path, CNN, tmp_path / "out.tflite", *options)
    run.wait_for("comparing on")
    assert list(scratch.iterdir())
    os.kill(run.process.pid, number)
    assert run.ended() == 128 + number
    assert f"ended by {name}" in run.said
    assert not list(scratch.iterdir()) and not run.out.exists()


def test_handlers_of_others_stay() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
    try:
        with ending_in_order():
            signal.raise_signal(signal.SIGTERM)
        assert seen == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_second_signal_does_not_interrupt_what_is_closed() -> None:
    closed = False
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    with pytest.raises(SystemExit) as caught, ending_in_order():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGTERM)
            closed = True
    assert closed and caught.value.code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@needs_tflm
@posix_only
@pytest.mark.slow
def test_ctrl_c_while_a_split_is_looked_for(tmp_path: Path) -> None:
    files = tmp_path / "front.tflite", tmp_path / "back.tflite"
    run = Run(tmp_path, "stream-input", CNN, *files, "-v", "--json", "--inputs", 2)
    run.wait_for("splitting behind")
    run.press()
    assert run.ended() == 0
    report = json.loads((tmp_path / "printed").read_text())
    assert report["stopped"] == "interrupted" and report["verified"]
    assert all(path.exists() for path in files)


def test_a_limit_counts_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """ "Seconds to search": a busy machine that proves slowly must not end the search before it
    has begun."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    stop = Stop(10.0)
    with stop.not_searching():
        now[0] += 60
    assert stop.left == 10.0
    with stop.finishing():
        now[0] += 60
    now[0] += 4
    assert stop.left == 6.0 and not stop.is_over
    now[0] += 6
    assert stop.is_over
