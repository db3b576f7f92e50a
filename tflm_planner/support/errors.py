"""Every way the tool can refuse, each with its process exit code.

A message says what, where, why, and what to try. A plan over the budget is no error: its file is
written, and the command line ends with exit code 3.
"""

from __future__ import annotations


class PlannerError(Exception):
    """Base of all expected failures. Anything else that escapes is an internal error."""

    exit_code = 1


class UnsoundPlanError(PlannerError):
    """A guard found that our own plan would corrupt memory: a bug of this tool. Nothing was
    written."""

    exit_code = 1


class UsageError(PlannerError):
    """The call is wrong: a bad option, a missing or unwritable path."""

    exit_code = 2


class OutputsDifferError(PlannerError):
    """The rewritten model computes something else. Nothing was written."""

    exit_code = 4


class WrongPlanError(PlannerError):
    """The plan that a model carries would make TFLM refuse it, or compute something else."""

    exit_code = 4


class ModelError(PlannerError):
    """The model is damaged, or holds something that this tool must not touch."""

    exit_code = 5


class DeviceError(PlannerError):
    """A board cannot be found, does not answer, answers wrongly, or refuses."""

    exit_code = 6
