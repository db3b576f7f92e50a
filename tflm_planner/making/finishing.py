"""The last steps: what costs flash is dropped if that was asked for, then what lean firmware looks
for is written, then the plan.

    candidate --Strip--> --WritePool--> --Place--> portable file --Squeeze--> file for TFLM alone

Their order is a law: the pool is of the operators as they are now, and the plan lists every
tensor. Names live on in `Written.names`, so that reports can tell tensors apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflm_planner.passes.base import run
from tflm_planner.passes.place import Place
from tflm_planner.passes.strip import Squeeze, Strip
from tflm_planner.search import Candidate, SearchOptions
from tflm_planner.serde import write_model
from tflm_planner.tflm.lean import WritePool
from tflm_planner.tflm.targets import CONSERVATIVE


@dataclass(frozen=True)
class Written:
    """A file, and the names that its tensors had. portable: what it was before the last step, if
    that made it one for TFLM alone."""

    data: bytes
    names: tuple[str, ...]
    portable: bytes | None = None
    notes: tuple[str, ...] = ()


def finish(candidate: Candidate, options: SearchOptions) -> Written:
    """The candidate as a file. Its model is changed."""
    model, target = candidate.model, options.machine.target
    names = tuple(t.name for t in model.tensors())
    known = target.kernels not in CONSERVATIVE
    strip = () if options.strip == "nothing" else (Strip(kernels=known),)
    pool = (WritePool(),) if target.lean else ()
    run(model, *strip, *pool, Place(candidate.offsets))
    data = write_model(model)
    notes = run(model, Squeeze()) if known and options.strip == "unread by TFLM" else []
    if not notes:
        return Written(data, names)
    squeezed = write_model(model)
    refused = (
        f"stripped for TFLM: {notes[0]}, which LiteRT refuses to run; --portable keeps them "
        f"({len(data) - len(squeezed):,} B)"
    )
    return Written(squeezed, names, data, (refused,))
