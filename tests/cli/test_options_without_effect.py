"""Options that would do nothing are refused, and say why; so are verbs that are misspelt."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import Run
from tests.models.small import narrow_rows
from tflm_planner.cli.app import app
from tflm_planner.support.errors import UsageError
from tflm_planner.support.units import parse_size

PLAIN, BY_HAND = ["--search", "none"], ["--split", "0-1:rows=2"]
IDLE = [
    ("plan", [*PLAIN, "--ops", "PAD"], "--search none"),
    ("plan", [*PLAIN, "--firmware", "more-ops"], "--search none"),
    ("plan", [*PLAIN, "--max-slowdown", "1.1"], "--search none"),  # the value that it has anyway
    ("plan", [*PLAIN, "--objective", "head"], "--search"),
    ("plan", ["--search", "spellings", "--workers", "1"], "--search"),
    ("plan", [*PLAIN, "--profile", "none.db"], "--search none"),
    ("plan", [*PLAIN, "--portable"], "--search none"),
    ("plan", ["--firmware", "more-ops", "--ops", "PAD"], "allows all"),
    ("plan", ["--firmware", "as-is", "--ops", "PAD"], "allows none"),
    ("plan", ["--allow-inexact"], "--split"),
    ("plan", ["--inputs", "3", "--no-verify"], "--no-verify"),
    ("plan", [*BY_HAND, "--search", "motes"], "--split"),
    ("plan", [*BY_HAND, "--max-slowdown", "1.2"], "by hand"),
    ("stream-input", [*PLAIN, "--ops", "PAD"], "--search none"),
    ("stream-input", [*PLAIN, "--portable"], "--search none"),
    ("stream-input", [*PLAIN, "--workers", "1"], "--search none"),
    ("stream-input", [*PLAIN, "--firmware", "more-ops"], "--search none"),
    ("stream-input", ["--firmware", "more-ops", "--ops", "PAD"], "allows all"),
    ("stream-input", ["--firmware", "as-is", "--ops", "PAD"], "allows none"),
    ("stream-input", ["--inputs", "3", "--no-verify"], "--no-verify"),
    ("inspect", ["--text", "--target", "esp32s3"], "everywhere"),
    ("inspect", ["--axes", "--target", "esp32s3"], "everywhere"),
    ("measure", ["--volts", "3"], "--current"),
]
CONTRARY = [
    ("plan", ["--quiet", "--json"]),
    ("plan", ["-q", "-v"]),
    ("stream-input", ["--quiet", "--json"]),
    ("inspect", ["--text", "--axes"]),
    ("inspect", ["--text", "--json"]),
    ("measure", ["--power", "3", "--current", "x.csv"]),
    ("verify", ["-q", "--json"]),
]
WRONG = [
    (["--ops", "SLICES"], "did you mean SLICE"),
    (["--ops", "all"], "--firmware more-ops"),
    (["--ops", "all,PAD"], "no operator ALL"),
    (["--ops", ","], "names no operator"),
    (["--budget", "0"], "no memory"),
    (["--budget", "1.5"], "no memory"),
    (["--budget", "9" * 400 + "K"], "no memory"),
    (["--budget", "plenty"], "not understood"),
    (["--max-slowdown", "0.9"], "below 1"),
    (["--max-slowdown", "nan"], "below 1"),
    (["--max-slowdown", "inf"], "as good as no limit"),
    (["--max-slowdown", "1e300"], "as good as no limit"),
    (["--report", "a.pdf"], ".html"),
    (["--report", "a.json", "--report", "a.json"], "named twice"),
]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "in.tflite"
    path.write_bytes(narrow_rows())
    return path


def refused(verb: str, options: list[str], model: Path, capsys) -> str:
    out, back = model.parent / "out", model.parent / "back"
    paths = {"plan": [model, out], "stream-input": [model, out, back], "verify": [model, model]}
    line = Run([verb, *paths.get(verb, [model]), *options], capsys).refused(2)
    assert {p.name for p in model.parent.iterdir()} == {"in.tflite"}
    return line


@pytest.mark.parametrize(("verb", "options", "hint"), IDLE)
def test_an_option_that_does_nothing(verb, options, hint, model: Path, capsys) -> None:
    line = refused(verb, options, model, capsys)
    assert "does nothing here" in line and hint in line


@pytest.mark.parametrize(("verb", "options"), CONTRARY)
def test_options_that_contradict_each_other(verb, options, model: Path, capsys) -> None:
    assert "contradict" in refused(verb, options, model, capsys)


@pytest.mark.parametrize("slowdown", ["inf", "1e300"])
def test_a_slowdown_that_cannot_be_counted(slowdown, model: Path, capsys) -> None:
    line = refused("stream-input", ["--max-slowdown", slowdown], model, capsys)
    assert "as good as no limit" in line


@pytest.mark.slow
def test_the_largest_slowdown_is_taken(model: Path, capsys) -> None:
    done = Run([model, model.parent / "out", "--max-slowdown", "1000", "--no-verify"], capsys)
    assert done.code == 0, done.err


@pytest.mark.parametrize(("options", "hint"), WRONG)
def test_values_that_nobody_knows(options, hint, model: Path, capsys) -> None:
    assert hint in refused("plan", options, model, capsys)


def test_profile_without_models(tmp_path: Path, capsys) -> None:
    merge = ["--merge", tmp_path / "x.db", "--db", tmp_path / "y.db"]
    for option in (["--runs", "3"], ["--tiles"], ["--again"], ["--time-limit", "3"]):
        assert "does nothing here" in Run(["profile", *merge, *option], capsys).refused(2)


@pytest.mark.parametrize(
    ("word", "hint"),
    [("inpect", "did you mean inspect?"), ("Plan", "did you mean plan?"), ("frobnicate", "known")],
)
def test_a_misspelt_verb_is_not_taken_for_a_file(word, hint, model: Path, capsys) -> None:
    line = Run([word, model], capsys).refused(2)
    assert f"no verb {word!r}" in line and hint in line


def test_a_folder_without_a_name_is_refused(capsys) -> None:
    assert "is a directory" in Run([".", "--search", "none"], capsys).refused(2)


def test_a_verb_after_the_model_is_no_name_of_a_file(model: Path, capsys) -> None:
    line = Run([model, "arena", "--json"], capsys).refused(2)
    assert f"the verb comes first: tflm-plan arena {model} --json" in line


def test_a_file_may_be_called_like_a_verb_almost(model: Path, capsys) -> None:
    """What is there is taken, whatever it is called; what looks like a file is not corrected."""
    (model.parent / "inpect").write_bytes(model.read_bytes())
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(model.parent)
        assert Run(["inpect", "out.tflite", "--no-verify", *PLAIN], capsys).code == 0
    assert "no such file" in Run(["inspect.tflite", "out"], capsys).refused(2)
    assert "no such file" in Run(["below/inspec", "out"], capsys).refused(2)


@pytest.mark.long
def test_what_does_something_is_taken(model: Path, capsys) -> None:
    fine = [
        ["--ops", "+pad,SLICE", "--max-slowdown", "1.2", "--workers", "1"],
        [*PLAIN, "--strip", "--portable"],
        [*PLAIN, "--budget", "0.3M"],
        [*PLAIN, "--verbose", "--json"],
    ]
    for options in fine:
        done = Run([model, model.parent / "out", "--force", "--no-verify", *options], capsys)
        assert done.code == 0, done.err


def test_every_command_remembers_what_was_given() -> None:
    """Else its rules would be idle themselves."""
    from tflm_planner.cli.without_effect import RecordingCommand

    assert all(command.cls is RecordingCommand for command in app.registered_commands)


def test_sizes() -> None:
    assert parse_size("1.5K") == 1536
    assert parse_size("0.3M") == 314572
    for text in ("0", "0.0K", "1.5", "1e9", "-1", ""):
        with pytest.raises(UsageError):
            parse_size(text)


def test_numbers_come_back_as_they_were_typed(model: Path, capsys) -> None:
    """In the commands of the ladder: 240 seconds, not 240.0."""
    done = Run([model, "--time-limit", "240", "--search", "none", "--no-verify"], capsys)
    assert "--time-limit 240 " in done.out and "240.0" not in done.out
