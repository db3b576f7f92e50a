"""Results forged so that only one detail gives them away, each of which a kernel takes notice of.

Every forgery was once called equal. Where a runtime runs both models, it tells them apart too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.models.build import Graph, Net
from tests.models.handmade_flow import if_else
from tests.transforms.tiled import quick_differences
from tests.verification.terms.proofs import changed, proof
from tflm_planner.model.edit import set_option
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model

RNG = np.random.default_rng(5)
STEPS = {"strideH": 1, "strideW": 1, "dilationHFactor": 1, "dilationWFactor": 1}
IMAGE = (1, 6, 6, 4)
FILTERS = RNG.integers(-100, 100, (4, 3, 3, 4))
ROWS = RNG.integers(-127, 128, (256, 8))
SHIFTS = RNG.integers(-30000, 30000, 256)


def image_filtered(dtype: str, bias: str, *, zero: int = 0) -> bytes:
    """A convolution with a bias of a type, whose filter has a zero point."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", IMAGE, dtype, scale=0.001)
    w = graph.constant("w", FILTERS + zero, "int8", scale=np.full(4, 0.013), zero=zero)
    b = graph.constant("b", [5, 3, -7, 100000], bias, scale=np.full(4, 0.000013))
    y = graph.tensor("y", IMAGE, dtype, scale=0.0031)
    graph.op("CONV_2D", [x, w, b], [y], "Conv2DOptions", version=4, **STEPS)
    graph.outputs(y)
    return net.finish()


def _scales_whose_product_is_rounded() -> tuple[np.float32, np.float32, np.float32]:
    """Of data, weights and result, so that the rounded product makes one half of a sum, and the
    exact one less."""
    while True:
        data, weights = np.float32(RNG.uniform(0.01, 0.2)), np.float32(RNG.uniform(0.001, 0.02))
        result = data * weights * np.float32(2)
        if float(data) * float(weights) / float(result) < 0.5 * (1 - 2**-26):
            return data, weights, result


SCALES = _scales_whose_product_is_rounded()


def one_product(*, by_convolution: bool) -> bytes:
    """256 sums of eight products, by FULLY_CONNECTED or by a convolution of one pixel."""
    net = Net()
    graph = net.graph()
    lead = (1, 1) if by_convolution else ()
    x = graph.input("x", (1, 1, 1, 8), scale=SCALES[0])
    w = graph.constant("w", ROWS.reshape(256, *lead, 8), "int8", scale=SCALES[1])
    b = graph.constant("b", SHIFTS, scale=SCALES[0] * SCALES[1])
    y = graph.tensor("y", (1, 1, 1, 256), scale=SCALES[2])
    if by_convolution:
        graph.op("CONV_2D", [x, w, b], [y], "Conv2DOptions", version=3, **STEPS)
    else:
        options = {"keepNumDims": True}
        graph.op("FULLY_CONNECTED", [x, w, b], [y], "FullyConnectedOptions", version=4, **options)
    graph.outputs(y)
    return net.finish()


def one_channel(row: int) -> bytes:
    """The input times one of two channels of equal numbers, whose scales differ."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 4), "float32")
    w = graph.constant("w", np.full((2, 4), 5), "int8", scale=np.array([0.1, 0.7]))
    floats, part, y = (
        graph.tensor(n, shape, "float32")
        for n, shape in (("d", (2, 4)), ("s", (1, 4)), ("y", (1, 4)))
    )
    graph.op("DEQUANTIZE", [w], [floats], "DequantizeOptions", version=3)
    begin, size = graph.constant("begin", [row, 0]), graph.constant("size", [1, 4])
    graph.op("SLICE", [floats, begin, size], [part], "SliceOptions")
    graph.op("MUL", [x, part], [y], "MulOptions")
    graph.outputs(y)
    return net.finish()


def filters_in_time(*, one_state: bool) -> bytes:
    """Two SVDFs of one input, each with a state of its own, or both with the first one's."""
    net, rng = Net(), np.random.default_rng(3)
    graph = net.graph()
    x = graph.input("x", (1, 8), "float32")
    states = [graph.tensor(f"state{i}", (1, 12), "float32", isVariable=True) for i in range(2)]
    results: list[int] = []
    for i in range(2):
        shapes = {"features": (4, 8), "time": (4, 3), "bias": (4,)}
        constants = [
            graph.constant(f"{name}{i}", rng.normal(size=shape), "float32")
            for name, shape in shapes.items()
        ]
        results.append(graph.tensor(f"y{i}", (1, 4), "float32"))
        state = states[0 if one_state else i]
        graph.op("SVDF", [x, *constants, state], [results[-1]], "SVDFOptions", rank=1)
    graph.outputs(*results)
    return net.finish()


def rows_chosen(*, by_column: bool) -> bytes:
    """SELECT by a vector chooses rows; as a matrix of one row it would choose columns."""
    net = Net()
    graph = net.graph()
    condition = graph.input("c", (3,), "bool")
    x, z = (graph.input(name, (3, 3), "float32") for name in "xz")
    y = graph.tensor("y", (3, 3), "float32")
    if by_column:
        wide = graph.tensor("wide", (1, 3), "bool")
        shape = graph.constant("shape", [1, 3])
        graph.op("RESHAPE", [condition, shape], [wide], "ReshapeOptions", newShape=[1, 3])
        condition = wide
    graph.op("SELECT", [condition, x, z], [y], "SelectOptions")
    graph.outputs(y)
    return net.finish()


FORGED: dict[str, tuple[bytes, bytes]] = {
    "the type of a bias": (image_filtered("int16", "int64"), image_filtered("int16", "int32")),
    "the zero point of a filter": (
        image_filtered("int8", "int32"),
        image_filtered("int8", "int32", zero=3),
    ),
    "a factor that is rounded": (
        one_product(by_convolution=False),
        one_product(by_convolution=True),
    ),
    "a channel's scale": (one_channel(0), one_channel(1)),
    "a state that two share": (filters_in_time(one_state=False), filters_in_time(one_state=True)),
}


@pytest.mark.parametrize("what", sorted(FORGED))
def test_a_detail_that_kernels_notice_is_noticed(what: str) -> None:
    right, forged = FORGED[what]
    assert proof(right, right).status == "equal"
    assert proof(right, forged).status == "different"
    assert any(_differ(right, forged, name) for name in ("LiteRT", "TFLM"))


def _differ(right: bytes, forged: bytes, runtime: str) -> bool:
    """Whether a runtime that runs both tells them apart."""
    try:
        return bool(quick_differences(right, forged, (runtime,)))
    except RuntimeError:  # it refuses one of them
        return False


def test_rows_and_columns_are_chosen_by_their_own_conditions() -> None:
    by_row, by_column = rows_chosen(by_column=False), rows_chosen(by_column=True)
    assert proof(by_row, by_row).status == "equal"
    assert proof(by_row, by_column).status == "different"


def _option(name: str, value: object) -> Callable[[Model], None]:
    return lambda model: set_option(model.main.ops[0], name, value)


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (one_product(by_convolution=False), "weights_format"),
        (image_filtered("int16", "int64"), "quantized_bias_type"),
    ],
)
def test_options_that_sums_take_no_notice_of_count(data: bytes, name: str) -> None:
    assert proof(data, changed(data, _option(name, 1))).status == "different"


def custom(operand: int, code: str) -> bytes:
    """A custom operator that reads one of two inputs."""
    net = Net()
    graph = net.graph()
    inputs = [graph.input(name, (1, 4), scale=0.1) for name in "xz"]
    y = graph.tensor("y", (1, 4), scale=0.1)
    graph.custom(code, [inputs[operand]], [y], b"")
    graph.outputs(y)
    return net.finish()


@pytest.mark.parametrize("code", ["SHAPE", "RELU", "WHILE", "Own"])
def test_a_custom_operator_called_as_a_builtin_is_a_custom_operator(code: str) -> None:
    assert proof(custom(0, code), custom(0, code)).status == "equal"
    assert proof(custom(0, code), custom(1, code)).status == "different"
    (op,) = read_model(custom(0, code)).main.ops
    assert op.kind == (code if code == "Own" else f"'{code}'")


def test_custom_operators_whose_names_print_alike_differ() -> None:
    assert proof(custom(0, "SHAPE"), custom(0, "'SHAPE'")).status == "different"


# --- results declared in another shape than operands say ------------------------------------------


def declared(
    kind: str,
    options: str | None,
    operand: Sequence[object],
    shape: tuple[int, ...],
    *,
    data: tuple[int, ...] = IMAGE,
    more: Sequence[Sequence[int]] = (),
    **fields: object,
) -> bytes:
    """An operator of one constant operand and its declared result, which a RELU reads."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", data, scale=0.1)
    y, z = (graph.tensor(name, shape, scale=0.1) for name in "yz")
    constants = [graph.constant(f"c{i}", c) for i, c in enumerate((*more, operand))]
    graph.op(kind, [x, *constants], [y], options, **fields)
    graph.op("RELU", [y], [z])
    graph.outputs(z)
    return net.finish()


def enlarged(says: tuple[int, ...]) -> bytes:
    """A TRANSPOSE_CONV of 4 x 4 to 8 x 8 pixels."""
    net = Net()
    graph: Graph = net.graph()
    x = graph.input("x", (1, 4, 4, 4), scale=0.1)
    w = graph.constant("w", FILTERS, "int8", scale=np.full(4, 0.01))
    y, z = (graph.tensor(name, (1, 8, 8, 4), scale=0.1) for name in "yz")
    fields = {"strideH": 2, "strideW": 2, "padding": 0}
    operands = [graph.constant("says", says), w, x]
    graph.op("TRANSPOSE_CONV", operands, [y], "TransposeConvOptions", version=3, **fields)
    graph.op("RELU", [y], [z])
    graph.outputs(z)
    return net.finish()


SLICED = {"kind": "SLICE", "options": "SliceOptions", "shape": (1, 3, 6, 4), "more": [[0, 1, 0, 0]]}
RESIZED = {
    "kind": "RESIZE_NEAREST_NEIGHBOR",
    "options": "ResizeNearestNeighborOptions",
    "shape": (1, 12, 6, 4),
}
SPREAD = {"kind": "BROADCAST_TO", "options": "BroadcastToOptions", "version": 2}
SHAPED = {"kind": "RESHAPE", "options": "ReshapeOptions", "shape": (1, 4, 9, 4)}
MISDECLARED: dict[str, tuple[bytes, bytes]] = {
    "part": (declared(operand=[1, 3, 6, 4], **SLICED), declared(operand=[1, 2, 6, 4], **SLICED)),
    "resized": (declared(operand=[12, 6], **RESIZED), declared(operand=[6, 12], **RESIZED)),
    "broadcast": tuple(
        declared(operand=[1, n, 6, 4], shape=(1, 3, 6, 4), data=(1, 1, 6, 4), **SPREAD)
        for n in (3, 2)
    ),
    "shape": (declared(operand=[1, 4, 9, 4], **SHAPED), declared(operand=[1, 9, 4, 4], **SHAPED)),
    "enlarged": (enlarged((1, 8, 8, 4)), enlarged((1, 7, 8, 4))),
}  # fmt: skip


@pytest.mark.parametrize("what", sorted(MISDECLARED))
def test_a_result_declared_otherwise_than_its_operands_say_is_a_fault(what: str) -> None:
    right, wrong = MISDECLARED[what]
    assert proof(right, right).status == "equal"
    found = proof(right, wrong)
    assert found.status == "different" and "is declared as" in found.detail
    assert proof(wrong, wrong).status == "not run", "the original's fault says nothing"


@pytest.mark.parametrize("says", [[1, -1, 9, 4], [-1, 4, 9, 4]])
def test_a_size_that_follows_from_the_others_may_be_left_open(says: list[int]) -> None:
    left_open = declared(operand=says, **SHAPED)
    assert proof(declared(operand=[1, 4, 9, 4], **SHAPED), left_open).status == "equal"


def test_numbers_that_are_none_are_told_apart_by_their_bits() -> None:
    """A NaN that signals becomes a quiet one where it is widened."""

    def constant(bits: int) -> bytes:
        net = Net()
        graph = net.graph()
        x = graph.input("x", (1,), "float32")
        c = graph.tensor("c", (1,), "float32", data=np.array([bits], np.uint32))
        y = graph.tensor("y", (2,), "float32")
        graph.op("CONCATENATION", [x, c], [y], "ConcatenationOptions", axis=0)
        graph.outputs(y)
        return net.finish()

    quiet, signals = constant(0x7FC00001), constant(0x7F800001)
    assert proof(quiet, quiet).status == "equal"
    assert proof(quiet, signals).status == "different"


def averaged(*, keeps: bool) -> bytes:
    """An image's means in a row, by way of (1, 1, 1, 4) or not."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", IMAGE, scale=0.1)
    means = graph.tensor("means", (1, 1, 1, 4) if keeps else (1, 4), scale=0.1)
    y = graph.tensor("y", (1, 4), scale=0.1)
    axes = graph.constant("axes", [1, 2])
    graph.op("MEAN", [x, axes], [means], "ReducerOptions", keepDims=keeps)
    graph.op("RESHAPE", [means, graph.constant("row", [1, 4])], [y], "ReshapeOptions")
    graph.outputs(y)
    return net.finish()


def test_means_by_kernels_of_their_own_are_not_those_of_others() -> None:
    """TFLM of 2023 rounds otherwise where rows and columns of an image keep their axes."""
    assert proof(averaged(keeps=True), averaged(keeps=True)).status == "equal"
    assert proof(averaged(keeps=True), averaged(keeps=False)).status == "different"


def products_of_inputs(rows: int) -> bytes:
    """A FULLY_CONNECTED whose weights are an input of (rows, 6), with one bias for each of five."""
    net = Net()
    graph = net.graph()
    x, w = graph.input("x", (5, 6), scale=0.1), graph.input("w", (rows, 6), scale=0.1)
    b = graph.constant("b", [1, 2, 3, 4, 5], scale=0.01)
    y = graph.tensor("y", (rows, 5), scale=0.1)
    graph.op("FULLY_CONNECTED", [x, w, b], [y], "FullyConnectedOptions", version=4)
    graph.outputs(y)
    return net.finish()


@pytest.mark.parametrize("rows", [5, 3])
def test_a_bias_of_another_size_than_the_weights_is_no_crash(rows: int) -> None:
    data = products_of_inputs(rows)
    assert proof(data, data).status == "equal"


def test_a_choice_without_a_condition_is_not_expressed() -> None:
    broken = changed(if_else(), lambda m: m.main.ops[1].inputs.__setitem__(0, None))
    assert proof(broken, broken).status == "not run"


def test_operands_that_do_not_fit_are_not_expressed() -> None:
    """What no rule of the reader looks at, as operands of SELECT_V2."""
    net = Net()
    graph = net.graph()
    condition = graph.input("c", (3,), "bool")
    x, z = (graph.input(name, shape, "float32") for name, shape in (("x", (2, 2)), ("z", (2, 2))))
    y = graph.tensor("y", (2, 2), "float32")
    graph.op("SELECT_V2", [condition, x, z], [y], "SelectV2Options")
    graph.outputs(y)
    data = net.finish()
    found = proof(data, data)
    assert found.status == "not run" and "do not fit each other" in found.detail
