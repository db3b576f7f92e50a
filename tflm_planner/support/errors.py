"""All errors with which the tool refuses, each with its process exit code.

A message says what is wrong, where, why, and what to try. Two exit codes
belong to no error: 3, for a plan that exceeds the budget, whose file is written, and 130, for a
second Ctrl-C.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection


class PlannerError(Exception):
    """Base of all expected failures. Any other exception that escapes is an internal error."""

    exit_code = 1


class UnsoundPlanError(PlannerError):
    """A guard found that our own plan would corrupt memory: a bug of this tool. Nothing was
    written."""

    exit_code = 1


class ForbiddenOperatorsError(PlannerError):
    """A plan needs operators that may not be added. Nothing was written."""

    exit_code = 2


class UsageError(PlannerError):
    """The call is wrong: a bad option, a missing or unwritable path."""

    exit_code = 2


class OutputsDifferError(PlannerError):
    """The rewritten model computes other outputs. Nothing was written."""

    exit_code = 4


class WrongPlanError(PlannerError):
    """The plan in a model would make TFLM refuse the model, or compute other outputs."""

    exit_code = 4


class ModelError(PlannerError):
    """The model is damaged, or holds something that this tool must not touch."""

    exit_code = 5


class DeviceError(PlannerError):
    """A board cannot be found, does not answer, answers wrongly, or refuses."""

    exit_code = 6


def suggest(word: str, known: Collection[str], likeness: float = 0.6) -> str:
    """A hint that follows an unknown word: similar known words, or all known words. `likeness`:
    from 0 to 1, as in `difflib.get_close_matches`."""
    near = difflib.get_close_matches(word, known, n=3, cutoff=likeness)
    return f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known)}"
