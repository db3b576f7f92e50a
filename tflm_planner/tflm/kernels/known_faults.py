"""Operators that a target's kernels compute wrongly, planned or not.

Runtimes on this machine have other kernels, so no comparison here can show it: such a model is
right on the host and wrong on the board. Each library says what it computes wrongly
(`KernelLibrary.fault_of`). This module must not know plans.
"""

from __future__ import annotations

from collections.abc import Iterable

from tflm_planner.model.ir import Op
from tflm_planner.tflm.kernels import library_of
from tflm_planner.tflm.target import Target


def known_faults(ops: Iterable[Op], target: Target) -> list[str]:
    """What `target` computes wrongly, why, and what to do: each reason once, with the first
    operator that has it."""
    library = library_of(target)
    labels_by_reason: dict[str, list[str]] = {}
    for op in ops:
        if (reason := library.fault_of(op, target)) is not None:
            labels_by_reason.setdefault(reason, []).append(op.label)
    return [
        f"{labels[0]}{f' and {len(labels) - 1} more' if labels[1:] else ''}: {reason}"
        for reason, labels in labels_by_reason.items()
    ]


def faults_of(ops: Iterable[Op], target: Target) -> frozenset[str]:
    """Only the reasons, without operators."""
    library = library_of(target)
    return frozenset(r for op in ops if (r := library.fault_of(op, target)) is not None)
