"""Networks that differ only in weights are planned once, and nothing else is taken for equal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.codesign.test_network_rewrites import CHAINS
from tflm_planner.codesign.chains.chain import Chain, Layer
from tflm_planner.codesign.chains.families import FAMILIES, Grid
from tflm_planner.codesign.chains.residuals import repvgg
from tflm_planner.codesign.fitting.outcomes import Outcomes
from tflm_planner.codesign.fitting.user_build import user_variants
from tflm_planner.codesign.fitting.variants import Variant, limits_of, variant_of_chain
from tflm_planner.codesign.networks.build import build, build_floats, build_int8
from tflm_planner.codesign.networks.folding import fold
from tflm_planner.codesign.networks.scoring import value_ranges
from tflm_planner.codesign.networks.weights import draw
from tflm_planner.model.edit import add_metadata, set_quantization
from tflm_planner.model.ir import Model, Tensor
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline.inspection.arenas import arena_in
from tflm_planner.report.document import RungKind
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.targets import load_target
from tflm_planner.tiling.evaluate.equivalence import model_signature

TARGETS = tuple(map(load_target, ("cortex-m4/cmsis-nn", "x86-64/wheel")))


def silent(_: str) -> None:
    """Nobody listens."""


def trained(chain: Chain, seed: int) -> bytes:
    """The int8 model of a network with weights, and ranges of its values, from a seed."""
    network = fold(draw(chain, seed, "after"))
    images = np.random.default_rng(seed).normal(size=(2, *chain.image)).astype(np.float32)
    return build_int8(network, value_ranges(network, images))


def figures(data: bytes, kinds: tuple[RungKind, ...]) -> list[tuple[int, float]]:
    """Arena and slowdown of a file on each rung, with quick searches."""
    variant = replace(variant_of_chain(CHAINS["resnet"](), 1, 1.0, 0), make=lambda: data)
    outcomes = Outcomes(limits_of(TARGETS[0], 1 << 20, None, 0), silent, Stop())
    found = [outcomes.of(variant, kind, quick=True) for kind in kinds]
    return [(f.arena, f.slowdown) for f in found if f is not None]


@pytest.mark.parametrize("name", ["resnet", "bottlenecks"])
def test_other_weights_and_ranges_need_the_same_arena(name: str) -> None:
    first, second = (trained(CHAINS[name](), seed) for seed in (1, 2))
    assert first != second
    assert model_signature(read_model(first)) == model_signature(read_model(second))
    kinds: tuple[RungKind, ...] = ("stock", "plan", "tiles")
    found = figures(first, kinds)
    assert len(found) == 3 and found == figures(second, kinds)


def one_layer(**changes: object) -> bytes:
    """A convolution, changed."""
    layer = Layer("conv", (3, 3), 1, 8, 8, activation="relu")
    return build(Chain("one", (12, 12, 8), (replace(layer, **changes),)))  # type: ignore[arg-type]


def weights_of(model: Model) -> Tensor:
    """The weights of the first operator."""
    found = model.main.ops[0].inputs[1]
    assert found is not None
    return found


def one_scale(model: Model) -> None:
    """Weights that have one scale for all channels."""
    w = weights_of(model)
    set_quantization(w, replace(w.quantization, scales=w.quantization.scales[:1], zero_points=(0,)))


def no_zero_points(model: Model) -> None:
    """Weights without zero points, which TFLM then does not allocate."""
    w = weights_of(model)
    set_quantization(w, replace(w.quantization, zero_points=()))


def planned(model: Model) -> None:
    """A plan in the metadata."""
    words = np.array([1, 0, len(model.main.tensors)] + [-1] * len(model.main.tensors), "<i4")
    add_metadata(model, "OfflineMemoryAllocation", words.view(np.uint8))


def reversed_tensors(model: Model) -> None:
    """The last tensor first."""
    model.main.tensors.reverse()


CHANGES: dict[str, Callable[[Model], None]] = {
    "one scale for all channels": one_scale,
    "no zero points": no_zero_points,
    "a plan": planned,
    "another order of tensors": reversed_tensors,
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_else_a_file_says_makes_another_network(change: str) -> None:
    model = read_model(one_layer())
    before = model_signature(model)
    CHANGES[change](model)
    assert model_signature(model) != before
    assert model_signature(read_model(write_model(model))) != before


@pytest.mark.parametrize(
    "changes",
    [
        {"kernel": (5, 5)}, {"kernel": (1, 1)}, {"stride": 2}, {"activation": "none"},
        {"activation": "relu6"}, {"channels_out": 16}, {"groups": 8}, {"groups": 2}, {"skip": 1},
        {"skip": 1, "join": "late sum"}, {"skip": 1, "join": "concat"},
    ],
)  # fmt: skip
def test_each_property_of_a_layer_makes_another_network(changes: dict[str, object]) -> None:
    signature = model_signature(read_model(one_layer()))
    assert model_signature(read_model(one_layer(**changes))) != signature
    assert model_signature(read_model(one_layer())) == signature


def test_types_and_shared_weights_make_other_networks() -> None:
    chain = Chain("two", (8, 8, 4), (Layer("conv", (3, 3), 1, 4, 4),) * 2)
    network = draw(chain)
    floats = read_model(build_floats(network))
    before = model_signature(floats)
    assert before != model_signature(read_model(build(chain)))
    first, second = (op.inputs[1] for op in floats.main.ops)
    assert first is not None and second is not None
    second.buffer = first.buffer
    assert model_signature(floats) != before


def test_signatures_tell_networks_apart_as_their_arenas_do() -> None:
    """Over grids of families: where arenas differ, signatures do."""
    arenas: dict[object, set[tuple[int, ...]]] = {}
    for family in ("resnet8", "mobilenet_v2", "ds_cnn"):
        for side in (16, 32):
            for width in (0.25, 0.3, 0.5):
                data = build(FAMILIES[family].make(side, width, 8, 10))
                found = tuple(arena_in(data, target)[1].arena for target in TARGETS)
                arenas.setdefault(model_signature(read_model(data)), set()).add(found)
    assert len(arenas) > 12 and all(len(found) == 1 for found in arenas.values())


def test_a_users_widths_that_round_to_one_network_are_one_variant(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text("def build(resolution, width, depth):\n    return resolution, width\n")
    said: list[str] = []
    seeds = iter(range(10))

    def convert(made: object) -> bytes:
        resolution, width = made  # type: ignore[misc]
        return trained(FAMILIES["resnet8"].make(resolution, width, 8, 10), next(seeds))

    def variants(plain: bool) -> list[Variant]:
        grid = Grid((8,), (0.5, 0.51, 1.0), plain=plain)
        return user_variants(f"{path}:build", grid, TARGETS[0], said.append, convert)

    assert [v.name for v in variants(plain=False)] == ["own_1_8", "own_0.5_8"]
    assert said.count("own_0.51_8 is the same network as own_0.5_8") == 1
    assert [v.name for v in variants(plain=True)] == ["own_1_8_plain", "own_0.5_8_plain"]


def test_branches_of_training_are_no_other_network() -> None:
    chain = CHAINS["resnet"]()
    one, other = (trained(made, 1) for made in (repvgg(chain), repvgg(chain)))
    assert model_signature(read_model(one)) == model_signature(read_model(other))
