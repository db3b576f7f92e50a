"""Models are read as chains, and what no chain holds is refused with a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.dero import figure, what_was_read
from tests.codesign.test_codesign import WITHOUT_BIAS
from tests.codesign.test_concatenations import CHAINS as CONCATENATED
from tests.codesign.test_network_rewrites import CHAINS, distance, images, on_litert
from tests.conftest import CNN, PUBLISHED
from tflm_planner.codesign.chains.chain import Chain, Layer
from tflm_planner.codesign.chains.families import FAMILIES, ChainBuilder
from tflm_planner.codesign.chains.papers import NETWORKS
from tflm_planner.codesign.chains.residuals import plain, reorganise
from tflm_planner.codesign.keras_models import convert_keras_file
from tflm_planner.codesign.networks.build import build, build_floats
from tflm_planner.codesign.networks.chain_of_model import chain_of
from tflm_planner.codesign.networks.evaluate import evaluate
from tflm_planner.codesign.networks.folding import fold
from tflm_planner.codesign.networks.network_of_model import network_of
from tflm_planner.codesign.networks.scoring import outputs
from tflm_planner.codesign.networks.selection import planned_memory, select
from tflm_planner.codesign.networks.weights import Network, draw
from tflm_planner.model.ir import Model, Tensor
from tflm_planner.model.new_model import NewModel
from tflm_planner.model.serde import read_model
from tflm_planner.support.errors import ModelError, UsageError
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.targets import load_target

M4 = load_target("cortex-m4/cmsis-nn")
needs_tensorflow = pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs TensorFlow")


def published(name: str) -> Model:
    return read_model((PUBLISHED / f"{name}.tflite").read_bytes())


def operators(model: Model) -> Counter[tuple[Any, ...]]:
    return Counter(
        (op.kind, op.options.activation, *(t.shape for t in (*op.operands(), *op.outputs)))
        for op in model.main.ops
    )


# --- there and back -------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_read_as_it_was_built(family: str) -> None:
    of = FAMILIES[family]
    made = of.make(of.resolutions[1], of.widths[1], of.depths[-1], of.classes)
    for chain in (made, plain(made)):
        read = chain_of(read_model(build(chain)), chain.name)
        assert (read.chain, read.notes, read.is_exact) == (chain, (), True)


@pytest.mark.parametrize("change", [lambda chain: chain, plain], ids=["original", "plain"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_papers_network_is_read_as_it_was_built(
    name: str, change: Callable[[Chain], Chain]
) -> None:
    chain = change(NETWORKS[name]())
    model = read_model(build(chain))
    read = chain_of(model, chain.name)
    again = read_model(build(read.chain))
    assert operators(again) == operators(model)
    assert arena_of(again, M4).arena == arena_of(model, M4).arena
    # a concatenation may be a layer of its own or end a convolution, which is the same network
    assert read.chain == chain or name == "yolo_like"
    assert chain_of(again, chain.name).chain == read.chain


def hidden() -> Chain:
    """A convolution of one channel, an image as a row, and a dense layer with an activation."""
    grown = ChainBuilder(1)
    grown.conv(6, (3, 5), 2, "relu6")
    flat = Layer("flatten", channels_in=6, channels_out=4 * 3 * 6)
    first = Layer("dense", channels_in=72, channels_out=9, activation="relu")
    last = Layer("dense", channels_in=9, channels_out=4)
    return Chain("hidden", (7, 6, 1), (*grown.layers, flat, first, last))


ALL: dict[str, Callable[[], Chain]] = {
    **CHAINS,
    **{name: make for name, make in CONCATENATED.items() if name != "branches"},
    "hidden": hidden,
}


@pytest.mark.parametrize("name", ALL)
def test_weights_come_with_their_layers(name: str) -> None:
    made = fold(draw(ALL[name](), 3, "after"))
    made = Network(made.chain, made.weights)
    read = network_of(read_model(build_floats(made)), name)
    assert read.is_folded
    image = images(made.chain)
    assert distance(evaluate(made, image), evaluate(read, image)) < 1e-5


def test_an_image_as_a_row_and_a_hidden_layer_are_built() -> None:
    made = draw(hidden(), 1)
    image = images(made.chain)
    assert distance(evaluate(made, image), on_litert(build_floats(made), image)) < 1e-5
    assert arena_of(read_model(build(made.chain)), M4).arena > 0


def test_fewer_channels_make_a_shorter_row() -> None:
    concatenated = replace(hidden().layers[0], skip=1, join="concat", stride=1)
    flat = Layer("flatten", channels_in=7, channels_out=7 * 6 * 7)
    dense = Layer("dense", channels_in=7 * 6 * 7, channels_out=3)
    made = Chain("row", (7, 6, 1), (concatenated, flat, dense))
    layers = plain(made).layers
    assert (layers[1].channels_out, layers[2].channels_in) == (7 * 6 * 6, 7 * 6 * 6)


# --- what others made -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "family", "resolution", "width", "depth"),
    [
        ("vww_96_int8", "mobilenet_v1", 96, 0.25, 0),
        ("kws_ref_model", "ds_cnn", 49, 1.0, 4),
        ("pretrainedResnet_quant", "resnet8", 32, 1.0, 8),
    ],
)
def test_published_models_are_the_families_that_they_are_of(
    name: str, family: str, resolution: int, width: float, depth: int
) -> None:
    model = published(name)
    read = chain_of(model, name)
    made = FAMILIES[family].make(resolution, width, depth, FAMILIES[family].classes)
    assert read.chain == replace(made, name=name, dense_scales="one")
    assert arena_of(read_model(build(read.chain)), M4).arena == arena_of(model, M4).arena


def test_the_weights_of_a_published_model_name_the_same_classes() -> None:
    data = (PUBLISHED / "pretrainedResnet_quant.tflite").read_bytes()
    network = network_of(read_model(data), "resnet8")
    given = read_model(data).main.inputs[0].quantization
    shown = np.random.default_rng(4).normal(size=(8, 4, 4, 3)).repeat(8, axis=1).repeat(8, axis=2)
    shown = float(given.scale or 1) * (np.clip(60 * shown, -120, 120) - given.zero_point)
    theirs = outputs(data, shown).astype(float)
    ours = 256 * evaluate(network, shown) - 128
    assert np.abs(ours - theirs).mean() < 6
    assert (ours.argmax(axis=1) == theirs.argmax(axis=1)).mean() >= 7 / 8


def test_skips_of_a_file_are_chosen_as_those_of_a_family() -> None:
    memory_of = partial(planned_memory, target=M4)
    read = chain_of(published("pretrainedResnet_quant"), "resnet8").chain
    ours = select(replace(NETWORKS["resnet8"](), dense_scales="one"), plain, memory_of)
    theirs = select(read, plain, memory_of)
    assert theirs.changed == ours.changed and theirs.memory == ours.memory
    assert len(reorganise(read).layers) == len(read.layers)


# --- what is written in other ways ----------------------------------------------------------------


class Floats:
    """Operators on float images, one after the other."""

    def __init__(self, *shape: int) -> None:
        self.model, self.random = NewModel(), np.random.default_rng(6)
        self.image = self.x = self.model.add_float_value(shape)

    def op(self, kind: str, shape: tuple[int, ...], *more: Tensor, **fields: Any) -> Tensor:
        """Append an operator of the newest value and others."""
        names = {"CONV_2D": "Conv2DOptions", "MAX_POOL_2D": "Pool2DOptions", "PAD": "PadOptions",
                 "AVERAGE_POOL_2D": "Pool2DOptions", "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
                 "ADD": "AddOptions", "MUL": "MulOptions", "CONCATENATION": "ConcatenationOptions",
                 "RESIZE_NEAREST_NEIGHBOR": "ResizeNearestNeighborOptions",
                 "FULLY_CONNECTED": "FullyConnectedOptions"}  # fmt: skip
        result = self.model.add_float_value(shape)
        options = [names[kind]] if kind in names else []
        self.model.add_op_with(kind, [self.x, *more], result, *options, **fields)
        self.x = result
        return result

    def constant(self, *shape: int) -> Tensor:
        return self.model.add_parameters(self.random.normal(size=shape).astype(np.float32))

    def conv(self, out: int, kernel: int = 1, stride: int = 1, **fields: Any) -> Tensor:
        """A convolution with SAME padding, unless `fields` say otherwise."""
        _, height, width, channels = self.x.shape or ()
        valid = fields.get("padding") == 1
        sizes = (n - kernel + 1 if valid else n for n in (height, width))
        shape = (1, *(-(-n // stride) for n in sizes), out)
        weights = self.constant(out, kernel, kernel, channels), self.constant(out)
        fields = {"dilation_h_factor": 1, "dilation_w_factor": 1, **fields}
        fields = {"stride_h": stride, "stride_w": stride, **fields}
        return self.op("CONV_2D", shape, *weights, **fields)

    def pad(self, *rows_and_columns: int) -> Tensor:
        above, below, left, right = rows_and_columns
        _, height, width, channels = self.x.shape or ()
        table = np.array([[0, 0], [above, below], [left, right], [0, 0]], np.int32)
        shape = (1, height + above + below, width + left + right, channels)
        return self.op("PAD", shape, self.model.add_parameters(table))

    def file(self, *results: Tensor) -> bytes:
        return self.model.write([self.image], [*(results or (self.x,))])

    def read(self, *results: Tensor) -> Model:
        return read_model(self.file(*results))


def same_as_its_network(net: Floats) -> Chain:
    """The chain of the model, whose network computes what LiteRT does."""
    network = network_of(net.read(), "net")
    image = images(network.chain)
    assert distance(evaluate(network, image), on_litert(net.file(), image)) < 1e-5
    return network.chain


def test_activations_and_padding_may_be_operators_of_their_own() -> None:
    net = Floats(1, 10, 8, 3)
    net.pad(0, 1, 0, 1)
    first = net.conv(4, 3, 2, padding=1)
    first = net.op("RELU6", first.shape or ())
    net.conv(4, 3)
    net.op("ADD", first.shape or (), first)
    net.op("RELU", first.shape or ())
    stem, block = same_as_its_network(net).layers
    assert (stem.activation, stem.stride, stem.kernel) == ("relu6", 2, (3, 3))
    assert (block.activation, block.skip, block.join) == ("relu", 1, "sum")
    (note, *_) = chain_of(net.read(), "net").notes
    assert note.startswith("PAD 't2': one layer here")


def test_a_pool_with_an_activation_is_refused() -> None:
    net = Floats(1, 8, 8, 3)
    net.conv(4, 3)
    window = {"filter_height": 3, "filter_width": 3, "stride_h": 1, "stride_w": 1}
    net.op("MAX_POOL_2D", (1, 8, 8, 4), **window, fused_activation_function=1)
    with pytest.raises(ModelError, match="has an activation, which pools of a chain have not"):
        chain_of(net.read(), "net")


def test_keras_models_are_not_converted_where_keras_runs_on_something_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    with pytest.raises(UsageError, match=r"KERAS_BACKEND is torch; .*: unset it"):
        convert_keras_file(tmp_path / "any.keras")


def test_a_stem_of_pytorch_and_keras_is_read_but_its_weights_are_not() -> None:
    net = Floats(1, 16, 16, 3)
    net.pad(3, 3, 3, 3)
    net.conv(4, 7, 2, padding=1, fused_activation_function=1)
    net.pad(1, 1, 1, 1)
    window = {"filter_height": 3, "filter_width": 3, "stride_h": 2, "stride_w": 2, "padding": 1}
    net.op("MAX_POOL_2D", (1, 4, 4, 4), **window)
    read = chain_of(net.read(), "net")
    assert [layer.kind for layer in read.chain.layers] == ["conv", "max_pool"]
    assert not read.is_exact and "PAD 't2' and 1 more" in read.notes[0]
    with pytest.raises(ModelError, match="where its weights mean nothing"):
        network_of(net.read(), "net")


def test_a_sum_may_activate_again_what_was_activated() -> None:
    net = Floats(1, 6, 6, 4)
    image = net.x
    net.conv(4, 3, fused_activation_function=1)
    net.op("ADD", (1, 6, 6, 4), image, fused_activation_function=3)
    conv, join = same_as_its_network(net).layers
    assert (conv.activation, conv.skip) == ("relu", 0)
    assert (join.kind, join.activation, join.skip) == ("join", "relu6", 2)


def test_a_value_that_is_read_twice_stays_one() -> None:
    """Of two skips over one layer the outer one starts where the inner one ends."""
    net = Floats(1, 6, 6, 4)
    first = net.conv(4, 3, fused_activation_function=1)
    second = net.conv(4, 3)
    net.op("ADD", (1, 6, 6, 4), first)
    net.conv(4, 3)
    net.op("ADD", (1, 6, 6, 4), second)
    layers = same_as_its_network(net).layers
    assert [(layer.kind, layer.skip) for layer in layers] == [
        ("conv", 0), ("conv", 0), ("join", 2), ("conv", 2)
    ]  # fmt: skip


def test_a_fire_module_is_a_branch_beside_a_convolution() -> None:
    net = Floats(1, 6, 6, 4)
    net.conv(3, fused_activation_function=1)
    squeezed = net.x
    narrow = net.conv(5, fused_activation_function=1)
    net.x = squeezed
    wide = net.conv(6, 3, fused_activation_function=1)
    net.x = narrow
    net.op("CONCATENATION", (1, 6, 6, 11), wide, axis=3)
    _, fire = same_as_its_network(net).layers
    assert (fire.kernel, fire.skip, fire.join, fire.branch) == ((3, 3), 1, "concat", 5)


def test_operands_of_a_concatenation_may_be_swapped_but_not_with_weights() -> None:
    net = Floats(1, 6, 6, 4)
    image = net.x
    net.conv(5, 3)
    net.op("CONCATENATION", (1, 6, 6, 9), image, axis=-1)
    read = chain_of(net.read(), "net")
    assert (read.chain.layers[0].skip, read.chain.layers[0].join) == (1, "concat")
    assert any("first operand" in note for note in read.notes) and not read.is_exact


# --- what no chain holds --------------------------------------------------------------------------


def valid(net: Floats) -> None:
    net.conv(4, 3, padding=1)


def dilated(net: Floats) -> None:
    net.conv(4, 3, dilation_h_factor=2, dilation_w_factor=2)


def uneven(net: Floats) -> None:
    weights = net.constant(4, 3, 3, 4), net.constant(4)
    fields = {"stride_h": 2, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    net.op("CONV_2D", (1, 3, 6, 4), *weights, **fields)


def tanh(net: Floats) -> None:
    net.conv(4, fused_activation_function=4)


def attention(net: Floats) -> None:
    image = net.x
    net.conv(4)
    net.op("MUL", (1, 6, 6, 4), image)


def factor_alone(net: Floats) -> None:
    net.op("MUL", (1, 6, 6, 4), net.constant(4))
    net.conv(4)


def addend_alone(net: Floats) -> None:
    net.op("ADD", (1, 6, 6, 4), net.constant(4))


def two_branches(net: Floats) -> None:
    image = net.x
    one = net.conv(4, 3)
    net.x = image
    net.conv(4, 3)
    net.op("ADD", (1, 6, 6, 4), one)


def three_operands(net: Floats) -> None:
    image = net.x
    net.conv(4, 3)
    net.op("CONCATENATION", (1, 6, 6, 12), image, image, axis=3)


def crossed(net: Floats) -> None:
    """A skip from inside a branch."""
    start = net.conv(4)
    inside = net.conv(4, 1)
    net.x = start
    net.conv(4, 3)
    net.conv(4, 3)
    net.op("ADD", (1, 6, 6, 4), inside)
    net.op("ADD", (1, 6, 6, 4), inside)


def pad_alone(net: Floats) -> None:
    net.pad(1, 1, 1, 1)


def image_to_dense(net: Floats) -> None:
    net.op("FULLY_CONNECTED", (36, 2), net.constant(2, 4), net.constant(2))


def relu_of_the_image(net: Floats) -> None:
    net.op("RELU", (1, 6, 6, 4))


def squashed(net: Floats) -> None:
    net.conv(4)
    net.op("LOGISTIC", (1, 6, 6, 4))


def odd_upsampling(net: Floats) -> None:
    size = net.model.add_parameters(np.array([9, 9], np.int32))
    net.op("RESIZE_NEAREST_NEIGHBOR", (1, 9, 9, 4), size)


@pytest.mark.parametrize(
    ("add", "words"),
    [
        (valid, "CONV_2D 't3'.* no SAME padding.*padding='same'"),
        (dilated, "a dilation"),
        (uneven, "another stride along rows"),
        (tanh, "activation that chains have not"),
        (attention, "squeeze-and-excitation"),
        (factor_alone, "no operator follows with which it is one layer"),
        (addend_alone, "adds a constant to what is no product"),
        (two_branches, "joins two branches"),
        (three_operands, "has 3 operands"),
        (crossed, "beside the path|joins two branches"),
        (pad_alone, "no single operator follows"),
        (image_to_dense, "several rows of operands"),
        (relu_of_the_image, "does not follow a convolution"),
        (squashed, "LOGISTIC.* is no layer of a chain"),
        (odd_upsampling, "does not repeat each pixel"),
    ],
)
def test_what_no_chain_holds_is_said(add: Callable[[Floats], None], words: str) -> None:
    net = Floats(1, 6, 6, 4)
    add(net)
    with pytest.raises(ModelError, match=words):
        chain_of(net.read(), "net")


def test_models_that_are_no_path_from_an_image_are_refused() -> None:
    net = Floats(1, 6, 6, 4)
    first = net.conv(4)
    net.conv(4)
    with pytest.raises(ModelError, match="1 inputs and 2 outputs"):
        chain_of(net.read(first, net.x), "net")
    with pytest.raises(ModelError, match="lies beside the path"):
        chain_of(net.read(first), "net")
    with pytest.raises(ModelError, match=r"takes \[1, 640\]"):
        chain_of(published("ad01_int8"), "ad01")
    with pytest.raises(ModelError, match="has 4 operands"):
        chain_of(read_model(CNN.read_bytes()), "cnn")


def test_the_benchmark_takes_a_file() -> None:
    path = str(PUBLISHED / "pretrainedResnet_quant.tflite")
    assert what_was_read(path)[0].endswith("the file needs 55,000 B as it is, the chain 55,000 B")
    kinds = {kind: figure(path, kind, "stock")["arena"] for kind in ("original", "plain")}
    assert kinds == {"original": 55_000, "plain": 37_192}
    with pytest.raises(UsageError, match="neither a file nor a network"):
        what_was_read("no_such_file")


# --- Keras ----------------------------------------------------------------------------------------


@needs_tensorflow
@pytest.mark.slow
def test_a_keras_model_is_read(tmp_path: Path) -> None:
    import keras

    layers = keras.layers
    image = keras.Input((16, 16, 3))
    x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(8, 3, padding="same")(image)))
    y = layers.BatchNormalization()(layers.Conv2D(8, 3, padding="same")(x))
    x = layers.ReLU()(layers.Add()([x, y]))
    y = layers.BatchNormalization()(layers.Conv2D(12, 3, 2, padding="same")(x))
    x = layers.ReLU()(layers.Add()([layers.Conv2D(12, 1, 2)(x), y]))
    x = layers.Concatenate()([x, layers.DepthwiseConv2D(3, padding="same")(x)])
    x = layers.Dense(7, activation="relu")(layers.Flatten()(layers.MaxPooling2D(2)(x)))
    model = keras.Model(image, layers.Dense(4, activation="softmax")(x))
    path = tmp_path / "mine.keras"
    model.save(path)
    data = convert_keras_file(path)
    read = chain_of(read_model(data), "mine")
    assert read.is_exact and read.notes == ()
    assert [(layer.kind, layer.skip, layer.join) for layer in read.chain.layers] == [
        ("conv", 0, "sum"), ("conv", 1, "sum"), ("conv", 1, "sum"), ("conv", 1, "concat"),
        ("max_pool", 0, "sum"), ("flatten", 0, "sum"), ("dense", 0, "sum"), ("dense", 0, "sum"),
        ("softmax", 0, "sum"),
    ]  # fmt: skip
    stock = arena_of(read_model(build(read.chain)), M4).arena
    assert stock == arena_of(read_model(data), M4).arena + 2 * WITHOUT_BIAS
    path.write_bytes(b"no model")
    with pytest.raises(UsageError, match="is no Keras model"):
        convert_keras_file(path)
