"""Writes the plan into the model, as TFLM's `OfflineMemoryAllocation` metadata.

    int32: [version 1][sub-graphs][n][offset of tensor 0]...[offset of tensor n-1]

There is one offset for every tensor of every sub-graph, in file order; -1 leaves a tensor to TFLM's
planner (TFLM ignores the entries of constants and variables). This must be the last structural
change: a tensor added or dropped later would shift the list. Source: tflite-micro,
micro_allocation_info.cc.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tflm_planner.model.edit import add_metadata, remove_metadata
from tflm_planner.model.ir import Model, Tensor
from tflm_planner.support.deferred import defer
from tflm_planner.support.errors import ModelError
from tflm_planner.tflm.greedy import ONLINE
from tflm_planner.tflm.placement import variables_without_memory

if TYPE_CHECKING:
    import numpy as np
else:
    np = defer("numpy")

PLAN_METADATA = "OfflineMemoryAllocation"
_VERSION = 1
_COUNT_AT = 2
_LARGEST = (1 << 31) - 1


@dataclass(frozen=True)
class AttachPlan:
    """Attaches offsets (tensor -> bytes from the start of the head). Tensors are listed otherwise
    where TFLM would take a variable for planned (`variables_without_memory`)."""

    offsets: Mapping[Tensor, int]

    def apply(self, model: Model) -> list[str]:
        """Replace any plan that the model has. Raises ModelError if a variable would get no
        memory however tensors are listed."""
        if any(offset > _LARGEST for offset in self.offsets.values()):
            raise ModelError(
                "the plan needs offsets beyond 2 GiB, which TFLM's format cannot hold; "
                "this model is not meant for a microcontroller"
            )
        if any(variables_without_memory(model, self.offsets)):
            _list_variables_first(model, self.offsets)
        values = [self.offsets.get(t, ONLINE) for t in model.tensors()]
        words = [_VERSION, len(model.graphs), len(values), *values]
        remove_metadata(model, PLAN_METADATA)
        add_metadata(model, PLAN_METADATA, np.array(words, "<i4").view(np.uint8))
        return []


def _list_variables_first(model: Model, offsets: Mapping[Tensor, int]) -> None:
    """List tensors so that the variables of sub-graphs are found at entries of the first one that
    the plan leaves out: those first there, variables first elsewhere."""
    first, *others = model.graphs
    first.tensors.sort(key=lambda t: t in offsets)
    for graph in others:
        graph.tensors.sort(key=lambda t: not t.is_variable)
    for lost in variables_without_memory(model, offsets):
        raise ModelError(
            f"{lost}; the first sub-graph has fewer constants than another one has variables. "
            "Without a plan the model runs as it is; to plan it, convert it so that its state lies "
            "in the first sub-graph"
        )


@dataclass(frozen=True, slots=True)
class PlanEntry:
    """A plan as stored in a file. count: the number of offsets that its header declares; None
    without a header. offsets: those that are actually stored."""

    count: int | None
    offsets: tuple[int, ...]

    def fits(self, tensors: int) -> bool:
        """Whether it has an offset for each of `tensors` tensors. TFLM refuses all other plans."""
        return self.count == tensors <= len(self.offsets)


def plan_entries(model: Model) -> list[PlanEntry]:
    """Every plan in the file, in file order. TFLM checks all of them and uses the last."""
    entries: list[PlanEntry] = []
    for metadata in model.metadata:
        if metadata.name == PLAN_METADATA:
            data = metadata.buffer.data
            raw = b"" if data is None else data.tobytes()
            words = struct.unpack(f"<{len(raw) // 4}i", raw[: len(raw) // 4 * 4])
            count = words[_COUNT_AT] if len(words) > _COUNT_AT else None
            entries.append(PlanEntry(count, words[_COUNT_AT + 1 :]))
    return entries


def carried_plan(model: Model) -> dict[Tensor, int] | None:
    """The offsets in the model's plan (tensor -> bytes), without entries left to TFLM. None if
    there is no plan, or if it does not fit the model's tensors."""
    entries, tensors = plan_entries(model), list(model.tensors())
    if not entries or not entries[-1].fits(len(tensors)):
        return None
    offsets = zip(tensors, entries[-1].offsets, strict=False)
    return {t: o for t, o in offsets if o != ONLINE}
