"""What a proof may compute is bounded by the size of the file, not by what it declares."""

from __future__ import annotations

import pytest

from tests.models.counted_loops import counting
from tests.models.small import Chain, One
from tests.transforms.row_loops import chain, planned, streamed
from tests.verification.terms.proofs import HOST, forged, proof
from tflm_planner.model.serde import read_model
from tflm_planner.ops.terms.values import InexpressibleError
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.verification.terms import prove_by_terms
from tflm_planner.verification.terms.allowance import Allowance
from tflm_planner.verification.turns import runs_of
from tflm_planner.verification.workload import why_unfit


def tall(height: int, channels: int = 1) -> bytes:
    """A convolution of an image of two columns, in a file of a kilobyte."""
    chain = Chain((1, height, 2, 1))
    chain.conv(channels, 1)
    return chain.finish()


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (tall(1 << 22), "elements are made"),
        (tall(1 << 28), "elements are made"),
        (counting(2000, elements=1 << 13), "elements are made"),
    ],
    ids=["tall", "taller", "many turns"],
)
def test_a_small_file_that_declares_much_is_not_computed(data: bytes, what: str) -> None:
    assert len(data) < 4000
    found = proof(data, data)
    assert found.status == "not run"
    assert what in found.detail and f"{len(data):,} bytes" in found.detail


@pytest.mark.parametrize("data", [tall(1 << 12), counting(50)], ids=["tall", "turns"])
def test_what_is_less_is_proved(data: bytes) -> None:
    assert proof(data, data).status == "equal"


def test_a_loop_counts_with_every_turn() -> None:
    """Before it runs, a loop counts once: only while it runs is known how often it turns."""
    model = read_model(counting(100, elements=64))
    allowance = Allowance(model.file_size)
    for op in model.ops():
        allowance.spend(op, 100)
    assert prove_by_terms(model, model).status == "equal"


def test_operators_that_run_are_counted() -> None:
    op = read_model(counting(2)).graphs[2].ops[0]
    allowance = Allowance(1000)
    allowance.spend(op, 1 << 15)
    with pytest.raises(InexpressibleError, match="operators run, turns counted"):
        allowance.spend(op, 1000)


def test_a_loop_over_a_deep_network_of_a_large_image_stays_below_every_bound() -> None:
    """46 convolutions of 224 x 224 pixels, one row of the result a turn: all runs that a proof and
    a runtime may make suffice for half as many more turns."""
    layers = [(3, 2, 8), *[(1, 1, 16), (3, 1, 16), (1, 1, 8)] * 15]
    whole = LoopedRegion(tuple(range(len(layers))), 1)
    made, (note, *_) = streamed(chain(*layers, size=224), whole)
    assert note.startswith("streamed 46 operators")
    model = read_model(made)
    runs, allowance = runs_of(model), Allowance(model.file_size)
    assert not runs.too_many and sum(runs.times.values()) > 200
    for graph in model.graphs:
        for op in graph.ops:
            allowance.spend(op, runs.times[graph] * 3 // 2)
    assert all(why_unfit(model, runtime) is None for runtime in ("LiteRT", "TFLM"))


def test_macs_and_elements_grow_with_the_file() -> None:
    conv = read_model(tall(1 << 17, 64)).main.ops[0]
    with pytest.raises(InexpressibleError, match="multiply-accumulates"):
        Allowance(10_000).spend(read_model(deep()).main.ops[0])
    Allowance(10_000_000).spend(read_model(deep()).main.ops[0])
    with pytest.raises(InexpressibleError, match="elements"):
        Allowance(1000).spend(conv)
    Allowance(2_000_000).spend(conv)


def test_a_network_that_enlarges_images_is_proved() -> None:
    """Few weights, each used for every pixel: 260 million multiply-accumulates in 7 KB."""
    chain = Chain((1, 240, 320, 1))
    chain.conv(8, 3)
    chain.conv(8, 5)
    chain.conv(4, 3)
    model = read_model(chain.finish())
    assert model.file_size < 10_000
    allowance = Allowance(model.file_size)
    for op in model.ops():
        allowance.spend(op)
    assert all(why_unfit(model, runtime) is None for runtime in ("LiteRT", "TFLM"))


def deep() -> bytes:
    """A convolution of 1.2 billion multiply-accumulates and few elements."""
    chain = Chain((1, 48, 32, 64))
    chain.conv(1365, 3)
    return chain.finish()


def test_a_plan_with_a_tensor_far_away_is_not_laid_out() -> None:
    """A cell for every byte below would take gigabytes."""
    one = One((1, 16))
    data = one.finish((one.relu(one.x, (1, 16)), (1, 16)))
    far = forged(planned(data).data, lambda m, at: {**at, m.main.outputs[0]: 1 << 30})
    found = proof(data, far, HOST)
    assert found.status == "not run" and "an arena of 1,073,741,840 bytes" in found.detail
