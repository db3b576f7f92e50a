"""A second search of a model, for tiles beside which other spellings pay.

    tiles, as if operators were in their freest spelling --> the front of promises
    the same models with true spellings --> neighbours, more effort --> tilings

The first search tries spellings in its best models at the end, because they take a dozen plans
each. Where they would pay most, it has no such models by then: around a convolution that cannot
overlap its operand, tiles seem to be worth more than they are. It must not know which operators are
permitted.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from tflm_planner.support.progress import Progress
from tflm_planner.tflm.liveness import no_input_overlaps
from tflm_planner.tiling.evaluate.candidate import Candidate
from tflm_planner.tiling.evaluate.evaluator import EvaluationRequest
from tflm_planner.tiling.evaluate.workers import Workers
from tflm_planner.tiling.freest_spellings import FreestOverlaps
from tflm_planner.tiling.model_evaluations import ModelEvaluations
from tflm_planner.tiling.options import TilingOptions
from tflm_planner.tiling.refinements import Refinements
from tflm_planner.tiling.segment_search import SegmentSearch
from tflm_planner.tiling.tilings import TilingResult
from tflm_planner.tiling.work import WorkBudget
from tflm_planner.transforms.schedules import Effort


def promises_more(found: TilingResult, options: TilingOptions, workers: Workers) -> bool:
    """Whether the model is to be searched again. found: the result of a search of segments."""
    budget, ops = options.search_budget, workers.evaluator.model.main.ops
    if options.method != "regions" or len(ops) <= budget.anticipating_operators:
        return False
    if options.input_overlaps_of is no_input_overlaps:  # then no spelling permits any
        return False
    ordered = Candidate((), False, workers.evaluator.order, Effort.CLIMB)
    (as_it_is,) = workers.evaluate([EvaluationRequest(ordered)])
    assert as_it_is is not None, "every search evaluates it"
    untiled = as_it_is.arena if options.objective == "arena" else as_it_is.head
    least = min(t.bytes for t in (found.best, *found.front))
    pays = (untiled - least) * budget.anticipating_least_gain >= untiled
    return pays and _freest(options, workers).frees(ops)


def search_anticipating(
    data: bytes, options: TilingOptions, on_progress: Progress, workers: Workers
) -> TilingResult:
    """The tilings of the second search. workers: those of the first one. Raises StoppedError if it
    is stopped."""
    freest = replace(options, input_overlaps_of=_freest(options, workers))
    with closing(Workers(data, freest)) as others:
        others.stop = workers.stop
        promising = SegmentSearch(freest, others)
        promising.run_modes(on_progress)
    limit = options.search_budget.search_work
    work = WorkBudget(limit if options.work_limit is None else min(limit, options.work_limit))
    order = workers.evaluator.order
    models = ModelEvaluations(workers, options, len(order), work)
    most = int(options.max_slowdown * models.original_instructions)
    models.add([replace(c, respell=most) for c in promising.front], as_they_are=True)
    refinements = Refinements(models, options, order)
    refinements.evaluate_spellings()
    refinements.evaluate_neighbours()
    refinements.resize_parts()
    refinements.plan_with_care()
    refinements.close_gaps()
    return models.result(models.count)


def _freest(options: TilingOptions, workers: Workers) -> FreestOverlaps:
    """The overlaps with the spellings that may be used."""
    used_kinds = workers.evaluator.used_kinds
    return FreestOverlaps(options.kernels, options.dialect or options.allows("RESHAPE", used_kinds))
