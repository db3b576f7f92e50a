"""Other spellings of 1x1 convolutions and of products of rows: the same bits on both runtimes, in
files and as views."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.generator import random_model
from tests.tflm.kernel_loops import Shape
from tests.tflm.overlap_trials import fully_connected_model, model_of
from tests.transforms.test_tile_odd_graphs import Chain
from tests.transforms.tiled import dialect_of, quick_differences
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.model.text import to_text
from tflm_planner.tflm.kernels.contracts import input_overlap_contract
from tflm_planner.tflm.kernels.libraries.cmsis_nn.access_orders import BUILD_2022, DSP, MVE, PLAIN
from tflm_planner.transforms.base import run
from tflm_planner.transforms.spelling import (
    Respell,
    Spelling,
    SpellingRefusedError,
    Unspellable,
    pixels_of,
    spell,
    ways_of,
)

KINDS = {"conv_2d": 8, "depthwise_conv_2d": 2, "add": 2, "relu": 1, "reshape": 1}


def respelled(data: bytes, *spellings: Spelling) -> tuple[bytes, list[str]]:
    model = read_model(data)
    notes = run(model, Respell(spellings))
    return write_model(model), notes


def chain() -> bytes:
    net = Chain((1, 6, 4, 3))
    net.conv(8, 3)
    net.conv(5, 1)
    net.conv(4, 1)
    return net.finish()


def random_chain(seed: int) -> bytes:
    """Convolutions, mostly of 1x1, at times with two readers; the first may be an output too."""
    rng = np.random.default_rng(seed)
    net = Chain((int(rng.choice([1, 1, 2])), *(int(n) for n in rng.integers(1, 9, 3))))
    first = net.conv(int(rng.integers(1, 13)), 1)
    for _ in range(rng.integers(1, 5)):
        if rng.random() < 0.3:
            net.conv(int(rng.integers(1, 13)), 1, keep=False)
        net.conv(int(rng.integers(1, 13)), int(rng.choice([1, 1, 3])))
    unread = [t for t in range(first, net.x) if rng.random() < 0.2 and t == first]
    return net.finish(*unread, net.x)


def random_spellings(data: bytes, seed: int) -> list[Spelling]:
    """One for every operator that can be spelled otherwise."""
    rng, found = np.random.default_rng(seed), list[Spelling]()
    for i, op in enumerate(read_model(data).main.ops):
        try:
            pixels = pixels_of(op)
        except SpellingRefusedError:
            continue
        rows = [n for n in range(1, pixels) if pixels % n == 0]
        if rows and rng.random() < 0.8:
            found.append(Spelling(i, "rows", int(rng.choice(rows))))
        else:
            found.append(Spelling(i, "dilated"))
    return found


def faults(seed: int, seen: Counter[str]) -> list[str]:
    """What is wrong with random spellings of one random model, and with its dialect."""
    drawn = random_model(seed, steps=2 + seed % 8, kinds=KINDS)
    data = drawn if seed % 3 == 0 and random_spellings(drawn, seed) else random_chain(seed)
    chosen = random_spellings(data, seed)
    if not chosen:
        return []
    made, notes = respelled(data, *chosen)
    wrong = [note for note in notes if note.startswith("not ")]
    wrong += quick_differences(data, made)
    rows = sum(s.kind == "rows" for s in chosen)
    seen["dilated"] += len(chosen) - rows
    if rows:
        seen["in rows"] += rows
        planned = dialect_of(made)
        seen["operators dropped"] += len(planned.dropped)
        wrong += quick_differences(data, planned.dialect, ("TFLM",))
    return wrong


def test_rows_are_a_batch_between_reshapes() -> None:
    data, notes = respelled(chain(), Spelling(1, "rows", 4), Spelling(2, "dilated"))
    lines = to_text(read_model(data)).splitlines()
    assert [line.split(" = ")[1] for line in lines if " = " in line] == [
        "CONV_2D(%0, #int8[8,3,3,3], #int32[8])",
        "RESHAPE(%1, #int32[4])",
        "CONV_2D(%2, #int8[5,1,1,8], #int32[5])",
        "RESHAPE(%3, #int32[4])",
        "CONV_2D(%4, #int8[4,1,1,5], #int32[4])",
    ]
    ops = read_model(data).main.ops
    assert ops[2].options.stride == (2, 1)
    assert ops[2].inputs[0] and ops[2].inputs[0].shape == (6, 1, 4, 8)
    assert ops[2].outputs[0].shape == (6, 1, 4, 5) and ops[3].outputs[0].shape == (1, 6, 4, 5)
    assert ops[4].options.dilation[0] == 2
    assert "in rows of 4 pixels" in notes[0] and "dilated" in notes[1]


def test_asking_changes_nothing() -> None:
    model = read_model(chain())
    before = write_model(model)
    made = spell(model.main.ops[1], Spelling(1, "rows", 12))
    assert made.outputs[0].shape == (2, 1, 12, 5)
    assert write_model(model) == before


@pytest.mark.parametrize(
    ("shape", "pixels", "reason"),
    [
        (Shape("depthwise", 4, 4, 3, 3), 4, Unspellable.KIND),
        (Shape("conv", 4, 4, 3, 3, 3, 3), 4, Unspellable.WINDOW),
        (Shape("conv", 4, 4, 3, 3, sh=2), 4, Unspellable.WINDOW),
        (Shape("conv", 4, 4, 3, 3, dh=2), 4, Unspellable.WINDOW),
        (Shape("conv", 4, 4, 4, 4, groups=2), 4, Unspellable.WINDOW),
        (Shape("conv", 4, 4, 3, 3, element=4), 4, Unspellable.TYPE),
        (Shape("conv", 4, 4, 3, 3), 3, Unspellable.PIXELS),
        (Shape("conv", 4, 4, 3, 3), 16, Unspellable.PIXELS),
        (Shape("conv", 4, 4, 3, 3), 0, Unspellable.PIXELS),
    ],
    ids=str,
)
def test_refusals_say_why(shape: Shape, pixels: int, reason: Unspellable) -> None:
    model = read_model(model_of(shape))
    with pytest.raises(SpellingRefusedError) as refused:
        spell(model.main.ops[0], Spelling(0, "rows", pixels))
    assert refused.value.reason is reason
    before = write_model(model)
    (result,) = Respell([Spelling(0, "rows", pixels)]).rewrite(model)
    assert isinstance(result.refusal, SpellingRefusedError)
    assert result.note == f"not spelled otherwise: {reason.value}"
    assert write_model(model) == before


def test_a_result_that_was_cut_off_is_refused() -> None:
    model = read_model(model_of(Shape("conv", 4, 4, 3, 3)))
    model.main.ops[0].outputs[0].shape = (1, 3, 4, 3)
    with pytest.raises(SpellingRefusedError) as refused:
        pixels_of(model.main.ops[0])
    assert refused.value.reason is Unspellable.CUT


def test_what_each_library_gains() -> None:
    """Rows and dilation on CMSIS-NN; Helium's fast kernel trails already; the library of 2022 has
    no kernel for strides, and takes the general one for both."""
    model = read_model(model_of(Shape("conv", 8, 8, 32, 16)))
    op = model.main.ops[0]
    rows = spell(op, Spelling(0, "rows", 4))
    dilated = spell(op, Spelling(0, "dilated"))

    def least(build: object) -> list[list[int]]:
        return [[t.low for t in input_overlap_contract(o, build)] for o in (op, rows, dilated)]  # type: ignore[arg-type]

    assert least(DSP) == least(PLAIN) == [[], [64], [0]]
    assert least(BUILD_2022) == [[], [0], [0]]
    assert least(MVE) == [[64], [64], [0]]


@needs_tflm
@pytest.mark.parametrize("rank", [3, 4])
@pytest.mark.parametrize(("rows", "depth", "made"), [(6, 8, 12), (5, 4, 3), (1, 16, 8)])
def test_rows_as_a_matrix(rank: int, rows: int, depth: int, made: int) -> None:
    data = fully_connected_model(rows, depth, made, rank=rank)
    spelled, (note,) = respelled(data, Spelling(0, "matrix"))
    assert "with its rows as a matrix" in note
    before, op, after = read_model(spelled).main.ops
    assert before.kind == after.kind == "RESHAPE"
    assert op.inputs[0] and op.inputs[0].shape == (rows, depth)
    assert op.outputs[0].shape == (rows, made)
    assert not quick_differences(data, spelled)
    if rows > 1:
        planned = dialect_of(spelled)
        assert len(planned.dropped) >= 1  # the model's output may need its own copy
        assert not quick_differences(data, planned.dialect, ("TFLM",))


def test_which_rows_are_no_matrix() -> None:
    def refusal(data: bytes, spelling: Spelling) -> Unspellable:
        with pytest.raises(SpellingRefusedError) as refused:
            spell(read_model(data).main.ops[0], spelling)
        return refused.value.reason

    matrix = Spelling(0, "matrix")
    assert refusal(fully_connected_model(6, 8, 4), matrix) is Unspellable.AXES
    assert refusal(fully_connected_model(6, 8, 4, "float32", rank=3), matrix) is Unspellable.TYPE
    assert refusal(fully_connected_model(6, 8, 4, "int16", rank=3), matrix) is Unspellable.TYPE
    assert refusal(chain(), matrix) is Unspellable.OTHER
    rows = Spelling(0, "rows", 2)
    assert refusal(fully_connected_model(6, 8, 4, rank=3), rows) is Unspellable.OTHER


def test_all_ways_to_write_an_operator() -> None:
    pointwise = read_model(chain()).main.ops[1]
    rows = [Spelling(0, "rows", n) for n in (1, 2, 3, 4, 6, 8, 12)]
    assert [*ways_of(pointwise, reshaped=True)] == [*rows, Spelling(0, "dilated")]
    assert [*ways_of(pointwise, reshaped=False)] == [Spelling(0, "dilated")]
    product = read_model(fully_connected_model(6, 8, 4, rank=3)).main.ops[0]
    assert [*ways_of(product, reshaped=True)] == [Spelling(0, "matrix")]
    assert not [*ways_of(product, reshaped=False)]
    with pytest.raises(SpellingRefusedError):
        next(ways_of(read_model(chain()).main.ops[0], reshaped=True))


def test_what_a_matrix_gains() -> None:
    """A row's distance on every build of CMSIS-NN of today; the library of 2022 has it as it is."""
    op = read_model(fully_connected_model(64, 32, 32, rank=3)).main.ops[0]
    matrix = spell(op, Spelling(0, "matrix"))

    def least(build: object) -> list[list[int]]:
        return [[t.low for t in input_overlap_contract(o, build)] for o in (op, matrix)]  # type: ignore[arg-type]

    assert least(DSP) == least(PLAIN) == least(MVE) == [[], [32]]
    assert least(BUILD_2022) == [[32], [32]]


@needs_tflm
@pytest.mark.parametrize("first", range(0, 24, 8))
def test_random_models_are_the_same(first: int) -> None:
    seen: Counter[str] = Counter()
    wrong = [(seed, w) for seed in range(first, first + 8) for w in faults(seed, seen)]
    assert not wrong
    assert seen["in rows"] and seen["operators dropped"] >= seen["in rows"]
