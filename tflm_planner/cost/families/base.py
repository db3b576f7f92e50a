"""A family of kernels: which loops run for an operator, as counts of their bodies.

    Case -- KernelFamily.work_of --> Work (path, counts) -- constants of a profile --> instructions

A family lists the kinds of operators that its kernels serve; what it leaves out, or refuses case
by case, the kernels of the family that it is based on compute. This module must not know targets,
nor any family.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tflm_planner.cost.case import Case
from tflm_planner.cost.kinds import Work
from tflm_planner.cost.moves import other

Loops = Callable[[Case], Work | None]
"""What a kernel does for a case; None where it leaves it to another one."""


@dataclass(frozen=True, eq=False)
class KernelFamily:
    """The kernels of a library on one kind of core. name: what tables of constants call it.
    loops: by kind of operator. base: the family that runs for all else."""

    name: str
    loops: Mapping[str, Loops]
    base: KernelFamily | None = None

    def work_of(self, case: Case) -> Work:
        """What the kernels do for a case."""
        loops = self.loops.get(case.kind)
        work = None if loops is None else loops(case)
        if work is not None:
            return work
        return other(case) if self.base is None else self.base.work_of(case)
