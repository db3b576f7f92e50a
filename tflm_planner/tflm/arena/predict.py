"""The exact arena: what MicroInterpreter takes from `tensor_arena`, byte by byte.

    0                head              temporary                tail           N
    |  tensors, scratch  |  structs while planning  ->  ...  <-  persistent    |

Everything that TFLM allocates is replayed in its order: persistent memory downward from the
arena's end, each piece aligned downward; temporary memory upward from the head. How much a
piece takes depends on the address it is asked at, hence on the arena's size modulo 16; the
smallest arena is found over all sixteen. Source: tensorflow/lite/micro/micro_allocator.cc and
micro_interpreter.cc, tflite-micro 90b983c. This module must not change models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.support.units import ALIGNMENT, align_up
from tflm_planner.tflm import greedy
from tflm_planner.tflm.arena import allocation_log as ledger
from tflm_planner.tflm.arena.allocation_log import Log
from tflm_planner.tflm.arena.struct_sizes import StructSizes, struct_sizes
from tflm_planner.tflm.arena.uncertainty import (
    Bound,
    Uncertainty,
    bound_of,
    head_bound_of,
    reserved,
    uncertainties,
    warnings,
    wild_scratch,
)
from tflm_planner.tflm.element_types import cannot_run
from tflm_planner.tflm.kernels.operator_allocations import operator_allocations
from tflm_planner.tflm.kernels.prepare import (
    Keeps,
    PersistentAllocation,
    Step,
    TempBuffer,
    scale_count_of,
)
from tflm_planner.tflm.kernels.scratch import ScratchModel, scratch_model
from tflm_planner.tflm.lean.costs import lean_costs
from tflm_planner.tflm.liveness import (
    Timeline,
    placement_requests,
    timeline,
)
from tflm_planner.tflm.targets import Target

PARTS = (
    "fixed", "subgraph_alloc", "nodes", "eval_tensors", "builtin_data", "op_init", "op_prepare",
    "scratch_handles", "plan", "variables", "io_tensors", "resource_vars",
)  # fmt: skip
"""Classes of persistent memory."""
_FIXED, _SUBGRAPHS, _NODES, _EVAL, _BUILTIN, _INIT, _PREPARE, _HANDLES, _, _VARIABLES, _IO, _RESOURCES = range(12)  # noqa: E501  # fmt: skip
_SPARE_REQUESTS = 12
"""Scratch requests for which TFLM keeps room at any time (kMaxScratchBuffersPerOp)."""


@dataclass(frozen=True)
class ScratchUse:
    """One scratch buffer: who asked, bytes as asked, offset in the head."""

    operator: str
    size: int
    offset: int


@dataclass(frozen=True)
class Arena:
    """Bytes of the arena; head, tail and parts for a size that is a multiple of 16.

    arena: the smallest size that works, as does every larger one (start aligned to 16): persistent
    memory may run into temporary structures, which TFLM does not check, only where nobody reads
    them again. alignment_slack: bytes to add if the array's start is not aligned to 16.
    planning_temp: temporary memory of the memory planner.
    prepare_temp: the same of the operator whose Prepare needs most. need_plan, need_prepare: what
    the two ask for, with the tail of that moment. tail_parts: tail by class (see PARTS).
    uncertainties: why the figures are no more than "at least"; empty where they are exact.
    warnings: those, and what makes the model not run.
    cannot_run: what the target's TFLM refuses to run: the figures are then what it would need if
    it could.
    """

    head: int
    tail: int
    tail_parts: Mapping[str, int]
    planning_temp: int
    prepare_temp: int
    need_plan: int
    need_prepare: int
    arena: int
    alignment_slack: int
    scratch: tuple[ScratchUse, ...]
    warnings: tuple[str, ...]
    uncertainties: tuple[Uncertainty, ...] = ()
    cannot_run: tuple[str, ...] = ()

    @property
    def bound(self) -> Bound:
        """What `arena` is, and with it the tail."""
        return bound_of(self.uncertainties)

    @property
    def head_bound(self) -> Bound:
        """What `head` is."""
        return head_bound_of(self.uncertainties)

    @property
    def exact(self) -> bool:
        """Whether `arena` is known to the byte."""
        return self.bound == "exact"

    @property
    def reserved(self) -> int:
        """What firmware should give: `arena`, and a margin where that is in doubt."""
        return reserved(self.arena, self.uncertainties)

    @property
    def used(self) -> int:
        """What `arena_used_bytes()` says in a large arena; less than what is needed."""
        return self.head + self.tail


def arena_of(model: Model, target: Target, offsets: Mapping[Tensor, int] | None = None) -> Arena:
    """The arena of `model` on `target`.

    `offsets`: an offline plan (tensor -> bytes from the head's start), for example
    `transforms.attach_plan.carried_plan(model)`; tensors without one, and all without a plan, are
    placed as TFLM does. Raises ModelError for tensors that cannot lie in an arena.
    """
    replay = _AllocationReplay(model, target, offsets or {})
    head, placed = replay.head()
    log = replay.run(head)
    needs = log.needs()
    smallest, slack = ledger.smallest(needs)
    parts, tail = log.tail_parts(len(PARTS))
    return Arena(
        head=head,
        tail=tail,
        tail_parts=dict(zip(PARTS, parts, strict=True)),
        planning_temp=log.planning_temp,
        prepare_temp=log.prepare_temp,
        need_plan=log.need_plan,
        need_prepare=log.need_prepare,
        arena=smallest,
        alignment_slack=slack,
        scratch=placed,
        warnings=(*(uncertainty.words for uncertainty in replay.uncertainties), *replay.warnings),
        uncertainties=replay.uncertainties,
        cannot_run=tuple(cannot_run(model.ops(), target)),
    )


def head_of(model: Model, target: Target, offsets: Mapping[Tensor, int] | None = None) -> int:
    """Bytes of the head alone; see `arena_of`."""
    return _AllocationReplay(model, target, offsets or {}).head()[0]


class SplitArena(NamedTuple):
    """Bytes of both arenas of `MicroAllocator::Create(persistent, ..., non_persistent, ...)`, each
    aligned to 16. The second one holds nothing between AllocateTensors and Invoke, or after what
    the application has read: several models can share it."""

    persistent: int
    shared: int


def split_arena(
    model: Model, target: Target, offsets: Mapping[Tensor, int] | None = None
) -> SplitArena:
    """Persistent memory and the rest, as `arena_of` counts them, in two arenas."""
    replay = _AllocationReplay(model, target, offsets or {})
    log = replay.run(replay.head()[0])
    pointer, sizes = struct_sizes(target).pointer, struct_sizes(target).fixed_apart
    log.pieces[: len(struct_sizes(target).fixed)] = [(_FIXED, size, pointer) for size in sizes]
    *_, tail = log.extents()
    return SplitArena(align_up(tail), align_up(max(above for _, above, _ in log.floors)))


class Fetched(NamedTuple):
    """A tensor or buffer in temporary memory: ends, above the arena's start, of what a kernel
    still uses (see prepare.Keeps), and of all of it."""

    dims: int
    struct: int
    axis: int
    top: int

    def kept(self, keeps: Keeps, target: Target) -> int:
        """The end of what must stay. Only current TFLM was read closely enough to let go."""
        if keeps == "all" or target.version != "current":
            return self.top
        return {"dims": self.dims, "struct": self.struct, "axis": self.axis}[keeps]


class _AllocationReplay:
    """TFLM's allocations for one model, target and plan."""

    def __init__(self, model: Model, target: Target, offsets: Mapping[Tensor, int]) -> None:
        self._model, self._target, self._offsets = model, target, offsets
        self._layout: StructSizes = struct_sizes(target)
        self._channels: dict[Tensor, int] = {}
        self.warnings: list[str] = []
        self._scratch: ScratchModel = scratch_model(target)
        self._ops = list(model.ops())
        self._costs = [operator_allocations(op, target) for op in self._ops]
        self._requests = [self._scratch(op) for op in self._ops]
        if target.lean:
            self._costs = lean_costs(model, target, self._costs, self._requests)
        self._by_op = dict(zip(self._ops, self._requests, strict=True))
        line = timeline(model, lambda op: self._by_op[op])
        handles = {op.outputs[0] for op in self._ops if op.kind == "VAR_HANDLE" and op.outputs}
        # VAR_HANDLE points its output to its own OpData, so the planner never sees it.
        kept = [t for t in line.planned if t not in handles] if handles else line.planned
        self._line: Timeline = replace(line, planned=kept)
        self.uncertainties = tuple(uncertainties(self._ops, self._costs, target))
        self.warnings += warnings(self._ops, target)
        self.warnings += wild_scratch(self._ops, self._requests, self._line)

    # --- head -----------------------------------------------------------------------------

    def head(self) -> tuple[int, tuple[ScratchUse, ...]]:
        """Bytes of the head, and where scratch lies in it."""
        asked = placement_requests(self._line, self._offsets)
        asked += [self._variable_request(t) for t in self._planned_variables()]
        placed = greedy.place(asked)
        head = max(0, greedy.head(asked, placed))
        first = len(self._line.planned)
        sizes = [s for op in self._line.ops if op in self._line.scopes for s in self._asked(op)]
        uses = zip(self._line.scratch, sizes, placed[first:], strict=False)
        return head, tuple(ScratchUse(s.op.label, size, at) for s, size, at in uses)

    def _asked(self, op: Op) -> list[int]:
        return [s for s in self._by_op[op] if s > 0]

    def _planned_variables(self) -> list[Tensor]:
        """Variables that the plan puts into the head."""
        return [t for t in self._model.tensors() if t.is_variable and t in self._offsets]

    def _variable_request(self, tensor: Tensor) -> greedy.Request:
        return greedy.Request(align_up(tensor.nbytes), -1, -1, self._offsets[tensor])

    # --- all of it ------------------------------------------------------------------------

    def run(self, head: int) -> Log:
        """Every allocation of AllocateTensors, in order."""
        log = Log()
        self._start(log)
        self._parse(log)
        self._init_and_prepare(log)
        count = sum(len(r) for r in self._requests)
        requests = self._request_bytes(count)
        if count:
            pointer = self._layout.pointer
            log.pieces.append((_HANDLES, pointer * count, pointer))
            log.floors.append((len(log.pieces), requests, False))
        self._plan(log, requests, count)
        log.floors.append((len(log.pieces), head, False))
        self._inputs_and_outputs(log)
        log.floors.append((len(log.pieces), head, False))
        return log

    def _request_bytes(self, count: int) -> int:
        return self._layout.scratch_request * (count + _SPARE_REQUESTS)

    def _start(self, log: Log) -> None:
        sizes, pointer, model = self._layout, self._layout.pointer, self._model
        log.pieces += [(_FIXED, size, pointer) for size in sizes.fixed]
        handles = self._resources()
        if handles:
            log.pieces += [
                (_RESOURCES, sizes.resource_variables, ALIGNMENT),
                (_RESOURCES, sizes.resource_variable * handles, ALIGNMENT),
            ]
        log.pieces.append((_SUBGRAPHS, sizes.builtin_allocator, pointer))
        log.pieces.append((_SUBGRAPHS, sizes.subgraph * len(model.graphs), pointer))
        log.pieces += [(_EVAL, sizes.eval_tensor * len(g.tensors), pointer) for g in model.graphs]
        log.pieces += [(_NODES, sizes.node * len(g.ops), pointer) for g in model.graphs]
        log.floors.append((len(log.pieces), self._request_bytes(0), False))

    def _resources(self) -> int:
        """How many resource variables the application makes room for. The wheel counts names;
        an application is assumed to count VAR_HANDLE operators, which is always enough."""
        names = [
            getattr(op.options, "sharedName", None) for op in self._ops if op.kind == "VAR_HANDLE"
        ]
        return len(set(names)) if self._target.recording else len(names)

    def _parse(self, log: Log) -> None:
        log.pieces += [(_BUILTIN, *c.builtin) for c in self._costs if c.builtin is not None]

    def _init_and_prepare(self, log: Log) -> None:
        log.pieces += [(_INIT, size, ALIGNMENT) for c in self._costs for size in c.init]
        count, assigned = 0, _Assigned(self._model)
        extents: list[tuple[int, int]] = []
        for op, one, asked in zip(self._ops, self._costs, self._requests, strict=True):
            stored = assigned.bytes_of(op)
            steps = (
                one.prepare
                if stored is None
                else (*one.prepare, PersistentAllocation(stored, "dims"))
            )
            top = self._prepare(log, steps, self._request_bytes(count))
            count += len(asked)
            log.floors.append((len(log.pieces), self._request_bytes(count), False))
            # There must be room for the next operator's requests, too.
            extents.append((len(log.pieces), max(top, self._request_bytes(count))))
        tails = [0, *log.extents()]
        log.need_prepare, log.prepare_temp = max(
            ((tails[made] + top, top) for made, top in extents), default=(0, 0)
        )

    def _prepare(self, log: Log, steps: Sequence[Step], base: int) -> int:
        """One operator's Prepare above `base`. Returns temporary memory in use at its end."""
        fetched: list[Fetched] = []
        top = base
        for i, step in enumerate(steps):
            if isinstance(step, PersistentAllocation):
                log.pieces.append((_PREPARE, step.size, ALIGNMENT))
                used = fetched[: step.used]
                kept = used[-1].kept(step.keeps, self._target) if used else base
                log.floors.append((len(log.pieces), kept, False))
                continue
            fetched.append(self._fetch(top, step))
            top = fetched[-1].top
            if i + 1 == len(steps) or isinstance(
                steps[i + 1], PersistentAllocation
            ):  # of several, the last
                log.floors.append((len(log.pieces), top, False))
        return top

    def _fetch(self, top: int, step: TempBuffer | Tensor) -> Fetched:
        """Fetch into temporary memory, of which `top` bytes are in use."""
        if isinstance(step, TempBuffer):
            end = align_up(top) + step.size
            return Fetched(end, end, end, end)
        sizes, pointer = self._layout, self._layout.pointer
        start = align_up(top, pointer)
        dims, top = start + sizes.dims_end, start + sizes.tensor
        channels = self._channels.get(step)
        if channels is None:
            channels = self._channels[step] = scale_count_of(step)
        if not channels:
            return Fetched(dims, top, top, top)
        start = align_up(top, pointer)
        pointers = start + 2 * pointer  # scale and zero_point
        top = start + sizes.quantization + 4 + 4 * channels
        return Fetched(pointers, pointers, pointers + 4, top)

    def _plan(self, log: Log, top: int, count: int) -> None:
        """CommitStaticMemoryPlan: its own structures, then the planner's."""
        sizes, pointer = self._layout, self._layout.pointer
        tensors = sum(len(g.tensors) for g in self._model.graphs)
        top = align_up(top, pointer) + pointer * len(self._model.graphs)
        top = align_up(top, pointer) + sizes.allocation_info * (tensors + count)
        log.floors.append((len(log.pieces), top, False))
        self._variables(log)
        log.floors.append((len(log.pieces), top, False))
        placed = len(self._line.planned) + len(self._planned_variables()) + count
        log.planning_temp = align_up(top) + sizes.planner_buffer * placed
        *_, tail = (0, *log.extents())
        log.need_plan = log.planning_temp + tail
        log.floors.append((len(log.pieces), log.planning_temp, True))

    def _variables(self, log: Log) -> None:
        """Variables go to the tail unless the plan places them. TFLM looks a variable up by its
        index within its own sub-graph, in a list that covers all sub-graphs."""
        listed = list(self._model.tensors())
        for graph in self._model.graphs:
            for index, tensor in enumerate(graph.tensors):
                if not tensor.is_variable:
                    continue
                if listed[index] not in self._offsets:
                    log.pieces.append((_VARIABLES, tensor.nbytes, ALIGNMENT))
                elif listed[index] is not tensor and tensor not in self._offsets:
                    self.warnings.append(
                        f"variable {tensor.name!r} gets no memory: TFLM confuses it with "
                        f"{listed[index].name!r} of the first sub-graph, which the plan places"
                    )

    def _inputs_and_outputs(self, log: Log) -> None:
        sizes, pointer = self._layout, self._layout.pointer
        for tensors in (self._model.main.inputs, self._model.main.outputs):
            log.pieces.append((_IO, pointer * len(tensors), ALIGNMENT))
            for tensor in tensors:
                log.pieces.append((_IO, sizes.tensor, pointer))
                channels = scale_count_of(tensor)
                if channels:
                    log.pieces.append((_IO, sizes.quantization, pointer))
                    log.pieces.append((_IO, 4 + 4 * channels, 4))


class _Assigned:
    """Memory of resource variables: allocated by the first ASSIGN_VARIABLE of each variable that
    stands in the same graph as its VAR_HANDLE."""

    def __init__(self, model: Model) -> None:
        self._names: dict[Tensor, Any] = {
            op.outputs[0]: (
                getattr(op.options, "container", None),
                getattr(op.options, "sharedName", None),
            )
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


__all__ = ["PARTS", "Arena", "ScratchUse", "SplitArena", "arena_of", "head_of", "split_arena"]
