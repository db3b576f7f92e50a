"""Concatenations, norms that stay, upsampling and groups, trained and made int8: TensorFlow, numpy
and LiteRT compute the same, and values that a concatenation connects have one range."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.codesign.test_training import distance, disturbed, scores_of
from tests.conftest import needs_tflm
from tests.frameworks import needs_framework
from tflm_planner.codesign.chains.chain import Chain, Layer
from tflm_planner.codesign.chains.families import ChainBuilder
from tflm_planner.codesign.networks.build import build, build_floats, build_int8, value_sets
from tflm_planner.codesign.networks.folding import fold
from tflm_planner.codesign.networks.ranges import ValueRange, ValueSets, common_ranges
from tflm_planner.codesign.networks.scoring import outputs, value_ranges
from tflm_planner.codesign.networks.weights import Network, draw
from tflm_planner.codesign.training.data import load_data
from tflm_planner.codesign.training.loop import Recipe, train
from tflm_planner.codesign.training.rounding import FINE_TUNING, round_network
from tflm_planner.codesign.training.trainable import of_network, untrained
from tflm_planner.model.ir import Op
from tflm_planner.model.serde import read_model


def dense(side: int = 8) -> Chain:
    """Two blocks of two concatenations, norms before convolutions, and a pool between them."""
    grown = ChainBuilder(1)
    grown.conv(6, (3, 3), activation="relu")
    for block in range(2):
        for _ in range(2):
            width = grown.channels
            grown.layers.append(Layer("norm", activation="relu"))
            grown.conv(8, activation="relu")
            grown.conv(4, (3, 3))
            grown.layers[-1] = replace(grown.layers[-1], skip=3, join="concat")
            grown.channels += width
        grown.layers.append(Layer("norm", activation="relu"))
        if not block:
            grown.conv(6)
            grown.layers.append(Layer("average_pool", (2, 2), 2))
    grown.classify(10)
    return Chain("dense", (side, side, 1), tuple(grown.layers))


def branches() -> Chain:
    """A branch of one 1x1 convolution beside two layers with a late sum, then what was upsampled
    beside what was before the stride."""
    grown = ChainBuilder(2)
    grown.conv(4, (3, 3), activation="relu6")
    grown.conv(6, (3, 3), activation="relu")
    grown.layers[-1] = replace(grown.layers[-1], skip=1, join="scaled late sum")
    grown.layers.append(Layer("join", activation="relu", skip=2, join="concat", branch=5))
    grown.channels = 11
    grown.conv(6, (3, 3), 2, "relu")
    grown.layers.append(Layer("upsample", stride=2))
    grown.layers.append(Layer("join", skip=3, join="concat"))
    grown.channels = 17
    grown.classify(5)
    return Chain("branches", (8, 10, 2), tuple(grown.layers))


def grouped() -> Chain:
    """Two groups, and two results for each channel."""
    grown = ChainBuilder(2)
    grown.conv(6, (3, 3), activation="relu")
    grown.layers.append(Layer("conv", (3, 3), 1, 6, 8, 2, "relu"))
    grown.layers.append(Layer("conv", (3, 3), 2, 8, 16, 8, "relu"))
    grown.channels = 16
    grown.classify(5)
    return Chain("grouped", (7, 8, 2), tuple(grown.layers))


CHAINS = {"dense": dense, "branches": branches, "grouped": grouped}


def some_images(chain: Chain, number: int = 3) -> np.ndarray:
    return np.random.default_rng(2).normal(size=(number, *chain.image)).astype(np.float32)


def drawn(name: str) -> Network:
    """A network as if trained, folded."""
    return fold(draw(CHAINS[name](), 1, "after"))


def concatenations(data: bytes) -> list[Op]:
    return [op for op in read_model(data).main.ops if op.kind == "CONCATENATION"]


def on_tflm(data: bytes, image: np.ndarray) -> np.ndarray:
    """What TFLM computes of a float image that is quantized for it."""
    from tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(data, arena_size=1_000_000)
    given = interpreter.get_input_details(0)["quantization_parameters"]
    steps = np.rint(image / float(given["scales"][0])) + given["zero_points"][0]
    interpreter.set_input(np.clip(steps, -128, 127).astype(np.int8)[None], 0)
    interpreter.invoke()
    return interpreter.get_output(0)[0]


# --- the same function ----------------------------------------------------------------------------


@needs_framework
@pytest.mark.slow
@pytest.mark.parametrize("norms", ["before", "after"])
@pytest.mark.parametrize("name", CHAINS)
def test_the_framework_numpy_and_litert_compute_the_same(name: str, norms: str) -> None:
    chain = CHAINS[name]()
    trainable = disturbed(untrained(chain, 0, norms))  # type: ignore[arg-type]
    images = some_images(chain)
    network = trainable.network()
    wanted = scores_of(network, images)
    assert distance(trainable.predict(images), wanted) < 1e-5
    folded = fold(network)
    assert distance(of_network(folded).predict(images), wanted) < 1e-5
    layers = tuple(layer for layer in folded.chain.layers if layer.kind != "softmax")
    scores = Network(replace(folded.chain, layers=layers), folded.weights[: len(layers)])
    assert distance(outputs(build_floats(scores), images), wanted) < 1e-4


# --- one range ------------------------------------------------------------------------------------


def test_sets_unite_and_are_called_by_their_first() -> None:
    sets = ValueSets()
    for _ in range(6):
        sets.add()
    sets.connect((3, 4))
    sets.connect((4, 1))
    sets.connect((5, 2))
    assert sets.names() == (0, 1, 2, 1, 1, 2)
    ranges = [ValueRange(-k, 10.0 - k) for k in range(6)]
    common = common_ranges(ranges, sets.names())
    assert common[1] == common[3] == common[4] == ValueRange(-4, 9)
    assert common[2] == common[5] == ValueRange(-5, 8) and common[0] == ranges[0]
    with pytest.raises(ValueError):
        common_ranges(ranges[:-1], sets.names())


@pytest.mark.parametrize("name", CHAINS)
def test_what_is_concatenated_has_one_range(name: str) -> None:
    """Also where a pool or upsampling lies between the value that is calibrated and the
    concatenation."""
    network = drawn(name)
    ranges = value_ranges(network, some_images(network.chain))
    assert ranges == common_ranges(ranges, value_sets(network.chain))
    widened = [ValueRange(2 * r.low - k, 2 * r.high) for k, r in enumerate(ranges)]
    for data in (build(network.chain), *(build_int8(network, r) for r in (ranges, widened))):
        found = concatenations(data)
        assert len(found) == {"dense": 4, "branches": 2, "grouped": 0}[name]
        for op in found:
            values = [x for x in (*op.inputs, *op.outputs) if x is not None]
            assert len({value.quantization.single for value in values}) == 1
    with pytest.raises(ValueError):
        build_int8(network, ranges[1:])


def test_blocks_of_a_dense_network_have_one_range_each() -> None:
    sets = value_sets(dense())
    large = [name for name in set(sets) if sets.count(name) > 1]
    # The stem or the transition, two results of 3x3 convolutions, two concatenations.
    assert [sets.count(name) for name in large] == [5, 5]


@needs_tflm
@pytest.mark.parametrize("name", CHAINS)
def test_int8_runs_on_litert_and_tflm_with_equal_bits(name: str) -> None:
    network = drawn(name)
    images = some_images(network.chain, 8)
    int8 = build_int8(network, value_ranges(network, images))
    assert np.array_equal(outputs(int8, images), [on_tflm(int8, image) for image in images])
    floats = outputs(build_floats(network), images)
    assert np.abs((outputs(int8, images).astype(float) + 128) / 256 - floats).max() < 0.1


@needs_tflm
@pytest.mark.parametrize("name", CHAINS)
def test_models_with_drawn_numbers_run(name: str) -> None:
    """Both runtimes refuse a concatenation whose operands differ in scale or zero point. They round
    a few sums of a dense layer otherwise, which the softmax widens."""
    data = build(CHAINS[name]())
    images = some_images(CHAINS[name](), 8)
    on_both = outputs(data, images).astype(int), np.stack([on_tflm(data, x) for x in images])
    assert np.abs(on_both[0] - on_both[1]).max() <= 3


# --- training -------------------------------------------------------------------------------------


@needs_framework
@pytest.mark.slow
@pytest.mark.parametrize("name", CHAINS)
def test_rounded_training_sees_what_int8_computes(name: str) -> None:
    network = drawn(name)
    images = some_images(network.chain, 20)
    ranges = value_ranges(network, images)
    simulated = of_network(network)
    simulated.rounding = ranges
    powers = np.exp(simulated.predict(images).astype(float))
    wanted = powers / powers.sum(axis=1, keepdims=True)
    int8 = (outputs(build_int8(network, ranges), images).astype(float) + 128) / 256
    assert np.abs(int8 - wanted).max() < 0.06 and np.abs(int8 - wanted).mean() < 0.008


@needs_framework
@pytest.mark.slow
def test_a_dense_network_learns_the_same_each_time_and_is_made_int8() -> None:
    pytest.importorskip("sklearn")
    digits = load_data("digits")
    recipe = Recipe(epochs=2, batch=32, rate=0.2)
    twice = [untrained(dense(), 0) for _ in range(2)]
    histories = [train(trainable, digits, recipe) for trainable in twice]
    assert histories[0] == histories[1] and histories[0][-1].accuracy > 0.8
    state, again = (trainable.state() for trainable in twice)
    assert all(np.array_equal(values, again[name]) for name, values in state.items())
    assert not np.array_equal(state["1.after.gamma"], np.ones(6)), "norms that stay are trained"
    assert not np.array_equal(state["1.after.mean"], np.zeros(6))
    rounded = round_network(twice[0], digits, FINE_TUNING)
    assert abs(rounded.of_floats - histories[0][-1].accuracy) < 0.01
    assert min(rounded.after_training, rounded.of_int8) > rounded.of_floats - 0.03
