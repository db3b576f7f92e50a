"""Child processes that Ctrl-C does not reach: a terminal tells every process of the foreground, and
the parent alone is to decide what becomes of its children."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import IO


def start_module(arguments: list[str], errors: int | IO[bytes]) -> subprocess.Popen[bytes]:
    """`python -m ARGUMENTS`, with pipes to its input and from its output. errors: where what it
    prints goes."""
    command, pipe = [sys.executable, "-m", *arguments], subprocess.PIPE
    if os.name == "posix":
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors, process_group=0)
    apart: int = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors, creationflags=apart)
