"""Operators whose parts do not fit each other are refused when a file is read, by every verb."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.fuzz.seeds import packed
from tests.models.build import Graph, Net, schema
from tests.models.handmade_flow import call_once, if_else, while_loop
from tests.tflm.operator_models import MODELS
from tflm_planner.model.serde import read_model
from tflm_planner.support.errors import ModelError

Spoil = Callable[[Any, Any], None]
"""Changes the model, whose first operator is given."""


def _option(name: str, value: int) -> Spoil:
    def spoil(_: Any, op: Any) -> None:
        setattr(op.builtinOptions, name, value)

    return spoil


def _constant(operand: int, *values: int) -> Spoil:
    def spoil(model: Any, op: Any) -> None:
        tensor = model.subgraphs[0].tensors[op.inputs[operand]]
        model.buffers[tensor.buffer].data = np.array(values, "<i4").view(np.uint8)

    return spoil


def _result(*shape: int) -> Spoil:
    def spoil(model: Any, op: Any) -> None:
        model.subgraphs[0].tensors[op.outputs[0]].shape = list(shape)

    return spoil


def _scale(value: float) -> Spoil:
    def spoil(model: Any, op: Any) -> None:
        model.subgraphs[0].tensors[op.outputs[0]].quantization.scale = [value]

    return spoil


def _one_operand(_: Any, op: Any) -> None:
    op.inputs = op.inputs[:1]


FAULTS: list[tuple[str, Spoil, str]] = [
    ("gather_int8", _option("axis", 4), "axis 4 of a tensor of 4 axes"),
    ("gather_int8", _option("batchDims", 3), "batchDims"),
    ("gather_int8", _constant(1, 0, 6), "takes rows 0 to 6 of 6"),
    ("transpose_int8", _constant(1, 0, 0, 1, 2), "no permutation of 4 axes"),
    ("transpose_int8", _one_operand, "1 of its 2 operands"),
    ("pack_int8", _option("valuesCount", 0), "packs 0 tensors, and has 2"),
    ("pack_int8", _option("axis", -5), "the axis -5"),
    ("concatenation_int8", _option("axis", 7), "the axis 7"),
    ("split", _constant(0, 9), "the axis 9"),
    ("split_v", _constant(1, 2, 7), "into parts of 2, 7"),
    ("slice_int8", _constant(1, 0, 5, 0, 0), "takes 1 x 2 x 8 x 4"),
    ("strided_slice_int8", _constant(3, 1, 0, 1, 1), "a stride of 0"),
    ("pad_int8", _constant(1, 0, 0, -1, 1, 1, 1, 0, 0), "pads"),
    ("depth_to_space_int8", _option("blockSize", 0), "blocks of 0"),
    ("space_to_batch_nd_int8", _constant(1, 0, 2), "blocks of [0, 2]"),
    ("resize_bilinear_int8", _constant(1, 0, 16), "resizes to [0, 16]"),
    ("add_int8", _result(1, 33, 1 << 24, 3), "but its result is declared as"),
    ("leaky_relu_int8", _result(1, 33, 1 << 24, 3), "but its result is declared as"),
    ("leaky_relu_int8", _scale(float("nan")), "the scale nan"),
    ("leaky_relu_int8", _scale(0.0), "the scale 0,"),
    ("mean_int8", _constant(1, 1, 1 << 20), "the axis 1048576"),
]


def _spoilt(data: bytes, spoil: Spoil) -> bytes:
    model = schema.ModelT.InitFromPackedBuf(data, 0)
    spoil(model, model.subgraphs[0].operators[0])
    return packed(model)


@pytest.mark.parametrize(("name", "spoil", "words"), FAULTS)
def test_parts_that_do_not_fit(name: str, spoil: Spoil, words: str) -> None:
    data = MODELS[name]()
    read_model(data)
    with pytest.raises(ModelError) as caught:
        read_model(_spoilt(data, spoil))
    assert words in str(caught.value)


@pytest.mark.parametrize("name", list(MODELS))
def test_every_operator_that_tflm_registers_passes(name: str) -> None:
    read_model(MODELS[name]())


def _operator(model: Any, kind: str) -> Any:
    code = getattr(schema.BuiltinOperator, kind)
    codes = [c.builtinCode for c in model.operatorCodes]
    return next(op for op in model.subgraphs[0].operators if codes[op.opcodeIndex] == code)


def _without_a_result(model: Any, kind: str, graph: int) -> None:
    model.subgraphs[graph].outputs = model.subgraphs[graph].outputs[1:]


def _with_a_result(model: Any, kind: str, graph: int) -> None:
    model.subgraphs[graph].outputs = [0]


def _without_an_operand(model: Any, kind: str, graph: int) -> None:
    op = _operator(model, kind)
    op.inputs = op.inputs[:graph]


CALLS: list[tuple[Callable[[], bytes], str, Callable[[Any, str, int], None], int, str]] = [
    (while_loop, "WHILE", _without_a_result, 1, "expects 1 back, but it takes 2 and returns 0"),
    (while_loop, "WHILE", _without_a_result, 2, "expects 2 back, but it takes 2 and returns 1"),
    (while_loop, "WHILE", _without_an_operand, 1, "carries 1 tensors from turn to turn"),
    (if_else, "IF", _without_a_result, 1, "expects 1 back, but it takes 1 and returns 0"),
    (if_else, "IF", _without_a_result, 2, "expects 1 back, but it takes 1 and returns 0"),
    (if_else, "IF", _without_an_operand, 1, "with 0 tensors and expects 1 back, but it takes 1"),
    (if_else, "IF", _without_an_operand, 0, "has no condition"),
    (call_once, "CALL_ONCE", _with_a_result, 1, "takes 0 and returns 1"),
]


@pytest.mark.parametrize(("make", "kind", "spoil", "where", "words"), CALLS)
def test_graphs_that_take_or_return_something_else(
    make: Callable[[], bytes],
    kind: str,
    spoil: Callable[[Any, str, int], None],
    where: int,
    words: str,
) -> None:
    read_model(make())
    model = schema.ModelT.InitFromPackedBuf(make(), 0)
    spoil(model, kind, where)
    with pytest.raises(ModelError) as caught:
        read_model(packed(model))
    assert words in str(caught.value)


@pytest.mark.parametrize("kind", ["FULLY_CONNECTED", "CONCATENATION"])
def test_an_operator_whose_options_are_left_out_has_their_defaults(kind: str) -> None:
    """A file may leave them out. Planned for lean firmware, which looks at activations."""
    from tflm_planner.pipeline import api

    net = Net()
    graph = net.graph()
    x, y = graph.input("x", (1, 8), scale=0.05), graph.tensor("y", (1, 8), scale=0.05)
    z = graph.tensor("z", (1, 8), scale=0.05)
    weights = [graph.constant("w", np.eye(8), "int8", scale=np.full(8, 0.01))]
    graph.op(kind, [x, *(weights if kind.startswith("FULLY") else ())], [y])
    graph.op("RELU", [y], [z])
    graph.outputs(z)
    data = net.finish()
    kernels = api.kernels_of(api.load_target("cortex-m4/cmsis-nn+lean"))
    options = api.PlanOptions(api.MemoryOptions(kernels=kernels), verify=None)
    operators = [op.kind for op in read_model(api.plan(data, options=options).data).ops()]
    assert operators == (["FULLY_CONNECTED", "RELU"] if kind.startswith("FULLY") else ["RELU"])


def _convolution(stride: int, rank: int = 4, height: int = 8) -> bytes:
    net = Net()
    graph = net.graph()
    _append_convolution(graph, stride, rank, height)
    return net.finish()


def _append_convolution(graph: Graph, stride: int, rank: int, height: int) -> None:
    shape = (1, height, 8, 4)[-rank:]
    x = graph.input("x", shape, scale=0.05)
    weights = graph.constant("w", np.ones((4, 1, 1, 4)), "int8", scale=0.01)
    bias = graph.constant("b", np.zeros(4))
    y = graph.tensor("y", shape, scale=0.05)
    options = {"strideH": stride, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
    graph.op("CONV_2D", [x, weights, bias], [y], "Conv2DOptions", **options)
    graph.outputs(y)


def test_a_bias_without_a_number_for_each_channel() -> None:
    model = schema.ModelT.InitFromPackedBuf(_convolution(1), 0)
    model.subgraphs[0].tensors[2].shape = None
    with pytest.raises(ModelError, match="a bias of a scalar for 4 channels"):
        read_model(packed(model))


def test_a_stride_of_nothing_and_a_rank_too_low() -> None:
    read_model(_convolution(1))
    with pytest.raises(ModelError, match="0 as strideH"):
        read_model(_convolution(0))
    with pytest.raises(ModelError, match="where 4 axes belong"):
        read_model(_convolution(1, rank=3))


@needs_tflm
def test_a_free_batch_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a converter leaves of a free batch is declared as 1; `plan` declares it as it is for one
    image, or says what to do where LiteRT cannot be asked; the other verbs show the model as it
    is."""
    from tflm_planner.pipeline import api
    from tflm_planner.verification import declare, on_litert

    def misfit(model: Any, op: Any) -> None:
        _result(2, 6, 8, 4)(model, op)
        tensor = model.subgraphs[0].tensors[op.inputs[0]]
        tensor.shapeSignature = [-1, *tensor.shape[1:]]

    data = _spoilt(MODELS["leaky_relu_int8"](), misfit)
    assert api.arena(data).arena
    unproved = api.PlanOptions(verify=None)
    assert "free batch" in " ".join(api.plan(data, None, unproved).report.notes)
    monkeypatch.setattr(on_litert, "why_untried", lambda *_: "LiteRT is not installed")
    declare.as_for_one_image.cache_clear()
    with pytest.raises(ModelError, match="free batch"):
        api.plan(data, None, unproved)


@pytest.mark.parametrize(("mode", "most"), [(0, 2), (1, 3)])
def test_no_more_is_mirrored_than_there_is(mode: int, most: int) -> None:
    """TFLM would read outside of its operand. REFLECT leaves out the border itself."""

    def mirrored(by: int) -> bytes:
        net = Net()
        graph = net.graph()
        x, y = graph.input("x", (1, 3), scale=0.1), graph.tensor("y", (1, 3 + by), scale=0.1)
        pads = graph.constant("pads", np.array([[0, 0], [0, by]]))
        graph.op("MIRROR_PAD", [x, pads], [y], "MirrorPadOptions", mode=mode)
        graph.outputs(y)
        return net.finish()

    assert len(read_model(mirrored(most)).main.ops) == 1
    with pytest.raises(ModelError, match="elements that its axes have for it"):
        read_model(mirrored(most + 1))
