"""Why the proof refused files, and which tilings share the cause: these are not offered again.

    refused: operator 7 of the file differs  ->  it is a tile of operator 3  ->  no other tiling
                                                 that has operator 3 in tiles
    refused: TFLM does not run SLICE of uint8 -> no other file with such an operator

Where nobody can say which operator it was, other forms of the same regions may still be right: a
few of them are tried, then only tilings of other regions. It must not run models.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model
from tflm_planner.tflm.element_types import Form, forms_of
from tflm_planner.tiling.search import Tiling
from tflm_planner.transforms.base import run
from tflm_planner.transforms.normalize import Normalize
from tflm_planner.transforms.row_loop import LoopedRegion
from tflm_planner.transforms.tile.tile import TiledRegion

MOST_REFUSED = 3
"""Tilings refused for reasons unknown, after which no other one of the same regions is tried."""
MOST_PROOFS = 8
"""Tilings that are proved at most, before the plan without tiles is fallen back on."""


@dataclass(frozen=True)
class Refusal:
    """said: why a file was refused. tensor: name of what the operator at fault writes. form: of
    that operator, if a runtime does not run it at all."""

    said: str
    tensor: str = ""
    form: Form | None = None

    def __str__(self) -> str:
        return self.said


@dataclass
class Suspects:
    """What was refused of the tilings of one model. skipped: tilings that share a cause."""

    original: bytes
    skipped: int = 0
    _regions: list[tuple[type, frozenset[int]]] = field(
        default_factory=list[tuple[type, frozenset[int]]]
    )
    _forms: set[Form] = field(default_factory=set[Form])
    _unknown: list[Tiling] = field(default_factory=list[Tiling])
    _count: int = 0

    def note(self, tiling: Tiling, why: Refusal | str | None) -> None:
        """A tiling was refused."""
        self._count += 1
        found = False
        if isinstance(why, Refusal):
            if why.form is not None:
                self._forms.add(why.form)
            places = self._places(why.tensor)
            hit = [(type(s), places & {*s.ops}) for s in tiling.regions if places & {*s.ops}]
            self._regions += hit
            found = bool(hit) or why.form is not None
        if not found:
            self._unknown.append(tiling)

    def shares(self, tiling: Tiling) -> bool:
        """Whether a tiling has a region like one that was refused, or enough were proved."""
        if self._count >= MOST_PROOFS:
            return True
        for kind, places in self._regions:
            if any(type(s) is kind and places & {*s.ops} for s in tiling.regions):
                return True
        return len(self._unknown) >= MOST_REFUSED and any(_alike(tiling, t) for t in self._unknown)

    def holds(self, *files: bytes | None) -> bool:
        """Whether one of the files has an operator that no runtime ran."""
        models = (read_model(f, dialect=True) for f in files if f is not None and self._forms)
        return any(self._forms & forms_of(model.ops()) for model in models)

    def skip(self) -> None:
        """One more tiling that shares a cause."""
        self.skipped += 1

    def _places(self, tensor: str) -> frozenset[int]:
        """The operators of the original that write or read what `tensor` is a part of."""
        model = read_model(self.original)
        run(model, Normalize())
        whole = _whole_of(model, tensor)
        return frozenset(
            i
            for i, op in enumerate(model.main.ops)
            if whole in {t.name for t in op.outputs}
            or (whole in {t.name for t in op.operands()} and not _is_made(model, whole))
        )


def _whole_of(model: Model, part: str) -> str:
    """The name of the tensor of `model` that a part of it was named after."""
    names = {t.name for t in model.main.tensors if t.name}
    while part not in names and "/" in part:
        part = part.rpartition("/")[0]
    return part


def _is_made(model: Model, name: str) -> bool:
    return any(name == t.name for op in model.main.ops for t in op.outputs)


def _alike(one: Tiling, other: Tiling) -> bool:
    """Whether they have regions of one sort with an operator in common."""
    return any(_meet(a, b) for a in one.regions for b in other.regions)


def _meet(a: TiledRegion | LoopedRegion, b: TiledRegion | LoopedRegion) -> bool:
    return type(a) is type(b) and bool({*a.ops} & {*b.ops})
