"""Convolutions of the parts of an image become dilated ones, with the same bits, and TFLM computes
what LiteRT does; what stays in parts is padded by a PAD."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import Net
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline import api
from tflm_planner.tflm.refusals import cannot_run
from tflm_planner.tflm.targets import load_target
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.verification import VerifyOptions, verify
from tflm_planner.verification.inputs import input_sets
from tflm_planner.verification.session import Session
from tflm_planner.verification.terms import prove_by_terms

Edges = tuple[tuple[int, int], ...]
WINDOW = {
    "padding": 1, "strideW": 1, "strideH": 1, "dilationWFactor": 1, "dilationHFactor": 1,
}  # fmt: skip


def in_parts(
    sizes: tuple[int, ...], block: tuple[int, ...], kernel: tuple[int, int], pads: Edges,
    crops: Edges, *, kind: str = "CONV_2D", dtype: str = "int8", images: int = 1, stride: int = 1,
    offered: bool = False,
) -> bytes:  # fmt: skip
    """A convolution as a converter takes it apart; of a row of pixels where there is one size: they
    are its columns, or its rows if that is the longer side of the kernel. offered: its parts are
    outputs, too."""
    net = Net()
    graph = net.graph()
    quantised = dtype != "float32"
    scale = {"scale": 0.05, "zero": -7 if dtype == "int8" else 0} if quantised else {}
    depth, made = 2, 2 if kind == "DEPTHWISE_CONV_2D" else 3
    numbers = [np.array(n) for n in (block, pads, crops)]
    count = images * int(numbers[0].prod())
    parts = tuple((n + sum(p)) // b for n, b, p in zip(sizes, block, pads, strict=True))
    in_row, axis = len(sizes) == 1, 1 if kernel[0] == 1 else 2
    image = ((1, *parts) if axis == 1 else (*parts, 1)) if in_row else parts
    after = tuple((n - k) // stride + 1 for n, k in zip(image, kernel, strict=True))
    left = (after[2 - axis],) if in_row else after
    whole = tuple(n * b - sum(c) for n, b, c in zip(left, block, crops, strict=True))

    def tensor(name: str, *shape: int) -> int:
        return graph.tensor(name, shape, dtype, **scale)

    x = graph.input("x", (images, *sizes, depth), dtype, **scale)
    constants = [graph.constant(n, v) for n, v in zip(("b", "p", "c"), numbers, strict=True)]
    current = tensor("parts", count, *parts, depth)
    graph.op("SPACE_TO_BATCH_ND", [x, *constants[:2]], [current], "SpaceToBatchNDOptions")
    ends = [current] if offered else []
    if in_row:
        wide = tensor("wide", count, *image, depth)
        where = graph.constant("where", np.array(axis))
        graph.table.tensors[where].shape = []
        graph.op("EXPAND_DIMS", [current, where], [wide], "ExpandDimsOptions")
        current = wide
    rng = np.random.default_rng(5)
    shape = (1, *kernel, made) if kind == "DEPTHWISE_CONV_2D" else (made, *kernel, depth)
    if quantised:
        w = graph.constant("w", rng.integers(-99, 99, shape), "int8", scale=0.01)
        bias_type = "int64" if dtype == "int16" else "int32"
        bias = graph.constant("bias", rng.integers(-99, 99, made), bias_type, scale=0.0005)
    else:
        w = graph.constant("w", rng.normal(size=shape).astype(np.float32), "float32")
        bias = graph.constant("bias", rng.normal(size=made).astype(np.float32), "float32")
    convolved = tensor("convolved", count, *after, made)
    fields = {**WINDOW, "strideW": stride, "strideH": stride}
    if kind == "DEPTHWISE_CONV_2D":
        graph.op(kind, [current, w, bias], [convolved], "DepthwiseConv2DOptions",
                 depthMultiplier=1, **fields)  # fmt: skip
    else:
        graph.op(kind, [current, w, bias], [convolved], "Conv2DOptions", **fields)
    current = convolved
    if in_row:
        narrow = tensor("narrow", count, *left, made)
        graph.op("SQUEEZE", [current], [narrow], "SqueezeOptions", squeezeDims=[axis])
        current = narrow
    y = tensor("y", images, *whole, made)
    graph.op("BATCH_TO_SPACE_ND", [current, constants[0], constants[2]], [y],
             "BatchToSpaceNDOptions")  # fmt: skip
    graph.outputs(y, *ends)
    return net.finish()


def cleaned(data: bytes) -> Model:
    model = read_model(data)
    run(model, Normalize())
    return model


def kinds_of(model: Model) -> list[str]:
    return [op.kind for op in model.main.ops]


def outputs(runtime: str, data: bytes, folder) -> list[bytes]:
    """The outputs of a runtime for some inputs, in an arena that was full of other numbers."""
    path = folder / "model.tflite"
    path.write_bytes(data)
    given: list[bytes] = []
    with Session(runtime, path, arena=1 << 17, outputs=1, time_limit=60) as session:
        session.describe()
        for _, values in input_sets(read_model(data).main, 3, count=3):
            session.send(values)
            given += [a.tobytes() for a in session.receive()]
    return given


SAME_2 = ((2, 2), (2, 2))
CASES = {
    "same": ((8, 8), (2, 2), (3, 3), SAME_2, ((0, 0), (0, 0))),
    "padded to whole blocks": ((7, 9), (2, 3), (3, 3), ((2, 3), (3, 3)), ((0, 1), (0, 0))),
    "valid": ((8, 8), (2, 2), (3, 3), ((0, 0), (0, 0)), ((0, 0), (0, 0))),
    "causal": ((8, 6), (2, 2), (3, 3), ((4, 0), (4, 2)), ((0, 0), (0, 2))),
    "of other sides": ((9, 8), (3, 2), (2, 3), ((1, 2), (2, 2)), ((0, 0), (0, 0))),
    "a row": ((12,), (2,), (1, 3), ((2, 2),), ((0, 0),)),
    "a row that is a column": ((12,), (2,), (3, 1), ((2, 2),), ((0, 0),)),
    "a column in parts of one": ((7,), (1,), (3, 1), ((1, 1),), ((0, 0),)),
    "a causal row": ((11,), (4,), (1, 2), ((4, 1),), ((0, 1),)),
}
PADS = {"causal", "a causal row"}
"""Those whose padding is that of neither SAME nor VALID."""


@needs_tflm
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "float32"])
def test_parts_become_a_dilation(name: str, kind: str, dtype: str, tmp_path) -> None:
    for images in (1, 2):
        data = in_parts(*CASES[name], kind=kind, dtype=dtype, images=images)
        model = cleaned(data)
        (op,) = (op for op in model.main.ops if op.kind == kind)
        assert set(kinds_of(model)) <= {kind, "RESHAPE"} | ({"PAD"} if name in PADS else set())
        assert kinds_of(model).count("PAD") == (name in PADS)
        block = CASES[name][1]
        in_row = (*block, 1) if CASES[name][2][0] > 1 else (1, *block)
        assert op.options.dilation == (block if len(block) == 2 else in_row)
        assert prove_by_terms(read_model(data), model).status == "equal"
        (check,) = verify(
            data, write_model(model), VerifyOptions(inputs=3, runtimes=("LiteRT",))
        ).checks
        assert check.status == "equal", check
        if dtype != "float32":  # sums of floats are added otherwise there
            made = write_model(model)
            assert outputs("TFLM", made, tmp_path) == outputs("LiteRT", made, tmp_path)


@pytest.mark.parametrize("data", [
    in_parts(*CASES["same"], stride=2), in_parts(*CASES["same"], offered=True),
], ids=["a stride", "parts that are outputs"])  # fmt: skip
def test_what_stays_in_parts_is_padded_before(data: bytes) -> None:
    model = cleaned(data)
    assert kinds_of(model)[:2] == ["PAD", "SPACE_TO_BATCH_ND"]
    assert prove_by_terms(read_model(data), model).status == "equal"
    board = load_target("nano33ble")
    assert any("lies in memory" in reason for reason in cannot_run(read_model(data), board))
    assert not cannot_run(model, board)


@needs_tflm
def test_tflm_pads_with_what_lies_in_memory(tmp_path) -> None:
    """Why its own result counts for nothing where it pads: not the zero point, -7."""
    data = in_parts(*CASES["same"])
    assert outputs("TFLM", data, tmp_path) != outputs("LiteRT", data, tmp_path)
    unpadded = in_parts(*CASES["valid"])
    assert outputs("TFLM", unpadded, tmp_path) == outputs("LiteRT", unpadded, tmp_path)


@needs_tflm
@pytest.mark.parametrize("name", ["same", "causal", "a row"])
def test_such_models_are_planned_and_proved(name: str) -> None:
    for stride in (1, 2) if name == "same" else (1,):
        data = in_parts(*CASES[name], stride=stride)
        report = api.plan(data).report
        assert report.verified and {c.status for c in report.checks} == {"equal"}
        assert report.terms is not None and report.terms.status == "equal"


def test_other_padding_is_found_different() -> None:
    sizes, block, kernel, pads, crops = CASES["same"]
    model = cleaned(in_parts(sizes, block, kernel, pads, crops))
    other = in_parts(sizes, block, kernel, ((4, 0), (2, 2)), crops)
    assert prove_by_terms(read_model(other), model).status == "different"
