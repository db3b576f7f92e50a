"""The last steps: what costs flash is dropped if that was asked for, then what lean firmware looks
for is written, then the plan.

    candidate --Strip--> --WritePool--> --Place--> portable file --Squeeze--> file for TFLM alone

Their order is a law: the pool is of the operators as they are now, and the plan lists every
tensor. Names live on in `Written.names`, so that reports can tell tensors apart.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflm_planner.model.serde import write_model
from tflm_planner.pipeline.memory_plan import MemoryOptions, MemoryPlan
from tflm_planner.tflm.kernels import library_of
from tflm_planner.tflm.lean.pool import WritePool
from tflm_planner.transforms.attach_plan import AttachPlan
from tflm_planner.transforms.base import run
from tflm_planner.transforms.minify import KeepOneZeroPoint, Minify


@dataclass(frozen=True)
class WrittenFile:
    """A file, and the names that its tensors had. portable: what it was before the last step, if
    that made it one for TFLM alone."""

    data: bytes
    names: tuple[str, ...]
    portable: bytes | None = None
    notes: tuple[str, ...] = ()


def write_planned(candidate: MemoryPlan, options: MemoryOptions) -> WrittenFile:
    """The candidate as a file. Its model is changed."""
    model, target = candidate.model, options.kernels.target
    names = tuple(t.name for t in model.tensors())
    known = library_of(target).is_exact
    strip = () if options.strip == "nothing" else (Minify(kernels=known),)
    pool = (WritePool(),) if target.lean else ()
    run(model, *strip, *pool, AttachPlan(candidate.offsets))
    data = write_model(model)
    notes = run(model, KeepOneZeroPoint()) if known and options.strip == "unread by TFLM" else []
    if not notes:
        return WrittenFile(data, names)
    squeezed = write_model(model)
    refused = (
        f"stripped for TFLM: {notes[0]}, which LiteRT refuses to run; --portable keeps them "
        f"({len(data) - len(squeezed):,} B)"
    )
    return WrittenFile(squeezed, names, data, (refused,))
