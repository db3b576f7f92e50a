"""Calls the real command and says what is wrong with how it ended."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

EXPECTED_CODES = {0, 3, 4, 5}
COMMAND = [sys.executable, "-c", "from tflm_planner.cli.app import main; main()"]


def call(
    arguments: list[str],
    *,
    timeout: float = 120.0,
    before: Callable[[], None] | None = None,
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run `tflm-plan` with arguments; `before` runs in the child first."""
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=timeout,
        preexec_fn=before,
        env=environment,
        check=False,
    )


def check_call(
    arguments: list[str], out: Path | None = None, *, json_wanted: bool = False
) -> str | None:
    """None if the command ended as it may on any file; else what is wrong."""
    try:
        done = call(arguments)
    except subprocess.TimeoutExpired:
        return "hung"
    if done.returncode not in EXPECTED_CODES:
        return f"exit code {done.returncode}: {done.stderr[-300:]!r}"
    if "Traceback" in done.stderr or "Traceback" in done.stdout:
        return f"traceback: {done.stderr[-300:]!r}"
    if done.returncode in (4, 5):
        lines = done.stderr.strip().splitlines()
        if len(lines) != 1 or not lines[0].startswith("tflm-plan: error: "):
            return f"not one line of error: {done.stderr[-300:]!r}"
        if out is not None and out.exists():
            return "an output was written in spite of the error"
    elif out is not None and not out.exists():
        return "no output was written"
    if json_wanted and done.returncode == 0:
        json.loads(done.stdout)
    return None
