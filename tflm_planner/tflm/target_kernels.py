"""A target as planning uses it: what its kernels request, and which overlaps they permit."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from tflm_planner.model.ir import Op, Tensor
from tflm_planner.tflm.kernels import KernelBuild, library_of
from tflm_planner.tflm.kernels.contracts import OVERLAPPING, InputOverlap, input_overlap_contract
from tflm_planner.tflm.kernels.forms import operator_form
from tflm_planner.tflm.kernels.libraries.reference import REFERENCE
from tflm_planner.tflm.kernels.scratch import ScratchModel, scratch_model
from tflm_planner.tflm.targets import DEFAULT_TARGET, HOST_RUNTIME, Target, load_target


class FormOverlap(NamedTuple):
    """An input overlap of every operator of one form. operand, result: index of the input and of
    the output. low, high: as in `InputOverlap`."""

    operand: int
    result: int
    low: int
    high: int


@dataclass(frozen=True)
class TargetKernels:
    """A target and the builds of the kernels that may run on it."""

    target: Target
    builds: tuple[KernelBuild, ...]

    @property
    def scratch_of(self) -> ScratchModel:
        """Bytes of each scratch request of the target's kernels."""
        return scratch_model(self.target)

    def part_scratch_of(self, op: Op, axis: int, size: int) -> tuple[int, ...] | None:
        """`scratch_of` for a part of an operator with `size` elements of its result along an axis;
        None if it is the same as for the whole."""
        return library_of(self.target).part_scratch(op, self.target, axis, size)

    def input_overlaps_of(self, op: Op) -> Iterable[InputOverlap]:
        """Results that may overlap operands: what the target's kernels permit beyond aliases.

        The reference kernels must permit it too, because they run on this machine: every plan can
        then be run here, not only replayed.
        """
        if op.kind not in OVERLAPPING:
            return
        for operand, result, low, high in _contract_memo(self.builds).overlaps_of(op):
            data = op.inputs[operand]
            assert data is not None
            yield InputOverlap(data, op.outputs[result], low, high)


class _ContractMemo:
    """A cache of what some builds and the reference kernels permit.

    Contracts are needed many times, and for many operators of the same form (`kernels.forms`).
    """

    def __init__(self, builds: tuple[KernelBuild, ...]) -> None:
        self._builds = tuple(dict.fromkeys((*builds, REFERENCE)))
        self._by_form: dict[Hashable, list[FormOverlap]] = {}

    def overlaps_of(self, op: Op) -> list[FormOverlap]:
        """The overlaps that all of them permit for an operator."""
        form = operator_form(op)
        overlaps = self._by_form.get(form)
        if overlaps is None:
            overlaps = self._by_form[form] = [
                FormOverlap(
                    _place(op.inputs, o.operand), _place(op.outputs, o.result), o.low, o.high
                )
                for o in input_overlap_contract(op, *self._builds)
            ]
        return overlaps


@lru_cache(maxsize=8)
def _contract_memo(builds: tuple[KernelBuild, ...]) -> _ContractMemo:
    """One cache per set of builds for all plans; only a few are kept."""
    return _ContractMemo(builds)


def _place(tensors: Sequence[Tensor | None], tensor: Tensor) -> int:
    return next(i for i, t in enumerate(tensors) if t is tensor)


def runners(target: Target) -> tuple[Target, ...]:
    """The targets on which a file made for `target` must run: the target itself, and TFLM on this
    machine, on which the file is proved."""
    return tuple(dict.fromkeys((target, load_target(HOST_RUNTIME))))


def kernels_of(target: Target | None = None) -> TargetKernels:
    """The kernels of a target; of the default target if none is given."""
    target = target or load_target(DEFAULT_TARGET)
    return TargetKernels(target, library_of(target).builds(target))
