"""Finds the largest network that fits on each rung: stock, plan, tiles, more operators, lean, rows
streamed.

    variants, most MACs first
      | flash: are the parameters alone too many?      floor: is one operator alone too fat?
      v
    stock --> plan --> tiles --> more operators --> lean --> rows streamed
              each rung asks only for variants that are larger than what fits already

The first two rungs are exhaustive: all variants that the lower bounds do not rule out are tried,
from the largest down to the first that fits. A whole search for tiles takes a minute, so variants
get a quick one first, chosen by halving: between those that fit and those that do not, by the bytes
of their largest operator. Only those that nearly fit then get the search that their command makes,
from the largest down. The rung's result is the first of them that fits; a larger one that had no
such search may fit as well. Rows are streamed without tiles first, which takes a second: all
possible variants are tried so, and larger ones that nearly fit are searched.

Only memory is computed here: networks are not trained, and plans are not run. It must not know how
results are shown, nor how a figure is computed (`outcomes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tflm_planner.codesign.fitting.outcomes import Outcomes, VariantOutcome
from tflm_planner.codesign.fitting.variants import Limits, Variant
from tflm_planner.memory.allocators import compiling
from tflm_planner.report.document import RungKind
from tflm_planner.support.interrupts import stop_on_ctrl_c
from tflm_planner.support.progress import Progress
from tflm_planner.support.stopping import Stop
from tflm_planner.tflm.arena.uncertainty import may_need_more
from tflm_planner.tflm.targets import can_be_lean

KINDS: tuple[RungKind, ...] = ("stock", "plan", "tiles", "more operators", "lean", "rows streamed")
_QUICK_SEARCHES = 48
"""Quick searches, at most, on a rung where whole ones are allowed. Halving ends by itself: after 2
to 26 of them on ten rungs (mobilenet_v2 with 96 KB, resnet20 with 64 KB, ds_cnn with 20 KB,
mobilenet_v1 with 64 KB, resnet8 with 256 KB; tiles, more operators; 6 to 57 s of processor time a
rung), and the last ones find what fits. With at most 24, ds_cnn in tiles would have nothing that
fits with a quick figure (it is found by the 26th); with 12 mobilenet_v2 and mobilenet_v1 neither
(by the 13th and 15th)."""
_NEARLY = 1.1
"""A variant nearly fits if a quick search finds at most this share of the limit. In nine cases
whole searches found 0 to 8 % less, half of them at most 1.3 %."""
_TOO_HEAVY = (
    "the parameters of every variant exceed the flash; much of them may be the classifier: "
    "--classes says how many classes yours has, --widths what else to try"
)


@dataclass(frozen=True, slots=True)
class RungResult:
    """The result of one rung. best: the largest variant that fits, if it is larger than those of
    the rungs before; else None. ruled_out_by_flash, ruled_out_by_bound: how many larger variants
    were ruled out without a plan, by their parameters or by a lower bound of the memory. tried: how
    many variants were computed. left: how many larger variants may fit, since their command's
    search was not made."""

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
    outcomes = Outcomes(limits, on_progress, stop or Stop())
    try:
        with stop_on_ctrl_c(outcomes.stop):
            rungs = _Fitting(variants, outcomes).rungs()
    finally:
        compiling.abandon()
    figures = tuple(outcomes.known.values())
    doubts = ("arenas of this target are not known: a board may need more",) * any(
        may_need_more(figure.bound) for figure in figures
    )
    too_heavy = (_TOO_HEAVY,) * (0 < len(variants) == rungs[0].ruled_out_by_flash)
    refused = (f"refused: {words}" for words in _with_names(outcomes.refused, ", "))
    remarks = _with_names(_names_by_note(variants), ": ")
    notes = (*outcomes.stop.notes, *too_heavy, *doubts, *remarks, *refused)
    return Fits(family, limits, len(variants), rungs, figures, notes)


def _names_by_note(variants: Sequence[Variant]) -> dict[str, list[str]]:
    """For each note of a variant, the names of the variants that have it."""
    names: dict[str, list[str]] = {}
    for variant in variants:
        for note in variant.notes:
            names.setdefault(note, []).append(variant.name)
    return names


def _with_names(names: Mapping[str, Sequence[str]], between: str) -> Iterator[str]:
    """Yield each text (an error, a note) after the first of the variants that it concerns."""
    for text, concerned in sorted(names.items()):
        more = f" and {len(concerned) - 1} more" if concerned[1:] else ""
        yield f"{concerned[0]}{more}{between}{text}"


@dataclass
class _Fitting:
    """One run of `fit`. most: multiplications of the largest variant that fits so far. whole: the
    variants whose figure is that of their command, by rung."""

    variants: Sequence[Variant]
    outcomes: Outcomes
    most: int = -1
    whole: set[tuple[RungKind, str]] = field(default_factory=set[tuple[RungKind, str]])

    def rungs(self) -> tuple[RungResult, ...]:
        """The results of all rungs. After Ctrl-C the remaining rungs try nothing."""
        results = [self._descend("stock"), self._descend("plan")]
        results += [self._halve("tiles"), self._halve("more operators")]
        if can_be_lean(self.outcomes.limits.target):
            results.append(self._lean())
        return (*results, self._descend("rows streamed"))

    def _descend(self, kind: RungKind) -> RungResult:
        """Try every possible variant, the largest first, until one fits."""
        figures: list[VariantOutcome] = []
        possible, tried = self._light(), 0
        for place, variant in enumerate(possible):
            if self.outcomes.stop.is_over:
                break
            if self._is_ruled_out(variant, kind):
                continue
            tried += 1
            figure = self._figure(variant, kind, f"{place + 1} of {len(possible)} at most")
            figures += [] if figure is None else [figure]
            if figure is not None and self.outcomes.fits(figure):
                break
        return self._result(kind, self._first_that_fits(figures), tried)

    def _halve(self, kind: RungKind) -> RungResult:
        """Try a few of the possible variants, chosen by halving the range of the bytes of their
        largest operator."""
        pool = [v for v in self._light() if not self._is_ruled_out(v, kind)]
        figures: list[VariantOutcome] = []
        most, tried = _QUICK_SEARCHES if self.outcomes.limits.searches else 0, 0
        low = float(self.outcomes.limits.arena_limit)
        high = float(max((v.floors.plan for v in pool), default=0))
        while pool and tried < most and not self.outcomes.stop.is_over:
            variant = _probe(pool, (low + high) / 2)
            tried += 1
            figure = self._figure(variant, kind, f"quick search {tried} of {most} at most")
            figures += [] if figure is None else [figure]
            if figure is not None and self.outcomes.fits(figure):
                low = max(low, variant.floors.plan)
                pool = [v for v in pool if v.size.macs > variant.size.macs]
            else:
                high = min(high, max(low, variant.floors.plan))
                pool = [v for v in pool if not _is_as_large(v, variant)]
        return self._result(kind, self._first_that_fits(figures), tried)

    def _first_that_fits(self, figures: Sequence[VariantOutcome]) -> VariantOutcome | None:
        """The largest variant that fits with the figures of its command, of those that fit or
        nearly fit with the quick figures that are given. A few get the search that is missing."""
        limits, searched = self.outcomes.limits, 0
        for figure in sorted(figures, key=lambda f: -f.variant.size.macs):
            if self.outcomes.fits(figure) and figure.has_command:
                return figure
            is_near = figure.quick and figure.arena <= _NEARLY * limits.arena_limit
            if not is_near or searched == limits.searches or self.outcomes.stop.is_over:
                continue
            searched += 1
            words = f"search {searched} of {limits.searches} at most"
            found = self._figure(figure.variant, figure.kind, words, quick=False)
            if found is not None and self.outcomes.fits(found):
                return found
        return None

    def _lean(self) -> RungResult:
        """Evaluate the plans that were made before on lean firmware, without a further search."""
        larger = [f for (_, kind), f in self.outcomes.known.items() if kind == "lean"]
        larger = [f for f in larger if f.variant.size.macs > self.most]
        fitting = [f for f in larger if self.outcomes.fits(f)]
        best = max(fitting, key=lambda f: (f.variant.size.macs, -f.slowdown), default=None)
        return self._result("lean", best, len(larger))

    def _figure(
        self, variant: Variant, kind: RungKind, progress: str, *, quick: bool = True
    ) -> VariantOutcome | None:
        self.outcomes.on_progress(f"{kind}: {variant.name}, {progress}")
        figure = self.outcomes.of(variant, kind, quick=quick)
        if figure is None or not figure.quick:
            self.whole.add((kind, variant.name))
        return figure

    def _light(self) -> list[Variant]:
        """The variants that are larger than the best so far, and whose parameters fit the flash."""
        flash, larger = self.outcomes.limits.flash, self._larger()
        return [v for v in larger if flash is None or v.size.parameter_bytes <= flash]

    def _larger(self) -> list[Variant]:
        return [v for v in self.variants if v.size.macs > self.most]

    def _is_ruled_out(self, variant: Variant, kind: RungKind) -> bool:
        return self.outcomes.floor(variant, kind) > self.outcomes.limits.arena_limit

    def _result(self, kind: RungKind, best: VariantOutcome | None, tried: int) -> RungResult:
        """The result of a rung whose best variant this is; it becomes the best so far."""
        self.most = self.most if best is None else best.variant.size.macs
        light = self._light()
        possible = [v for v in light if not self._is_ruled_out(v, kind)]
        left = sum((kind, v.name) not in self.whole for v in possible)
        ruled_out_by_flash = len(self._larger()) - len(light)
        ruled_out_by_bound = len(light) - len(possible)
        return RungResult(kind, best, ruled_out_by_flash, ruled_out_by_bound, tried, left)


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
