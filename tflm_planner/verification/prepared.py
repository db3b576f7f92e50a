"""The original that everything made of a file is compared with.

That is the file itself, but for what LiteRT has to be asked before anything can be planned, as TFLM
would refuse the file or read garbage: the shapes of a free batch (`declare`), and tables in place
of operators that it lacks (`tabulate`). Either is compared with the file on LiteRT before it is
taken.
"""

from __future__ import annotations

from tflm_planner.support.progress import Progress, silent
from tflm_planner.verification.declare import declared_anew
from tflm_planner.verification.tabulate import tabulated


def prepared(data: bytes, on_progress: Progress = silent) -> tuple[bytes, list[str]]:
    """The original of the file in `data`, and notes on what was done; the same bytes if there was
    nothing to do."""
    declared, note = declared_anew(data, on_progress)
    original, notes = tabulated(declared, on_progress)
    return original, [*filter(None, (note,)), *notes]
