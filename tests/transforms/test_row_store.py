"""Stores of loops: as few rows before the input as the turns allow, tried out one by one."""

from __future__ import annotations

import random
from itertools import count

import pytest

from tests.models.build import Net
from tflm_planner.model.ir import Tensor
from tflm_planner.model.serde import read_model
from tflm_planner.transforms.row_loop.store import LoopProgress, RowStore, is_view, store_of

ROWS, ROW = 12, 10
"""Rows of the input, and bytes of each."""


def ends_of(height: int, width: int) -> tuple[Tensor, Tensor]:
    """An input of `ROWS` rows, and a result of other rows."""
    net = Net()
    graph = net.graph()
    x = graph.input("x", (1, ROWS, ROW, 1), scale=0.1)
    y = graph.tensor("y", (1, height, width, 1), scale=0.1)
    graph.op("RESIZE_BILINEAR", [x, graph.constant("size", [height, width])], [y])
    graph.outputs(y)
    main = read_model(net.finish()).main
    return main.inputs[0], main.outputs[0]


def overwrites(store: RowStore, progress: LoopProgress, lead: int) -> bool:
    """Whether a turn writes over rows that the next one reads, with `lead` rows before the input.

    Turns write one behind the other; what would begin before the store is written at its begin."""
    for turn in range(progress.turns - 1):
        end = max(store.first + turn * progress.step, 0) + progress.step
        row = max((turn + 1) * progress.taken - progress.lag, 0)
        if row < ROWS and end > (lead + row) * ROW:
            return True
    return False


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("seed", range(30))
def test_the_input_lies_as_low_as_it_can(seed: int, aligned: bool) -> None:
    draw = random.Random(seed)
    rows, width = draw.choice((1, 2, 3)), draw.choice((3, 5, 8, 10, 13, 30))
    taken, lag = draw.choice((1, 2, 3)), draw.choice((0, 1, 2))
    height = ROWS // taken * rows
    skipped = draw.choice((0, 1, 2)) * rows * width
    turns = -(-(height * width + skipped) // (rows * width))
    progress = LoopProgress(turns, taken, 0, lag, rows * width, skipped)
    source, result = ends_of(height, width)
    store = store_of(source, result, progress, shared=True, aligned=aligned, backwards=False)
    assert (
        store is not None and store.shared and (aligned or is_view(store, result, backwards=False))
    )
    assert store.lead == next(n for n in count() if not overwrites(store, progress, n))
    assert store.start == store.first + skipped
    assert store.size >= store.start + result.elements and store.rows >= store.lead + ROWS
