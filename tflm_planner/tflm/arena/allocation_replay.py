"""Replays what AllocateTensors allocates, in its order.

Persistent memory grows downward from the arena's end, each piece aligned downward; temporary
memory grows upward from the head. Source: tensorflow/lite/micro/micro_allocator.cc and
micro_interpreter.cc, tflite-micro 90b983c. This module must not change models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.support.units import ALIGNMENT, align_up
from tflm_planner.tflm import greedy
from tflm_planner.tflm.arena.allocation_log import AllocationLog
from tflm_planner.tflm.arena.struct_sizes import StructSizes, struct_sizes
from tflm_planner.tflm.arena.uncertainty import (
    Uncertainty,
    uncertainties,
    warnings,
    wild_scratch,
)
from tflm_planner.tflm.kernels.operator_allocations import operator_allocations
from tflm_planner.tflm.kernels.prepare import (
    Keeps,
    PersistentAllocation,
    PrepareStep,
    TempBuffer,
    scale_count_of,
)
from tflm_planner.tflm.kernels.scratch import ScratchModel, scratch_model
from tflm_planner.tflm.lean.costs import lean_costs
from tflm_planner.tflm.liveness import Timeline, timeline_of
from tflm_planner.tflm.placement import (
    placed_variables,
    placement_requests,
    variables_without_memory,
)
from tflm_planner.tflm.targets import Target

PARTS = (
    "fixed", "subgraph_alloc", "nodes", "eval_tensors", "builtin_data", "op_init", "op_prepare",
    "scratch_handles", "plan", "variables", "io_tensors", "resource_vars",
)  # fmt: skip
"""Classes of persistent memory."""
_FIXED, _SUBGRAPHS, _NODES, _EVAL, _BUILTIN, _INIT, _PREPARE, _HANDLES, _, _VARIABLES, _IO, _RESOURCES = range(12)  # noqa: E501  # fmt: skip
_SPARE_REQUESTS = 12
"""Number of scratch requests for which TFLM always reserves memory (kMaxScratchBuffersPerOp)."""


@dataclass(frozen=True)
class ScratchUse:
    """One scratch buffer: the operator, the bytes requested, the offset in the head."""

    operator: str
    size: int
    offset: int


class _Fetched(NamedTuple):
    """A tensor or buffer in temporary memory: the ends, above the arena's start, of the parts that
    a kernel may still use (see prepare.Keeps), and of all of it."""

    dims: int
    struct: int
    axis: int
    top: int

    def kept_end(self, keeps: Keeps, target: Target) -> int:
        """The end of the bytes that must be kept. For older TFLM these are all, because its sources
        were not read for this."""
        if keeps == "all" or target.version != "current":
            return self.top
        return {"dims": self.dims, "struct": self.struct, "axis": self.axis}[keeps]


class AllocationReplay:
    """TFLM's allocations for one model, target and plan."""

    def __init__(
        self,
        model: Model,
        target: Target,
        offsets: Mapping[Tensor, int],
        *,
        variables_apart: bool = False,
    ) -> None:
        """variables_apart: whether the application creates the list of resource variables with a
        separate allocator, outside of the arena."""
        self._model, self._target, self._offsets = model, target, offsets
        self._variables_apart = variables_apart
        self._layout: StructSizes = struct_sizes(target)
        self._channels: dict[Tensor, int] = {}
        self._scratch: ScratchModel = scratch_model(target)
        self._ops = list(model.ops())
        self._costs = [operator_allocations(op, target) for op in self._ops]
        self._requests = [self._scratch(op) for op in self._ops]
        if target.lean:
            self._costs = lean_costs(model, target, self._costs, self._requests)
        self._by_op = dict(zip(self._ops, self._requests, strict=True))
        life_spans = timeline_of(model, lambda op: self._by_op[op])
        handles = {op.outputs[0] for op in self._ops if op.kind == "VAR_HANDLE" and op.outputs}
        # VAR_HANDLE points its output to its own OpData, so the planner never sees it.
        planned = (
            [t for t in life_spans.planned if t not in handles] if handles else life_spans.planned
        )
        self._timeline: Timeline = replace(life_spans, planned=planned)

    # --- what must be reported with the figures --------------------------------------------

    def uncertainties(self) -> tuple[Uncertainty, ...]:
        """The reasons why the figures are not exact."""
        return tuple(uncertainties(self._ops, self._costs, self._target))

    def warnings(self) -> tuple[str, ...]:
        """What is wrong although the figures are right."""
        return (
            *warnings(self._ops, self._target),
            *wild_scratch(self._ops, self._requests, self._timeline),
            *variables_without_memory(self._model, self._offsets),
        )

    # --- head -----------------------------------------------------------------------------

    def head(self) -> tuple[int, tuple[ScratchUse, ...]]:
        """Bytes of the head, and the scratch buffers in it."""
        requests = placement_requests(self._timeline, self._offsets)
        placed = greedy.place(requests)
        head = max(0, greedy.head(requests, placed))
        first = len(self._timeline.planned)
        sizes = [
            s
            for op in self._timeline.ops
            if op in self._timeline.scopes
            for s in self._requests_of(op)
        ]
        uses = zip(self._timeline.scratch, sizes, placed[first:], strict=False)
        return head, tuple(ScratchUse(s.op.label, size, at) for s, size, at in uses)

    def _requests_of(self, op: Op) -> list[int]:
        return [s for s in self._by_op[op] if s > 0]

    # --- all of it ------------------------------------------------------------------------

    def run(self, head: int, *, apart: bool = False) -> AllocationLog:
        """Every allocation of AllocateTensors, in order. apart: whether persistent and other memory
        have separate arenas."""
        log = AllocationLog()
        self.begin(log, apart=apart)
        self.continue_with(log, head)
        return log

    def begin(self, log: AllocationLog, *, apart: bool = False) -> None:
        """Log the allocations of the allocator itself, which several models may share. apart: as in
        `run`."""
        for size in self._layout.fixed_apart if apart else self._layout.fixed:
            log.add(_FIXED, size, self._layout.pointer)

    def continue_with(self, log: AllocationLog, head: int, before: int = 0) -> None:
        """Log every allocation of AllocateTensors after those in `log`. head: bytes of the head in
        the end; before: bytes of the head of the earlier models."""
        self._start(log, before)
        self._parse(log)
        self._init_and_prepare(log)
        count = sum(len(r) for r in self._requests)
        requests = self._request_bytes(count)
        if count:
            pointer = self._layout.pointer
            log.add(_HANDLES, pointer * count, pointer)
            log.add_floor(requests)
        self._plan(log, requests, count)
        log.add_floor(head)
        self._inputs_and_outputs(log)
        log.add_floor(head)

    def _request_bytes(self, count: int) -> int:
        return self._layout.scratch_request * (count + _SPARE_REQUESTS)

    def _start(self, log: AllocationLog, before: int) -> None:
        sizes, pointer, model = self._layout, self._layout.pointer, self._model
        handles = self.resource_variables()
        if handles and not self._variables_apart:
            log.add(_RESOURCES, sizes.resource_variables, ALIGNMENT)
            log.add(_RESOURCES, sizes.resource_variable * handles, ALIGNMENT)
        log.add(_SUBGRAPHS, sizes.builtin_allocator, pointer)
        if before:  # only now is the head set to the list of scratch requests
            log.add_floor(before)
        log.add(_SUBGRAPHS, sizes.subgraph * len(model.graphs), pointer)
        for graph in model.graphs:
            log.add(_EVAL, sizes.eval_tensor * len(graph.tensors), pointer)
        for graph in model.graphs:
            log.add(_NODES, sizes.node * len(graph.ops), pointer)
        log.add_floor(self._request_bytes(0))

    def resource_variables(self) -> int:
        """The number of resource variables for which the application reserves memory. The wheel
        counts names; an application is assumed to count VAR_HANDLE operators, which is always
        enough."""
        names = [op.options.variable[1] for op in self._ops if op.kind == "VAR_HANDLE"]
        return len(set(names)) if self._target.recording else len(names)

    def _parse(self, log: AllocationLog) -> None:
        for cost in self._costs:
            if cost.builtin is not None:
                log.add(_BUILTIN, *cost.builtin)

    def _init_and_prepare(self, log: AllocationLog) -> None:
        for cost in self._costs:
            for size in cost.init:
                log.add(_INIT, size, ALIGNMENT)
        count, assigned = 0, _AssignedVariables(self._model)
        extents: list[tuple[int, int]] = []
        for op, cost, scratch in zip(self._ops, self._costs, self._requests, strict=True):
            stored = assigned.bytes_of(op)
            steps = (
                cost.prepare
                if stored is None
                else (*cost.prepare, PersistentAllocation(stored, "dims"))
            )
            top = self._prepare(log, steps, self._request_bytes(count))
            count += len(scratch)
            log.add_floor(self._request_bytes(count))
            # The next operator's requests must also fit.
            extents.append((len(log.pieces), max(top, self._request_bytes(count))))
        tails = [0, *log.extents()]
        log.need_prepare, log.prepare_temp = max(
            ((tails[allocated] + top, top) for allocated, top in extents), default=(0, 0)
        )

    def _prepare(self, log: AllocationLog, steps: Sequence[PrepareStep], base: int) -> int:
        """Log one operator's Prepare above `base`. Returns the temporary memory in use at its
        end."""
        fetched: list[_Fetched] = []
        top = base
        for i, step in enumerate(steps):
            if isinstance(step, PersistentAllocation):
                log.add(_PREPARE, step.size, ALIGNMENT)
                in_use = fetched[: step.used]
                kept_top = in_use[-1].kept_end(step.keeps, self._target) if in_use else base
                log.add_floor(kept_top)
                continue
            fetched.append(self._fetch(top, step))
            top = fetched[-1].top
            if i + 1 == len(steps) or isinstance(
                steps[i + 1], PersistentAllocation
            ):  # after the last of several fetches
                log.add_floor(top)
        return top

    def _fetch(self, top: int, step: TempBuffer | Tensor) -> _Fetched:
        """Fetch a tensor or buffer into temporary memory, of which `top` bytes are in use."""
        if isinstance(step, TempBuffer):
            end = align_up(top) + step.size
            return _Fetched(end, end, end, end)
        sizes, pointer = self._layout, self._layout.pointer
        start = align_up(top, pointer)
        dims, top = start + sizes.dims_end, start + sizes.tensor
        channels = self._channels.get(step)
        if channels is None:
            channels = self._channels[step] = scale_count_of(step)
        if not channels:
            return _Fetched(dims, top, top, top)
        start = align_up(top, pointer)
        pointers = start + 2 * pointer  # scale and zero_point
        top = start + sizes.quantization + 4 + 4 * channels
        return _Fetched(pointers, pointers, pointers + 4, top)

    def _plan(self, log: AllocationLog, top: int, count: int) -> None:
        """Log CommitStaticMemoryPlan: its own structures, then those of the planner."""
        sizes, pointer = self._layout, self._layout.pointer
        tensors = sum(len(g.tensors) for g in self._model.graphs)
        top = align_up(top, pointer) + pointer * len(self._model.graphs)
        top = align_up(top, pointer) + sizes.allocation_info * (tensors + count)
        log.add_floor(top)
        self._variables(log)
        log.add_floor(top)
        placed = len(self._timeline.planned) + len(placed_variables(self._offsets)) + count
        log.planning_temp = align_up(top) + sizes.planner_buffer * placed
        *_, tail = (0, *log.extents())
        log.need_plan = log.planning_temp + tail
        log.add_floor(log.planning_temp, is_aligned=True)

    def _variables(self, log: AllocationLog) -> None:
        """Log the variables: they go to the tail, unless TFLM takes them for planned. It looks a
        variable up by its number in its own sub-graph, but in a list that covers all sub-graphs."""
        all_tensors = list(self._model.tensors())
        for graph in self._model.graphs:
            for index, tensor in enumerate(graph.tensors):
                if tensor.is_variable and all_tensors[index] not in self._offsets:
                    log.add(_VARIABLES, tensor.nbytes, ALIGNMENT)

    def _inputs_and_outputs(self, log: AllocationLog) -> None:
        sizes, pointer = self._layout, self._layout.pointer
        for tensors in (self._model.main.inputs, self._model.main.outputs):
            log.add(_IO, pointer * len(tensors), ALIGNMENT)
            for tensor in tensors:
                log.add(_IO, sizes.tensor, pointer)
                channels = scale_count_of(tensor)
                if channels:
                    log.add(_IO, sizes.quantization, pointer)
                    log.add(_IO, 4 + 4 * channels, 4)


class _AssignedVariables:
    """Memory of resource variables: allocated by the first ASSIGN_VARIABLE of each variable that is
    in the same graph as its VAR_HANDLE."""

    def __init__(self, model: Model) -> None:
        self._names: dict[Tensor, Any] = {
            op.outputs[0]: op.options.variable
            for op in model.ops()
            if op.kind == "VAR_HANDLE" and op.outputs
        }
        self._seen: set[Any] = set()

    def bytes_of(self, op: Op) -> int | None:
        if op.kind != "ASSIGN_VARIABLE" or len(op.inputs) < 2:
            return None
        handle, value = op.inputs[0], op.inputs[1]
        name = None if handle is None else self._names.get(handle)
        if name is None or value is None or name in self._seen:
            return None
        self._seen.add(name)
        return value.nbytes
