"""Networks with uint8 ends, which TFLM's SLICE, CONCATENATION and PAD do not take: tiled all the
same, where no such operator is needed, and refused with a reason where one would be."""

from __future__ import annotations

import pytest

from tests.conftest import needs_tflm
from tests.models.unsigned import NETWORKS
from tests.short_searches import short_search
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.support.errors import ModelError, UsageError
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.evaluate.evaluation import evaluate
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.schedules import Effort
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion
from tflm_planner.verification import verify

pytestmark = needs_tflm
COMPARED = ("mobilenet", "ds_cnn", "plain")
MOVES = {"SLICE", "CONCATENATION", "PAD", "STRIDED_SLICE", "SPLIT", "GATHER"}


SMALL = short_search(600)
"""A few tilings are enough."""


def planned(data: bytes, **permission) -> api.PlanResult:
    tiles = api.TilePermission(max_slowdown=1.2, workers=1, search_budget=SMALL, **permission)
    return api.plan(data, None, api.PlanOptions(tiles=tiles))


def moved_types(data: bytes) -> set[str]:
    """Element types of what only moves bytes."""
    model = read_model(data, dialect=True)
    return {t.type_name for op in model.ops() if op.kind in MOVES for t in op.outputs}


@pytest.mark.parametrize("name", sorted(NETWORKS))
@pytest.mark.slow
@pytest.mark.mostly_long(short=2)
def test_the_search_finds_tiles_that_stand_the_proof(name: str) -> None:
    """None is thrown away for a type that a kernel lacks: as much is saved as without uint8."""
    saved = {}
    for dtype in ("uint8", "int8") if name in COMPARED else ("uint8",):
        found = planned(NETWORKS[name](dtype))
        assert found.report.verified and not found.report.cannot_run
        assert not any(n.startswith(("REFUSED", "passed over")) for n in found.report.notes)
        assert "uint8" not in moved_types(found.data)
        saved[dtype] = found.report.before.arena.arena - found.report.after.arena.arena
    assert saved["uint8"] > 0 and saved["uint8"] >= 0.8 * saved.get("int8", 0)


def test_parts_of_a_uint8_input_are_views() -> None:
    """TFLM runs the dialect, in which nothing is copied, and not its portable twin."""
    data = NETWORKS["mobilenet"]("uint8")
    found = planned(data, by_hand=(TiledRegion((0, 1), (Split(1, 2),), border="waste"),))
    assert found.report.verified and "uint8" not in moved_types(found.data)
    runtimes = [c.runtime for c in found.report.checks]
    assert "LiteRT, portable twin" in runtimes and "TFLM" in runtimes
    assert "TFLM, portable twin" not in runtimes


def test_what_would_copy_uint8_is_refused_by_operator_and_type() -> None:
    data = NETWORKS["mobilenet"]("uint8")
    band, columns = TiledRegion((0, 1), (Split(1, 2),)), TiledRegion((0, 1), (Split(2, 2),))
    with pytest.raises(UsageError, match="SLICE of uint8"):
        planned(data, by_hand=(band,), dialect=False, operators=api.AllowedOperators.ALL)
    with pytest.raises(UsageError, match="of uint8"):
        planned(data, by_hand=(columns,), operators=api.AllowedOperators.ALL)
    with pytest.raises(UsageError, match="uint8"):
        planned(data, by_hand=(LoopedRegion((0, 1)),), operators=api.AllowedOperators.ALL)
    with pytest.raises(ModelError, match="uint8"):
        api.stream_input(data, None, api.StreamOptions(verify=None))
    behind = planned(
        data,
        by_hand=(TiledRegion((1, 2), (Split(1, 2),)),),
        dialect=False,
        operators=api.AllowedOperators.ALL,
    )
    assert behind.report.verified


def test_an_evaluation_that_tflm_could_not_run_is_none() -> None:
    on = api.kernels_of()
    model = read_model(NETWORKS["mobilenet"]("uint8"))
    run(model, Normalize())
    portable = TilingOptions(
        on, on.input_overlaps_of, dialect=False, operators=api.AllowedOperators.ALL
    )
    views = TilingOptions(on, on.input_overlaps_of, operators=api.AllowedOperators.ALL)
    first, second = (
        Candidate((TiledRegion(ops, (Split(1, 2),)),), True, None, Effort.CLIMB)
        for ops in ((0,), (1,))
    )
    assert evaluate(model, first, portable) is None and evaluate(model, first, views) is not None
    assert evaluate(model, second, portable) is not None


def test_what_was_refused_names_the_operator_that_did_not_run() -> None:
    from tflm_planner.model.serde import write_model
    from tflm_planner.pipeline.planning.tiled_file import tiled_model

    data = NETWORKS["mobilenet"]("uint8")
    twin, _ = tiled_model(data, (TiledRegion((0, 1), (Split(1, 2),)),), crop=False)
    verdict = verify(data, write_model(twin), api.VerifyOptions(inputs=2))
    (check,) = (c for c in verdict.checks if c.status == "different")
    assert check.culprit is not None and check.culprit.kind == "SLICE"
