"""Loops over random blocks and real models: equal bits, plans that hold, heads to the byte."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.conftest import needs_tflm, published
from tests.model_replay import replay
from tests.models.build import Net
from tests.models.strategies import PATIENT
from tests.tflm.wheel import Wheel
from tests.transforms.row_loops import chain as _chain
from tests.transforms.row_loops import (
    cut_block,
    faults,
    geometry_of,
    planned,
    random_blocks,
    random_loops,
    streamed,
)
from tests.transforms.tiled import quick_differences, rewritten, same_bits
from tflm_planner.cost import latency_of
from tflm_planner.memory.problem import Plan, validate
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.model.text import to_text
from tflm_planner.pipeline import api
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.pipeline.planning.memory_search import plan_memory
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.liveness import planning_problem, timeline_of
from tflm_planner.tflm.placement import placement_of
from tflm_planner.tflm.sharing import RemainingCopies
from tflm_planner.tflm.versions import can
from tflm_planner.transforms.attach_plan import carried_plan
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.regions import Regions
from tflm_planner.transforms.row_loop import (
    LOOP_BORDERS,
    LoopBorder,
    LoopedRegion,
    NotStreamableError,
)  # fmt: skip
from tflm_planner.transforms.tile.tile import band

VWW, RESNET = "vww_96_int8", "pretrainedResnet_quant"
M4 = "cortex-m4/cmsis-nn"


@needs_tflm
@settings(PATIENT, max_examples=10)
@given(st.integers(0, 2**32 - 1), st.integers(3, 14), st.sampled_from([0, 6]))
@pytest.mark.slow
def test_loops_compute_the_same_bits(seed: int, steps: int, cuts: int) -> None:
    """Whatever the pass accepts is exact: paddings, strides over kernels, dilation, branches of
    different depth, cut channels, rows that do not divide the image, int8, int16 and float."""
    data = random_blocks(seed, steps, cuts=cuts)
    made, _ = streamed(data, *random_loops(data, random.Random(seed)))
    assert quick_differences(data, made) == []


@needs_tflm
@pytest.mark.parametrize("border", LOOP_BORDERS)
@pytest.mark.parametrize("kind", ["SLICE", "STRIDED_SLICE", "SPLIT", "SPLIT_V"])
def test_blocks_that_cut_their_channels_run_in_loops(kind: str, border: LoopBorder) -> None:
    """Each operator that cuts takes the rows of a turn, also in turns outside the loop."""
    data = cut_block(kind, stride=1 + (border == "reverse"))
    everything = tuple(range(len(read_model(data).main.ops)))
    made, _ = streamed(data, LoopedRegion(everything, 1, border))
    (body,) = (g for g in read_model(made).graphs[1:] if any(op.kind == "CONV_2D" for op in g.ops))
    assert any(op.kind == kind for op in body.ops)
    assert faults(data, made) == []


@pytest.mark.parametrize("seed", [6, 79, 103, 198])
def test_loops_make_nothing_that_nothing_reads(seed: int) -> None:
    """What an evaluation counts is then what the file has. Turns behind the loop once handed on
    halos that no turn took over."""
    data = random_blocks(seed, 3 + seed % 12)
    model = read_model(data)
    run(model, Regions(tuple(random_loops(data, random.Random(seed)))))
    assert any(op.kind == "WHILE" for op in model.ops())
    assert [note for note in run(model, Normalize()) if "nothing reads" in note] == []


@needs_tflm
@settings(PATIENT, max_examples=6)
@given(st.integers(0, 2**32 - 1), st.integers(3, 12))
@pytest.mark.slow
def test_planned_loops_hold_on_the_runtime(seed: int, steps: int) -> None:
    """Replayed byte by byte; the same bits in shared memory; head and smallest arena as said."""
    data = random_blocks(seed, steps)
    made, results = rewritten(data, *random_loops(data, random.Random(seed)), clean=True)
    assume(not all(result.refusal for result in results))
    assert faults(data, made) == []


@pytest.mark.parametrize(
    ("layers", "loop", "turns", "delays", "halos", "masks"),
    [
        # 3x3 stride 1, padded: each looks one row ahead, and on the input that costs nothing
        ([(3, 1, 4), (3, 1, 4)], LoopedRegion((0, 1), 1), 13, [-1, 0, 1], [2, 2], "mm"),
        (
            [(1, 1, 4), (3, 1, 4), (3, 1, 4)],
            LoopedRegion((0, 1, 2), 1),
            14,
            [0, 0, 1, 2],
            [0, 2, 2],
            "-mm",
        ),
        # stride 2, padding below only: from the bottom up nothing waits for anything, and the row
        # of padding is the halo that the first turn begins with
        (
            [(1, 1, 4), (3, 2, 4), (1, 1, 8)],
            LoopedRegion((0, 1, 2), 1, "reverse"),
            6,
            [0] * 4,
            [0, 1, 0],
            "---",
        ),
        # but for rows that come late: the turn before makes one outside the image in its place
        (
            [(1, 1, 4), (3, 1, 4), (3, 2, 4)],
            LoopedRegion((0, 1, 2), 1, "reverse"),
            7,
            [0, 0, 1, 1],
            [0, 2, 2],
            "-mm",
        ),
        (
            [(1, 1, 4), (3, 2, 4), (1, 1, 8)],
            LoopedRegion((0, 1, 2), 1),
            7,
            [0, 0, 1, 1],
            [0, 2, 0],
            "-m-",
        ),
        # the same window on the input itself: one row ahead, and only one of halo
        ([(3, 2, 4), (1, 1, 8)], LoopedRegion((0, 1), 1), 6, [-1, 0, 0], [1, 0], "m-"),
    ],
)
def test_delays_halos_and_masks(layers, loop, turns, delays, halos, masks) -> None:
    model = read_model(_chain(*layers))
    found = geometry_of(model, loop)
    tensors = [model.main.inputs[0], *(op.outputs[0] for op in found.ops)]
    assert found.turns == turns
    assert [found.delays[t] for t in tensors] == delays
    assert [u.halo for u in found.uses] == halos
    assert "".join("m" if u.masked else "-" for u in found.uses) == masks
    assert found.in_place


@pytest.mark.parametrize(("border", "first"), [("masked", "CONV_2D"), ("reverse", "GATHER")])
def test_when_the_next_halo_is_taken(border: LoopBorder, first: str) -> None:
    """From the top down it may move to the place of the tile's first rows when the tile was read;
    from the bottom up it is the tile's first rows, which may then be overwritten."""
    made, _ = streamed(_chain((1, 1, 4), (3, 1, 4)), LoopedRegion((0, 1), 1, border))
    bodies = [g for g in read_model(made).graphs if any(op.kind == "CONCATENATION" for op in g.ops)]
    (tile,) = [op.outputs[0] for g in bodies for op in g.ops if op.kind == "CONCATENATION"]
    assert [op.kind for op in tile.consumers] == [first, *({"CONV_2D", "GATHER"} - {first})]


def test_a_result_that_outgrows_its_input_gets_room_before_it() -> None:
    model = read_model(_chain((1, 1, 12)))
    found = geometry_of(model, LoopedRegion((0,), 1))
    # 12 rows of 15 bytes become rows of 60: before the last one, 11 are written, 11 are read.
    assert found.in_place and found.store.size == 12 * 60
    assert found.store.lead == 33
    data = _chain((1, 1, 12))
    made, _ = streamed(data, LoopedRegion((0,), 1))
    assert quick_differences(data, made) == []


@pytest.mark.parametrize("border", LOOP_BORDERS)
def test_an_input_that_is_needed_later_is_not_overwritten(border) -> None:
    """The result of the region and its input meet in an ADD outside."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 8, 4, 2), scale=0.1)
    y, z = (graph.tensor(n, (1, 8, 4, 2), scale=0.1) for n in "yz")
    graph.op("LEAKY_RELU", [x], [y], "LeakyReluOptions", alpha=0.5)
    graph.op("ADD", [x, y], [z], "AddOptions")
    graph.outputs(z)
    data = net.finish()
    found = geometry_of(read_model(data), LoopedRegion((0,), 1, border))
    assert not found.in_place and found.store_bytes == 2 * 64
    made, _ = streamed(data, LoopedRegion((0,), 1, border))
    assert faults(data, made, host=False) == []


def test_the_replay_sees_an_update_over_a_living_operand() -> None:
    """What once went wrong: a loop over an input that a later operator still reads."""
    data = _chain((1, 1, 3), (1, 1, 3))
    made, _ = streamed(data, LoopedRegion((0,), 1))
    model = read_model(planned(made, overlap=False).data)
    offsets = carried_plan(model)
    assert offsets is not None
    source = model.main.inputs[0]
    model.main.outputs.append(source)  # now somebody needs it
    places = {
        (g, i): offsets[t]
        for g, graph in enumerate(model.graphs)
        for i, t in enumerate(graph.tensors)
        if t in offsets
    }
    assert any("overwritten" in fault for fault in replay(write_model(model), places))
    on = api.kernels_of(api.load_target("x86-64/wheel"))
    line = timeline_of(model, on.scratch_of)
    placed = placement_of(line, offsets).offsets
    assert validate(planning_problem(line), Plan(tuple(placed)))


def _refused(data: bytes, loop: LoopedRegion) -> str:
    model = read_model(data)
    before = to_text(model)
    (note,) = run(model, Regions((loop,)))
    assert to_text(model) == before
    with pytest.raises(NotStreamableError):
        geometry_of(model, loop)
    return note


def test_what_cannot_be_streamed_is_said(cnn) -> None:
    chain = _chain((3, 1, 4), (1, 1, 4))
    assert (
        _refused(chain, LoopedRegion((0,), 12))
        == "not streamed: one turn would make the whole result"
    )
    assert "are left for the loop" in _refused(
        _chain((3, 1, 4), (3, 1, 4), size=2), LoopedRegion((0, 1), 1, "peeled")
    )
    notes = run(read_model(chain), Regions((LoopedRegion((0, 1), 1), LoopedRegion((1,), 1))))
    assert notes[1] == "not changed: regions share an operator"


def test_what_cannot_be_streamed_of_a_real_model_is_said() -> None:
    data = published(RESNET)
    assert "rows come of one image" in _refused(data, LoopedRegion((15,), 1))
    assert "comes back" in _refused(data, LoopedRegion((0, 3), 1))
    assert "leave it" in _refused(data, LoopedRegion((0, 1), 1))


@needs_tflm
@pytest.mark.parametrize("border", LOOP_BORDERS)
@pytest.mark.parametrize(("name", "last"), [(VWW, 4), (RESNET, 7)])
@pytest.mark.slow
def test_published_models_in_loops(name, last, border) -> None:
    data = published(name)
    made, notes = streamed(data, LoopedRegion(tuple(range(last + 1)), 1, border))
    assert notes[-1].startswith("streamed")
    assert same_bits(data, made, inputs=2) == []


@pytest.mark.parametrize(
    ("name", "loops", "arena", "overhead"),
    [
        (
            VWW,
            [LoopedRegion((2, 3, 4), 2, "reverse"), LoopedRegion((6, 7, 8), 2, "reverse")],
            58_840,
            1.02,
        ),
        (VWW, [LoopedRegion((2, 3, 4), 1), LoopedRegion((6, 7, 8), 1)], 59_424, 1.06),
        (RESNET, [LoopedRegion((1, 2, 3), 2)], 32_728, 1.05),
        (RESNET, [LoopedRegion(tuple(range(8)), 1)], 30_000, 1.18),
    ],
)
@pytest.mark.slow
def test_arenas_of_loops(name, loops, arena, overhead) -> None:
    """What a plan for Cortex-M4 reaches; these were 58,908, 60,484, 38,672 and 33,096 by hand."""
    model, on = read_model(published(name)), api.kernels_of(api.load_target(M4))
    before = latency_of(model, on.target).instructions
    run(model, Regions(tuple(loops)))
    found = plan_memory(model, MemoryOptions(kernels=on, allocator="greedy", time_limit=5.0))
    model = found.model
    assert arena_of(model, on.target, found.offsets).arena <= arena
    after = latency_of(model, on.target, found.offsets).instructions
    assert after <= overhead * before
    copies = RemainingCopies(found.offsets, can(on.target, "skips_copies"))
    assert sum(copies.turn_bytes(op) for op in model.ops() if op.kind == "WHILE") < 3_000


@pytest.mark.parametrize(
    ("name", "host", "m4"),
    [
        # The published file of vww_rev has a STRIDED_SLICE of everything: 176 bytes more of tail
        # than the one that was measured.
        ("vww_rev", (28_992, 35_024), (28_992, 29_908 + 176, 58_908 + 176)),
        ("vww_mask", (29_888, 35_968), (29_888, 30_596, 60_484)),
        ("vww_peeled", (36_864, 39_280), (36_864, 33_364, 70_232)),
        ("resnet8_mask", (23_344, 14_560), (23_344, 9_748, 33_096)),
    ],
)
def test_arenas_of_streamed_models_made_by_hand(name, host, m4) -> None:
    data = published(name)
    model = read_model(data)
    found = arena_of(model, api.load_target(M4), carried_plan(model))
    assert (found.head, found.tail, found.arena) == m4
    here = arena_of(model, api.load_target("x86-64/wheel"), carried_plan(model))
    assert (here.head, here.tail) == host
    if pytest.importorskip("tflite_micro"):
        assert Wheel(data).run(200_000) == host


@pytest.mark.parametrize("name", ["vww_rev", "vww_mask"])
def test_plans_made_by_hand_are_legal(name) -> None:
    """All five faces of each variable in one place, RESHAPE and the update in place."""
    data = published(name)
    model = read_model(data)
    offsets = carried_plan(model)
    assert offsets is not None
    on = api.kernels_of(api.load_target(M4))
    line = timeline_of(model, on.scratch_of)
    placed = placement_of(line, offsets).offsets
    assert validate(planning_problem(line, on.input_overlaps_of), Plan(tuple(placed))) == []


@needs_tflm
@pytest.mark.slow
def test_tiles_and_loops_in_one_model() -> None:
    data = published(VWW)
    model = read_model(data)
    notes = run(model, Regions((LoopedRegion((6, 7, 8), 1, "reverse"), band(2, 4, 3))))
    assert notes[0].startswith("streamed 3") and notes[1].startswith("tiled 3")
    assert same_bits(data, write_model(model), inputs=2) == []
