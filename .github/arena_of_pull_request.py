"""The arena of every model that a pull request adds or changes; what `action.yml` runs.

    | model        | before  | now     | change | verdict |
    |--------------|--------:|--------:|-------:|---------|
    | a/vww.tflite | 100,712 | 104,200 | +3,488 | fits    |

Reads git and runs `tflm-plan check` and `compare`. Settings are environment variables, so that no
name of a file or branch ever becomes part of a shell command. Exit code 0: all fit; 3: one does
not, or is not known to; 5: one cannot be read or run; 2: a setting is wrong, or the tool failed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FAILS = {"fits": 0, "not known to fit": 3, "does not fit": 3, "not read": 5, "cannot run": 5}
"""Exit codes by what `tflm-plan check --json` says of a model."""


@dataclass(frozen=True)
class Settings:
    """What the action was asked for."""

    target: str
    base: str
    max_arena: str = ""
    boards: str = ""
    allow_at_least: bool = False

    @staticmethod
    def from_environment() -> Settings:
        """The settings that `action.yml` hands over."""
        found = os.environ.get
        return Settings(
            found("ARENA_TARGET", ""),
            found("ARENA_BASE", ""),
            found("ARENA_MAX", ""),
            found("ARENA_BOARDS", ""),
            found("ARENA_ALLOW_AT_LEAST", "false") == "true",
        )


@dataclass(frozen=True)
class Change:
    """A model that was changed: where it is, and where it was (None: it is new)."""

    path: str
    former: str | None


@dataclass(frozen=True)
class Row:
    """A model, what it needed and what it needs; None where that is not known."""

    path: str
    before: int | None
    checked: dict[str, Any]


def _git(*words: str) -> bytes:
    return subprocess.run(["git", *words], check=True, capture_output=True).stdout


def _tflm_plan(*words: str) -> tuple[int, str]:
    start = "from tflm_planner.cli.app import main; main()"
    command = [sys.executable, "-c", start, *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode in (1, 2):
        print(done.stderr.strip() or f"{' '.join(words)} failed", file=sys.stderr)
        raise SystemExit(2)
    return done.returncode, done.stdout


def changes(base: str) -> list[Change]:
    """The models that differ between the common ancestor of `base` and the commit under test."""
    shown = _git("diff", "--name-status", "-z", "-M", "--diff-filter=AMR", f"{base}...HEAD")
    fields = iter(shown.decode().split("\0"))
    found: list[Change] = []
    for status in fields:
        if status.startswith("R"):
            former, path = next(fields), next(fields)
            found.append(Change(path, former))
        elif status:
            path = next(fields)
            found.append(Change(path, None if status == "A" else path))
    return [change for change in found if change.path.endswith(".tflite")]


def _check(paths: list[Path], settings: Settings) -> list[dict[str, Any]]:
    """What `tflm-plan check` says of files, in their order."""
    if not paths:
        return []
    limit = ["--max-arena", settings.max_arena] if settings.max_arena else []
    words = ["check", "--json", "--target", settings.target, *limit, "--", *map(str, paths)]
    return json.loads(_tflm_plan(*words)[1])["models"]


def _former_arenas(found: list[Change], settings: Settings) -> dict[str, int | None]:
    """The arenas of what the models were, by path now; None where one could not be read."""
    ancestor = _git("merge-base", settings.base, "HEAD").decode().strip()
    changed = [change for change in found if change.former is not None]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.tflite" for number in range(len(changed))]
        for path, change in zip(paths, changed, strict=True):
            path.write_bytes(_git("show", f"{ancestor}:{change.former}"))
        checked = _check(paths, settings)
    return {change.path: one["arena"] for change, one in zip(changed, checked, strict=True)}


def rows(settings: Settings) -> list[Row]:
    """What the changed models need now, and needed before."""
    found = changes(settings.base)
    before = _former_arenas(found, settings)
    now = _check([Path(change.path) for change in found], settings)
    return [
        Row(change.path, before.get(change.path), one)
        for change, one in zip(found, now, strict=True)
    ]


def exit_code(found: list[Row], settings: Settings) -> int:
    """The worst of what is said of the models."""
    codes = [_FAILS[row.checked["verdict"]] for row in found]
    if settings.allow_at_least:
        passes = (
            row.checked["verdict"] == "not known to fit" and (row.checked["margin"] or 0) >= 0
            for row in found
        )
        codes = [code for code, passed in zip(codes, passes, strict=True) if not passed]
    return max(codes, default=0)


def _bytes(count: int | None, sign: str = "") -> str:
    return "" if count is None else f"{count:{sign},}"


def _in_table(text: str) -> str:
    """Text that neither ends a cell nor a line of a table, nor is markup."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;")
    return "".join(c if c.isprintable() else "?" for c in escaped)


def markdown(found: list[Row], settings: Settings) -> str:
    """The table for the summary of the job."""
    lines = [f"### Arena on {_in_table(settings.target)}, in bytes", ""]
    if not found:
        return "\n".join([*lines, "No model was added or changed.", ""])
    lines += ["| model | before | now | change | verdict |", "|---|--:|--:|--:|---|"]
    for row in found:
        now, before = row.checked["arena"], row.before
        change = None if now is None or before is None else now - before
        verdict = row.checked["verdict"]
        why = row.checked.get("reason")
        verdict = f"{verdict}: {why}" if why else verdict
        cells = [row.path, _bytes(before), _bytes(now), _bytes(change, "+"), verdict]
        lines.append(f"| {' | '.join(map(_in_table, cells))} |")
    return "\n".join([*lines, ""])


def comparison(found: list[Row], settings: Settings) -> str:
    """What the models need on other boards, as `tflm-plan compare` prints it."""
    if not settings.boards:
        return ""
    parts: list[str] = []
    for row in found:
        if row.checked["arena"] is not None:
            code, text = _tflm_plan("compare", "--boards", settings.boards, "--", row.path)
            if code == 0:
                parts.append(f"```\n{text}```\n")
    return "\n".join(parts)


def main() -> int:
    """Print the table, append it to the summary of the job, and say whether all fit."""
    settings = Settings.from_environment()
    if not (settings.target and settings.base):
        print(
            "arena_of_pull_request: set `target`, and `base` where this is no pull request",
            file=sys.stderr,
        )
        return 2
    found = rows(settings)
    text = markdown(found, settings) + comparison(found, settings)
    print(text)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(text)
    return exit_code(found, settings)


if __name__ == "__main__":
    sys.exit(main())
