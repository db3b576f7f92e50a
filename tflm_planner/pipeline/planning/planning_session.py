"""Plans one model with several sets of options: those of the command, those with further
permissions, or those of many boards.

    original --conversions dropped, pool added--> model --ModelPlanner--> PlanningResult

It must not know what the plans are for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline.options import PlanOptions
from tflm_planner.pipeline.planning.model_planner import ModelPlanner
from tflm_planner.pipeline.planning.planned_file import add_lean_pool
from tflm_planner.pipeline.planning.planning_result import (
    PlanningResult,
    ProveModel,
    leave_unproved,
)
from tflm_planner.support.progress import Progress
from tflm_planner.support.stopping import Stop
from tflm_planner.transforms.drop_conversions import ConvertedEnd, drop_conversions


@dataclass(frozen=True)
class PlanningSession:
    """A model to be planned with one or several sets of options. original: the bytes of its
    file."""

    original: bytes
    stop: Stop
    on_progress: Progress

    def plan(self, options: PlanOptions, prove: ProveModel = leave_unproved) -> PlanningResult:
        """The best file, its proof, and the search for it. Raises the errors of
        `ModelPlanner.plan`."""
        data, model = self.original, read_model(self.original)
        converted: list[ConvertedEnd] = []
        if options.io == "int8":
            converted = drop_conversions(model)
            data = write_model(model)
        if options.target.lean:
            data, model = add_lean_pool(model)
        planner = ModelPlanner(
            options.memory, self.stop, options.tiles, options.arena_limit, self.on_progress
        )
        return replace(planner.plan(data, model, prove), converted=tuple(converted))
