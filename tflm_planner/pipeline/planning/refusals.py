"""Records why the proof refused files, and tells which other tilings share a cause and are skipped.

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
    """Why a file was refused. reason: the reason in words. operators: positions of the operators in
    the original of which the operator at fault computes a part; empty if it is unknown. form: kind
    and types of the operator at fault, if a runtime does not run it at all."""

    reason: str
    operators: frozenset[int] = frozenset()
    form: TypeForm | None = None

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True)
class Proof:
    """The outcome of proving a file. verdict: the verdict of the runtimes; None if no proof was
    asked for, or if the terms differ already. refusal: why the file must not be written; None if it
    may be. terms: the proof for every input; None if no proof was asked for."""

    verdict: Verdict | None = None
    refusal: Refusal | None = None
    terms: TermsProof | None = None


@dataclass(frozen=True)
class RefusedRegion:
    """The operators at fault in a region, and whether the region was computed in tiles or in a
    loop."""

    kind: type[TiledRegion] | type[LoopedRegion]
    operators: frozenset[int]

    def is_like(self, region: TiledRegion | LoopedRegion) -> bool:
        """Whether a region computes one of these operators in the same way."""
        return type(region) is self.kind and bool(self.operators & {*region.ops})


@dataclass(frozen=True)
class RefusalCauses:
    """The causes for which tilings of one model were refused.

    regions: the regions with an operator at fault. forms: kinds and types of operators that a
    runtime did not run. unexplained: tilings refused for an unknown cause. refusals: how many
    refusals there were. subsampled: whether one was of a subsampled model, which may be the cause
    as well.
    """

    regions: tuple[RefusedRegion, ...] = ()
    forms: frozenset[TypeForm] = frozenset()
    unexplained: tuple[Tiling, ...] = ()
    refusals: int = 0
    subsampled: bool = False

    def including(self, tiling: Tiling, refusal: Refusal) -> RefusalCauses:
        """These causes and that of one more refusal."""
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
            subsampled=self.subsampled or tiling.subsample is not None,
        )

    def rules_out(self, tiling: Tiling) -> bool:
        """Whether a tiling is to be skipped: it has a region like a refused one, or there were
        MOST_PROOFS refusals already."""
        if self.refusals >= MOST_PROOFS or (self.subsampled and tiling.subsample is not None):
            return True
        if any(refused.is_like(region) for refused in self.regions for region in tiling.regions):
            return True
        return len(self.unexplained) >= MOST_REFUSED and any(
            _share_a_region(tiling, refused) for refused in self.unexplained
        )

    def rules_out_files(self, *files: bytes | None) -> bool:
        """Whether one of the files has an operator of a form that a runtime did not run."""
        models = (read_model(f, dialect=True) for f in files if f is not None and self.forms)
        return any(self.forms & forms_of(model.ops()) for model in models)


def _share_a_region(one: Tiling, other: Tiling) -> bool:
    """Whether two tilings have regions of the same kind with a common operator."""
    return any(_meet(a, b) for a in one.regions for b in other.regions)


def _meet(a: TiledRegion | LoopedRegion, b: TiledRegion | LoopedRegion) -> bool:
    return type(a) is type(b) and bool({*a.ops} & {*b.ops})
