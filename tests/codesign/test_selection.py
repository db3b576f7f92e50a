"""Skips at the peak: the fewest that matter change, and what that saves is what the whole saves."""

from __future__ import annotations

from functools import partial
from itertools import chain as joined
from itertools import combinations

import pytest

from tflm_planner.codesign.chains.papers import NETWORKS
from tflm_planner.codesign.chains.residuals import ends, plain, reorganise
from tflm_planner.codesign.networks.build import build, build_traced
from tflm_planner.codesign.networks.selection import planned_memory, select, stock_memory
from tflm_planner.model.serde import read_model
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.targets import load_target

M4 = load_target("cortex-m4/cmsis-nn")
stock = partial(stock_memory, target=M4)


def test_the_memory_of_a_chain_is_that_of_its_model() -> None:
    network = NETWORKS["resnet8"]()
    data, layers = build_traced(network)
    operators = read_model(data).main.ops
    assert data == build(network) and len(operators) == len(layers)
    memory, arena = stock(network), arena_of(read_model(data), M4)
    assert (memory.arena, memory.head) == (arena.arena, arena.head)
    assert memory.peak == {2}, "the sum of the first block, whose three values live"


def test_the_fewest_skips_change_with_which_the_head_is_least() -> None:
    network = NETWORKS["resnet8"]()
    places = ends(network)
    subsets = joined(*(combinations(places, n) for n in range(len(places) + 1)))
    heads = {frozenset(s): stock(plain(network, s)).head for s in subsets}
    fewest = min(heads, key=lambda s: (heads[s], len(s)))
    found = select(network, plain, stock)
    assert found.changed == fewest and 0 < len(fewest) < len(places)
    assert found.memory == stock(found.chain) and found.memory.head == heads[fewest]


def test_skips_that_need_as_much_as_each_other_change_together() -> None:
    network = NETWORKS["resnet20"]()
    found = select(network, reorganise, stock)
    assert stock(network).peak == {2, 4, 6} == found.changed
    alone = [stock(reorganise(network, {end})).head for end in found.changed]
    assert min(alone) == stock(network).head > found.memory.head


def test_a_change_that_saves_nothing_is_not_made() -> None:
    for name, change in (("resnet8", reorganise), ("yolo_like", plain)):
        network = NETWORKS[name]()
        found = select(network, change, stock)
        assert found.chain == network and not found.changed
        assert stock(change(network)).head >= 0.98 * found.memory.head


@pytest.mark.slow
def test_planned_the_skips_at_the_peak_are_all_that_cost_anything() -> None:
    planned = partial(planned_memory, target=M4)
    network = NETWORKS["resnet8"]()
    found = select(network, plain, planned)
    assert len(found.changed) == 2 and found.memory.head == planned(plain(network)).head
