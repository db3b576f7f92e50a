"""Patches counted pixel by pixel, the published figures of MobileNetV2, and fields that move."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tflm_planner.codesign.chains.chain import Chain, Layer, steps
from tflm_planner.codesign.chains.families import FAMILIES
from tflm_planner.codesign.chains.receptive_field import measure_patches, receptive_field
from tflm_planner.codesign.chains.redistribution import redistribute_field
from tflm_planner.codesign.chains.sizes import size_of
from tflm_planner.codesign.networks.evaluate import evaluate, padding
from tflm_planner.codesign.networks.weights import Array, draw


def family(name: str, side: int, width: float = 1.0) -> Chain:
    """A network with the classes that it is known for."""
    return FAMILIES[name].make(side, width, 0, FAMILIES[name].classes)


MOBILENET = family("mobilenet_v2", 224)
STAGE = 12
"""Its layers up to the first block of 32 channels: one convolution and four blocks."""


def by_hand() -> Chain:
    """MbV2-RD as its published figures fit it: no window in the first block, a block of 24 channels
    less, two of 64 more."""
    layers = list(MOBILENET.layers)
    layers[1] = replace(layers[1], kernel=(1, 1))
    last = next(p for p in reversed(range(len(layers)))
                if layers[p].skip and layers[p].channels_out == 64)  # fmt: skip
    block = layers[last - 2 : last + 1]
    layers[last + 1 : last + 1] = [*block, *block]
    del layers[6:9]
    return replace(MOBILENET, layers=tuple(layers))


def test_table_1_of_the_paper() -> None:
    plain, moved = measure_patches(MOBILENET, STAGE, 4), measure_patches(by_hand(), STAGE - 3, 4)
    assert (plain.side, moved.side) == (75, 63)
    assert (round(100 * plain.overhead), round(100 * moved.overhead)) == (42, 18)
    assert (round(plain.inner / 1e6), round(moved.inner / 1e6)) == (130, 74)  # the paper: 73
    overall = [
        (size_of(chain).macs + stage.clipped - stage.whole) / 1e6
        for chain, stage in ((MOBILENET, plain), (by_hand(), moved))
    ]
    assert overall == pytest.approx([330, 301], rel=0.005)
    assert receptive_field(by_hand().layers) >= receptive_field(MOBILENET.layers)


# --- pixel by pixel -------------------------------------------------------------------------------


def counted(chain: Chain, layers: int, patches: int) -> int:
    """Multiplications of all patches, from the pixels that each layer computes for each."""
    stage, total = steps(chain)[:layers], 0
    rows = stage[-1].shape_out[0] // patches
    for number in range(patches):
        wanted = set(range(number * rows, (number + 1) * rows))
        for column in range(patches):
            across = set(range(column * rows, (column + 1) * rows))
            down, beside = wanted, across
            for step in reversed(stage):
                pixels = len(down) * len(beside)
                if step.layer.kind == "conv":
                    total += pixels * math.prod(kernel_of(step.layer)) * step.layer.channels_out
                if step.is_projected and step.source is not None:
                    total += pixels * step.source[2] * step.shape_out[2]
                down, beside = (read(step.layer, step.shape_in[0], axis) for axis in (down, beside))
    return total


def kernel_of(layer: Layer) -> tuple[int, int, int]:
    """Rows, columns and channels that a pixel of one channel is made of."""
    return (*layer.kernel, layer.channels_in // layer.groups)


def read(layer: Layer, size: int, rows: set[int]) -> set[int]:
    """Rows of the operand that these rows of the result read."""
    if layer.kind not in ("conv", "max_pool", "average_pool"):
        return rows
    first = padding(size, layer.kernel[0], layer.stride)[0]
    seen = {r * layer.stride - first + k for r in rows for k in range(layer.kernel[0])}
    return {r for r in seen if 0 <= r < size}


@pytest.mark.parametrize(("name", "side", "layers", "patches"), [
    ("mobilenet_v2", 224, STAGE, 4), ("mobilenet_v2", 112, 7, 2), ("mcunet_like", 176, 4, 4),
    ("mobilenet_v1", 96, 5, 3), ("resnet8", 32, 4, 2), ("resnet8", 32, 5, 2),
])  # fmt: skip
def test_clipped_patches_are_counted_pixel_by_pixel(
    name: str, side: int, layers: int, patches: int
) -> None:
    chain = FAMILIES[name].make(side, 1.0, 8, 10)
    found = measure_patches(chain, layers, patches)
    assert found.clipped == counted(chain, layers, patches)
    assert found.whole <= found.clipped <= found.inner
    assert measure_patches(chain, layers, 1).clipped == found.whole


def test_the_receptive_field_is_what_a_result_depends_on() -> None:
    layers = (Layer("conv", (3, 3), 2, 1, 1), Layer("max_pool", (2, 2), 2),
              Layer("conv", (5, 5), 1, 1, 1), Layer("conv", (1, 1), 1, 1, 1))  # fmt: skip
    chain = Chain("field", (64, 64, 1), layers)
    network = draw(chain, 2)
    image = np.random.default_rng(0).normal(size=(1, 64, 64, 1))
    one = influence(network, image)
    assert one == receptive_field(layers) == 3 + 2 + 4 * 4


def influence(network, image: Array) -> int:
    """Rows of the image that change the pixel in the middle when they change much."""
    middle = evaluate(network, image)[0, 8, 8, 0]
    rows = []
    for row in range(64):
        other = image.copy()
        other[:, row] += 1e3
        if evaluate(network, other)[0, 8, 8, 0] != middle:
            rows.append(row)
    return rows[-1] - rows[0] + 1


def test_what_cannot_be_cut_is_refused() -> None:
    with pytest.raises(ValueError, match="28 rows cannot be cut into 3"):
        measure_patches(MOBILENET, STAGE, 3)
    with pytest.raises(ValueError, match="squares only"):
        measure_patches(family("ds_cnn", 49), 1, 1)


# --- redistribution -------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "side", "layers"), [
    ("mobilenet_v2", 224, STAGE), ("mcunet_like", 176, 13), ("mobilenet_v1", 224, 9),
])  # fmt: skip
def test_less_is_repeated_and_field_and_multiplications_stay(
    name: str, side: int, layers: int
) -> None:
    chain = family(name, side)
    layers = next(n for n in range(layers, 0, -1) if not steps(chain)[n - 1].shape_out[0] % 4)
    found = redistribute_field(chain, layers, 4)
    assert found.after.overhead < 0.2 <= found.before.overhead
    assert found.after == measure_patches(found.chain, found.layers, 4)
    assert found.is_whole and found.changes
    assert receptive_field(found.chain.layers) >= receptive_field(chain.layers)
    assert size_of(found.chain).macs == pytest.approx(size_of(chain).macs, rel=0.02)
    assert found.after.side < found.before.side


def test_little_that_is_repeated_stays_as_it_was() -> None:
    found = redistribute_field(MOBILENET, STAGE, 4, overhead=0.5)
    assert found.chain is MOBILENET and not found.changes and found.is_whole


def test_what_cannot_be_given_back_is_said() -> None:
    layers = tuple(Layer("conv", (5, 5), 1, 8, 8) for _ in range(3))
    found = redistribute_field(Chain("short", (32, 32, 8), layers), 3, 4)
    assert found.after.overhead < 0.2 and not found.is_whole
