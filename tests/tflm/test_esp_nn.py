"""ESP-NN: scratch as its own functions answer, heads as boards logged them, what is wrong, and what
is in doubt."""

from __future__ import annotations

import csv
import gzip
from dataclasses import replace

import numpy as np
import pytest

from tests.conftest import DATA, published
from tests.models.build import Net
from tests.tflm.kernel_loops import Shape
from tests.tflm.operator_models import MODELS
from tests.tflm.overlap_trials import model_of, op_of
from tflm_planner.model.clone import clone
from tflm_planner.model.ir import Op
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.tflm.arena.allocation_replay import PARTS, AllocationReplay
from tflm_planner.tflm.arena.predict import Arena, arena_of
from tflm_planner.tflm.kernels import known_libraries, library_of
from tflm_planner.tflm.kernels.conservative import UNKNOWN
from tflm_planner.tflm.kernels.known_faults import faults_of
from tflm_planner.tflm.kernels.libraries.esp_nn.releases import NEWEST, RELEASES, spell
from tflm_planner.tflm.kernels.libraries.esp_nn.scratch import (
    ConvShape,
    p4_convolution,
    s3_convolution,
    s3_depthwise,
)
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tflm.targets import all_boards, all_targets, can_be_lean, load_target
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.evaluate.evaluation import evaluate
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.transforms.regions import Regions
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion

RECORDED = DATA / "esp_nn_scratch.csv"
"""What the library's own functions, compiled, answered (benchmarks/esp_nn_sizes.py --record)."""
WAKE_WORDS = DATA / "wake_words"
FUNCTIONS = {
    "conv_scratch_size_esp32s3": s3_convolution,
    "depthwise_conv_scratch_size_esp32s3": s3_depthwise,
    "conv_scratch_size_esp32p4": p4_convolution,
}
CHIPS = ("esp32", "esp32s2", "esp32s3", "esp32c3", "esp32c6", "esp32h2", "esp32p4")


def scratch(op: Op, target: str) -> tuple[int, ...]:
    on = load_target(target)
    return library_of(on).scratch_requests(op, on)


def of(shape: Shape) -> Op:
    return op_of(model_of(shape))


def wake_word(name: str) -> bytes:
    """As published, or with weights of zero."""
    path = WAKE_WORDS / f"{name}.zeros.tflite.gz"
    return gzip.decompress(path.read_bytes()) if path.exists() else published(name)


def dense(rows: int, length: int) -> Op:
    """FULLY_CONNECTED of rows of so many values, each of its four channels with its own scale."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (rows, length), scale=0.1)
    w = graph.constant("w", np.ones((4, length)), "int8", scale=np.full(4, 0.1))
    y = graph.tensor("y", (rows, 4), scale=0.1)
    graph.op("FULLY_CONNECTED", [x, w], [y], "FullyConnectedOptions", keepNumDims=False)
    graph.outputs(y)
    (op,) = read_model(net.finish()).ops()
    return op


def arena(name: str, target: str) -> Arena:
    return arena_of(read_model(published(name)), load_target(target))


def test_sizes_are_those_of_the_library() -> None:
    with RECORDED.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["release"], row["function"]) for row in rows} == {
        (spell(release), function) for release in RELEASES for function in FUNCTIONS
    }
    for row in rows:
        release = tuple(map(int, row["release"].split(".")))
        numbers = [int(n) for name, n in row.items() if name not in ("release", "function")]
        pairs = [(numbers[i], numbers[i + 1]) for i in range(0, 10, 2)]
        geometry = ConvShape(*pairs, *numbers[10:13])  # type: ignore[arg-type]
        assert FUNCTIONS[row["function"]](geometry, release) == numbers[13], row  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shape", "release", "sizes"),
    [
        (Shape("conv", 8, 8, 64, 64, 3, 3), "1.2.3", (86_848, 49_856, 31_360, 22_112)),
        (Shape("conv", 8, 8, 64, 64, 3, 3), "1.2.6", (80_448, 43_456, 24_960, 15_712)),
        (Shape("conv", 6, 6, 256, 256), "1.2.3", (69_696, 36_928, 20_544, 12_352)),
        (Shape("conv", 5, 1, 40, 32, 5, 1, same=False), "1.2.3", (15_552, 7_808, 3_936, 2_000)),
    ],
    ids=str,
)
def test_parts_of_the_output_channels_divide_the_copy_of_the_filter(
    shape: Shape, release: str, sizes: tuple[int, ...]
) -> None:
    """In one, two, four and eight parts."""
    for parts, size in zip((1, 2, 4, 8), sizes, strict=True):
        op = of(replace(shape, co=shape.co // parts))
        assert scratch(op, f"esp32s3/esp-nn-{release}") == (size,)


def test_the_scratch_of_a_reported_layer() -> None:
    """esp-nn pull request 37: a depthwise layer of 49 x 20 x 32 "got 32944 bytes"."""
    op = of(Shape("depthwise", 49, 20, 32, 32, 3, 3, 2, 2))
    assert scratch(op, "esp32s3/esp-nn-1.2.3") == (32_944,)


@pytest.mark.parametrize(
    ("name", "requested", "manifest", "arenas"),
    [
        ("okay_nabu", 19_440, 26_080, (25_796, 33_764, 33_796)),
        ("hey_jarvis", 17_840, 22_860, (22_484, 29_956, 29_988)),
        ("vad", 17_088, 16_772, (16_620, 24_588, 24_620)),
    ],
)
def test_heads_that_boards_logged(
    name: str, requested: int, manifest: int, arenas: tuple[int, int, int]
) -> None:
    """ "Failed to resize buffer. Requested: 19440" with okay_nabu, ESP32-S3 and esp-nn 1.2.1
    (esphome/issues 7242), where 1.1.2 fitted each manifest."""
    model = read_model(wake_word(name))
    found = [
        arena_of(model, load_target(f"esp32s3/esp-nn-{release}"), variables_apart=True)
        for release in ("1.1.2", "1.2.1", "1.2.3")
    ]
    assert tuple(a.arena for a in found) == arenas
    assert found[1].head == requested
    assert arenas[0] <= manifest < arenas[1]


@pytest.mark.parametrize(
    ("name", "size", "start", "available"),
    [
        ("okay_nabu", 26_080, 0, 11_876),
        ("hey_jarvis", 22_860, 0, 10_876),
        ("vad", 16_772, 4, 9_380),  # the array begins 4 bytes behind a multiple of 16
    ],
)
def test_what_the_tails_left_that_boards_logged(
    name: str, size: int, start: int, available: int
) -> None:
    """The same messages go on "available 11876": what the tail, before inputs and outputs are
    allocated in it, had left of the manifest's arena."""
    target = load_target("esp32s3/esp-nn-1.2.1")
    replay = AllocationReplay(read_model(wake_word(name)), target, {}, variables_apart=True)
    log = replay.run(replay.head()[0])
    before = [piece.kind for piece in log.pieces].index(PARTS.index("io_tensors"))
    tail = list(log.extents((start + size) % 16))[before - 1]
    assert size - -start % 16 - tail == available


@pytest.mark.parametrize(
    ("name", "target", "wanted"),
    [
        ("vww_96_int8.tflite", "esp32s3/esp-nn-1.2.3", (122_512, 95_456)),
        ("vww_96_int8.tflite", "esp32p4/esp-nn-1.2.3", (101_264, 74_272)),
        ("vww_96_int8.tflite", "esp32c3/esp-nn-1.2.3", (100_672, 73_728)),
        ("pretrainedResnet_quant.tflite", "esp32s3/esp-nn-1.1.2", (90_524, 85_280)),
        ("pretrainedResnet_quant.tflite", "esp32s3/esp-nn-1.2.3", (110_140, 104_896)),
        ("kws_ref_model.tflite", "esp32s3/esp-nn-1.1.2", (57_248, 50_432)),
        ("kws_ref_model.tflite", "esp32s3/esp-nn-1.2.3", (35_504, 28_688)),
        ("okay_nabu.tflite", "esp32s3/esp-nn-1.1.2", (26_048, 11_472)),
        ("okay_nabu.tflite", "esp32s3/esp-nn-1.2.1", (34_016, 19_440)),
        ("okay_nabu.tflite", "esp32s3/esp-nn-1.2.3", (34_048, 19_472)),
        ("okay_nabu.tflite", "esp32s3/esp-nn-1.2.6", (33_760, 19_184)),
        ("vww_96_int8.tflite", "esp32s3/esp-nn-1.2.6", (122_512, 95_456)),
        ("pretrainedResnet_quant.tflite", "esp32s3/esp-nn-1.2.6", (102_076, 96_832)),
        ("kws_ref_model.tflite", "esp32s3/esp-nn-1.2.6", (35_504, 28_688)),
    ],
)
def test_arenas_of_published_models(name: str, target: str, wanted: tuple[int, int]) -> None:
    found = arena(name, target)
    assert ((found.arena, found.head), found.bound) == (wanted, "exact")


@pytest.mark.parametrize("name", ["vww_96_int8.tflite", "okay_nabu.tflite", "ad01_int8.tflite"])
def test_plain_c_asks_for_no_scratch(name: str) -> None:
    """CONFIG_NN_ANSI_C: structures have the index of a scratch buffer that is not asked for; what
    it adds is as measured (test_esp32c3)."""
    plain, reference = arena(name, "esp32s3/reference"), arena(name, "xtensa-lx7/reference")
    assert plain.scratch == reference.scratch and plain.head == reference.head
    assert 0 <= plain.arena - reference.arena <= 16
    assert plain.bound == "exact"


def test_int4_filters_are_unpacked_before_the_scratch_of_esp_nn() -> None:
    op = op_of(model_of(Shape("conv", 8, 8, 16, 16, 3, 3), packed=True))
    assert scratch(op, "esp32s3/esp-nn-1.2.3")[0] == 16 * 9 * 16
    assert len(scratch(op, "esp32s3/esp-nn-1.2.3")) == 2 and len(scratch(op, "esp32/esp-nn")) == 1


def test_other_types_ask_for_nothing() -> None:
    for element in (2, 4):
        op = of(Shape("conv", 8, 8, 16, 16, 3, 3, element=element))
        assert scratch(op, "esp32s3/esp-nn") == scratch(op, "esp32p4/esp-nn") == ()


@pytest.mark.parametrize("chip", CHIPS)
def test_softmax_asks_by_its_second_dimension(chip: str) -> None:
    (op,) = read_model(MODELS["softmax_int8"]()).ops()
    shape = op.inputs[0].shape if op.inputs[0] else None
    assert shape and scratch(op, f"{chip}/esp-nn-1.2.3") == (4 * shape[1],)
    assert scratch(op, f"{chip}/reference") == ()


def test_every_chip_has_every_release_and_boards_name_none() -> None:
    for chip in CHIPS:
        for release in ("esp-nn", *(f"esp-nn-{spell(r)}" for r in RELEASES), "reference"):
            assert load_target(f"{chip}/{release}").id == f"{chip}/{release}"
    on_chips = [b for b in all_boards().values() if b.target.split("/")[0] in CHIPS]
    assert len(on_chips) >= 8 and all(b.target.endswith("/esp-nn") for b in on_chips)


def test_a_release_that_is_not_named_is_the_newest_read_and_in_doubt() -> None:
    model = read_model(model_of(Shape("conv", 8, 8, 16, 16, 3, 3)))
    named = arena_of(model, load_target(f"esp32s3/esp-nn-{spell(NEWEST)}"))
    open_ended = arena_of(model, load_target("esp32s3/esp-nn"))
    assert (named.bound, open_ended.bound) == ("exact", "about")
    assert named.arena == named.reserved == open_ended.arena < open_ended.reserved
    assert "the newest that was read" in open_ended.warnings[0]


@pytest.mark.parametrize(
    "name", ["vww_96_int8", "pretrainedResnet_quant", "kws_ref_model", "okay_nabu"]
)
def test_the_margin_covers_every_release_that_was_read(name: str) -> None:
    reserved = arena(f"{name}.tflite", "esp32s3").reserved
    for release in RELEASES:
        assert arena(f"{name}.tflite", f"esp32s3/esp-nn-{spell(release)}").arena <= reserved


def test_sizes_that_esp_nn_misreads_are_in_doubt() -> None:
    net = Net()
    graph = net.graph()
    x = graph.input("x", (12,), scale=0.1)
    y = graph.tensor("y", (12,), scale=1 / 256)
    graph.op("SOFTMAX", [x], [y], "SoftmaxOptions", beta=1.0)
    graph.outputs(y)
    flat = read_model(net.finish())
    wide = read_model(model_of(Shape("conv", 1, 70_000, 1, 1, 1, 3)))
    for model in (flat, wide):
        assert arena_of(model, load_target("esp32s3/esp-nn-1.2.3")).bound == "at least"
        assert arena_of(model, load_target("esp32s3/reference")).bound == "exact"


@pytest.mark.parametrize(
    ("shape", "target", "words"),
    [
        (Shape("depthwise", 49, 20, 32, 32, 3, 3, 2, 2), "esp32s3/esp-nn-1.2.3", "issue 30"),
        (Shape("depthwise", 49, 20, 32, 32, 3, 3), "esp32s3/esp-nn-1.2.3", None),
        (Shape("depthwise", 49, 40, 1, 8, 10, 8), "esp32s3/esp-nn-1.1.2", "16 bytes beyond"),
        (Shape("depthwise", 49, 40, 1, 8, 10, 8), "esp32s3/esp-nn-1.2.0", None),
        (Shape("depthwise", 9, 9, 1, 8, 5, 5), "esp32s3/esp-nn-1.1.2", None),
        (Shape("conv", 49, 20, 32, 32, 3, 3, 2, 2), "esp32s3/esp-nn-1.2.3", "issue 31"),
        (Shape("conv", 48, 20, 32, 32, 3, 3, 2, 2), "esp32s3/esp-nn-1.2.3", None),
        (Shape("conv", 48, 20, 32, 32, 3, 3, 2, 2), "esp32s3/esp-nn-1.1.2", "issue 31"),
        (Shape("conv", 49, 20, 32, 32, 3, 3, 2, 2), "esp32s3/esp-nn-1.2.6", None),
        (Shape("depthwise", 49, 20, 32, 32, 3, 3, 2, 2), "esp32s3/esp-nn-1.2.6", "issue 30"),
        (Shape("conv", 49, 20, 32, 32, 3, 3, 2, 2), "esp32c3/esp-nn-1.2.3", None),
        (Shape("conv", 9, 9, 8, 8, groups=2), "esp32c3/esp-nn-1.2.3", "other sums"),
        (Shape("conv", 9, 9, 8, 8, 3, 3, groups=2), "esp32c3/esp-nn-1.2.3", "other sums"),
        (Shape("conv", 9, 9, 8, 8, 3, 3, groups=2), "esp32s3/esp-nn-1.2.6", "other sums"),
        (Shape("conv", 9, 9, 8, 8, groups=2), "esp32s3/reference", "other sums"),
        (Shape("conv", 9, 9, 8, 8, 3, 3, groups=2, dh=2, dw=2), "esp32c3/esp-nn-1.2.3", None),
        (Shape("conv", 9, 9, 8, 8, groups=2, element=2), "esp32s3/reference", None),
        (Shape("conv", 9, 9, 8, 8, 3, 3), "esp32s3/reference", None),
        (Shape("conv", 9, 9, 8, 8, 3, 3, groups=2), "esp32s3/esp-nn-1.2.1", "other sums"),
    ],
)
def test_known_faults(shape: Shape, target: str, words: str | None) -> None:
    on = load_target(target)
    reason = library_of(on).fault_of(of(shape), on)
    assert (reason is None) if words is None else (reason is not None and words in reason)


@pytest.mark.parametrize(
    ("rows", "length", "target", "is_wrong"),
    [
        (3, 20, "esp32s3/esp-nn-1.1.2", True),
        (3, 20, "esp32s3/esp-nn-1.2.3", True),
        (3, 20, "esp32s3/esp-nn-1.2.6", False),
        (3, 20, "esp32c3/esp-nn-1.2.3", False),
        (3, 24, "esp32s3/esp-nn-1.2.3", False),
        (3, 7, "esp32s3/esp-nn-1.2.3", False),
        (1, 20, "esp32s3/esp-nn-1.2.3", False),
    ],
)
def test_rows_of_fully_connected_begin_at_a_multiple_of_eight(
    rows: int, length: int, target: str, is_wrong: bool
) -> None:
    """esp-nn issue 34. That channels have scales of their own (issue 22) is no fault of any release
    here."""
    on = load_target(target)
    reason = library_of(on).fault_of(dense(rows, length), on)
    assert (reason is not None and "issue 34" in reason) if is_wrong else reason is None


def test_esp_nn_is_no_library_that_any_or_lean_counts_on() -> None:
    assert not any(library.name.startswith("esp-nn") for library in known_libraries())
    targets = [t for t in all_targets().values() if t.kernels.startswith("esp-nn")]
    assert targets and not any(map(can_be_lean, targets))
    assert UNKNOWN not in kernels_of(load_target("esp32s3/esp-nn")).builds


@pytest.mark.parametrize(
    ("whole", "part", "axis", "size"),
    [
        (Shape("conv", 8, 8, 64, 64, 3, 3), Shape("conv", 8, 8, 64, 16, 3, 3), 3, 16),
        (Shape("conv", 6, 6, 256, 256), Shape("conv", 6, 6, 256, 32), 3, 32),
        (
            Shape("depthwise", 9, 9, 64, 64, 3, 3, same=False),
            Shape("depthwise", 9, 9, 16, 16, 3, 3, same=False),
            3,
            16,
        ),
        (
            Shape("conv", 33, 9, 16, 8, 3, 3, 2, 2, same=False),
            Shape("conv", 9, 9, 16, 8, 3, 3, 2, 2, same=False),
            1,
            4,
        ),
    ],
    ids=str,
)
def test_the_scratch_of_a_part_is_that_of_a_smaller_operator(
    whole: Shape, part: Shape, axis: int, size: int
) -> None:
    for chip in ("esp32s3", "esp32p4"):
        on = kernels_of(load_target(f"{chip}/esp-nn-1.2.3"))
        found = on.part_scratch_of(of(whole), axis, size)
        assert found is not None and sum(found) == sum(on.scratch_of(of(part)))
    elsewhere = kernels_of(load_target("nano33ble"))
    of_tile = elsewhere.scratch_of(of(part))
    assert elsewhere.part_scratch_of(of(whole), axis, size) in (None, of_tile)


def test_parts_of_channels_are_found_where_scratch_is_the_peak() -> None:
    """The copy of the filter is most of the head: parts of the channels divide it."""
    data = model_of(Shape("conv", 5, 1, 64, 64, 5, 1, same=False))
    on = kernels_of(load_target("esp32s3/esp-nn-1.2.3"))
    options = api.PlanOptions(api.MemoryOptions(kernels=on), api.TilePermission(), verify=None)
    report = api.plan(data, None, options).report
    assert report.before.head > 40_000
    assert report.after.arena.arena < report.before.arena.arena / 2


@pytest.mark.slow
@pytest.mark.mostly_long(short=3)
@pytest.mark.parametrize("release", ["1.2.1", "1.2.3", "1.2.6"])
@pytest.mark.parametrize(
    ("name", "manifest", "enough"),
    [("okay_nabu", 26_080, 22_528), ("hey_jarvis", 22_860, 20_432), ("vad", 16_772, 13_040)],
)
def test_wake_words_fit_their_manifests_again(
    name: str, manifest: int, enough: int, release: str
) -> None:
    """By their files alone; `enough` was found by hand, with the best number of parts."""
    on = kernels_of(load_target(f"esp32s3/esp-nn-{release}"))
    options = api.PlanOptions(api.MemoryOptions(kernels=on), api.TilePermission(), verify=None)
    report = api.plan(wake_word(name), None, options).report
    assert report.after.arena.arena <= enough < manifest < report.before.arena.arena


def test_tiles_that_esp_nn_would_compute_wrong_are_left_out() -> None:
    """A tile at the edge of an image may have padding on one axis alone, which the operator had
    on both."""
    model = read_model(model_of(Shape("conv", 33, 33, 16, 16, 3, 3, 2, 2)))
    on = kernels_of(load_target("esp32s3/esp-nn-1.2.3"))
    options = TilingOptions(on, on.input_overlaps_of, operators=api.AllowedOperators.ALL)
    assert not faults_of(model.ops(), on.target)
    tried = wrong = 0
    for axis, parts in ((1, 2), (1, 3), (1, 4), (2, 2), (3, 2)):
        for border in ("pad", "waste"):
            region = TiledRegion((0,), (Split(axis, parts),), border=border)
            made = clone(model)
            if Regions((region,)).rewrite(made)[0].refusal:
                continue
            tried += 1
            is_wrong = bool(faults_of(made.ops(), on.target))
            wrong += is_wrong
            found = evaluate(model, Candidate((region,), bind_views=False), options)
            assert (found is None) == is_wrong
    assert 0 < wrong < tried
