"""Scalars, empty tensors, operators without results or operands: planned or refused, no crash."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.fuzz.seeds import packed
from tests.models.build import schema, unpack
from tests.models.registry import IMAGE, SCALE, conv, relu, start
from tests.tflm.operator_models import MODELS
from tests.tflm.registered import BUILTIN
from tflm_planner.cost.case import Case, Operand
from tflm_planner.cost.families import FAMILIES
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.ops import sharings
from tflm_planner.ops.axes import axis_map
from tflm_planner.ops.macs import macs
from tflm_planner.pipeline import api
from tflm_planner.support.errors import ModelError, PlannerError
from tflm_planner.tflm.arena.predict import arena_of
from tflm_planner.tflm.targets import load_target
from tflm_planner.tiling.estimate.schedule import LinearSchedule
from tflm_planner.tiling.moves.patches import patch_stages
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.verification import declare, runnable

M4 = load_target("cortex-m4/cmsis-nn")
SHAPES = (
    (), (0,), (1,), (4,), (2, 3), (1, 4, 4), (1, 4, 4, 2), (2, 1, 1, 2), (1, 2, 4, 4, 2),
    (1, 1, 2, 4, 4, 2), (1, 0, 4, 2), (0, 4, 4, 2),
)  # fmt: skip


# --- what the converter writes for a free batch -----------------------------------------------


def free_batch() -> bytes:
    """SHAPE, STRIDED_SLICE, PACK, RESHAPE: the batch is looked up, and made part of a shape."""
    net, graph, x = start()
    y = relu(graph, conv(graph, x, IMAGE), IMAGE)
    shape = graph.tensor("shape", (4,), "int32")
    graph.op("SHAPE", [y], [shape], "ShapeOptions", outType=2)
    limits = [graph.constant(n, np.array([v])) for n, v in (("from", 0), ("to", 1), ("by", 1))]
    batch = graph.tensor("batch", (), "int32")
    graph.op("STRIDED_SLICE", [shape, *limits], [batch], "StridedSliceOptions", shrinkAxisMask=1)
    rest = graph.constant("rest", np.array(144))
    graph.table.tensors[rest].shape = []
    packed = graph.tensor("packed", (2,), "int32")
    graph.op("PACK", [batch, rest], [packed], "PackOptions", valuesCount=2)
    flat = graph.tensor("flat", (1, 144), scale=SCALE, zero=-60)
    graph.op("RESHAPE", [y, packed], [flat], "ReshapeOptions")
    graph.outputs(flat)
    return net.finish()


@needs_tflm
@pytest.mark.parametrize("operators", [api.AllowedOperators.NONE, api.AllowedOperators.ALL])
def test_a_free_batch_is_planned(operators: api.AllowedOperators) -> None:
    data = free_batch()
    assert {op.kind for op in read_model(data).ops()} >= {"SHAPE", "STRIDED_SLICE", "PACK"}
    tiles = api.TilePermission(operators=operators, workers=1)
    for permission in (None, tiles):
        assert api.plan(data, None, api.PlanOptions(tiles=permission)).report.verified


def test_a_scalar_has_as_many_axes_as_are_asked_for() -> None:
    assert Operand("int8", ()).last_axes(3) == (1, 1, 1)
    assert Operand("int8", (2, 3)).last_axes(3) == (1, 2, 3)
    assert Operand("int8", (4, 5, 2, 3)).last_axes(3) == (5, 2, 3)


@pytest.mark.parametrize(
    "kind", sorted({k for f in FAMILIES.values() for k in f.loops} | {*BUILTIN.split()})
)
@pytest.mark.mostly_slow(fast=12)
def test_every_operator_of_every_shape_has_a_cost(kind: str) -> None:
    """Legal or not: a cost is asked for wherever a model is looked at."""
    rng = random.Random(kind)

    def operand() -> Operand:
        values = tuple(rng.randrange(-2, 4) for _ in range(rng.randrange(5)))
        constant = rng.random() < 0.4
        of = rng.choice(("int8", "int16", "float32", "int32", "uint8"))
        return Operand(of, rng.choice(SHAPES), constant, 0, values if constant else None)

    names = ("padding", "strideH", "strideW", "filterHeight", "filterWidth", "axis", "adjX")
    for _ in range(400):
        inputs = tuple(None if rng.random() < 0.05 else operand() for _ in range(rng.randrange(5)))
        outputs = tuple(operand() for _ in range(rng.randrange(3)))
        options = tuple((n, rng.randrange(-2, 3)) for n in names if rng.random() < 0.5)
        for family in FAMILIES.values():
            work = family.work_of(Case(kind, inputs, outputs, options))
            assert all(math.isfinite(n) for n in (work.macs, *work.counts.values()))


# --- operators that contradict themselves -----------------------------------------------------


def _spoilt(name: str, rng: random.Random) -> bytes:
    """A model of one operator with another shape, constant, option, or number of operands."""
    model = unpack(MODELS[name]())
    graph = model.subgraphs[0]
    op = graph.operators[-1]
    what = rng.random()
    if what < 0.6:
        tensor = rng.choice(graph.tensors)
        held = model.buffers[tensor.buffer].data
        if held is None or not len(held):
            tensor.shape = list(rng.choice(SHAPES))
        elif tensor.type == 2:  # int32
            values = np.array([rng.randrange(-2, 5) for _ in range(rng.randrange(6))], "<i4")
            model.buffers[tensor.buffer].data = np.frombuffer(values.tobytes(), np.uint8)
            tensor.shape = [len(values)]
    elif what < 0.8 and op.builtinOptions is not None:
        field = rng.choice(list(vars(op.builtinOptions)))
        value = getattr(op.builtinOptions, field)
        if isinstance(value, bool):
            setattr(op.builtinOptions, field, not value)
        elif isinstance(value, int):
            setattr(op.builtinOptions, field, rng.randrange(5))
    elif op.inputs is not None and len(op.inputs):
        op.inputs = np.array([*op.inputs][:-1], np.int32)
    return packed(model)


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.mostly_slow(fast=12)
def test_operators_that_contradict_themselves(name: str) -> None:
    """All that is asked of an operator answers: "unknown" at worst."""
    rng = random.Random(name)
    for _ in range(6):
        try:
            model = read_model(_spoilt(name, rng))
        except ModelError:
            continue
        for op in model.ops():
            found = axis_map(op)
            ranks = [len(t.shape or ()) if t is not None else 0 for t in op.inputs]
            assert all(k.axis < ranks[k.operand] for k in (*found.links, *found.picks))
            macs(op)
            list(sharings(op))
        arena_of(model, M4)
        data = write_model(model)
        try:
            options = api.MemoryOptions(time_limit=1.0)
            api.plan(data, None, api.PlanOptions(options, verify=None))
        except PlannerError as error:
            assert str(error)


def test_a_resize_without_a_size_is_damage() -> None:
    model = unpack(MODELS["resize_nearest_neighbor_int8"]())
    model.subgraphs[0].operators[0].inputs = np.array([0], np.int32)
    patch = api.TilePermission(operators=api.AllowedOperators.ALL, by_hand=(api.Patch(2, 1),))
    with pytest.raises(ModelError, match="1 of its 2 operands"):
        api.plan(packed(model), None, api.PlanOptions(tiles=patch, verify=None))


def test_options_of_another_operator_are_damage() -> None:
    """GATHER with those of ABS, say: nothing there could be read."""
    for name, kind in (("gather_int8", "GATHER"), ("mul_int8", "MUL"), ("pack_int8", "PACK")):
        model = unpack(MODELS[name]())
        (op,) = model.subgraphs[0].operators
        assert read_model(packed(model)).main.ops[0].kind == kind
        op.builtinOptionsType = schema.BuiltinOptions.AbsOptions
        op.builtinOptions = schema.AbsOptionsT()
        with pytest.raises(ModelError, match=rf"{kind} .* has AbsOptions, not"):
            read_model(packed(model))


@pytest.mark.parametrize("spoilt", ["rank", "stride", "scale"])
def test_a_damaged_convolution_is_no_crash_in_lean(spoilt: str) -> None:
    """Lean firmware would read the padding of an image that is none."""
    net, graph, x = start()
    graph.outputs(conv(graph, x, IMAGE))
    if spoilt == "rank":
        graph.table.tensors[x].shape = [144]
    elif spoilt == "stride":
        graph.table.operators[0].builtinOptions.strideH = 0
    else:
        graph.table.operators[0].builtinOptions.fusedActivationFunction = 1
        graph.table.tensors[-1].quantization.scale = np.array([np.nan], np.float32)
    lean = api.kernels_of(load_target("cortex-m4/cmsis-nn+lean"))
    with pytest.raises(ModelError, match="damaged model"):
        api.arena(net.finish(), lean.target)
    with pytest.raises(ModelError, match="damaged model"):
        api.plan(net.finish(), None, api.PlanOptions(api.MemoryOptions(kernels=lean), verify=None))


# --- operators without results ----------------------------------------------------------------


def stored() -> bytes:
    """A convolution goes into a variable, which ends it: nothing lives behind the store."""
    net, graph, x = start()
    handle = graph.tensor("handle", (1,), "resource")
    graph.op("VAR_HANDLE", [], [handle], "VarHandleOptions", container="", sharedName="v")
    y = relu(graph, conv(graph, x, IMAGE), IMAGE)
    graph.op("ASSIGN_VARIABLE", [handle, y], [], "AssignVariableOptions")
    back = graph.tensor("back", IMAGE, scale=SCALE, zero=-60)
    graph.op("READ_VARIABLE", [handle], [back], "ReadVariableOptions")
    graph.outputs(relu(graph, conv(graph, back, IMAGE, "again"), IMAGE, "last"))
    return net.finish()


def test_no_patches_end_at_an_operator_without_results() -> None:
    model, kernels = read_model(stored()), api.kernels_of()
    options = TilingOptions(kernels, kernels.input_overlaps_of, operators=api.AllowedOperators.ALL)
    line = LinearSchedule(model, range(len(model.main.ops)), options)
    kinds = [line.ops[end - 1].kind for end in line.narrow_positions[1:]]
    assert "ASSIGN_VARIABLE" in kinds
    stages = patch_stages(line, 1 << 30, "pad", 1 << 40)
    assert all(line.ops[s.ops[-1]].outputs for s in stages)


# --- shapes that are declared otherwise than made ---------------------------------------------


def dilated(images: int) -> bytes:
    """What a dilated convolution becomes; `images`: as declared of the blocks."""
    net, graph, x = start((1, 8, 8, 4))
    block, edges = (graph.constant(n, np.array(v)) for n, v in (("b", [2, 2]), ("e", [[0, 0]] * 2)))
    parts = graph.tensor("parts", (images, 4, 4, 4), scale=SCALE, zero=2)
    graph.op("SPACE_TO_BATCH_ND", [x, block, edges], [parts], "SpaceToBatchNDOptions")
    made = relu(graph, parts, (images, 4, 4, 4))
    whole = graph.tensor("whole", (1, 8, 8, 4), scale=SCALE, zero=-60)
    graph.op("BATCH_TO_SPACE_ND", [made, block, edges], [whole], "BatchToSpaceNDOptions")
    graph.outputs(whole)
    return net.finish()


def test_a_batch_that_was_left_free_before_a_dilated_convolution_is_declared_anew() -> None:
    """TFLM would leave three quarters of the result unwritten."""
    assert any("free batch" in note for note in api.arena(dilated(1)).warnings)
    made = api.plan(dilated(1), None, api.PlanOptions(verify=None))
    same = api.plan(dilated(4), None, api.PlanOptions(verify=None))
    assert made.report.after.arena == same.report.after.arena
    assert any("for one image" in note for note in made.report.notes)


def test_where_litert_is_not_here_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runnable, "is_installed", lambda runtime: runtime != "LiteRT")
    declare.as_for_one_image.cache_clear()
    with pytest.raises(ModelError, match=r"SPACE_TO_BATCH_ND 'parts'.*256 elements.*a fixed batch"):
        api.plan(dilated(1), None, api.PlanOptions(verify=None))
    declare.as_for_one_image.cache_clear()


@needs_tflm
def test_a_dilated_convolution_with_its_true_shapes_is_planned() -> None:
    assert api.plan(dilated(4)).report.verified
    assert not any("free batch" in note for note in api.arena(dilated(4)).warnings)
