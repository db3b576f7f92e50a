"""What shares the cause of a refusal is not offered again."""

from __future__ import annotations

import pytest

from tests.models.small import narrow_rows
from tflm_planner.model.serde import read_model
from tflm_planner.pipeline import api
from tflm_planner.pipeline import prove as proving
from tflm_planner.pipeline.refusals import MOST_PROOFS, MOST_REFUSED, Refusal, RefusalCauses
from tflm_planner.tflm.element_types import form_of
from tflm_planner.tiling.budget import SearchBudget
from tflm_planner.tiling.options import Tiling
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.tile.tile import TiledRegion
from tflm_planner.verification.verdict import DIFFERENT, EQUAL, Culprit, RuntimeCheck, Verdict


def tiling(*regions: TiledRegion | LoopedRegion) -> Tiling:
    return Tiling(regions, 1000, 1.0, None, bind_views=True)


def rows(*ops: int, parts: int = 2) -> TiledRegion:
    return TiledRegion(ops, ((1, parts),))


def names() -> list[str]:
    return [op.outputs[0].name for op in read_model(narrow_rows()).main.ops]


def test_a_region_with_the_operator_at_fault_is_not_tried_again() -> None:
    causes = RefusalCauses(narrow_rows())
    causes = causes.including(tiling(rows(0), rows(1)), Refusal("differs", f"{names()[1]}/h0:4"))
    assert causes.concern(tiling(rows(1, parts=5))) and causes.concern(tiling(rows(0, 1)))
    assert not causes.concern(tiling(rows(0))), "the other region is not at fault"
    assert not causes.concern(tiling(LoopedRegion((0, 1)))), "loops are made by other means"


def test_a_part_of_the_input_is_blamed_on_who_reads_it() -> None:
    causes = RefusalCauses(narrow_rows())
    (given,) = read_model(narrow_rows()).main.inputs
    causes = causes.including(tiling(rows(0), rows(1)), Refusal("differs", f"{given.name}/h0:4"))
    assert causes.concern(tiling(rows(0))) and not causes.concern(tiling(rows(1)))


def test_files_with_an_operator_that_did_not_run_are_not_proved_again() -> None:
    causes, data = RefusalCauses(narrow_rows()), narrow_rows()
    assert not causes.concern_files(data)
    op = read_model(data).main.ops[0]
    causes = causes.including(tiling(rows(0)), Refusal("fails", "nobody's", form_of(op)))
    assert causes.concern_files(None, data) and not causes.concern(tiling(rows(0)))


def test_without_a_cause_only_so_many_of_one_region_are_tried() -> None:
    causes = RefusalCauses(narrow_rows())
    for parts in range(MOST_REFUSED):
        assert not causes.concern(tiling(rows(0, parts=9)))
        causes = causes.including(tiling(rows(0, parts=parts + 2)), Refusal("differs"))
    assert causes.concern(tiling(rows(0, parts=9))) and not causes.concern(tiling(rows(1)))
    for _ in range(MOST_PROOFS):
        causes = causes.including(tiling(rows(0)), Refusal("differs"))
    assert causes.concern(tiling(rows(1))), "enough is enough"


def test_the_proof_s_cause_ends_the_tilings_that_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tiling of this model has its first operator in tiles: one refusal says it of all."""
    files: list[bytes] = []

    def proof(original, planned, options, report_progress) -> Verdict:
        files.append(planned.data)
        ops = read_model(planned.data, dialect=True).main.ops
        at = next(i for i, op in enumerate(ops) if op.kind == "CONV_2D")
        status, detail = (DIFFERENT, f"at operator {at} ({ops[at].label})")
        if len(files) > 1:
            status, detail = EQUAL, ""
        return Verdict(
            (RuntimeCheck("TFLM", status, 8, True, detail, Culprit(at, "CONV_2D", fails=False)),)
        )

    monkeypatch.setattr(proving, "compare_with_twin", proof)
    budget = SearchBudget(search_work=2_500, beam_steps=1)
    tiles = api.TilePermission(max_slowdown=1.3, workers=1, search_budget=budget)
    report = api.plan(narrow_rows(), None, api.PlanOptions(tiles=tiles)).report
    (refused,) = (n for n in report.notes if n.startswith("REFUSED"))
    assert "CONV_2D" in refused and len(files) == 2
    assert any(n.startswith("not tried, as they share the cause") for n in report.notes)
    assert report.front is not None
    least = report.after.arena.arena
    assert all(p.size >= least for p in report.front.points if p.role == "tiled")
