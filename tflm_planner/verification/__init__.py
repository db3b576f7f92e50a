"""Proves a rewritten model equal to the original on the real runtimes."""

from tflm_planner.verification.compare import Options, verify
from tflm_planner.verification.runnable import any_installed, why_unable
from tflm_planner.verification.tolerance import Tolerance
from tflm_planner.verification.verdict import HostAllocation, RuntimeCheck, Verdict

__all__ = [
    "HostAllocation",
    "Options",
    "RuntimeCheck",
    "Tolerance",
    "Verdict",
    "any_installed",
    "verify",
    "why_unable",
]
