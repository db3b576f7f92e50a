"""The cost of an operator, and of a model, on a target: instructions, multiplications, bytes.

    Op -> Case -> Work (path, counts) -> sum of counts x constants of the target's profile

Instructions are those that a core executes, not cycles: no pipeline, no flash wait states, no
cache. Use them for ratios between plans of one model on one target; divided by a board's clock they
give only the order of magnitude of a time. On a `ProfiledTarget` they are cycles, measured or
fitted to measurements (see `measured`). This module must not know transforms.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from tflm_planner.cost.case import Case, canonical, case_of
from tflm_planner.cost.families import KernelFamily
from tflm_planner.cost.kinds import Work
from tflm_planner.cost.loops import turns
from tflm_planner.cost.measured import (
    Measured,
    ProfiledTarget,
    Watch,
    fit,
    measured_of,
    predict,
    with_source,
)
from tflm_planner.cost.moves import other
from tflm_planner.cost.profiles import DISPATCH, Choice, Profile, profiles_of
from tflm_planner.model.ir import Graph, Model, Op, Tensor
from tflm_planner.model.options import BODY, CONDITION
from tflm_planner.ops.roles import RESHAPES
from tflm_planner.tflm.kernels.forms import operator_form
from tflm_planner.tflm.sharing import RemainingCopies
from tflm_planner.tflm.targets import Target
from tflm_planner.tflm.versions import can

CACHED = 1 << 16
"""Largest number of cases whose cost is cached."""
IN_PLACE = RESHAPES | {"DYNAMIC_UPDATE_SLICE"}
"""Operators that copy their operand only if the result lies elsewhere."""


@dataclass(frozen=True, slots=True)
class Cost:
    """instructions: executed ones, including those of the interpreter. macs: multiplications of the
    mathematical operation. bytes_read, bytes_written: bytes of all operands and results, each once,
    constants included. estimated: constants were not fitted to this operator on this target, but to
    similar operators or targets."""

    instructions: int
    macs: int
    bytes_read: int
    bytes_written: int
    estimated: bool = False

    def __add__(self, more: Cost) -> Cost:
        return Cost(
            self.instructions + more.instructions,
            self.macs + more.macs,
            self.bytes_read + more.bytes_read,
            self.bytes_written + more.bytes_written,
            self.estimated or more.estimated,
        )

    def times(self, count: int) -> Cost:
        """The cost of `count` runs."""
        return Cost(
            self.instructions * count,
            self.macs * count,
            self.bytes_read * count,
            self.bytes_written * count,
            self.estimated,
        )


NOTHING = Cost(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class OpCost:
    """An operator's share of a model: `runs` runs that cost `each`, without the graphs that it
    calls."""

    op: Op
    runs: int
    each: Cost


@dataclass(frozen=True, slots=True)
class Latency:
    """The latency of one inference. by_op: in file order, graph by graph. unknown_loops: loops
    whose number of turns the model does not determine; each counts as one turn. clock: Hz of the
    target's board, or None."""

    total: Cost
    by_op: tuple[OpCost, ...]
    unknown_loops: int
    clock: int | None

    @property
    def instructions(self) -> int:
        """Executed instructions."""
        return self.total.instructions

    @property
    def rough_seconds(self) -> float | None:
        """Seconds at one instruction per clock cycle: only an order of magnitude."""
        return None if self.clock is None else self.total.instructions / self.clock


def cost_of(op: Op, target: Target, *, in_place: bool = False) -> Cost:
    """The cost of one run of `op`, without the graphs that it calls.

    `in_place`: the result lies on the operand, so that operators that only copy it (IN_PLACE) do
    nothing. It never raises: for an operator without an entry of its own, the cost is estimated
    from its sizes and marked `estimated`.
    """
    if isinstance(target, ProfiledTarget) and isinstance(target.source, Watch):
        target.source.heard(op)
    return _memo_of(target).cost_of(op, in_place=in_place and op.kind in IN_PLACE)


class _CostMemo:
    """A cache of the costs of operators on a target, by form (`tflm.kernels.forms`) and by the
    number of scales of each tensor: these determine the case."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._by_form: dict[Hashable, Cost] = {}

    def cost_of(self, op: Op, *, in_place: bool) -> Cost:
        """The cost of one run."""
        scales = [0 if t is None else len(t.quantization.scales) for t in (*op.inputs, *op.outputs)]
        form = operator_form(op), in_place, *scales
        cost = self._by_form.get(form)
        if cost is None:
            if len(self._by_form) >= CACHED:
                self._by_form.clear()
            cost = cost_of_case(case_of(op), self._target, in_place)
            self._by_form[form] = cost
        return cost


@lru_cache(maxsize=8)
def _memo_of(target: Target) -> _CostMemo:
    """One cache per target for all models; only a few targets are kept."""
    return _CostMemo(target)


@lru_cache(maxsize=CACHED)
def cost_of_case(case: Case, target: Target, in_place: bool = False) -> Cost:
    """The cost of an operator that need not exist, such as a tile; otherwise as `cost_of`. If
    several profiles stand for the target, the most expensive one counts."""
    choice = _profiles(target)
    bytes_read = sum(t.nbytes for t in case.inputs if t is not None)
    bytes_written = sum(t.nbytes for t in case.outputs)
    device = measured_of(target)
    executed = None if device is None or in_place else device.cycles(case)
    if device is not None and executed is not None:
        macs = device.fitted.family.work_of(case).macs
        return Cost(round(executed), macs, bytes_read, bytes_written)
    worst, is_known, macs = 0.0, True, 0
    for profile in choice.profiles:
        work = profile.family.work_of(case)
        executed, certain = instructions(case, work, profile, in_place)
        worst, is_known, macs = max(worst, executed), is_known and certain, max(macs, work.macs)
    return Cost(round(worst), macs, bytes_read, bytes_written, not (is_known and choice.measured))


def _profiles(target: Target) -> Choice:
    """The profiles that stand for a target: that of its device, or the built-in ones."""
    device = measured_of(target)
    return profiles_of(target) if device is None else Choice((device.fitted,), False)


def profile_target(
    target: Target, name: str, measured_on: str, hertz: int, rows: Mapping[Case, float]
) -> Target:
    """The target with cycles from a board called `name`, which is the target `measured_on`: those
    in `rows` for measured cases, fitted ones for all others."""
    base = profiles_of(target).profiles[0]
    exact = {canonical(case): cycles for case, cycles in rows.items()}

    def count(case: Case, family: KernelFamily) -> tuple[str, dict[str, int]]:
        work = family.work_of(case)
        return key_of(case, work), work.counts

    fitted, held_out = fit(list(exact.items()), base, count)
    return with_source(target, Measured(name, measured_on, hertz, exact, fitted, held_out))


def key_of(case: Case, work: Work) -> str:
    """The key of the constants in a profile: kernel path and, if it matters, element type."""
    return f"{work.path}.{case.data.type}" if work.typed else work.path


def instructions(
    case: Case, work: Work, profile: Profile, in_place: bool = False
) -> tuple[float, bool]:
    """Executed instructions, and whether the profile has constants for exactly this path."""
    dispatch = profile.paths[DISPATCH]["operator"]
    if case.kind in ("WHILE", "IF"):
        return dispatch, True
    constants = profile.paths.get(key_of(case, work))
    if constants is None:
        work = other(case)
        constants = profile.paths.get(f"other.{case.data.type}", profile.paths["other.int8"])
        return dispatch + _sum(constants, work), False
    if in_place:
        work = replace(work, counts=work.in_place)
    return dispatch + _sum(constants, work), work.path != "other"


def _sum(table: Mapping[str, float], work: Work) -> float:
    return predict(table, work.counts)


def latency_of(
    model: Model,
    target: Target,
    offsets: Mapping[Tensor, int] | None = None,
) -> Latency:
    """One inference of `model`: every operator as often as it runs.

    A WHILE runs its body as often as its counter says (see `loops`), an IF its more expensive
    branch. offsets: the plan (tensor -> bytes). Results that lie on their operands save the copies
    of operators in IN_PLACE, of an IF, and of a WHILE if the target's TFLM skips these copies.
    None: everything is copied.
    """
    runs: dict[Graph, int] = {}
    unknown = _count(model.main, 1, target, runs)
    rows = [
        OpCost(op, times, each + _control(op, target, moved) if op.graphs else each)
        for op, times, each, moved in _each_cost(model, target, offsets, runs)
    ]
    total = sum((row.each.times(row.runs) for row in rows), NOTHING)
    started = Cost(round(_constant(target, "graph")), 0, 0, 0)
    device = measured_of(target)
    clock = target.board.clock if target.board is not None else None
    clock = clock if device is None else device.hertz
    return Latency(total + started, tuple(rows), unknown, clock)


def instructions_of(
    model: Model, target: Target, offsets: Mapping[Tensor, int] | None = None
) -> int:
    """`latency_of(...).instructions`, without the rest, for callers with hundreds of models."""
    runs: dict[Graph, int] = {}
    _count(model.main, 1, target, runs)
    total = 0
    for op, times, each, moved in _each_cost(model, target, offsets, runs):
        control = _control(op, target, moved).instructions if op.graphs else 0
        total += times * (each.instructions + control)
    return total + round(_constant(target, "graph"))


def _each_cost(
    model: Model, target: Target, offsets: Mapping[Tensor, int] | None, runs: Mapping[Graph, int]
) -> Iterator[tuple[Op, int, Cost, float]]:
    """Each operator that runs, how often it runs, the cost of one run, and the bytes that its
    control flow copies."""
    copies = RemainingCopies(offsets or {}, can(target, "skips_copies"))
    for graph in model.graphs:
        times = runs.get(graph, 0)
        for op in graph.ops if times else ():
            stays, moved = copies.in_place(op), 0.0
            if op.kind == "WHILE":
                moved = copies.turn_bytes(op)
            elif op.graphs and not stays:
                moved = float(sum(t.nbytes for t in op.outputs))
            yield op, times, cost_of(op, target, in_place=stays), moved


def _count(graph: Graph, times: int, target: Target, runs: dict[Graph, int]) -> int:
    """Write to `runs` how often each graph runs. Returns the number of loops whose turns the model
    does not determine."""
    runs[graph] = runs.get(graph, 0) + times
    unknown = 0
    for op in graph.ops:
        if op.kind == "WHILE":
            count = turns(op)
            unknown += count is None
            for name, extra in ((CONDITION, 1), (BODY, 0)):
                for called in op.graphs.get(name, []):
                    often = (1 if count is None else count) + extra
                    unknown += _count(called, times * often, target, runs)
        elif op.called_graphs():
            dearest = max(op.called_graphs(), key=lambda g: _own(g, target))
            unknown += _count(dearest, times, target, runs)
    return unknown


def _own(graph: Graph, target: Target) -> int:
    return sum(cost_of(op, target).instructions for op in graph.ops)


def _control(op: Op, target: Target, copied: float) -> Cost:
    """The cost that control flow adds: starting its graphs, handling their variables in every turn,
    and copying `copied` bytes of them."""
    if not op.called_graphs():
        return NOTHING
    often = (turns(op) or 1) if op.kind == "WHILE" else 1
    moved = round(copied * (often + 1))
    ran = often * (_constant(target, "turn") + len(op.outputs) * _constant(target, "turn_variable"))
    executed = _constant(target, "loop") + ran + moved * _constant(target, "turn_byte")
    return Cost(round(executed), 0, moved, moved)


def _constant(target: Target, name: str) -> float:
    return max(p.paths[DISPATCH].get(name, 0.0) for p in _profiles(target).profiles)
