"""Operands of products that are made transposed: the same bits, and no copies in the tail."""

from __future__ import annotations

import pytest

from tests.conftest import needs_tflm
from tests.models.attention import attention
from tests.models.small import One
from tests.transforms.tiled import outputs_of_both
from tflm_planner.model.check import check
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline import api
from tflm_planner.transforms.base import run
from tflm_planner.transforms.fold_transpose import fold_transposes
from tflm_planner.transforms.normalize import Normalize


def turned(data: bytes) -> tuple[bytes, list[str]]:
    model = read_model(data)
    notes = fold_transposes(model)
    check(model)
    return write_model(model), notes


def same_and_varied(data: bytes, made: bytes) -> None:
    """Equal bits, that differ from input to input."""
    seen: dict[str, set[bytes]] = {}
    for runtime, label, a, b in outputs_of_both(data, made):
        assert a.tobytes() == b.tobytes(), (runtime, label)
        seen.setdefault(runtime, set()).add(a.tobytes())
    assert seen
    assert all(len(outputs) > 3 for outputs in seen.values()), "constant outputs prove nothing"


@needs_tflm
@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize(("rows", "heads", "depth"), [(32, 2, 8), (7, 3, 5), (1, 1, 4)])
def test_attention_without_turned_copies(dtype, rows, heads, depth):
    data = attention(rows, heads, depth, dtype=dtype)
    made, (note,) = turned(data)
    assert note.startswith("2 operands")
    same_and_varied(data, made)
    assert turned(made) == (made, [])
    before, after = api.inspect(data).arena, api.inspect(made).arena
    copies = 2 * rows * heads * depth * (4 if dtype == "float32" else 1)
    assert before.tail - after.tail >= copies


def product_of_turned(order, *, adj_x=False, adj_y=False, shared=False, offered=False) -> bytes:
    """TRANSPOSE of both operands of a BATCH_MATMUL, which others may read too."""
    one = One((1, 2, 6, 6))
    turns = [one.tensor((1, 2, 6, 6)) for _ in range(2)]
    for t in turns:
        one.graph.op("TRANSPOSE", [one.x, one.integers(*order)], [t], "TransposeOptions")
    y = one.tensor((1, 2, 6, 6))
    fields = {"adjX": adj_x, "adjY": adj_y, "asymmetricQuantizeInputs": False}
    x = turns[1] if shared else turns[0]
    one.graph.op("BATCH_MATMUL", [x, turns[1]], [y], "BatchMatMulOptions", **fields)
    if offered:
        one.graph.outputs(y, turns[1])
        return one.net.finish()
    return one.finish((y, (1, 2, 6, 6)))


@needs_tflm
@pytest.mark.parametrize("order", [(0, 1, 3, 2), (0, 1, 2, 3)])
@pytest.mark.parametrize("adj_x", [False, True])
@pytest.mark.parametrize("adj_y", [False, True])
def test_both_operands_every_way(order, adj_x, adj_y):
    data = product_of_turned(order, adj_x=adj_x, adj_y=adj_y)
    made, notes = turned(data)
    assert bool(notes) == (adj_x or not adj_y)
    same_and_varied(data, made)
    (product,) = [op for op in read_model(made).main.ops if op.kind == "BATCH_MATMUL"]
    assert product.options.transposes == (False, True)


def test_a_transpose_that_turns_nothing_any_more_is_dropped():
    made, _ = turned(product_of_turned((0, 1, 3, 2), adj_x=True))
    assert [op.kind for op in read_model(made).main.ops] == ["RELU", "BATCH_MATMUL", "RELU"]


def test_what_others_read_stays_as_it_is():
    for more in ({"shared": True}, {"offered": True}):
        data = product_of_turned((0, 2, 1, 3), **more)
        model = read_model(data)
        assert fold_transposes(model) == []
        run(model, Normalize())
        assert not any(op.options.transposes[1] for op in model.ops() if op.kind == "BATCH_MATMUL")
