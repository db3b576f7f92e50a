"""A planned and proved file, with a summary of the search that led to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tflm_planner.pipeline.planning.planned_file import PlannedFile
from tflm_planner.pipeline.planning.refusals import Proof
from tflm_planner.report.document import OperatorTrial, ParetoFront
from tflm_planner.transforms.drop_conversions import ConvertedEnd

ProveModel = Callable[[PlannedFile], Proof]


def leave_unproved(_: object) -> Proof:
    """A `prove` function that proves nothing, for callers without proof."""
    return Proof()


@dataclass(frozen=True)
class SearchSummary:
    """A summary of the search that led to a file. notes: notes for reports. front: the Pareto
    front. refused: better candidates that a guard or the proof refused, and why; each is an error
    of this tool. plain: bytes of arena with order and plan alone, if that plan was made. trials:
    what the search tried with each operator; none if candidates were refused."""

    notes: tuple[str, ...] = ()
    front: ParetoFront | None = None
    refused: tuple[str, ...] = ()
    plain: int | None = None
    trials: tuple[OperatorTrial, ...] = ()


@dataclass(frozen=True)
class PlanningResult:
    """A planned file, its proof, and the search for it. converted: inputs and outputs whose type
    differs from the original's."""

    file: PlannedFile
    proof: Proof
    search: SearchSummary = SearchSummary()
    converted: tuple[ConvertedEnd, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the search and on the file."""
        return (*self.search.notes, *self.file.notes)


def plain_alone(plain: PlannedFile) -> SearchSummary:
    """The summary if no search for tiles was made."""
    return SearchSummary(plain=plain.inspection.arena.arena)
