"""A target as planning sees it: what its kernels request, and what they may overlap."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tflm_planner.ir import Op
from tflm_planner.tflm.contracts import STUDIED, Library, Trail, contract
from tflm_planner.tflm.scratch import ScratchModel, scratch_model
from tflm_planner.tflm.targets import DEFAULT_TARGET, Target, load_target

WHEEL = "x86-64/wheel"
"""The target that the Python wheel is: what runs on this machine."""


@dataclass(frozen=True)
class Machine:
    """scratch_of: bytes of each scratch request. trails_of: results that may trail operands."""

    target: Target
    libraries: tuple[Library, ...]

    @property
    def scratch_of(self) -> ScratchModel:
        """Scratch of the target's kernels."""
        return scratch_model(self.target)

    def trails_of(self, op: Op) -> Iterable[Trail]:
        """What the target's kernels allow beyond aliases.

        The reference kernels, which run on this machine, must allow it too: so that every plan
        can be run here, and not only replayed.
        """
        return contract(op, *self.libraries, Library.REFERENCE)


def machine(target: Target | None = None) -> Machine:
    """The machine of a target; of the default one if none is given."""
    target = target or load_target(DEFAULT_TARGET)
    return Machine(target, libraries_of(target))


def libraries_of(target: Target) -> tuple[Library, ...]:
    """The builds of kernel libraries whose contracts a plan for the target must keep."""
    if target.kernels == "reference":
        return (Library.REFERENCE,)
    if target.kernels == "any":
        return STUDIED
    if target.kernels != "cmsis-nn":
        return (Library.UNKNOWN,)
    if target.version == "arduino-2023":
        return (Library.CMSIS_NN_2022,)
    build = {"dsp": Library.CMSIS_NN, "mve": Library.CMSIS_NN_MVE}
    return (build.get(target.extension, Library.CMSIS_NN_PLAIN),)
