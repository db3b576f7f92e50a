"""Where a model's tensors and scratch lie: by its plan, else where TFLM's planner puts them."""

from __future__ import annotations

from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.model.reachability import entry_graphs
from tflm_planner.ops.terms.values import InexpressibleError
from tflm_planner.tflm.liveness import planned_bytes, timeline_of
from tflm_planner.tflm.placement import (
    Placement,
    placed_variables,
    placement_of,
    variables_without_memory,
)
from tflm_planner.tflm.target_kernels import TargetKernels
from tflm_planner.transforms.attach_plan import carried_plan
from tflm_planner.verification.terms.allowance import check_cells
from tflm_planner.verification.terms.hazards import Hazards


class ArenaLayout:
    """The byte ranges of everything in the head of an arena. head: its size in bytes. scratch: the
    byte ranges of each operator's scratch buffers. hazards: the bytes that operators overwrite
    before they have read them."""

    def __init__(self, placement: Placement, kernels: TargetKernels, file_size: int) -> None:
        """Raises InexpressibleError for a placement below the arena. file_size: it limits how large
        the arena may be (`check_size`)."""
        timeline = placement.timeline
        if min(placement.offsets, default=0) < 0:
            raise InexpressibleError("the plan places a tensor below the arena")
        self._parts = {
            tensor: slice(at, at + planned_bytes(tensor))
            for tensor, at in zip(timeline.planned, placement.offsets, strict=False)
        }
        self.head = max(placement.head, 0)
        self.scratch: dict[Op, list[slice]] = {}
        for scratch, at in zip(timeline.scratch, placement.scratch_offsets, strict=True):
            self.scratch.setdefault(scratch.op, []).append(slice(at, at + scratch.size))
        self.hazards = Hazards(self._parts, kernels)
        self._file_size = file_size

    def part(self, tensor: Tensor) -> slice | None:
        """The byte range of a tensor; None if the tensor has no place in the arena."""
        return self._parts.get(tensor)

    def check_size(self) -> None:
        """Raise InexpressibleError if the arena is too large for the size of the file."""
        check_cells(self.head, self._file_size)


def layout_of(model: Model, kernels: TargetKernels) -> ArenaLayout:
    """The layout by the plan that a model carries. Raises InexpressibleError for a plan that places
    variables, or leaves one without memory, or places a tensor below the arena."""
    offsets = carried_plan(model) or {}
    if placed_variables(offsets):
        raise InexpressibleError("the plan places variables, which keep what they hold")
    for lost in variables_without_memory(model, offsets):
        raise InexpressibleError(lost)
    timeline = timeline_of(model, kernels.scratch_of, entries=entry_graphs(model))
    return ArenaLayout(placement_of(timeline, offsets), kernels, model.file_size)
