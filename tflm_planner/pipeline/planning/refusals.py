"""Why the proof refused files, and which tilings share the cause and are not offered again.

    refused: operator 7 of the file differs  ->  it is a tile of operator 3  ->  no other tiling
                                                 that has operator 3 in tiles
    refused: TFLM does not run SLICE of uint8 -> no other file with such an operator

If the operator at fault is unknown, other tilings of the same regions may still be right: a few of
them are tried, then only tilings of other regions. It must not run models.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tflm_planner.model.serde import read_model
from tflm_planner.tflm.element_types import TypeForm, forms_of
from tflm_planner.tiling.search import Tiling
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.tile.tile import TiledRegion
from tflm_planner.verification import Verdict
from tflm_planner.verification.terms import TermsProof

MOST_REFUSED = 3
"""After this many refusals for unknown reasons, no other tiling of the same regions is tried."""
MOST_PROOFS = 8
"""The most tilings that are proved before the plan without tiles is taken."""


@dataclass(frozen=True)
class Refusal:
    """reason: why a file was refused, in words. operators: of the original, by their places there,
    that the operator at fault computes a part of; none if it is unknown. form: of the operator at
    fault, if a runtime does not run it at all."""

    reason: str
    operators: frozenset[int] = frozenset()
    form: TypeForm | None = None

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True)
class Proof:
    """The outcome of proving a file. verdict: of the runtimes; None if no proof was asked for, or
    if the terms differ already. refusal: why the file must not be written; None if it may be.
    terms: of the proof for every input; None if it was not asked for."""

    verdict: Verdict | None = None
    refusal: Refusal | None = None
    terms: TermsProof | None = None


@dataclass(frozen=True)
class RefusedRegion:
    """Operators of a region at fault, and how the region was computed: in tiles or in a loop."""

    kind: type[TiledRegion] | type[LoopedRegion]
    operators: frozenset[int]

    def is_like(self, region: TiledRegion | LoopedRegion) -> bool:
        """Whether a region computes one of the operators in the same way."""
        return type(region) is self.kind and bool(self.operators & {*region.ops})


@dataclass(frozen=True)
class RefusalCauses:
    """The causes for which tilings of one model were refused.

    regions: those with an operator at fault. forms: of operators that no runtime ran. unexplained:
    tilings refused for an unknown cause. refusals: how many there were.
    """

    regions: tuple[RefusedRegion, ...] = ()
    forms: frozenset[TypeForm] = frozenset()
    unexplained: tuple[Tiling, ...] = ()
    refusals: int = 0

    def including(self, tiling: Tiling, refusal: Refusal) -> RefusalCauses:
        """These causes with that of one more refusal."""
        at_fault = refusal.operators
        regions = tuple(
            RefusedRegion(type(region), at_fault & {*region.ops})
            for region in tiling.regions
            if at_fault & {*region.ops}
        )
        forms = {refusal.form} if refusal.form is not None else set[TypeForm]()
        is_explained = bool(regions or forms)
        return replace(
            self,
            regions=(*self.regions, *regions),
            forms=self.forms | forms,
            unexplained=self.unexplained if is_explained else (*self.unexplained, tiling),
            refusals=self.refusals + 1,
        )

    def concern(self, tiling: Tiling) -> bool:
        """Whether a tiling has a region like a refused one, or enough tilings were proved."""
        if self.refusals >= MOST_PROOFS:
            return True
        if any(refused.is_like(region) for refused in self.regions for region in tiling.regions):
            return True
        return len(self.unexplained) >= MOST_REFUSED and any(
            _share_a_region(tiling, refused) for refused in self.unexplained
        )

    def concern_files(self, *files: bytes | None) -> bool:
        """Whether one of the files has an operator that no runtime ran."""
        models = (read_model(f, dialect=True) for f in files if f is not None and self.forms)
        return any(self.forms & forms_of(model.ops()) for model in models)


def _share_a_region(one: Tiling, other: Tiling) -> bool:
    """Whether they have regions of one sort with an operator in common."""
    return any(_meet(a, b) for a in one.regions for b in other.regions)


def _meet(a: TiledRegion | LoopedRegion, b: TiledRegion | LoopedRegion) -> bool:
    return type(a) is type(b) and bool({*a.ops} & {*b.ops})
