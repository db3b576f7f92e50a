"""The entry point of `tflm-plan`.

    tflm-plan arena IN [--target T] [--json]  --> answered here, at once
    everything else, and whatever goes wrong  --> `app`, the whole command line

typer parses the command line, but its import (with pydantic, about 0.15 s of processor time) takes
longer than the computation of an arena. Scripts call `arena` for every model, so its plainest form
is parsed here. Any other command line, and any error, is left to `app`, which reports the error. A
test checks that both print the same.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from tflm_planner.cli.streams import escape_unencodable, open_closed_streams
from tflm_planner.support import defaults

_TARGET = ("--target", "-t")


def main() -> None:
    """Run the command line of this process. What is left at its end is not searched for cycles,
    which took up to 0.9 s."""
    atexit.register(gc.freeze)
    open_closed_streams()
    escape_unencodable()
    try:
        text = plain_arena(sys.argv[1:])
        if text is None or not _try_print(text):
            from tflm_planner.cli import app  # may take seconds on a busy machine

            app.main()
    except KeyboardInterrupt:
        sys.stderr.write("tflm-plan: error: interrupted; nothing was written\n")
        raise SystemExit(130) from None


def plain_arena(words: Sequence[str]) -> str | None:
    """What `arena` prints for these arguments. None if they are not its plainest form, or if
    anything fails."""
    if len(words) < 2 or words[0] != "arena":
        return None
    names: list[str] = []
    target, as_json = defaults.TARGET, False
    rest = iter(words[1:])
    for word in rest:
        if word in _TARGET:
            target = next(rest, "")
        elif word == "--json":
            as_json = True
        elif word.startswith("-"):
            return None
        else:
            names.append(word)
    if len(names) != 1 or not target or target.startswith("-"):
        return None
    try:
        return _arena(Path(names[0]), target, as_json=as_json)
    except Exception:  # the whole command line says what is wrong
        return None


def _arena(source: Path, target_id: str, *, as_json: bool) -> str:
    from tflm_planner.pipeline.inspection import arenas
    from tflm_planner.tflm.targets import load_target

    target = load_target(target_id)
    arena = arenas.arena(source, target)
    if not as_json:
        from tflm_planner.report.text.arena import render_arena

        return render_arena(source.name, arena, target)
    import json

    from tflm_planner.report.json.document import arena_to_json

    values = arena_to_json(arena, target, arenas.split_arena(source, target))
    return json.dumps(values, indent=2, allow_nan=False) + "\n"


def _try_print(text: str) -> bool:
    """Print to stdout. Return False if the system refuses, which the whole command line then
    reports. If the reader has closed the pipe, exit with code 1 without a traceback."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except OSError:
        return False
    return True
