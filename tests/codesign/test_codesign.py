"""Networks as chains, and the largest that fits: built as the converter builds them, bounded as
plans really are, and the same answer as asking for every variant."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from tests.command import Run
from tests.conftest import CNN, PUBLISHED, ROOT
from tflm_planner.codesign.chains.chain import Chain, Layer, steps
from tflm_planner.codesign.chains.families import FAMILIES, ChainBuilder, Grid, divisible
from tflm_planner.codesign.chains.residuals import plain
from tflm_planner.codesign.chains.sizes import floors_of, size_of
from tflm_planner.codesign.fitting.fit_text import command_for, render_fits
from tflm_planner.codesign.fitting.largest import fit
from tflm_planner.codesign.fitting.outcomes import VariantOutcome
from tflm_planner.codesign.fitting.user_build import user_variants
from tflm_planner.codesign.fitting.variants import limits_of, variants_of
from tflm_planner.codesign.framework import tensorflow
from tflm_planner.codesign.networks.build import build, build_floats
from tflm_planner.codesign.networks.weights import draw
from tflm_planner.cost import latency_of
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.support.errors import ModelError, UsageError
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.targets import load_target

M4 = load_target("cortex-m4/cmsis-nn")


def silent(_: str) -> None:
    """Nobody listens."""


def chain(family: str, resolution: int, width: float, depth: int = 0) -> Chain:
    """A variant with the classes that the family is known for."""
    return FAMILIES[family].make(resolution, width, depth, FAMILIES[family].classes)


def shapes(model: Model) -> list[object]:
    """Every operator with the shapes and types of what it reads and makes."""
    return [
        (op.kind, [(t.shape, t.type_name) for t in op.operands()], [t.shape for t in op.outputs])
        for op in model.ops()
    ]


# --- built as the converter builds them -----------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "family", "resolution", "width", "depth"),
    [
        ("vww_96_int8", "mobilenet_v1", 96, 0.25, 0),
        ("kws_ref_model", "ds_cnn", 49, 1.0, 4),
        ("pretrainedResnet_quant", "resnet8", 32, 1.0, 8),
    ],
)
def test_a_built_network_is_the_published_one(
    file: str, family: str, resolution: int, width: float, depth: int
) -> None:
    published = read_model((PUBLISHED / f"{file}.tflite").read_bytes())
    made = replace(chain(family, resolution, width, depth), dense_scales="one")
    built = read_model(build(made))
    assert sorted(map(repr, shapes(built))) == sorted(map(repr, shapes(published)))
    for target in (M4, load_target("x86-64/wheel")):
        ours, theirs = arena_of(built, target), arena_of(published, target)
        assert (ours.arena, ours.head, ours.tail) == (theirs.arena, theirs.head, theirs.tail)


@pytest.mark.parametrize(
    ("family", "resolution", "width", "operators", "arena"),
    [
        ("mobilenet_v2", 96, 0.35, 65, 212_672),
        ("mobilenet_v2", 80, 0.3, 65, 167_808),
        ("mcunet_like", 176, 1.0, 68, 451_808),
    ],
)
def test_a_built_network_has_the_arena_of_the_converted_one(
    family: str, resolution: int, width: float, operators: int, arena: int
) -> None:
    model = read_model(build(chain(family, resolution, width)))  # converted: by the zoo
    assert len(model.main.ops) == operators
    assert arena_of(model, M4).arena == arena


def test_sizes_are_those_of_the_papers() -> None:
    assert size_of(chain("mobilenet_v2", 224, 1.0)).macs == pytest.approx(300e6, rel=0.01)
    assert size_of(chain("mcunet_like", 176, 1.0)).macs == pytest.approx(81.8e6, rel=0.001)
    assert size_of(chain("mobilenet_v3_small", 224, 1.0)).macs == pytest.approx(51e6, rel=0.05)
    assert size_of(chain("mobilenet_v3_small", 224, 1.0)).parameters == 2_038_680


def test_multiplications_and_parameters_are_those_of_the_model() -> None:
    for family, resolution in (("resnet20", 16), ("mobilenet_v3_small", 48), ("ds_cnn", 49)):
        made = chain(family, resolution, 0.5, FAMILIES[family].depths[-1])
        model = read_model(build(made))
        assert latency_of(model, M4).total.macs == pytest.approx(size_of(made).macs, rel=0.02)
        weights = {
            t
            for op in model.ops()
            for t in op.operands()
            if t.is_constant and not t.quantization.is_absent
        }
        assert sum(t.elements for t in weights) == size_of(made).parameters


def test_a_built_network_computes_something() -> None:
    data = build(chain("resnet8", 16, 0.5, 8))
    assert data == build(chain("resnet8", 16, 0.5, 8))
    assert api.check_equal(data, data, api.VerifyOptions(inputs=1)).proved


def test_widths_are_rounded_as_keras_does() -> None:
    assert [divisible(w) for w in (3, 11.2, 12, 33.6, 44.8)] == [8, 16, 16, 32, 48]


def test_widths_that_do_not_follow_each_other_are_refused() -> None:
    wrong = Chain("x", (8, 8, 3), (Layer("conv", channels_in=4, channels_out=8),))
    with pytest.raises(ValueError, match="takes 4 channels, gets 3"):
        steps(wrong)


# --- skips ----------------------------------------------------------------------------------------


def with_mean(made: Chain) -> Chain:
    """With the head of a Keras model that ends in global pooling and a dense layer."""
    layers = [Layer("mean") if layer.kind == "pool" else layer for layer in made.layers]
    kept = [layer for layer in layers if layer.kind not in ("flatten", "softmax")]
    return replace(made, layers=tuple(kept))


WITHOUT_BIAS = 12
"""Bytes of a tensor: the converter drops the bias of an untrained dense layer, which is zero."""


@pytest.mark.parametrize(
    ("side", "depth", "original", "without"),
    [(32, 8, 54_848, 37_044), (64, 20, 273_488, 140_900)],
)
def test_what_skips_cost_is_what_converted_networks_show(
    side: int, depth: int, original: int, without: int
) -> None:
    made = with_mean(chain("resnet20", side, 1.0, depth))
    assert arena_of(read_model(build(made)), M4).arena == original + WITHOUT_BIAS
    model = read_model(build(plain(made)))
    assert arena_of(model, M4).arena == without + WITHOUT_BIAS
    assert all(op.kind != "ADD" for op in model.ops())
    floors = floors_of(plain(made))
    assert floors.plan * 2 == floors_of(made).plan == floors.stock


def test_a_chain_without_skips_stays_as_it_is() -> None:
    made = chain("mobilenet_v1", 96, 0.25)
    assert plain(made) is made
    assert plain(plain(chain("resnet8", 32, 1.0, 8))).name == "resnet8_1_32_plain"


def test_without_skips_larger_networks_fit() -> None:
    few = Grid((24, 32, 40), (1.0,), (8,))
    limits = limits_of(M4, 40_000, 1.1, 0)
    best = [
        fit("resnet8", variants_of("resnet8", grid), limits, silent).rungs[0].best
        for grid in (few, replace(few, plain=True))
    ]
    assert [b and b.variant.resolution for b in best] == [24, 32]


# --- floors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "resolution", "width", "depth"),
    [
        ("mobilenet_v1", 48, 0.25, 0),
        ("mobilenet_v2", 48, 0.35, 0),
        ("mobilenet_v3_small", 64, 0.5, 0),
        ("ds_cnn", 49, 1.0, 4),
        ("resnet20", 16, 1.0, 14),
    ],
)
def test_no_plan_is_below_the_floors(
    family: str, resolution: int, width: float, depth: int
) -> None:
    made = chain(family, resolution, width, depth)
    floors, data = floors_of(made), build(made)
    options = api.PlanOptions(api.MemoryOptions(kernels=api.kernels_of(M4)), verify=None)
    stock, planned = arena_of(read_model(data), M4).head, api.plan(data, None, options)
    assert floors.tiles <= floors.plan <= planned.report.after.arena.head
    assert floors.plan <= floors.stock <= stock
    assert floors.stock > 0.6 * stock, "a floor that rules out nothing"


# --- what fits ------------------------------------------------------------------------------------

GRID = Grid((16, 24, 32), (0.5, 1.0), (8,))


def test_the_largest_is_what_asking_for_every_variant_says() -> None:
    limits = limits_of(M4, 40_000, 1.1, 0)
    variants = variants_of("resnet8", GRID)
    stock, plan, *_ = fit("resnet8", variants, limits, silent).rungs
    arenas = {v.name: arena_of(read_model(v.make()), M4).arena for v in variants}
    largest = next(v for v in variants if arenas[v.name] <= 40_000)
    assert stock.best is not None and plan.best is not None
    assert (stock.best.variant, stock.best.arena) == (largest, arenas[largest.name])
    assert plan.best.variant.size.macs > largest.size.macs and plan.best.arena <= 40_000
    above = variants.index(largest)
    assert stock.ruled_out_by_flash + stock.ruled_out_by_bound + stock.tried == above + 1


@pytest.mark.long  # one network that fits in tiles only is in test_joint
def test_tiles_make_a_larger_network_fit() -> None:
    limits = limits_of(M4, 38_000, 1.1, 1)
    found = fit("resnet8", variants_of("resnet8", Grid((24, 32), (1.0,))), limits, silent)
    kinds = {rung.kind: rung for rung in found.rungs}
    stock, tiles = kinds["stock"].best, kinds["tiles"].best
    assert stock is not None and stock.variant.resolution == 24
    assert kinds["plan"].best is None and kinds["plan"].tried == 1
    assert tiles is not None and tiles.variant.resolution == 32
    assert tiles.arena <= 38_000 and tiles.slowdown <= 1.1
    assert kinds["more operators"].best is None and kinds["more operators"].tried == 0
    shown = render_fits(found, 100).splitlines()
    assert all(len(line) <= 100 or line.startswith("tflm-plan") for line in shown)
    assert any("none larger" in line for line in shown)


def test_what_is_too_large_for_flash_needs_no_plan() -> None:
    limits = limits_of(load_target("nano33ble"), None, 1.1, 6)
    found = fit("mobilenet_v2", variants_of("mobilenet_v2", Grid()), limits, silent)
    assert not found.figures and all(rung.best is None for rung in found.rungs)
    assert found.rungs[0].ruled_out_by_flash == found.variants > 100
    assert "--classes" in found.notes[0]


def test_an_interrupted_search_says_so() -> None:
    stop = Stop()
    stop.interrupt()
    found = fit(
        "resnet8", variants_of("resnet8", GRID), limits_of(M4, 40_000, 1.1, 1), silent, stop
    )
    assert "interrupted" in found.notes[0] and found.rungs[0].left > 0


def test_commands_say_what_is_permitted() -> None:
    (variant,) = variants_of("resnet8", Grid((16,), (0.5,), (8,)))
    limits = limits_of(load_target("nano33ble"), 60_000, 1.2, 1)
    commands = {
        kind: command_for(VariantOutcome(variant, kind, 1, 1, slowdown=1.05), limits)
        for kind in ("stock", "plan", "tiles", "more operators", "lean")
    }
    assert commands["stock"] == ""
    assert commands["plan"].endswith("--target nano33ble --budget 60000 --search none")
    assert commands["tiles"].endswith("--budget 60000 --max-slowdown 1.2")
    assert commands["more operators"].endswith("--max-slowdown 1.2 --firmware more-ops")
    assert commands["lean"].endswith("--firmware lean")


def test_a_family_or_a_limit_that_is_missing_is_said() -> None:
    with pytest.raises(UsageError, match="choose from mobilenet_v1"):
        variants_of("alexnet", Grid())
    with pytest.raises(UsageError, match="add --budget"):
        limits_of(M4, None, 1.1, 1)


# --- a user's own networks ------------------------------------------------------------------------

OWN = """
def build(resolution, width, depth):
    return resolution, width

def broken(resolution, width, depth):
    raise RuntimeError("no such width")
"""


def test_a_users_networks_are_figures_of_their_files(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(OWN)

    def convert(made: object) -> bytes:
        resolution, width = made  # type: ignore[misc]
        return build(chain("resnet8", resolution, width, 8))

    grid = Grid((16, 24), (0.5, 1.0))
    found = user_variants(f"{path}:build", grid, M4, silent, convert)
    assert [v.name for v in found] == ["own_1_24", "own_1_16", "own_0.5_24", "own_0.5_16"]
    largest, ours = found[0], floors_of(chain("resnet8", 24, 1.0, 8))
    size = size_of(chain("resnet8", 24, 1.0, 8))
    assert replace(largest.size, macs=size.macs) == size
    assert largest.size.macs == pytest.approx(size.macs, rel=0.001)
    assert largest.floors.plan <= ours.plan and largest.floors.stock <= ours.stock
    rung = fit("own", found, limits_of(M4, 40_000, 1.1, 0), silent).rungs[0]
    assert rung.best is not None and rung.best.variant == largest
    with pytest.raises(UsageError, match="depth 0: RuntimeError: no such width"):
        user_variants(f"{path}:broken", grid, M4, silent, convert)
    with pytest.raises(UsageError, match="has no function nothing"):
        user_variants(f"{path}:nothing", grid, M4, silent, convert)


SCRIPT = """
from __future__ import annotations
from dataclasses import dataclass
from own_blocks import SIDE

print("loading")

@dataclass
class Block:
    width: int

def build(resolution, width, depth):
    print("building")
    return SIDE, width
"""


def test_a_users_file_may_be_a_script_with_modules_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "own_blocks.py").write_text("SIDE = 24")
    (tmp_path / "own.py").write_text(SCRIPT)
    (tmp_path / "ends.py").write_text("import sys; sys.exit()")

    def convert(made: object) -> bytes:
        resolution, width = made  # type: ignore[misc]
        return build(chain("resnet8", resolution, width, 8))

    spec = f"{tmp_path / 'own.py'}:build"
    (found,) = user_variants(spec, Grid((16,), (0.5,)), M4, silent, convert)
    assert found.make() == convert((24, 0.5))
    printed = capsys.readouterr()
    assert not printed.out and printed.err.split() == ["loading", "building"]
    with pytest.raises(UsageError, match="SystemExit"):
        user_variants(f"{tmp_path / 'ends.py'}:build", Grid((16,)), M4, silent, convert)


def test_a_users_networks_without_skips_are_those_of_a_family(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(OWN)
    grid = Grid((16, 24), (0.5,), (8,), plain=True)

    def convert(made: object) -> bytes:
        resolution, width = made  # type: ignore[misc]
        return build(chain("resnet8", resolution, width, 8))

    found = user_variants(f"{path}:build", grid, M4, silent, convert)
    assert [v.name for v in found] == ["own_0.5_24_d8_plain", "own_0.5_16_d8_plain"]
    for ours, theirs in zip(found, variants_of("resnet8", grid), strict=True):
        assert ours.make() == theirs.make() and not ours.notes
        assert (ours.size, ours.floors) == (theirs.size, theirs.floors)
        assert (ours.resolution, ours.width, ours.depth) == (theirs.resolution, 0.5, 8)


def test_a_users_networks_that_have_no_skips_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(OWN)
    data = (PUBLISHED / "vww_96_int8.tflite").read_bytes()
    (found,) = user_variants(f"{path}:build", Grid((96,), plain=True), M4, silent, lambda _: data)
    assert found.make() == data and found.name == "own_1_96"


def test_what_a_chain_has_otherwise_than_a_users_network_is_said(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(OWN)

    def convert(made: object) -> bytes:
        resolution, width = made  # type: ignore[misc]
        return build_floats(draw(chain("resnet8", resolution, width, 8)))

    grid = Grid((16, 24), (0.5,), plain=True)
    found = user_variants(f"{path}:build", grid, M4, silent, convert)
    notes = fit("own", found, limits_of(M4, 40_000, 1.1, 0), silent).notes
    words = "values are float32; figures are of the same network in int8"
    assert notes == (f"own_0.5_24_plain and 1 more: {words}",)


def test_a_users_network_that_is_no_chain_keeps_its_skips(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(OWN)
    grid = Grid((96,), plain=True)
    words = r"out of own_1_96: no chain holds CONCATENATION .*; without --plain it is"
    with pytest.raises(ModelError, match=words):
        user_variants(f"{path}:build", grid, M4, silent, lambda _: CNN.read_bytes())
    separable = ChainBuilder(4)
    separable.depthwise(3, 1, "relu")
    separable.conv(4)
    layers = replace(separable.layers[0], skip=1, join="concat"), separable.layers[1]
    layers = layers[0], replace(layers[1], channels_in=8)
    data = build(Chain("separable", (8, 8, 4), layers))
    with pytest.raises(ModelError, match="widths of depthwise convolutions"):
        user_variants(f"{path}:build", grid, M4, silent, lambda _: data)


def test_without_tensorflow_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    tensorflow.cache_clear()  # another test may have loaded it
    with pytest.raises(UsageError, match=r"pip install 'tflm-planner\[codesign\]'"):
        user_variants("own.py:build", Grid((96,)), M4, silent)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs TensorFlow")
def test_a_keras_model_is_converted_and_its_skips_are_left_out(run, tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(
        "import keras\n"
        "from keras.layers import Add, Conv2D, Dense, GlobalAveragePooling2D\n"
        "def build(resolution, width, depth):\n"
        "    image = keras.Input((resolution, resolution, 3))\n"
        "    x = Conv2D(8, 3, padding='same', activation='relu')(image)\n"
        "    y = Conv2D(8, 3, padding='same', activation='relu')(x)\n"
        "    x = Add()([x, Conv2D(8, 3, padding='same')(y)])\n"
        "    return keras.Model(image, Dense(2)(GlobalAveragePooling2D()(x)))\n"
    )
    options = ("--resolutions", "16", "--searches", "0", "-t", "nano33ble", "--json")
    with_skip, without = (
        json.loads(run("fit", "--build", f"{path}:build", *options, *more).out)["rungs"][0]["best"]
        for more in ((), ("--plain",))
    )
    assert (with_skip["name"], without["name"]) == ("own_1_16", "own_1_16_plain")
    parameters = (27 * 8 + 8) + 2 * (72 * 8 + 8) + (8 * 2 + 2)
    assert with_skip["parameters"] == without["parameters"] == parameters
    assert with_skip["macs"] >= without["macs"]
    assert with_skip["arena"] - without["arena"] > 16 * 16 * 8, "the value that the skip kept"


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    return lambda *arguments: Run([*arguments], capsys)


def test_the_command_prints_a_document(run) -> None:
    few = ("--resolutions", "16,32", "--widths", "0.5", "--depths", "8", "--searches", "0")
    done = run("fit", "--family", "resnet8", "-t", "nano33ble", *few, "--json")
    document = json.loads(done.out)
    schema = json.loads((ROOT / "schema" / "fit.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)
    assert document["rungs"][0]["best"]["name"] == "resnet8_0.5_32"
    assert done.code == 0


def test_the_command_that_is_printed_runs(run, tmp_path: Path) -> None:
    few = ("--resolutions", "24,32", "--widths", "1", "--searches", "0", "--budget", "39500")
    folder = tmp_path / "made"
    done = run("fit", "--family", "resnet8", "-t", "cortex-m4/cmsis-nn", *few, "--write", folder)
    (command,) = (line for line in done.out.splitlines() if line.startswith("tflm-plan "))
    assert "order and plan" in done.out and "written untrained" in done.out
    assert {p.name for p in folder.iterdir()} == {"resnet8_1_24.tflite", "resnet8_1_32.tflite"}
    assert run(*shlex.split(command)[1:], "--no-verify").code == 0
    assert (folder / "resnet8_1_32_small.tflite").is_file()


def test_a_trained_network_is_not_overwritten(run, tmp_path: Path) -> None:
    few = ("--resolutions", "24", "--widths", "1", "--searches", "0", "--write", tmp_path)
    mine = tmp_path / "resnet8_1_24.tflite"
    mine.write_bytes(b"trained for a week")
    done = run("fit", "--family", "resnet8", "-t", "cortex-m4/cmsis-nn", *few, "--budget", "39500")
    assert done.code == 2 and "is another model, perhaps your trained one" in done.err
    assert "order and plan" in done.out, "what was found is printed all the same"
    assert mine.read_bytes() == b"trained for a week"


def test_the_chart_shows_every_figure(run, tmp_path: Path) -> None:
    few = ("--resolutions", "16,32", "--widths", "0.5,1", "--searches", "0")
    path = tmp_path / "fit.svg"
    run("fit", "--family", "resnet8", "-t", "nano33ble", "--budget", "40K", *few, "--svg", path)
    drawn = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    words = [e.text or "" for e in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert any(w.startswith("resnet8_1_32, order and plan: ") for w in words)
    assert "40,960 B of SRAM" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--family", "alexnet"), 2, "unknown"),
        ((), 2, "which networks?"),
        (("--family", "resnet8", "--build", "x.py:f"), 2, "contradict"),
        (("--build", "x.py:f", "--classes", "3"), 2, "it is for --family"),
        (("--build", "x.py:f"), 2, "add --resolutions"),
        (("--family", "resnet8", "--widths", "wide"), 2, "commas"),
        (("--family", "resnet8", "--resolutions", "0"), 2, "above 0"),
        (("--family", "resnet8", "--resolutions", "25.5"), 2, "whole numbers with commas"),
        (("--family", "resnet8", "--resolutions", ","), 2, "no number"),
        (("--family", "resnet8", "--depths", "9"), 2, "has 8, 14, 20, ... layers"),
        (("--family", "mobilenet_v2", "--depths", "3"), 2, "its depth does not vary"),
        (("--family", "ds_cnn", "--plain"), 2, "ds_cnn has no skips"),
    ],
)
def test_wrong_options_of_fit(run, options: tuple[str, ...], code: int, words: str) -> None:
    assert words in run("fit", "-t", "nano33ble", *options).refused(code)


def test_a_way_that_was_not_searched_does_not_say_that_nothing_larger_fits(run) -> None:
    few = ("--resolutions", "32", "--widths", "1.0", "--searches", "0")
    done = run("fit", "--family", "resnet8", "-t", "nano33ble", "--budget", "38000", *few)
    (tiles,) = (line for line in done.out.splitlines() if line.startswith("tiles, "))
    assert "not searched" in tiles and "none larger" not in tiles


def test_nothing_that_fits_is_exit_code_3(run) -> None:
    few = ("--resolutions", "96", "--widths", "1.0", "--searches", "0")
    done = run("fit", "--family", "mobilenet_v1", "-t", "nano33ble", "--budget", "4K", *few)
    assert done.code == 3 and "none larger" in done.out
