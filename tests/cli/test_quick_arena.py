"""`arena` in its plainest form is answered without typer, with the same words."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import Run
from tests.conftest import CNN, PUBLISHED
from tflm_planner.cli.main import main, plain_arena
from tflm_planner.model.serde import read_model

KWS = str(PUBLISHED / "kws_ref_model.tflite")
NABU = str(PUBLISHED / "okay_nabu.tflite")
PLAIN = [
    [KWS],
    [NABU, "--target", "esp32s3/esp-nn-1.2.3"],
    ["-t", "nano33ble", KWS],
    [KWS, "--json"],
    ["--json", NABU, "--target", "arduino-2023"],
    [str(CNN), "-t", "esp32s3"],
    [str(CNN), "-t", "cortex-m4/cmsis-nn+lean", "--json"],
]
LEFT = [
    [],
    [KWS, NABU],
    [KWS, NABU, "--shared"],
    [KWS, "--split"],
    [KWS, "--tflm", "2025-06"],
    [KWS, "--help"],
    [KWS, "--target"],
    [KWS, "--target=nano33ble"],
    [KWS, "--target", "--json"],
    [KWS, "--target", "nano33bla"],
    ["none.tflite"],
    [str(Path(__file__))],
    ["-"],
    ["--", KWS],
]


@pytest.mark.parametrize("words", PLAIN, ids=" ".join)
def test_it_prints_what_the_whole_command_line_prints(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    text = plain_arena(["arena", *words])
    whole = Run(["arena", *words], capsys)
    assert whole.code == 0, whole.err
    assert text == whole.out


@pytest.mark.parametrize("words", LEFT, ids=" ".join)
def test_everything_else_is_left_to_the_whole_command_line(words: list[str]) -> None:
    assert plain_arena(["arena", *words]) is None


def test_a_fault_of_ours_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("tflm_planner.pipeline.inspection.arenas.arena", broken)
    assert plain_arena(["arena", KWS]) is None


def test_other_verbs_are_left() -> None:
    assert plain_arena(["plan", KWS]) is None
    assert plain_arena([KWS, "out.tflite"]) is None


def _main(*words: str, more: str = "") -> subprocess.CompletedProcess[str]:
    code = f"from tflm_planner.cli.main import main; main(); {more}"
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_typer_and_numpy_are_not_loaded() -> None:
    loaded = "import sys; print({'typer', 'pydantic', 'numpy', 'rich'} & {*sys.modules})"
    done = _main("arena", KWS, more=loaded)
    assert done.stdout.endswith("set()\n"), done.stderr


def test_errors_are_said_by_the_whole_command_line() -> None:
    done = _main("arena", KWS, "--target", "nano33bla")
    assert done.returncode == 2
    assert "did you mean nano33ble" in done.stderr


def test_a_reader_that_goes_away_ends_it_quietly() -> None:
    code = f"import sys; sys.argv[1:] = ['arena', {KWS!r}]; "
    code += "from tflm_planner.cli.main import main; sys.stdin.read(); main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdout.close()
    process.stdin.close()
    assert process.wait() == 1
    assert process.stderr.read() == b""
    process.stderr.close()


def test_ctrl_c_while_modules_are_imported_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted:
        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            if name == "tflm_planner.cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "tflm_planner.cli.app", raising=False)
    monkeypatch.delattr("tflm_planner.cli.app", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted, *sys.meta_path])
    monkeypatch.setattr(sys, "argv", ["tflm-plan", "plan", KWS])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "tflm-plan: error: interrupted; nothing was written\n"


@pytest.mark.skipif(os.name != "posix", reason="closes streams as a POSIX shell does")
def test_closed_streams_are_no_traceback(tmp_path: Path) -> None:
    """`>&-` closes stdout: a file that is opened later must not get its number."""
    out = tmp_path / "out.tflite"
    plan = f"plan {KWS} {out} --search none --no-verify --force"
    for words, code in (
        (f"arena {KWS} >&-", 0),
        (f"{plan} >&- 2>&-", 0),
        (f"plan - {out} --force <&-", 5),
    ):
        program = f"{sys.executable} -c 'from tflm_planner.cli.main import main; main()' {words}"
        done = subprocess.run(["sh", "-c", program], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr and "internal" not in done.stderr
    assert read_model(out.read_bytes()).main.outputs


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_one_line() -> None:
    program = f"{sys.executable} -c 'from tflm_planner.cli.main import main; main()' arena {KWS}"
    done = subprocess.run(
        ["sh", "-c", f"{program} >/dev/full"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("tflm-plan: error: the system refused")
    assert len(done.stderr.splitlines()) == 1
