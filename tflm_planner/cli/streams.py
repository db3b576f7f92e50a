"""Sets up the standard streams of this process. It must not know what is printed."""

from __future__ import annotations

import io
import os
import sys


def open_closed_streams() -> None:
    """Open the null device in place of standard streams that were closed, as by `>&-`. A file that
    is opened later would have their numbers, and whatever a child prints would go into it."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8"))


def escape_unencodable() -> None:
    """Make stdout and stderr print characters that their encoding lacks as backslash escapes: names
    of files may have any, and the code pages of Windows have few."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
