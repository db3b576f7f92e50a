"""Legal or not: the validator against the byte-level replay, on plans made by chance.

    model -> its planning problem -> a legal plan -> spoiled a little -> both are asked

The validator may never be laxer. It is stricter in known ways only, see `EXCUSES`.
`python -m tests.fuzz.random_plans --count 2000`
"""

from __future__ import annotations

import argparse
import collections
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.fuzz.random_models import model_of, search_options
from tests.fuzz.seeds import Draws, Rng
from tests.model_replay import Place, replay
from tests.models.random_loops import random_loops_model
from tflm_planner.memory.problem import Buffer, Plan, Problem, Violation, validate
from tflm_planner.model.ir import Model, Op, Tensor
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.tflm.kernels.scratch import reference_scratch
from tflm_planner.tflm.liveness import (
    Timeline,
    planning_problem,
    timeline_of,
)  # fmt: skip
from tflm_planner.tflm.placement import placement_of
from tflm_planner.transforms.attach_plan import carried_plan

Dice = Rng | Draws

EXCUSES = {
    "padding": "TFLM rounds every buffer up to 16: a view may not stick out behind its parent",
    "movement": "an operator that moves bytes finds them in place, at a distance or on an axis "
    "that the planner does not offer, or while the operand is still needed",
    "control flow": "TFLM marks what IF and WHILE read and write as live until their bodies end, "
    "and what a body holds as live between two calls; the kernels copy it earlier",
    "unread": "nothing reads one of the two after it was overwritten",
}


@dataclass(frozen=True)
class Case:
    """A planned model with everything that both judges need."""

    data: bytes
    model: Model
    line: Timeline
    problem: Problem
    plan: Plan

    def tensor_places(self) -> list[Place]:
        """(graph, tensor) of each planned buffer."""
        graphs = enumerate(self.model.graphs)
        place = {t: (g, i) for g, graph in graphs for i, t in enumerate(graph.tensors)}
        return [place[t] for t in self.line.planned]

    def faults(self, plan: Plan) -> list[str]:
        """What the replay says of another plan for this model, scratch included."""
        graphs = enumerate(self.model.graphs)
        op_place = {o: (g, i) for g, graph in graphs for i, o in enumerate(graph.ops)}
        count = len(self.line.planned)
        offsets = dict(zip(self.tensor_places(), plan.offsets[:count], strict=True))
        scratch: dict[Place, list[tuple[int, int]]] = {}
        for s, at in zip(self.line.scratch, plan.offsets[count:], strict=True):
            scratch.setdefault(op_place[s.op], []).append((at, s.size))
        return replay(self.data, offsets, scratch)

    def _position(self, buffer: Buffer) -> int:
        """Of this object: buffers of equal name, size and life span may stand elsewhere too."""
        return next(i for i, b in enumerate(self.problem.buffers) if b is buffer)

    def excuse(self, plan: Plan, violation: Violation) -> str | None:
        """Why the replay may find no fault where the validator does; None when it must."""
        second = violation.second
        if second is None:
            return None
        pair = self._position(violation.first), self._position(second)
        if max(pair) >= len(self.line.planned):  # scratch is as large as it says
            tensors = [self.line.planned[i] for i in pair if i < len(self.line.planned)]
            return _padding(plan, list(pair), self) or _unread(tensors)
        a, b = (self.line.planned[i] for i in pair)
        return _padding(plan, list(pair), self) or _moved(a, b) or self._flow() or _unread([a, b])

    def _flow(self) -> str | None:
        return "control flow" if any(op.graphs for op in self.model.ops()) else None


def case_of(data: bytes) -> Case:
    """Plan `data`."""
    options = api.PlanOptions(search_options(1.0), verify=None)
    planned = api.plan(data, None, options).data
    model = read_model(planned)
    line = timeline_of(model, reference_scratch)
    at = placement_of(line, carried_plan(model)).offsets
    return Case(planned, model, line, planning_problem(line), Plan(tuple(at)))


def _true_size(case: Case, index: int) -> int:
    tensors = case.line.planned
    return tensors[index].nbytes if index < len(tensors) else case.problem.buffers[index].size


def _padding(plan: Plan, pair: list[int], case: Case) -> str | None:
    (a, b), o = pair, plan.offsets
    apart = o[a] + _true_size(case, a) <= o[b] or o[b] + _true_size(case, b) <= o[a]
    return "padding" if apart else None


_MOVERS = {
    "RESHAPE", "SQUEEZE", "EXPAND_DIMS", "CONCATENATION", "PACK", "UNPACK", "SPLIT", "SPLIT_V",
    "SLICE",
}  # fmt: skip


def _moved(a: Tensor, b: Tensor) -> str | None:
    """Whether both hold, in part, the same bytes: joined by operators that only move them."""
    return "movement" if _family(a) & _family(b) else None


def _family(tensor: Tensor) -> set[Tensor]:
    """All tensors reached over operators that move bytes."""
    found, stack = {tensor}, [tensor]
    while stack:
        t = stack.pop()
        ops: list[Op] = [*t.consumers, *([t.producer] if t.producer else [])]
        for op in ops:
            if op.kind in _MOVERS:
                for other in [*op.operands(), *op.outputs]:
                    if other not in found and not other.is_constant:
                        found.add(other)
                        stack.append(other)
    return found


def _unread(tensors: list[Tensor]) -> str | None:
    return "unread" if any(not t.consumers for t in tensors) else None


def spoil(plan: Plan, problem: Problem, rng: Dice) -> Plan:
    """Move a buffer or two: up or down, to a random place, or onto another buffer."""
    offsets = list(plan.offsets)
    for _ in range(int(rng.integers(1, 3))):
        i = int(rng.integers(len(offsets)))
        SPOILERS[int(rng.integers(len(SPOILERS)))](offsets, i, problem, rng)
    return Plan(tuple(offsets))


def _nudge(offsets: list[int], i: int, problem: Problem, rng: Dice) -> None:
    offsets[i] = max(offsets[i] + 16 * int(rng.integers(-4, 5)), 0)


def _anywhere(offsets: list[int], i: int, problem: Problem, rng: Dice) -> None:
    height = Plan(tuple(offsets)).height(problem)
    offsets[i] = 16 * int(rng.integers(height // 16 + 1))


def _onto(offsets: list[int], i: int, problem: Problem, rng: Dice) -> None:
    near: Any = problem.neighbours[i] or (i,)
    offsets[i] = offsets[int(near[int(rng.integers(len(near)))])]


def _fine(offsets: list[int], i: int, problem: Problem, rng: Dice) -> None:
    offsets[i] = max(offsets[i] + int(rng.integers(-20, 21)), 0)


SPOILERS: list[Callable[[list[int], int, Problem, Dice], None]] = [
    _nudge,
    _anywhere,
    _onto,
    _fine,
]


def judge(case: Case, plan: Plan) -> tuple[str, str]:
    """("both legal" | "both illegal" | "stricter" | "LAXER" | "UNEXPLAINED", detail)."""
    violations, faults = validate(case.problem, plan), case.faults(plan)
    if not violations:
        return ("LAXER", faults[0]) if faults else ("both legal", "")
    if faults:
        return "both illegal", ""
    excuses = [case.excuse(plan, v) for v in violations]
    if None in excuses:
        return "UNEXPLAINED", str(violations[excuses.index(None)])
    return "stricter", str(excuses[0])


def main() -> int:
    """Judge `--count` plans; exit code 1 when the validator was laxer or unexplained."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--plans", type=int, default=20, help="plans for each model")
    parser.add_argument("--loops", action="store_true", help="models of random WHILEs only")
    arguments = parser.parse_args()
    draw = random_loops_model if arguments.loops else model_of
    verdicts: collections.Counter[str] = collections.Counter()
    bad = 0
    for seed in range(arguments.count // arguments.plans):
        rng = np.random.default_rng(seed)
        case = case_of(draw(seed))
        for _ in range(arguments.plans):
            plan = spoil(case.plan, case.problem, rng)
            verdict, detail = judge(case, plan)
            verdicts[verdict if verdict != "stricter" else f"stricter: {detail}"] += 1
            if verdict.isupper():
                bad += 1
                if bad < 30:
                    print(f"seed {seed}: {verdict}: {detail}", flush=True)
    print(dict(verdicts))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
