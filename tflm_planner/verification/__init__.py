"""Proves a rewritten model equal to the original on the real runtimes.

The names below are imported on first access (PEP 562), because checking a plan (`planned`) needs
neither a runtime nor numpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tflm_planner.verification.compare import VerifyOptions, verify
    from tflm_planner.verification.equality import Equality, judge_equality
    from tflm_planner.verification.runnable import (
        any_installed,
        installed_versions,
        why_unable,
        why_untried,
    )
    from tflm_planner.verification.tolerance import Tolerance
    from tflm_planner.verification.verdict import HostAllocation, RuntimeCheck, Verdict

__all__ = [
    "Equality",
    "HostAllocation",
    "RuntimeCheck",
    "Tolerance",
    "Verdict",
    "VerifyOptions",
    "any_installed",
    "installed_versions",
    "judge_equality",
    "verify",
    "why_unable",
    "why_untried",
]

_HOMES = {
    "VerifyOptions": "compare",
    "Equality": "equality",
    "Tolerance": "tolerance",
    "any_installed": "runnable",
    "installed_versions": "runnable",
    "judge_equality": "equality",
    "verify": "compare",
    "why_unable": "runnable",
    "why_untried": "runnable",
}
"""The modules of the names that are not in `verdict`."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'verdict')}"), name)
    globals()[name] = value
    return value
