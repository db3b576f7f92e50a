"""What shares the cause of a refusal is not offered again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.models.small import Chain, narrow_rows
from tests.short_searches import short_search
from tests.transforms.row_loops import chain
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline import api
from tflm_planner.pipeline import prove as proving
from tflm_planner.pipeline.options import Stripping
from tflm_planner.pipeline.planning.refusals import (
    MOST_PROOFS,
    MOST_REFUSED,
    Refusal,
    RefusalCauses,
)
from tflm_planner.pipeline.planning.tiled_file import new_kinds, plan_tiling, tiled_model
from tflm_planner.support.errors import ForbiddenOperatorsError
from tflm_planner.support.progress import silent
from tflm_planner.tflm.element_types import form_of
from tflm_planner.tiling.tilings import Tiling
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion
from tflm_planner.verification.verdict import DIFFERENT, EQUAL, Culprit, RuntimeCheck, Verdict


def tiling(*regions: TiledRegion | LoopedRegion) -> Tiling:
    return Tiling(regions, 1000, 1.0, None, bind_views=True)


def rows(*ops: int, parts: int = 2) -> TiledRegion:
    return TiledRegion(ops, (Split(1, parts),))


def test_a_region_with_the_operator_at_fault_is_not_tried_again() -> None:
    causes = RefusalCauses()
    causes = causes.including(tiling(rows(0), rows(1)), Refusal("differs", frozenset({1})))
    assert causes.rules_out(tiling(rows(1, parts=5))) and causes.rules_out(tiling(rows(0, 1)))
    assert not causes.rules_out(tiling(rows(0))), "the other region is not at fault"
    assert not causes.rules_out(tiling(LoopedRegion((0, 1)))), "loops are made by other means"


NAMES: dict[str, Callable[[int], str]] = {
    "as they were": lambda place: "part" * (place % 3) + f"/{place}",
    "none": lambda place: "",
    "all equal": lambda place: "x",
}


def named(names: str) -> bytes:
    """Three convolutions whose tensors are called so."""
    model = read_model(chain((3, 1, 4), (3, 1, 4), (3, 1, 4), size=24))
    for place, tensor in enumerate(model.tensors()):
        tensor.name = NAMES[names](place)
    return write_model(model)


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("strip", ["nothing", "unread by TFLM"])
@pytest.mark.parametrize("dialect", [True, False])
def test_the_operators_of_a_file_know_which_of_the_original_they_are_of(
    names: str, strip: Stripping, dialect: bool
) -> None:
    """Whatever tensors are called, and whether their names are in the file."""
    data = named(names)
    permission = api.TilePermission(dialect=dialect, operators=api.AllowedOperators.ALL)
    options = api.MemoryOptions(strip=strip)
    regions = tiling(rows(0), rows(1, 2, parts=3))
    planned = plan_tiling(data, regions, permission, options, silent)
    ops = planned.inspection.model.main.ops
    origins = [op.origins for op in ops if op.kind == "CONV_2D"]
    assert origins == [{0}] * 2 + [{1}, {2}] * 3
    assert all(op.origins and op.origins <= {0, 1, 2} for op in ops)
    if planned.twin is not None:
        twin = read_model(planned.twin, dialect=True).main.ops
        assert len(twin) == len(planned.twin_origins)
        by_conv = [
            o for op, o in zip(twin, planned.twin_origins, strict=True) if op.kind == "CONV_2D"
        ]
        assert by_conv == origins


@pytest.mark.parametrize("kind", [TiledRegion, LoopedRegion])
def test_what_cuts_and_joins_is_blamed_on_an_operator_of_its_own_region(kind: type) -> None:
    """A SLICE of what the other region makes, or of the input, is not that region's."""
    data = named("all equal")
    regions = [
        kind(ops, (Split(1, 2),)) if kind is TiledRegion else kind(ops) for ops in ((0,), (1, 2))
    ]
    model, _ = tiled_model(data, regions, crop=False)
    ops = model.main.ops
    assert all(op.origins for op in ops)
    behind = next(i for i, op in enumerate(ops) if op.origins & {1, 2})
    assert all(op.origins <= {0} for op in ops[:behind])
    assert all(op.origins <= {1, 2} for op in ops[behind:])


def test_files_with_an_operator_that_did_not_run_are_not_proved_again() -> None:
    causes, data = RefusalCauses(), narrow_rows()
    assert not causes.rules_out_files(data)
    op = read_model(data).main.ops[0]
    causes = causes.including(tiling(rows(0)), Refusal("fails", form=form_of(op)))
    assert causes.rules_out_files(None, data) and not causes.rules_out(tiling(rows(0)))


def test_without_a_cause_only_so_many_of_one_region_are_tried() -> None:
    causes = RefusalCauses()
    for parts in range(MOST_REFUSED):
        assert not causes.rules_out(tiling(rows(0, parts=9)))
        causes = causes.including(tiling(rows(0, parts=parts + 2)), Refusal("differs"))
    assert causes.rules_out(tiling(rows(0, parts=9))) and not causes.rules_out(tiling(rows(1)))
    for _ in range(MOST_PROOFS):
        causes = causes.including(tiling(rows(0)), Refusal("differs"))
    assert causes.rules_out(tiling(rows(1))), "enough is enough"


@pytest.mark.slow
@pytest.mark.mostly_long(short=1)
@pytest.mark.parametrize("strip", ["nothing", "unread by TFLM"])
def test_the_proof_s_cause_ends_the_tilings_that_share_it(
    monkeypatch: pytest.MonkeyPatch, strip: Stripping
) -> None:
    """Every tiling of this model has its first operator in tiles: one refusal says it of all, in a
    file without names too."""
    files: list[bytes] = []

    def proof(original, planned, options, on_progress) -> Verdict:
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
    budget = short_search(2_500)
    tiles = api.TilePermission(max_slowdown=1.3, workers=1, search_budget=budget)
    options = api.PlanOptions(api.MemoryOptions(strip=strip), tiles=tiles)
    report = api.plan(narrow_rows(), None, options).report
    (refused,) = (n for n in report.notes if n.startswith("REFUSED"))
    assert "CONV_2D" in refused and len(files) == 2
    assert any(n.startswith("not tried, as they share the cause") for n in report.notes)
    assert report.front is not None
    least = report.after.arena.arena
    assert all(p.size >= least for p in report.front.points if p.role == "tiled")


def test_only_views_that_must_not_be_copies_are_bound() -> None:
    """A model that joins tensors has CONCATENATION, not SLICE: a tiling that was evaluated with
    copies of the one kind and none of the other makes no larger file."""
    net = Chain((1, 32, 32, 4))
    for _ in range(3):
        net.conv(16, 3)
    net.pool()
    net.pool()
    joined, branches = net.tensor((1, 8, 8, 8)), [net.conv(4, k, keep=False) for k in (1, 3)]
    net.graph.op("CONCATENATION", branches, [joined], "ConcatenationOptions", axis=3)
    data = net.finish(joined)
    permission = api.TilePermission(operators=api.AllowedOperators.NONE)
    options = api.MemoryOptions(kernels=api.kernels_of(api.load_target("cortex-m4/cmsis-nn")))
    parts = TiledRegion((0, 1, 2, 3, 4), (Split(1, 3),), "blocks", "waste")
    made = {
        bound: plan_tiling(
            data, replace(tiling(parts), bind_views=bound), permission, options, silent
        )
        for bound in (True, False)
    }
    arenas = {bound: planned.inspection.arena.arena for bound, planned in made.items()}
    assert arenas[False] < 0.9 * arenas[True]
    assert new_kinds(read_model(data), made[False].inspection.model) == []


def test_a_file_of_a_tiling_has_no_operators_that_are_not_permitted() -> None:
    """Although its views need not lie inside their parents: then its last plan might copy parts,
    with operators that the firmware lacks."""
    permission = api.TilePermission(operators=api.AllowedOperators.NONE)
    options = api.MemoryOptions(kernels=api.kernels_of(api.load_target("cortex-m4/cmsis-nn")))
    aligned = chain(*[(1, 1, 16)] * 3, size=24)
    views = tiling(replace(rows(1, parts=3), border="waste"))
    planned = plan_tiling(aligned, replace(views, bind_views=False), permission, options, silent)
    assert new_kinds(read_model(aligned), planned.inspection.model) == []
    odd = chain(*[(1, 1, 3)] * 3, size=24)  # rows of 15 bytes, where no view can begin
    with pytest.raises(ForbiddenOperatorsError, match=r"needs CONCATENATION.*may not be added"):
        plan_tiling(odd, views, permission, options, silent)
