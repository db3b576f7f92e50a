"""Bytes that are written over by equal ones are not lost, and nothing else passes for such."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.small import One
from tests.placed_replay import replay_planned
from tests.transforms.row_loops import planned
from tests.transforms.tiled import quick_differences
from tests.verification.terms.proofs import HOST, forged, proof
from tflm_planner.model.ir import Model, Tensor

ROW = 8


class Moves(One):
    """Operators that move rows of 8 bytes."""

    def __init__(self) -> None:
        super().__init__((2, ROW))
        self.rows = {self.x: 2}

    def made(self, rows: int) -> int:
        y = self.tensor((rows, ROW))
        self.rows[y] = rows
        return y

    def difference(self, a: int, b: int) -> int:
        y = self.made(self.rows[a])
        self.graph.op("SUB", [a, b], [y], "SubOptions")
        return y

    def joined(self, *parts: int) -> int:
        y = self.made(sum(self.rows[p] for p in parts))
        self.graph.op("CONCATENATION", [*parts], [y], "ConcatenationOptions")
        return y

    def split(self, x: int, *sizes: int) -> list[int]:
        parts = [self.made(n) for n in sizes]
        axis = self.graph.constant(f"axis{parts[0]}", np.int32(0))
        operands, count = [x, self.integers(*sizes), axis], len(parts)
        self.graph.op("SPLIT_V", operands, parts, "SplitVOptions", numSplits=count)
        return parts

    def cut(self, x: int, first: int, rows: int) -> int:
        y = self.made(rows)
        self.graph.op("SLICE", [x, self.integers(first, 0), self.integers(rows, ROW)], [y])
        return y

    def finish_with(self, *outputs: int) -> bytes:
        return self.finish(*((y, (self.rows[y], ROW)) for y in outputs))


def op_of(model: Model, kind: str):
    return next(op for op in model.main.ops if op.kind == kind)


def apart(at: dict[Tensor, int]) -> dict[Tensor, int]:
    return {t: 512 + 128 * i for i, t in enumerate(at)}


@needs_tflm
@pytest.mark.parametrize(("first", "status"), [(256, "equal"), (64, "different")])
def test_results_that_only_seem_to_mend_what_another_one_spoilt(first: int, status: str) -> None:
    """x = [ z z z z | u u | u u | u u ] is split in four, of which the third part counts.

    The first part is written over the second and the third, then the second one over the third, and
    the last one over the second: each would copy a `u` onto a `u`, had the first part not been
    there."""
    net = Moves()
    u = net.x
    z = net.difference(u, u)
    parts = net.split(net.joined(*[z] * 4, *[u] * 6), 8, 4, 4, 4)
    data = net.finish_with(parts[2])

    def over(model: Model, at: dict[Tensor, int]) -> dict[Tensor, int]:
        split = op_of(model, "SPLIT_V")
        a, b, _, d = split.outputs
        return {**apart(at), split.operands()[0]: 0, a: first, b: 96, d: 64}

    made = forged(planned(data).data, over)
    assert proof(data, made, HOST).status == status
    assert bool(quick_differences(data, made, ("TFLM",))) == (status == "different")


def test_a_slice_over_its_own_operand_is_judged() -> None:
    """Begin and size, which are constants, have no place in the arena."""
    net = Moves()
    whole = net.joined(net.x, net.difference(net.x, net.x), net.x)
    data = net.finish_with(net.cut(whole, 1, 4), whole)

    def over(model: Model, at: dict[Tensor, int]) -> dict[Tensor, int]:
        cut = op_of(model, "SLICE")
        return {**apart(at), cut.inputs[0]: 0, cut.outputs[0]: 16}

    assert proof(data, forged(planned(data).data, over), HOST).status == "different"


def random_moves(rng: random.Random) -> bytes:
    """Rows split, joined, cut and joined again, so that many of them are equal."""
    net = Moves()
    made = [net.x]
    for _ in range(rng.randint(3, 7)):
        x = rng.choice(made)
        kind = rng.choice(("joined", "joined", "split", "split", "cut", "difference"))
        rows = net.rows[x]
        if kind == "joined":
            parts = [x, *rng.choices(made, k=rng.randint(1, 3))]
            if sum(net.rows[p] for p in parts) <= 16:
                made.append(net.joined(*parts))
        elif kind == "split":
            counts = [n for n in (2, 3, 4) if rows % n == 0]
            count = rng.choice(counts) if counts else 1
            made += net.split(x, *[rows // count] * count)
        elif kind == "cut":
            taken = rng.randint(1, rows)
            made.append(net.cut(x, rng.randint(0, rows - taken), taken))
        else:
            made.append(net.difference(x, rng.choice([t for t in made if net.rows[t] == rows])))
    return net.finish_with(*{made[-1], rng.choice(made)})


def random_places(rng: random.Random, model: Model, at: dict[Tensor, int]) -> dict[Tensor, int]:
    """Anywhere in a small room, and many a part where it lies in its whole."""
    room, share = rng.choice((6, 12, 24)), rng.random()
    new = {t: ROW * rng.randrange(room) if rng.random() < share else o for t, o in at.items()}
    for op in model.main.ops:
        whole, parts = op.outputs[0], op.operands()
        if op.kind != "CONCATENATION":
            whole, parts = parts[0], op.outputs
        place = new.get(whole, 0)
        for part in parts:
            if part in new and rng.random() < 0.4:
                new[part] = place
            place += part.nbytes
    return new


@needs_tflm
def test_what_is_equal_under_forged_plans_is_so_in_the_replay_or_on_tflm() -> None:
    """The replay goes by tokens of bytes, and shares no code with the terms. It is stricter: two
    operators that compute the same from the same make tokens of their own, and rows that a SLICE
    does not take may not be lost. There TFLM decides."""
    seen = Counter[str]()
    for seed in range(4):
        rng = random.Random(seed)
        data = random_moves(rng)
        made = planned(data, seconds=0.1).data
        for _ in range(7):
            file = forged(made, lambda model, at, rng=rng: random_places(rng, model, at))
            status, fault = proof(data, file, HOST).status, bool(replay_planned(file))
            if status == "equal" and fault:
                assert not quick_differences(data, file, ("TFLM",)), seed
            seen[f"{status}, {fault}"] += 1
    assert seen["equal, False"] >= 4 and seen["different, True"] >= 12 and seen["equal, True"] >= 1
