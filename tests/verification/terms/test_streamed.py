"""Front and back of a split model are proved together, in the memory that they share."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from tests.conftest import needs_tflm
from tests.transforms.row_loops import chain, random_blocks
from tests.transforms.stream_inputs import cleaned, differences, halves, places, some_place
from tests.verification.terms.proofs import HOST, changed, forged
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model
from tflm_planner.transforms.attach_plan import carried_plan
from tflm_planner.verification.pairs import Pair
from tflm_planner.verification.terms import Halves, TermsProof, prove_pair_by_terms

NETWORK = chain((3, 1, 4), (3, 2, 6), (3, 1, 3))


def proof(data: bytes, pair: Pair) -> TermsProof:
    """Of a pair of files."""
    front, back = (read_model(d, dialect=True) for d in (pair.front, pair.back))
    return prove_pair_by_terms(read_model(data), Halves(front, back, pair.strips), HOST)


def deep_pair(data: bytes = NETWORK) -> Pair:
    """Two operators in the front, with halos of their own."""
    where = next(p for p in places(cleaned(data)) if len(p[0]) == 2 and p[1] == 1)
    return halves(data, where)


def test_random_splits_are_equal() -> None:
    seen: Counter[bool] = Counter()
    for seed in range(14):
        rng = random.Random(seed)
        data = random_blocks(seed, rng.randint(2, 8))
        where = some_place(cleaned(data), rng)
        if where is None:
            continue
        found = proof(data, halves(data, where))
        assert found.status == "equal", (seed, found.detail)
        assert found.error_log2 is not None and found.error_log2 < -100
        seen[len(where[0]) > 1] += 1
    assert seen[True] >= 3 and seen[False] >= 1


def test_a_wrong_schedule_is_found() -> None:
    pair = deep_pair()
    strips = pair.strips
    assert proof(NETWORK, pair).status == "equal" and strips.fills and strips.delay
    wrong = {
        "delay": replace(strips, delay=strips.delay - 1),
        "turns": replace(strips, turns=strips.turns - 1),
        "fills": replace(strips, fills=tuple(f + 1 for f in strips.fills)),
    }
    for what, other in wrong.items():
        found = proof(NETWORK, replace(pair, strips=other))
        assert found.status == "different", what
        assert "of what the front makes is wrong before the back begins" in found.detail, what


def test_the_half_at_fault_is_named() -> None:
    def weaken(model: Model) -> None:
        weights = model.main.ops[-1].inputs[1]
        assert weights is not None and weights.buffer.data is not None
        weights.buffer.data = weights.buffer.data + 1

    pair = deep_pair()
    found = proof(NETWORK, replace(pair, back=changed(pair.back, weaken)))
    assert found.status == "different" and "the back is wrong" in found.detail


def test_the_front_may_not_lie_over_the_rows_that_it_has_made() -> None:
    """Room and boundary in one place: the front's own arena is right, what both share is not."""
    pair = deep_pair()

    def over(model: Model, at: dict) -> dict:
        boundary, room = model.main.inputs
        return {**at, room: at[boundary]}

    found = proof(NETWORK, replace(pair, back=forged(pair.back, over)))
    assert found.status == "different" and "the front" in found.detail


def test_a_halo_that_its_plan_moves_is_lost() -> None:
    pair = deep_pair()

    def moved(model: Model, at: dict) -> dict:
        _, taken = pair.strips.states[0]
        top = max(at.values()) + 4096
        return {**at, model.main.outputs[taken]: -(-top // 16) * 16}

    front = forged(pair.front, moved)
    room = read_model(pair.back, dialect=True).main.inputs[1]
    assert max((carried_plan(read_model(front)) or {}).values()) > room.nbytes
    assert proof(NETWORK, replace(pair, front=front)).status == "not run"


@needs_tflm
def test_plans_with_one_offset_moved() -> None:
    """Of those that TFLM shows to be wrong, all are different."""
    pair, seen = deep_pair(), Counter[str]()
    for seed in range(16):
        rng = random.Random(seed)
        half = rng.choice(("front", "back"))

        def moved(model: Model, at: dict, rng: random.Random = rng) -> dict:
            tensor = rng.choice(sorted(at, key=lambda t: t.name))
            return {**at, tensor: max(at[tensor] + rng.choice((-64, -16, 16, 32)), 0)}

        other = replace(pair, **{half: forged(getattr(pair, half), moved)})
        status = proof(NETWORK, other).status
        shown = any(d.startswith("TFLM") for d in differences(NETWORK, other, images=3))
        assert not (shown and status == "equal"), seed
        seen[f"{status}, {shown}"] += 1
    assert seen["different, True"] >= 3


def test_two_proofs_of_a_pair_are_the_same() -> None:
    pair = deep_pair()
    assert proof(NETWORK, pair) == proof(NETWORK, pair)
