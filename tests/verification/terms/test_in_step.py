"""Several memories, step by step: in each comes out what comes out of a run by itself."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tests.fuzz import legal_plans
from tests.fuzz.legal_plans import proofs_of_plans
from tests.fuzz.random_plans import spoil
from tests.models.counted_loops import counting
from tests.models.generator import random_model
from tests.models.handmade_flow import if_else
from tests.models.random_loops import random_loops_model
from tests.transforms.row_loops import planned
from tests.verification.terms.proofs import HOST
from tflm_planner.memory.problem import UNBOUNDED, Overlap, Problem
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model
from tflm_planner.ops.terms.field import Residues
from tflm_planner.ops.terms.mixing import Mixer, Words
from tflm_planner.ops.terms.values import InexpressibleError, Symbols, Values
from tflm_planner.tflm.liveness import Timeline, planning_problem, timeline_of
from tflm_planner.tflm.placement import placement_of
from tflm_planner.transforms.attach_plan import AttachPlan, carried_plan
from tflm_planner.transforms.base import run
from tflm_planner.verification.terms import prove_by_terms
from tflm_planner.verification.terms.layout import ArenaLayout, layout_of
from tflm_planner.verification.terms.machine import Machine, PartedError
from tflm_planner.verification.terms.memory import ArenaStore
from tflm_planner.verification.terms.stores import SeparateStore, Store

Memory = Callable[[Symbols, Mixer], Store]


def arena(layout: ArenaLayout, *, late: bool = False) -> Memory:
    return lambda symbols, mixer: ArenaStore(layout, mixer, symbols, late_copies=late)


def apart(model: Model) -> Memory:
    return lambda symbols, mixer: SeparateStore(model, mixer, symbols)


def layouts(model: Model, seed: int, count: int) -> Iterator[ArenaLayout]:
    """Of the plan that a model carries, and of plans made of it by chance, wrong ones as a rule,
    which it then carries one after the other."""
    line = timeline_of(model, HOST.scratch_of)
    problem = planning_problem(line, HOST.input_overlaps_of)
    first = placement_of(line, carried_plan(model) or {}).plan
    rng = np.random.default_rng(seed)
    yield layout_of(model, HOST)
    for _ in range(count):
        offsets = spoil(first, problem, rng).offsets
        run(model, AttachPlan(dict(zip(line.planned, offsets, strict=False))))
        yield layout_of(model, HOST)


class CountingMixer(Mixer):
    """Counts the elements that operators mix of others; rubbish and names are made of nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.mixed = 0

    def mix(self, values: Residues, words: Words) -> Residues:
        """See `Mixer`."""
        mixed = super().mix(values, words)
        self.mixed += mixed[0].size
        return mixed


def ends(model: Model, memories: list[Memory]) -> tuple[list[list[Values]], int]:
    """Outputs and state in each memory, and how many elements operators mixed on the way."""
    symbols = Symbols(mixer := CountingMixer())
    stores = [memory(symbols, mixer) for memory in memories]
    inputs = [symbols.of_name(t.shape or (), t.name) for t in model.main.inputs]
    machine = Machine(model, *stores)
    outputs = machine.run(inputs)
    states = [Values(state[:, None], False) for state in machine.states]
    return [[*o, s] for o, s in zip(outputs, states, strict=True)], mixer.mixed


def or_why(model: Model, memory: Memory) -> list[Values] | str:
    """The ends in one memory, or why there are none."""
    try:
        return ends(model, [memory])[0][0]
    except InexpressibleError as why:
        return str(why)


def are_same(a: list[Values], b: list[Values]) -> bool:
    return all(x.is_same_as(y) for x, y in zip(a, b, strict=True))


def small_model(seed: int) -> bytes:
    """Operators in a row, WHILEs, or IFs as well."""
    if seed % 3:
        return random_loops_model(seed, choices=seed % 3 == 2)
    return random_model(seed, steps=6)


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 6, 7, 8, 10, 11])
def test_in_each_memory_comes_out_what_does_alone(seed: int) -> None:
    model = read_model(planned(small_model(seed)).data)
    found = list(layouts(model, seed, 10))
    memories = [apart(model), arena(found[0], late=True), *map(arena, found)]
    alone = [or_why(model, memory) for memory in memories]
    runs = [m for m, a in zip(memories, alone, strict=True) if not isinstance(a, str)]
    wanted = [a for a in alone if not isinstance(a, str)]
    assert sum(not are_same(wanted[0], other) for other in wanted) >= 2, "plans that are wrong"
    try:
        together, _ = ends(model, runs)
    except PartedError:  # a pair at a time, then
        together = [wanted[0], *(pair[1] for pair in _pairs(model, runs, wanted))]
    assert all(map(are_same, wanted, together))


def _pairs(
    model: Model, runs: list[Memory], wanted: list[list[Values]]
) -> list[list[list[Values]]]:
    found: list[list[list[Values]]] = []
    for memory, end in zip(runs[1:], wanted[1:], strict=True):
        try:
            found.append(ends(model, [runs[0], memory])[0])
        except PartedError:
            assert not are_same(wanted[0], end)
            found.append([wanted[0], end])
    return found


@pytest.mark.parametrize(
    "data",
    [counting(7, elements=5), if_else(), random_model(4, steps=8)],
    ids=["loop", "if", "row"],
)
def test_what_is_the_same_everywhere_is_computed_once(data: bytes) -> None:
    model = read_model(planned(data).data)
    layout = layout_of(model, HOST)
    (alone,), once = ends(model, [arena(layout)])
    together, mixed = ends(model, [apart(model), arena(layout), arena(layout, late=True)])
    assert all(are_same(alone, other) for other in together)
    # A choice between branches is made byte by byte in an arena, in each memory by itself.
    assert 0 < mixed == once or any(op.kind == "IF" for op in model.ops())


def test_memories_that_turn_a_loop_another_time_are_proved_one_by_one() -> None:
    """Random WHILEs, whose counters some plans overwrite."""
    seen: Counter[str] = Counter()
    for seed in range(1, 11, 2):
        data = random_loops_model(seed)
        original, model = read_model(data), read_model(planned(data).data)
        right = or_why(original, apart(original))
        assert not isinstance(right, str)
        for layout in layouts(model, seed, 6):
            ways = [arena(layout), arena(layout, late=True), apart(model)]
            alone = [or_why(model, way) for way in ways]
            equal = all(not isinstance(a, str) and are_same(right, a) for a in alone)
            try:
                ends(model, ways)
            except PartedError:
                seen["parted"] += 1
            status = prove_by_terms(original, model, HOST).status
            assert status == ("equal" if equal else "different")
            seen[status] += 1
    assert min(seen.values()) >= 5 and len(seen) == 3, seen


def test_plans_that_a_lax_validator_permits_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A problem that lets all lie over all."""

    def lax(timeline: Timeline, _: object) -> Problem:
        buffers = planning_problem(timeline).buffers
        pairs = itertools.combinations(range(len(buffers)), 2)
        return Problem.of(buffers, tuple(Overlap(i, j, -UNBOUNDED, UNBOUNDED) for i, j in pairs))

    data = random_model(4, steps=8)
    file = planned(data).data
    right = [*proofs_of_plans(read_model(data), read_model(file), HOST, 4, 24)]
    monkeypatch.setattr(legal_plans, "planning_problem", lax)
    wrong = [*proofs_of_plans(read_model(data), read_model(file), HOST, 4, 24)]
    assert len(right) >= 8 and len(wrong) == 24
    assert {proof.status for proof in right} == {"equal"}
    assert sum(proof.status == "different" for proof in wrong) > 12
    assert all(proof.detail for proof in wrong if proof.status == "different")
