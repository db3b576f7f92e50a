"""Computes what a variant needs on a rung: its arena, the bytes of its files, its instructions.

    stock           the arena of the file as it is
    plan, tiles,    what `tflm-plan` makes of it, with the options of the command that is shown
    more operators
    lean            the plans of the rungs before, on lean firmware
    rows streamed   what `tflm-plan stream-input` makes of it, in two halves

A quick figure is that of a small search for tiles, or of rows that are streamed without a search.
It says which variants are worth the search that their command makes. Figures are kept by the bytes
of the file. (Networks of equal shapes are one variant already, in `variants` and `user_build`; two
files of such a network have one arena, but not one size: names and equal weights differ.) It must
not know which variants are tried, nor why.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace

from tflm_planner.codesign.fitting.variants import Limits, Variant
from tflm_planner.codesign.quick_searches import TO_CHOOSE, TO_CHOOSE_LOOPS
from tflm_planner.model.serde import write_model
from tflm_planner.pipeline.inspection.arenas import arena_in
from tflm_planner.pipeline.options import (
    MemoryOptions,
    PlanOptions,
    StreamOptions,
    TilePermission,
)
from tflm_planner.pipeline.planning.planned_file import PlannedFile, on_lean_firmware
from tflm_planner.pipeline.planning.planning_session import PlanningSession
from tflm_planner.pipeline.stream_input.split import least_sram, split_for_rows
from tflm_planner.report.document import RungKind
from tflm_planner.support.errors import PlannerError
from tflm_planner.support.progress import Progress
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tflm.arena.uncertainty import BoundKind, bound_of
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tflm.targets import can_be_lean, with_lean


@dataclass(frozen=True, slots=True)
class VariantOutcome:
    """The figures of a variant on one rung. arena, file_bytes: bytes; of both halves if rows are
    streamed. bound: whether the arena is exact, "at least" or "about". slowdown: predicted
    instructions relative to the stock model. at_most: whether a search might find a smaller arena.
    quick: whether no whole search was made."""

    variant: Variant
    kind: RungKind
    arena: int
    file_bytes: int
    bound: BoundKind = "exact"
    slowdown: float = 1.0
    at_most: bool = False
    quick: bool = False

    @property
    def has_command(self) -> bool:
        """Whether a command makes the file with these figures. None makes a quick search, but rows
        can be streamed without tiles."""
        return not self.quick or self.kind == "rows streamed"


@dataclass
class Outcomes:
    """All figures that were computed. known: by the digest of the file and the rung; of a quick and
    a whole search, the whole one. refused: for each error, the names of the variants that could not
    be planned."""

    limits: Limits
    on_progress: Progress
    stop: Stop
    known: dict[tuple[str, RungKind], VariantOutcome] = field(
        default_factory=dict[tuple[str, RungKind], VariantOutcome]
    )
    refused: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    _least_streamed: dict[str, int] = field(default_factory=dict[str, int])

    def of(self, variant: Variant, kind: RungKind, *, quick: bool = False) -> VariantOutcome | None:
        """The outcome of a variant; None if it cannot be planned, in which case the error is added
        to `refused`. quick: whether a quick figure is enough."""
        data = variant.make()
        digest = hashlib.sha256(data).hexdigest()
        known = self.known.get((digest, kind))
        if known is not None and (quick or not known.quick):
            return replace(known, variant=variant)
        try:
            figure = self._compute(variant, kind, data, digest, quick)
        except PlannerError as error:
            self.refused.setdefault(f"{kind}: {error}", []).append(variant.name)
            return None
        self.known[digest, kind] = figure
        return figure

    def fits(self, figure: VariantOutcome) -> bool:
        """Whether a variant keeps the limits of the board, and of what may be slower."""
        limits = self.limits
        fast = figure.kind != "rows streamed" or figure.slowdown <= limits.stream_slowdown
        return fast and limits.fits(figure.arena, figure.file_bytes)

    def floor(self, variant: Variant, kind: RungKind) -> int:
        """A lower bound of the bytes of memory that a variant needs on a rung."""
        if kind != "rows streamed":
            floors = variant.floors
            return {"stock": floors.stock, "plan": floors.plan}.get(kind, floors.tiles)
        if variant.name not in self._least_streamed:
            if self.stop.is_over:  # a user waits for what was found
                return 0
            self._least_streamed[variant.name] = self._compute_least_streamed(variant)
        return self._least_streamed[variant.name]

    def _compute_least_streamed(self, variant: Variant) -> int:
        """A lower bound for any split, with any tiles; 0 if there is none, which `of` says."""
        try:
            return least_sram(variant.make(), self._stream_options(quick=True))
        except PlannerError:
            return 0

    def _compute(
        self, variant: Variant, kind: RungKind, data: bytes, digest: str, quick: bool
    ) -> VariantOutcome:
        if kind == "stock":
            arena = arena_in(data, self.limits.target)[1]
            return VariantOutcome(variant, kind, arena.arena, len(data), arena.bound)
        if kind == "rows streamed":
            return self._streamed(variant, data, quick)
        options = self._options(kind, quick)
        planned = PlanningSession(data, self.stop, self.on_progress).plan(options).file
        figure = _figure_of(variant, kind, planned, quick)
        if can_be_lean(self.limits.target):
            lean = self._when_lean(figure, planned)
            earlier = self.known.get((digest, "lean"))
            if earlier is None or lean.arena < earlier.arena:
                self.known[digest, "lean"] = lean
        return figure

    def _streamed(self, variant: Variant, data: bytes, quick: bool) -> VariantOutcome:
        pair, _ = split_for_rows(
            data, self._stream_options(quick), on_progress=self.on_progress, stop=self.stop
        )
        size = len(pair.front.data) + len(pair.back.data)
        bound = bound_of(pair.uncertainties)
        return VariantOutcome(
            variant, "rows streamed", pair.sram, size, bound, pair.slowdown, quick=quick
        )

    @property
    def _memory(self) -> MemoryOptions:
        return MemoryOptions(kernels=kernels_of(self.limits.target))

    def _options(self, kind: RungKind, quick: bool) -> PlanOptions:
        limits, memory = self.limits, self._memory
        if kind == "plan":
            return PlanOptions(memory, given_arena_limit=limits.arena_limit, verify=None)
        operators = AllowedOperators.NONE if kind == "tiles" else AllowedOperators.ALL
        tiles = TilePermission(max_slowdown=limits.slowdown, operators=operators)
        if quick:  # in one process: it ends before another one has started
            budget = TO_CHOOSE if kind == "tiles" else TO_CHOOSE_LOOPS
            tiles = replace(tiles, workers=1, search_budget=budget)
        return PlanOptions(memory, tiles, given_arena_limit=limits.arena_limit, verify=None)

    def _stream_options(self, quick: bool) -> StreamOptions:
        """With all that the rungs before allow: on lean firmware, if the target has it."""
        memory, target = self._memory, self.limits.target
        if can_be_lean(target):
            memory = replace(memory, kernels=kernels_of(with_lean(target)))
        tiles = None if quick else TilePermission(operators=AllowedOperators.ALL)
        return StreamOptions(memory, tiles, max_slowdown=self.limits.stream_slowdown, verify=None)

    def _when_lean(self, figure: VariantOutcome, planned: PlannedFile) -> VariantOutcome:
        """The outcome of the same plan on lean firmware."""
        model, arena = on_lean_firmware(planned, self.limits.target)
        size = len(write_model(model))
        outcome = replace(figure, kind="lean", arena=arena.arena, file_bytes=size)
        return replace(outcome, bound=arena.bound, at_most=True)


def _figure_of(
    variant: Variant, kind: RungKind, planned: PlannedFile, quick: bool
) -> VariantOutcome:
    arena, size = planned.inspection.arena, len(planned.data)
    figure = VariantOutcome(variant, kind, arena.arena, size, arena.bound, planned.slowdown)
    searched = kind != "plan"
    return replace(figure, at_most=quick and searched, quick=quick and searched)
