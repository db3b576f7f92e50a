"""Every way to tile a chain of windows: the same function, and what each computes and pads."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.transforms.row_loops import chain
from tests.transforms.tiled import tiled
from tests.verification.terms.proofs import proof
from tflm_planner.model.serde import read_model
from tflm_planner.ops.window import ROWS
from tflm_planner.transforms.tile.box_plan import HaloPolicy, Split
from tflm_planner.transforms.tile.operator_tiles import Border
from tflm_planner.transforms.tile.tile import TiledRegion


@pytest.mark.parametrize(
    ("halo", "border", "convolutions", "rows", "pads", "joined"),
    [
        ("recompute", "pad", 9, 38, 8, 1),
        ("recompute", "waste", 9, 52, 0, 1),
        ("recompute", "ahead", 9, 38, 8, 1),
        ("recompute", "once", 9, 38, 8, 1),
        ("blocks", "pad", 17, 30, 16, 9),
        ("blocks", "waste", 14, 50, 0, 9),
        ("blocks", "ahead", 17, 30, 20, 9),
        ("blocks", "once", 17, 30, 22, 9),
        ("merge", "pad", 9, 30, 8, 6),
        ("merge", "waste", 9, 40, 0, 6),
        ("merge", "ahead", 9, 30, 10, 6),
        ("merge", "once", 9, 30, 11, 6),
    ],
)
def test_a_chain_in_bands(
    halo: HaloPolicy, border: Border, convolutions: int, rows: int, pads: int, joined: int
) -> None:
    """Results of 12, 12 and 6 rows: halos that are kept are computed once, but for waste."""
    data = chain((3, 1, 4), (3, 1, 2), (3, 2, 2))
    made, (note, *_) = tiled(data, TiledRegion((0, 1, 2), (Split(ROWS, 3),), halo, border))
    assert note.startswith("tiled")
    assert proof(data, made).status == "equal"
    ops = read_model(made).main.ops
    kinds = Counter(op.kind for op in ops)
    computed = [(op.outputs[0].shape or ())[ROWS] for op in ops if op.kind == "CONV_2D"]
    assert (len(computed), sum(computed)) == (convolutions, rows)
    assert (kinds["PAD"], kinds["CONCATENATION"]) == (pads, joined)
