"""Orders of tiles: valid, and with no more alive; padding before blocks are joined."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import needs_tflm
from tests.models.generator import random_model
from tests.models.small import Chain
from tests.transforms.tiled import quick_differences, tiled
from tflm_planner.model.ir import Op
from tflm_planner.model.serde import read_model
from tflm_planner.ops.window import COLUMNS, ROWS
from tflm_planner.support.units import align_up
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.eager_order import eager_order, postpone
from tflm_planner.transforms.tile.tile import TiledRegion

KINDS = {"conv_2d": 4, "depthwise_conv_2d": 4, "add": 3, "mul": 1, "relu": 2, "concatenation": 3,
         "pad": 2, "slice": 3, "max_pool_2d": 2}  # fmt: skip


def is_valid(ops: list[Op], order: list[Op]) -> bool:
    """Whether all run, each after what it reads."""
    made = {t for op in ops for t in op.outputs}
    for op in order:
        if any(t in made for t in op.operands()):
            return False
        made -= set(op.outputs)
    return Counter(ops) == Counter(order)


def between(ops: list[Op]) -> dict[Op, int]:
    """Bytes of what `ops` make and still read, after each operator."""
    last = {t: k for k, op in enumerate(ops) for t in op.operands()}
    live, ending = 0, Counter[int]()
    found: dict[Op, int] = {}
    for k, op in enumerate(ops):
        for t in op.outputs:
            live += align_up(t.nbytes)
            ending[last.get(t, len(ops))] += align_up(t.nbytes)
        live -= ending[k]
        found[op] = live
    return found


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 16))
@pytest.mark.slow
def test_orders_are_valid_and_put_off_keeps_less(seed: int, steps: int) -> None:
    """From any valid order; between operators no more bytes live at once than did."""
    ops = read_model(random_model(seed, steps=steps, kinds=KINDS)).main.ops
    random.Random(seed).shuffle(waiting := list(ops))
    asked: list[Op] = []
    while waiting:  # any valid order
        op = next(o for o in waiting if is_valid([*asked, o], [*asked, o]) and _ready(o, waiting))
        asked.append(op)
        waiting.remove(op)
    early = eager_order(asked)
    late = postpone(early)
    assert is_valid(ops, early) and is_valid(ops, late)
    assert max(between(late).values()) <= max(between(early).values())


def _ready(op: Op, waiting: list[Op]) -> bool:
    made = {t for o in waiting for t in o.outputs}
    return not any(t in made for t in op.operands())


def fan() -> Chain:
    """A wide image that two convolutions make thin, one of which goes on."""
    chain = Chain((1, 16, 16, 2))
    chain.conv(16, 3)
    thin = chain.conv(2, 5, keep=False)
    chain.conv(2, 5)
    chain.conv(8, 1)
    chain.conv(2, 1)
    total = chain.tensor((1, 16, 16, 2))
    chain.graph.op("ADD", [chain.x, thin], [total], "AddOptions", version=2)
    chain.x = total
    return chain


def test_readers_that_end_a_large_tensor_run_together() -> None:
    ops = read_model(fan().finish()).main.ops
    wide, one, other, *rest = ops
    assert eager_order([wide, other, *rest[:-1], one, rest[-1]]) == [wide, other, one, *rest]


def test_what_makes_more_than_it_ends_is_put_off() -> None:
    """`grow` waits for its reader, beyond the last other reader of its small operand; `one` of the
    other model stays in front of the operator with which it ends a larger one."""
    chain = Chain((1, 16, 16, 2))
    small = chain.conv(2, 3)
    side = chain.conv(8, 1, keep=False)
    chain.conv(2, 1)
    both, total = chain.tensor((1, 16, 16, 2)), chain.tensor((1, 16, 16, 2))
    chain.graph.op("ADD", [chain.x, small], [both], "AddOptions", version=2)
    chain.x, chain.shape = side, (1, 16, 16, 8)
    chain.conv(2, 1)
    chain.graph.op("ADD", [chain.x, both], [total], "AddOptions", version=2)
    first, grow, next_, add, shrink, last = read_model(chain.finish(total)).main.ops
    ops = [first, grow, next_, add, shrink, last]
    assert postpone(ops) == [first, next_, add, grow, shrink, last]
    wide, one, *rest = read_model(fan().finish()).main.ops
    assert postpone([wide, one, *rest]) == [wide, one, *rest]


def windows(*sizes: int) -> bytes:
    """A convolution, and SAME windows of these sizes that read its result."""
    chain = Chain((1, 18, 12, 2))
    chain.conv(4, 1)
    outputs = [chain.conv(2, size, keep=False) for size in sizes]
    return chain.finish(*outputs)


def pads(data: bytes) -> list[int]:
    """Rows that each PAD reads."""
    return [(op.inputs[0].shape or ())[1] for op in read_model(data).main.ops if op.kind == "PAD"]


@needs_tflm
@pytest.mark.parametrize("halo", ["merge", "blocks"])
@pytest.mark.parametrize(
    ("sizes", "border", "times"),
    [((5,), "ahead", 1), ((5, 5), "ahead", 1), ((3, 5), "once", 1), ((3, 5), "ahead", None)],
)
def test_no_row_is_padded_twice(halo, sizes, border, times) -> None:
    """But for tiles at the image's edge, which need rows of padding too."""
    data = windows(*sizes)
    count = len(sizes) + 1
    schemes = {
        b: TiledRegion(tuple(range(count)), (Split(ROWS, 6),), halo, b) for b in ("pad", border)
    }
    made = {b: tiled(data, s)[0] for b, s in schemes.items()}
    assert quick_differences(data, made[border]) == []
    inner = sum(pads(made[border])) - 2 * sum(3 + size // 2 for size in sizes)
    if times is None:
        assert pads(made[border]) == pads(made["pad"])
    else:
        assert inner <= 18 * times < sum(pads(made["pad"]))


@needs_tflm
@pytest.mark.parametrize("border", ["ahead", "once"])
@pytest.mark.parametrize("axis", [ROWS, COLUMNS])
def test_more_tiles_than_a_result_has_rows(axis, border) -> None:
    """Tensors with more rows are cut finer then; bits stay."""
    chain = Chain((1, 24, 24, 2))
    chain.conv(4, 3)
    chain.pool()
    chain.conv(4, 5)
    chain.pool()
    data = chain.finish()
    scheme = TiledRegion((0, 1, 2, 3), (Split(axis, 12),), "merge", border, eager=True)
    made, notes = tiled(data, scheme)
    assert notes[0].startswith("tiled") and quick_differences(data, made) == []
    convs = [op for op in read_model(made).main.ops if op.kind == "CONV_2D"]
    assert len(convs) == 24
