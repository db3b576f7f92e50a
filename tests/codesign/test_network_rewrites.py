"""Exact rewrites of networks with weights, held by numpy and by LiteRT, and what the other rewrites
make of published networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from tflm_planner.codesign.chains.chain import Chain, Layer, steps
from tflm_planner.codesign.chains.families import FAMILIES, ChainBuilder
from tflm_planner.codesign.chains.papers import (
    NETWORKS,
    densenet121,
    densenet_mini,
    resnet34,
    yolo_like,
)
from tflm_planner.codesign.chains.residuals import (
    ends,
    linearise,
    plain,
    redistribute,
    reorganise,
    repvgg,
    units,
    vanishing,
)
from tflm_planner.codesign.chains.sizes import size_of
from tflm_planner.codesign.networks.build import build, build_floats
from tflm_planner.codesign.networks.evaluate import evaluate
from tflm_planner.codesign.networks.folding import fold, running
from tflm_planner.codesign.networks.weights import Array, Network, draw
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.tflm.targets import load_target

M4 = load_target("cortex-m4/cmsis-nn")


def resnet() -> Chain:
    """Sums, two of them projected, on sides that strides do not divide."""
    made = FAMILIES["resnet8"].make(15, 0.5, 8, 10)
    return replace(made, image=(15, 18, 3))


def bottlenecks() -> Chain:
    """Linear projections with and without sums, windows of three sizes."""
    grown = ChainBuilder(3)
    grown.conv(6, (3, 3), 2, "relu6")
    for hidden, out, kernel, stride in ((12, 6, 3, 1), (18, 8, 5, 2), (24, 8, 7, 1)):
        grown.bottleneck(hidden, out, kernel, stride, "relu6")
    grown.conv(10, (1, 1), 2)
    grown.conv(4, activation="relu")
    grown.classify(5)
    return Chain("bottlenecks", (21, 16, 3), tuple(grown.layers))


def dense() -> Chain:
    """Concatenations, norms that cannot be folded, both windowed pools."""
    made = densenet_mini()
    pool = Layer("max_pool", (3, 3), 2)
    return replace(made, image=(26, 14, 3), layers=(made.layers[0], pool, *made.layers[1:]))


def yolo() -> Chain:
    """Two branches, late sums, and a long skip to what was upsampled."""
    return replace(yolo_like(), image=(32, 32, 3))


CHAINS = {"resnet": resnet, "bottlenecks": bottlenecks, "dense": dense, "yolo": yolo}


def images(chain: Chain) -> Array:
    """One image of normal numbers."""
    return np.random.default_rng(1).normal(size=(1, *chain.image))


def on_litert(data: bytes, image: Array) -> Array:
    """What LiteRT computes."""
    runtime: Any = Interpreter(model_content=data)
    runtime.allocate_tensors()
    runtime.set_tensor(runtime.get_input_details()[0]["index"], image.astype(np.float32))
    runtime.invoke()
    return runtime.get_tensor(runtime.get_output_details()[0]["index"])


def distance(one: Array, other: Array) -> float:
    """The largest difference, relative to the largest number."""
    return float(np.abs(one.ravel() - other.ravel()).max() / np.abs(one).max())


def without_softmax(chain: Chain) -> Chain:
    """Up to the scores, which say more than probabilities near 0 and 1."""
    return replace(chain, layers=tuple(x for x in chain.layers if x.kind != "softmax"))


def same(network: Network, other: Network) -> bool:
    """Whether both compute the same, up to rounding."""
    image = images(network.chain)
    return distance(evaluate(network, image), evaluate(other, image)) < 1e-9


# --- what a chain means ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", CHAINS)
def test_the_model_computes_what_the_chain_means(name: str) -> None:
    network = draw(CHAINS[name](), 3)
    image = images(network.chain)
    assert distance(evaluate(network, image), on_litert(build_floats(network), image)) < 1e-4


@pytest.mark.parametrize("scaled", ["always", "where shapes change"])
@pytest.mark.parametrize("name", CHAINS)
def test_late_skips_and_their_norms_run_as_operators(name: str, scaled: Any) -> None:
    made = without_softmax(reorganise(CHAINS[name](), scaled=scaled))
    trained = draw(made, 4, "before")
    image = images(made)
    folded = fold(trained)
    assert distance(evaluate(trained, image), evaluate(folded, image)) < 1e-9
    assert distance(evaluate(trained, image), on_litert(build_floats(folded), image)) < 1e-4


def test_a_network_that_is_not_folded_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="fold it first"):
        build_floats(draw(resnet(), 0, "before"))


# --- fold -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("norms", ["before", "after"])
@pytest.mark.parametrize("name", CHAINS)
def test_norms_fold_also_at_the_borders(name: str, norms: Any) -> None:
    trained = draw(without_softmax(CHAINS[name]()), 5, norms)
    folded = fold(trained)
    assert folded.is_folded and not trained.is_folded
    assert folded.chain == trained.chain
    assert same(trained, folded)


def test_a_norm_of_the_image_alone_does_not_fold() -> None:
    """Why the padding is normalised, too: zeros behind a norm are no zeros before it."""
    chain = Chain("one", (6, 6, 2), (Layer("conv", (3, 3), 1, 2, 4),))
    trained, image = draw(chain, 6, "before"), images(chain)
    (weights,) = trained.weights
    assert weights.before is not None
    unpadded = Network(chain, (replace(weights, before=None),))
    normed = image * weights.before.scale + weights.before.shift
    difference = evaluate(unpadded, normed) - evaluate(fold(trained), image)
    assert np.abs(difference[:, 1:-1, 1:-1]).max() < 1e-9
    assert np.abs(difference[:, 0]).max() > 0.1


@pytest.mark.parametrize("rewrite", [vanishing, repvgg])
@pytest.mark.parametrize("name", CHAINS)
def test_branches_of_training_vanish(name: str, rewrite: Any) -> None:
    chain = without_softmax(CHAINS[name]())
    trained = draw(rewrite(chain), 7, "after")
    assert sum(len(w.parallel) for w in trained.weights) >= 2
    folded = fold(trained)
    assert same(trained, folded) and folded.chain == plain(chain)
    image = images(chain)
    assert distance(evaluate(trained, image), on_litert(build_floats(folded), image)) < 1e-4


def test_each_3x3_convolution_gets_the_branches_of_repvgg() -> None:
    """All three where shapes stay the same, else without the copy; none beside other windows."""
    grown = ChainBuilder(3)
    grown.conv(8, (3, 3), 2, "relu")
    grown.conv(8, (3, 3), 1, "relu")
    grown.conv(8, (5, 5), 1, "relu")
    grown.conv(8)
    chain = Chain("three", (12, 10, 3), tuple(grown.layers))
    trained = draw(repvgg(chain), 1, "after")
    shapes = [[b.kernel.shape for b in w.parallel] for w in trained.weights]
    one = (1, 1, 8, 8)
    assert shapes == [[(1, 1, 3, 8)], [one, one], [], []]
    assert np.array_equal(trained.weights[1].parallel[0].kernel[0, 0], np.eye(8)), "the copy"
    assert same(trained, fold(trained)) and fold(trained).chain == chain


def test_branches_replace_the_skips_that_are_named() -> None:
    chain = resnet()
    last = max(ends(chain))
    made = repvgg(chain, {last})
    assert [p for p, x in enumerate(made.layers) if x.branches != "none"] == [last - 1, last]
    assert running(made) == plain(chain, {last}) and len(ends(made)) == len(ends(chain)) - 1


def test_a_skip_around_one_convolution_vanishes_where_it_is_wanted() -> None:
    chain = plain(resnet())
    trained = draw(vanishing(resnet(), {2}), 8)
    assert [p for p, w in enumerate(trained.weights) if w.parallel] == [1, 2]
    x = images(chain)
    first = Network(replace(chain, layers=chain.layers[:1]), trained.weights[:1])
    second = replace(chain, layers=chain.layers[1:2], image=(15, 18, 8))
    y, (w,) = evaluate(first, x), trained.weights[1:2]
    conv = Network(replace(second, layers=(replace(second.layers[0], activation="none"),)),
                   (replace(w, parallel=()),))  # fmt: skip
    norm = w.parallel[0].norm
    expected = np.maximum(evaluate(conv, y) + y * norm.scale + norm.shift, 0)
    assert distance(expected, evaluate(Network(second, (w,)), y)) < 1e-12


def test_linear_convolutions_swallow_their_skips() -> None:
    made = without_softmax(reorganise(bottlenecks()))
    trained = draw(made, 9, "before")
    folded = fold(trained)
    linear = [p for p, layer in enumerate(made.layers) if layer.kind == "conv" and layer.skip
              and layer.activation == "none"]  # fmt: skip
    assert len(linear) == 4
    assert all(folded.chain.layers[p].skip == 0 for p in linear)
    assert len(ends(folded.chain)) == len(ends(made)) - 4
    assert folded.chain.layers[linear[-1]].kernel == (2, 2), "a stride of one pixel sums all four"
    assert same(trained, folded) and folded.chain == running(made)


def test_a_linear_depthwise_convolution_swallows_its_skip() -> None:
    layer = Layer("conv", (3, 3), 2, 6, 6, 6, skip=1, join="scaled late sum")
    trained = draw(Chain("depthwise", (7, 8, 6), (layer,)), 10, "before")
    folded = fold(trained)
    assert not folded.chain.layers[0].skip and same(trained, folded)


def test_a_skip_and_its_norm_are_one_depthwise_convolution() -> None:
    layer = Layer("conv", (3, 3), 1, 6, 6, activation="relu", skip=1, join="scaled late sum")
    for stride in (1, 2):
        chain = Chain("one", (8, 8, 6), (replace(layer, stride=stride),))
        kinds = [op.kind for op in read_model(build(chain)).ops()]
        assert kinds == ["CONV_2D", "DEPTHWISE_CONV_2D", "ADD"]
        weights = draw(chain, 11, "before")
        image = images(chain)
        found = on_litert(build_floats(fold(weights)), image)
        assert distance(evaluate(weights, image), found) < 1e-4


# --- what late skips bring ------------------------------------------------------------------------


def brought(layer: Layer, image: Array) -> Array:
    """The result of a layer whose convolution makes zeros: what its skip brings."""
    chain = Chain("skip", image.shape[1:], (replace(layer, skip=1, join="late sum"),))  # type: ignore[arg-type]
    drawn = draw(chain)
    (weights,) = drawn.weights
    zeros = replace(weights, kernel=weights.kernel * 0, bias=weights.bias * 0)
    return evaluate(Network(chain, (zeros,)), image)[0]


def test_more_channels_are_zeros_and_fewer_are_sums_of_groups() -> None:
    image = np.arange(2 * 2 * 5).reshape(1, 2, 2, 5) + 1.0
    wide = brought(Layer("conv", (3, 3), 1, 5, 7, activation="relu"), image)
    assert (wide[..., :5] == image[0]).all() and not wide[..., 5:].any()
    narrow = brought(Layer("conv", (3, 3), 1, 5, 2, activation="relu"), image)
    assert narrow[0, 0].tolist() == [1 + 3 + 5, 2 + 4]  # to a multiple of two with a zero


def test_strides_sum_windows() -> None:
    image = np.arange(16.0).reshape(1, 4, 4, 1)
    ones = brought(Layer("conv", (1, 1), 2, 1, 1, activation="relu"), image)
    assert ones[..., 0].tolist() == [[0 + 1 + 4 + 5, 2 + 3 + 6 + 7], [42, 50]]
    threes = brought(Layer("conv", (3, 3), 2, 1, 1, activation="relu"), image)
    assert threes[..., 0].tolist() == [[45, 39], [66, 50]]  # SAME adds below and to the right


# --- published networks ---------------------------------------------------------------------------


def widths(chain: Chain) -> list[int]:
    """Channels that the 3x3 convolutions make, each width once."""
    return list(dict.fromkeys(x.channels_out for x in chain.layers if x.kernel == (3, 3)))


def test_densenet121_gets_the_published_widths() -> None:
    made = plain(densenet121())
    (stem, *convolutions) = [x for x in made.layers if x.kind == "conv"]
    assert widths(replace(made, layers=tuple(convolutions))) == [76, 92, 116, 112]
    outs = [x.channels_out for x in convolutions if x.kernel == (1, 1)]
    assert [w for w in outs if outs.count(w) == 1] == [128, 256, 512, 1024]
    assert stem.channels_out == 64 and len(convolutions) == 2 * 58 + 4
    assert size_of(made).parameters == pytest.approx(size_of(densenet121()).parameters, rel=0.01)


def test_where_nothing_is_concatenated_widths_stay() -> None:
    chain = resnet34()
    assert redistribute(linearise(chain), chain) == linearise(chain)
    before = [x.channels_out for x in chain.layers]
    assert [x.channels_out for x in linearise(chain).layers] == before


def test_resnet34_becomes_34_blocks() -> None:
    made = reorganise(resnet34())
    kinds = [layer.kind for layer in made.layers]
    assert len(ends(resnet34())) == 16
    assert len(ends(made)) == kinds.count("conv") == 33 and kinds.count("dense") == 1
    pool = kinds.index("max_pool")
    assert made.layers[pool].skip == 2, "the skip of the stem goes around its pool as well"


@pytest.mark.parametrize("name", ["resnet8", "densenet_mini", "yolo_like"])
def test_some_skips_change_and_others_stay(name: str) -> None:
    chain = NETWORKS[name]()
    for unit in units(chain):
        for change in (plain, reorganise):
            made = change(chain, unit)
            steps(made)  # widths follow each other
            assert made != chain
    everything = frozenset[int]().union(*units(chain))
    assert everything == set(ends(chain))
    assert plain(chain, everything) == plain(chain)


def test_a_level_with_one_convolution_keeps_its_width() -> None:
    """As the last one of a U-Net, which has no other to give its weights to."""
    up = (
        Layer("conv", (3, 3), 1, 3, 8), Layer("conv", (3, 3), 2, 8, 16),
        Layer("upsample", stride=2), Layer("join", skip=3, join="concat"),
        Layer("conv", (3, 3), 1, 24, 2),
    )  # fmt: skip
    pools = (
        Layer("conv", (3, 3), 1, 3, 8), Layer("max_pool", (5, 5)),
        Layer("join", skip=2, join="concat"), Layer("max_pool", (5, 5)),
        Layer("conv", (1, 1), 1, 16, 4),
    )  # fmt: skip
    for layers in (up, pools):
        made = plain(Chain("net", (8, 8, 3), layers))
        assert not ends(made) and steps(made)[-1].shape_out == (8, 8, layers[-1].channels_out)


def test_sums_of_images_of_different_sizes_are_refused() -> None:
    layers = (Layer("conv", (3, 3), 1, 3, 8), Layer("upsample", stride=2),
              Layer("conv", (3, 3), 1, 8, 8, skip=2))  # fmt: skip
    with pytest.raises(ValueError, match="layer 2 adds images of different sizes"):
        steps(Chain("net", (8, 8, 3), layers))


# --- two buffers ----------------------------------------------------------------------------------


def fattest(chain: Chain) -> int:
    """Bytes of operand and result of the fattest convolution."""
    sizes: Sequence[int] = [
        int(np.prod(s.shape_in) + np.prod(s.made)) for s in steps(chain) if s.layer.kind == "conv"
    ]
    return max(sizes)


@pytest.mark.parametrize("name", ["resnet8", pytest.param("resnet20", marks=pytest.mark.slow)])
def test_two_buffers_are_enough_with_skips_and_one_without(name: str) -> None:
    """What late skips are for; with results that trail their operands the original needs no more,
    and without skips one buffer and a few rows are enough."""
    chain = NETWORKS[name]()
    options = api.PlanOptions(api.MemoryOptions(kernels=api.kernels_of(M4)), verify=None)
    heads = [
        api.plan(build(c), None, options).report.after.arena.head
        for c in (chain, running(reorganise(chain)), plain(chain))
    ]
    two = fattest(chain)
    assert max(heads[:2]) <= 1.05 * two
    assert 0.5 * two <= heads[2] <= 0.56 * two
