"""Evaluations: of a copy, of new operators, of a family of candidates at once."""

from __future__ import annotations

import pytest

from tests.tiling.small_searches import ALL_BUT_LOOPS, options, repeated
from tflm_planner.model.clone import clone
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tiling.evaluate.candidate import Candidate, if_permitted
from tflm_planner.tiling.evaluate.evaluation import evaluate, evaluate_family
from tflm_planner.tiling.evaluate.evaluator import Evaluator
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.schedules import Effort
from tflm_planner.transforms.tile.box_plan import Split
from tflm_planner.transforms.tile.tile import TiledRegion, band


def test_a_copy_is_written_as_the_original(cnn):
    model = read_model(cnn)
    assert write_model(clone(model)) == write_model(read_model(cnn))
    before = write_model(model)
    evaluate(model, Candidate((band(0, 1, 2, border="waste"),), True), options())
    assert write_model(model) == before


def test_an_evaluation_names_new_operators_and_permission_is_asked_later(cnn):
    model = read_model(cnn)
    used = frozenset(op.kind for op in model.ops())
    found = evaluate(
        model, Candidate((band(0, 1, 2),), False, effort=Effort.CLIMB), options(dialect=False)
    )
    assert found is not None and "SLICE" in found.new_kinds and not found.new_kinds & used
    assert if_permitted(found, options(), used) is None
    assert (
        if_permitted(
            found, options(operators=AllowedOperators.of(found.new_kinds - {"SLICE"})), used
        )
        is None
    )
    for given in (AllowedOperators.ALL, AllowedOperators.of(found.new_kinds)):
        assert if_permitted(found, options(operators=given), used) == found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.slow
def test_a_family_is_evaluated_as_each_candidate_alone(seed):
    """Candidates that share tiles do not change each other's."""
    data = repeated(add_at=seed)
    evaluator = Evaluator(data, options(operators=ALL_BUT_LOOPS))
    count = len(evaluator.model.main.ops)
    seen = set()
    for regions in (
        (TiledRegion(tuple(range(seed, seed + 3)), (Split(1, 4),), "merge", "waste"),),
        (
            TiledRegion((seed, seed + 1), (Split(1, 3),), border="pad"),
            LoopedRegion((seed + 4, seed + 5), 2, "reverse"),
        ),
        (
            TiledRegion((count - 1,), (Split(1, 2),), border="waste"),
            TiledRegion((0, 1), (Split(1, 99),)),
        ),
    ):
        family = [
            Candidate(regions, bind_views, None, effort, tile_order)
            for effort in (Effort.FIRST_FITS, Effort.CLIMB)
            for tile_order in ("best", "file", "rpo")
            for bind_views in (True, False)
        ]
        for k in (0, 6):
            together = evaluate_family(evaluator.model, family[k : k + 6], evaluator.options)
            alone = [evaluate(evaluator.model, t, evaluator.options) for t in family[k : k + 6]]
            assert together == alone
            seen |= {o for o in together if o is not None}
    assert len(seen) > 2
