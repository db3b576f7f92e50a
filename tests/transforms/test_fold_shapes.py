"""The arithmetic of shapes that converters write is computed ahead: text before, text after."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import needs_tflm
from tests.models.build import Graph, Net
from tests.transforms.tiled import same_bits
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.model.text import to_text
from tflm_planner.transforms.base import run
from tflm_planner.transforms.fold_shapes import fold_shapes
from tflm_planner.transforms.normalize import Normalize

BEFORE = """\
graph 'main' (%0: int8[1,4,4,2]) -> (%5)
  %1: int32[4] 16B = SHAPE(%0)
  %2: int32[] 4B = STRIDED_SLICE(%1, #int32[1], #int32[1], #int32[1])
  %3: int32[2] 8B = PACK(%2, #int32[])
  %4: int8[1,32] 32B = RESHAPE(%0, %3)
  %5: int8[1,32] 32B = RELU(%4)
"""
AFTER = """\
graph 'main' (%0: int8[1,4,4,2]) -> (%2)
  %1: int8[1,32] 32B = RESHAPE(%0, #int32[2])
  %2: int8[1,32] 32B = RELU(%1)
"""
MASKS = {
    "beginMask": 0, "endMask": 0, "ellipsisMask": 0, "newAxisMask": 0, "shrinkAxisMask": 0,
}  # fmt: skip


def batch_of(graph: Graph, x: int, rank: int) -> int:
    """The first entry of a tensor's shape, as a scalar."""
    shape = graph.tensor("shape", (rank,), "int32")
    graph.op("SHAPE", [x], [shape], "ShapeOptions")
    limits = [graph.constant(n, [v]) for n, v in (("begin", 0), ("end", 1), ("step", 1))]
    batch = graph.tensor("batch", (), "int32")
    fields = {**MASKS, "shrinkAxisMask": 1}
    graph.op("STRIDED_SLICE", [shape, *limits], [batch], "StridedSliceOptions", **fields)
    return batch


def flattened(*, offered: bool = False) -> bytes:
    """Flatten of a model whose batch was left free."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, 4, 4, 2), scale=0.1)
    batch = batch_of(graph, x, 4)
    shape = graph.tensor("packed", (2,), "int32")
    width = graph.constant("width", np.int32(-1))
    graph.op("PACK", [batch, width], [shape], "PackOptions", valuesCount=2, axis=0)
    y = graph.tensor("y", (1, 32), scale=0.1)
    graph.op("RESHAPE", [x, shape], [y], "ReshapeOptions")
    z = graph.tensor("z", (1, 32), scale=0.1)
    graph.op("RELU", [y], [z])
    graph.outputs(z, *([shape] if offered else []))
    return net.finish()


def folded(data: bytes) -> bytes:
    model = read_model(data)
    run(model, Normalize())
    return write_model(model)


def text(data: bytes) -> str:
    return to_text(read_model(data))


@needs_tflm
def test_flatten_of_a_free_batch() -> None:
    before = flattened()
    assert text(before) == BEFORE
    after = folded(before)
    assert text(after) == AFTER
    (shape,) = [t for t in read_model(after).main.ops[0].operands() if t.is_constant]
    assert shape.buffer.data is not None
    assert np.frombuffer(shape.buffer.data.tobytes(), "<i4").tolist() == [1, -1]
    assert not same_bits(before, after)


@needs_tflm
def test_what_is_an_output_is_still_computed() -> None:
    before = flattened(offered=True)
    after = folded(before)
    assert [op.kind for op in read_model(after).main.ops] == ["PACK", "RESHAPE", "RELU"]
    assert not same_bits(before, after)


def rule(kind: str, operands: list[object], shape: tuple[int, ...], *options: object) -> object:
    """What one operator on constants becomes: its values, or None where it stays."""
    net = Net()
    graph = net.graph()
    inputs = [graph.constant(f"c{i}", np.array(v, np.int32)) for i, v in enumerate(operands)]
    y = graph.tensor("y", shape, "int32")
    name, fields = options if options else (None, {})
    assert isinstance(fields, dict)
    graph.op(kind, inputs, [y], name, **fields)  # type: ignore[arg-type]
    z = graph.tensor("z", shape, "int32")
    graph.op("NEG", [y], [z], "NegOptions")
    graph.outputs(z)
    model = read_model(net.finish())
    fold_shapes(model)
    if len(model.main.ops) == 2:
        return None
    (constant,) = model.main.ops[0].operands()
    assert constant.buffer.data is not None
    return np.frombuffer(constant.buffer.data.tobytes(), "<i4").reshape(shape).tolist()


SLICED = "StridedSliceOptions"


@pytest.mark.parametrize(
    ("kind", "operands", "shape", "options", "values"),
    [
        ("STRIDED_SLICE", [[5, 6, 7], [1], [3], [1]], (2,), (SLICED, MASKS), [6, 7]),
        ("STRIDED_SLICE", [[5, 6, 7], [2], [0], [-1]], (2,), (SLICED, MASKS), [7, 6]),
        ("STRIDED_SLICE", [[5, 6, 7], [9], [2], [1]], (2,), (SLICED, {**MASKS, "beginMask": 1}),
         [5, 6]),
        ("STRIDED_SLICE", [[5, 6, 7], [-1], [0], [1]], (), (SLICED, {**MASKS, "shrinkAxisMask": 1}),
         7),
        ("STRIDED_SLICE", [[5, 6, 7], [0], [2], [1]], (1, 2), (SLICED, {**MASKS, "newAxisMask": 1}),
         None),
        ("STRIDED_SLICE", [[5, 6, 7], [2], [3], [1]], (),
         (SLICED, {**MASKS, "shrinkAxisMask": 1, "beginMask": 1}), 5),
        ("SLICE", [[5, 6, 7], [1], [-1]], (2,), ("SliceOptions", {}), [6, 7]),
        ("GATHER", [[5, 6, 7], [2, 0]], (2,), ("GatherOptions", {"axis": 0}), [7, 5]),
        ("CONCATENATION", [[5], [6, 7]], (3,), ("ConcatenationOptions", {"axis": 0}), [5, 6, 7]),
        ("REDUCE_PROD", [[5, 6, 7], [0]], (), ("ReducerOptions", {"keepDims": False}), 210),
        ("MUL", [[5, 6], 2], (2,), ("MulOptions", {}), [10, 12]),
        ("MUL", [[1 << 20], [1 << 20]], (1,), ("MulOptions", {}), None),
        ("ADD", [[5], [6]], (1,), ("AddOptions", {"fusedActivationFunction": 1}), None),
        ("MAXIMUM", [[5, 1], [2, 4]], (2,), ("MaximumMinimumOptions", {}), [5, 4]),
        ("EXPAND_DIMS", [[5, 6], 0], (1, 2), ("ExpandDimsOptions", {}), [[5, 6]]),
        ("ADD", [list(range(40)), list(range(40))], (40,), ("AddOptions", {}), None),
    ],
)  # fmt: skip
def test_operators_on_constants(kind, operands, shape, options, values) -> None:
    assert rule(kind, operands, shape, *options) == values


def test_a_slice_without_options_stays() -> None:
    assert rule("STRIDED_SLICE", [[5, 6, 7], [1], [3], [1]], (2,)) is None
