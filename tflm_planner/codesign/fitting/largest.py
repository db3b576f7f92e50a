"""Finds the largest network that fits on each rung: stock, plan, tiles, more operators, lean.

    variants, most MACs first
      | flash: are the parameters alone too many?      floor: is one operator alone too fat?
      v
    stock --> plan --> tiles --> more operators --> lean      each rung asks only for variants that
                                                              are larger than what fits already

The first two rungs are exhaustive: all variants that the lower bounds do not rule out are tried,
from the largest down to the first that fits. A search for tiles takes seconds, so only a few
variants are searched, which are chosen by bisection on the bytes of their largest operator. The
rung's result is the largest of them that fits; a larger one that was not searched may fit as well.
Only memory is computed here: networks are not trained, and plans are not run. It must not know how
results are shown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tflm_planner.codesign.fitting.variants import Limits, Variant
from tflm_planner.memory.allocators import compiling
from tflm_planner.model.serde import write_model
from tflm_planner.pipeline.inspection.arenas import arena_in
from tflm_planner.pipeline.options import MemoryOptions, PlanOptions, TilePermission
from tflm_planner.pipeline.planning.planned_file import PlannedFile, on_lean_firmware
from tflm_planner.pipeline.planning.planning_session import PlanningSession
from tflm_planner.report.document import RungKind
from tflm_planner.support.errors import PlannerError
from tflm_planner.support.interrupts import stop_on_ctrl_c
from tflm_planner.support.progress import Progress
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.allowed_operators import AllowedOperators
from tflm_planner.tflm.arena.uncertainty import BoundKind, may_need_more
from tflm_planner.tflm.target_kernels import kernels_of
from tflm_planner.tflm.targets import can_be_lean

KINDS: tuple[RungKind, ...] = ("stock", "plan", "tiles", "more operators", "lean")
_TOO_HEAVY = (
    "the parameters of every variant exceed the flash; much of them may be the classifier: "
    "--classes says how many classes yours has, --widths what else to try"
)


@dataclass(frozen=True, slots=True)
class VariantOutcome:
    """The figures of a variant on one rung. arena, file_bytes: bytes. bound: whether the arena is
    exact or "at least". slowdown: predicted instructions relative to the stock model. at_most:
    whether a search might find a smaller arena."""

    variant: Variant
    kind: RungKind
    arena: int
    file_bytes: int
    bound: BoundKind = "exact"
    slowdown: float = 1.0
    at_most: bool = False


@dataclass(frozen=True, slots=True)
class RungResult:
    """The result of one rung. best: the largest variant that fits, if it is larger than those of
    the rungs before; else None. ruled_out_by_flash, ruled_out_by_bound: how many
    larger variants were ruled out without a plan, by their parameters or by a lower bound of the
    head. tried: how many variants were computed. left: how many larger variants were not
    searched."""

    kind: RungKind
    best: VariantOutcome | None
    ruled_out_by_flash: int
    ruled_out_by_bound: int
    tried: int
    left: int = 0


@dataclass(frozen=True)
class Fits:
    """The networks that fit. variants: how many variants there were. figures: the figures of all
    variants that were computed. notes: other remarks."""

    family: str
    limits: Limits
    variants: int
    rungs: tuple[RungResult, ...]
    figures: tuple[VariantOutcome, ...]
    notes: tuple[str, ...] = ()


def fit(
    family: str,
    variants: Sequence[Variant],
    limits: Limits,
    on_progress: Progress,
    stop: Stop | None = None,
) -> Fits:
    """Find the largest of `variants` that fits, on each rung. `variants` must be sorted by
    multiplications, most first. Ctrl-C ends the search, and the result holds what was found by
    then."""
    stop = stop or Stop()
    try:
        with stop_on_ctrl_c(stop):
            fitting = _Fitting(variants, limits, on_progress, stop)
            rungs = fitting.rungs()
    finally:
        compiling.abandon()
    figures = tuple(fitting.figures.values())
    doubts = ("arenas of this target are not known: a board may need more",) * any(
        may_need_more(figure.bound) for figure in figures
    )
    refused = tuple(f"refused: {words}" for words in sorted(fitting.refused))
    too_heavy = (_TOO_HEAVY,) * (0 < len(variants) == rungs[0].ruled_out_by_flash)
    notes = (*stop.notes, *too_heavy, *doubts, *refused)
    return Fits(family, limits, len(variants), rungs, figures, notes)


@dataclass
class _Fitting:
    """One run of `fit`. figures: outcomes by digest of the file and kind of rung, so that variants
    with equal files are planned once. refused: errors of variants that could not be planned. most:
    multiplications of the largest variant that fits so far."""

    variants: Sequence[Variant]
    limits: Limits
    on_progress: Progress
    stop: Stop
    figures: dict[tuple[str, RungKind], VariantOutcome] = field(
        default_factory=dict[tuple[str, RungKind], VariantOutcome]
    )
    refused: set[str] = field(default_factory=set[str])
    most: int = -1

    def rungs(self) -> tuple[RungResult, ...]:
        """The results of all rungs. After Ctrl-C the remaining rungs try nothing."""
        results = [self._descend("stock"), self._descend("plan")]
        results += [self._bisect("tiles"), self._bisect("more operators")]
        if can_be_lean(self.limits.target):
            results.append(self._lean())
        return tuple(results)

    def _larger(self, kind: RungKind) -> tuple[list[Variant], int, int]:
        """The variants that may be larger than the best so far, and how many larger ones the flash
        and the lower bound rule out."""
        larger = [v for v in self.variants if v.size.macs > self.most]
        flash = self.limits.flash
        light = [v for v in larger if flash is None or v.size.parameter_bytes <= flash]
        possible = [v for v in light if _floor(v, kind) <= self.limits.arena_limit]
        return possible, len(larger) - len(light), len(light) - len(possible)

    def _descend(self, kind: RungKind) -> RungResult:
        """Try every possible variant, the largest first, until one fits."""
        possible, ruled_out_by_flash, ruled_out_by_bound = self._larger(kind)
        for tried, variant in enumerate(possible):
            if self.stop.is_over:
                return RungResult(
                    kind, None, ruled_out_by_flash, ruled_out_by_bound, tried, len(possible) - tried
                )
            self.on_progress(f"{kind}: {variant.name}, {tried + 1} of at most {len(possible)}")
            figure = self._figure(variant, kind)
            if figure is not None and self._fits(figure):
                above = self._above(variant, kind)
                return RungResult(kind, self._take(figure), *above, tried + 1)
        return RungResult(kind, None, ruled_out_by_flash, ruled_out_by_bound, len(possible))

    def _above(self, variant: Variant, kind: RungKind) -> tuple[int, int]:
        """Make this variant the best so far. Returns how many larger variants the flash and the
        lower bound rule out."""
        self.most = variant.size.macs
        return self._larger(kind)[1:]

    def _bisect(self, kind: RungKind) -> RungResult:
        """Search a few of the possible variants, chosen by bisection on the bytes of their largest
        operator."""
        possible, ruled_out_by_flash, ruled_out_by_bound = self._larger(kind)
        pool, best, searched = possible, None, set[str]()
        low = float(self.limits.arena_limit)
        high = float(max((v.floors.plan for v in pool), default=0))
        while pool and len(searched) < self.limits.searches and not self.stop.is_over:
            variant = _probe(pool, (low + high) / 2)
            searched.add(variant.name)
            self.on_progress(
                f"{kind}: {variant.name}, search {len(searched)} of {self.limits.searches} at most"
            )
            figure = self._figure(variant, kind)
            if figure is not None and self._fits(figure):
                best, low = self._take(figure), max(low, variant.floors.plan)
                pool = [v for v in pool if v.size.macs > variant.size.macs]
            else:
                high = min(high, max(low, variant.floors.plan))
                pool = [v for v in pool if not _is_as_large(v, variant)]
        if best is not None:
            ruled_out_by_flash, ruled_out_by_bound = self._above(best.variant, kind)
        left = sum(v.size.macs > self.most and v.name not in searched for v in possible)
        return RungResult(kind, best, ruled_out_by_flash, ruled_out_by_bound, len(searched), left)

    def _lean(self) -> RungResult:
        """Evaluate the plans that were made before on lean firmware, without a further search."""
        larger = [f for (_, kind), f in self.figures.items() if kind == "lean"]
        fitting = [f for f in larger if self._fits(f) and f.variant.size.macs > self.most]
        best = max(fitting, key=lambda f: (f.variant.size.macs, -f.slowdown), default=None)
        tried = sum(f.variant.size.macs > self.most for f in larger)
        _, ruled_out_by_flash, ruled_out_by_bound = self._larger("lean")
        return RungResult(
            "lean", best and self._take(best), ruled_out_by_flash, ruled_out_by_bound, tried
        )

    def _fits(self, figure: VariantOutcome) -> bool:
        return self.limits.fits(figure.arena, figure.file_bytes)

    def _take(self, figure: VariantOutcome) -> VariantOutcome:
        self.most = figure.variant.size.macs
        return figure

    def _figure(self, variant: Variant, kind: RungKind) -> VariantOutcome | None:
        """The outcome of a variant; None if it cannot be planned, in which case the error is added
        to `refused`."""
        data = variant.make()
        digest = hashlib.sha256(data).hexdigest()
        if (digest, kind) in self.figures:
            return replace(self.figures[digest, kind], variant=variant)
        try:
            figure = self._compute_figure(variant, kind, data, digest)
        except PlannerError as error:
            self.refused.add(f"{variant.name}, {kind}: {error}")
            return None
        self.figures[digest, kind] = figure
        return figure

    def _compute_figure(
        self, variant: Variant, kind: RungKind, data: bytes, digest: str
    ) -> VariantOutcome:
        if kind == "stock":
            arena = arena_in(data, self.limits.target)[1]
            return VariantOutcome(variant, kind, arena.arena, len(data), arena.bound)
        planned = PlanningSession(data, self.stop, self.on_progress).plan(self._options(kind)).file
        figure = _figure_of(variant, kind, planned)
        if can_be_lean(self.limits.target):
            lean = self._when_lean(figure, planned)
            earlier = self.figures.get((digest, "lean"))
            if earlier is None or lean.arena < earlier.arena:
                self.figures[digest, "lean"] = lean
        return figure

    def _options(self, kind: RungKind) -> PlanOptions:
        limits = self.limits
        memory = MemoryOptions(kernels=kernels_of(limits.target))
        if kind == "plan":
            return PlanOptions(memory, given_arena_limit=limits.arena_limit, verify=None)
        operators = AllowedOperators.NONE if kind == "tiles" else AllowedOperators.ALL
        tiles = TilePermission(max_slowdown=limits.slowdown, operators=operators)
        return PlanOptions(memory, tiles, given_arena_limit=limits.arena_limit, verify=None)

    def _when_lean(self, figure: VariantOutcome, planned: PlannedFile) -> VariantOutcome:
        """The outcome of the same plan on lean firmware."""
        model, arena = on_lean_firmware(planned, self.limits.target)
        size = len(write_model(model))
        outcome = replace(figure, kind="lean", arena=arena.arena, file_bytes=size)
        return replace(outcome, bound=arena.bound, at_most=True)


def _figure_of(variant: Variant, kind: RungKind, planned: PlannedFile) -> VariantOutcome:
    arena = planned.inspection.arena
    size = len(planned.data)
    return VariantOutcome(variant, kind, arena.arena, size, arena.bound, planned.slowdown)


def _floor(variant: Variant, kind: RungKind) -> int:
    """Lower bound of the variant's head on this rung, in bytes."""
    floors = variant.floors
    return floors.stock if kind == "stock" else floors.plan if kind == "plan" else floors.tiles


def _probe(pool: Sequence[Variant], fattest: float) -> Variant:
    """The variant with the most multiplications whose largest operator needs at most `fattest`
    bytes. If there is none, the variant whose largest operator needs the fewest bytes."""
    lean = [v for v in pool if v.floors.plan <= fattest]
    if not lean:
        return min(pool, key=lambda v: (v.floors.plan, -v.size.macs))
    return max(lean, key=lambda v: v.size.macs)


def _is_as_large(one: Variant, other: Variant) -> bool:
    """Whether a variant has at least the multiplications and the largest operator of another, so
    that it is not expected to fit if the other does not."""
    return one.floors.plan >= other.floors.plan and one.size.macs >= other.size.macs
