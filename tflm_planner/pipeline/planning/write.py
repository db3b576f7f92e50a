"""Makes the file of a planned model: drops unread parts to save flash (if asked for), adds the pool
that lean firmware looks for, then attaches the plan.

    PlacedModel --Minify--> --WritePool--> --AttachPlan--> portable file
                                       --KeepOneZeroPoint--> file for TFLM alone

The order is fixed: the pool depends on the final operators, and the plan lists every tensor.
`WrittenFile` keeps the names that were dropped, so that reports can identify tensors.
"""

from __future__ import annotations

from dataclasses import dataclass

from tflm_planner.model.edit import lend_names, lend_origins
from tflm_planner.model.ir import Model
from tflm_planner.model.serde import read_model, write_model
from tflm_planner.pipeline.options import MemoryOptions
from tflm_planner.pipeline.planning.memory_plan import PlacedModel
from tflm_planner.tflm.kernels import library_of
from tflm_planner.tflm.lean.pool import WritePool
from tflm_planner.transforms.attach_plan import AttachPlan
from tflm_planner.transforms.base import run
from tflm_planner.transforms.minify import KeepOneZeroPoint, Minify


@dataclass(frozen=True)
class WrittenFile:
    """A file, with what is not stored in it: the names of its tensors, and the origins of its
    operators. portable: the file before the last step, if that step made a file that only TFLM
    runs."""

    data: bytes
    names: tuple[str, ...]
    origins: tuple[frozenset[int], ...]
    portable: bytes | None = None
    notes: tuple[str, ...] = ()

    def read_back(self, *, dialect: bool = False) -> Model:
        """The model in the file, with names and origins. It must not be written again."""
        model = read_model(self.data, dialect=dialect)
        lend_names(model, self.names)
        lend_origins(model, self.origins)
        return model


def write_planned(
    placed: PlacedModel, options: MemoryOptions, *, attach: bool = True
) -> WrittenFile:
    """Write a model and its plan to a file. `attach`: whether to attach the plan; otherwise the
    file keeps the plan that the model carries, if any."""
    copy, target = placed.copy(), options.kernels.target
    model = copy.model
    names = tuple(t.name for t in model.tensors())
    is_exact = library_of(target).is_exact
    minify = () if options.strip == "nothing" else (Minify(kernels=is_exact),)
    pool = (WritePool(),) if target.lean else ()
    run(model, *minify, *pool, *((AttachPlan(copy.offsets),) if attach else ()))
    origins = tuple(op.origins for op in model.main.ops)
    portable = write_model(model)
    if not is_exact or options.strip != "unread by TFLM":
        return WrittenFile(portable, names, origins)
    dropped = run(model, KeepOneZeroPoint())
    for_tflm = write_model(model)
    if for_tflm == portable:
        return WrittenFile(portable, names, origins)
    note = (
        f"stripped for TFLM: {', '.join(dropped)}, which LiteRT refuses to run; --portable keeps "
        f"them ({len(portable) - len(for_tflm):,} B)"
    )
    return WrittenFile(for_tflm, names, origins, portable, (note,))


def strip_file(model: Model, options: MemoryOptions) -> bytes:
    """The file of a model that carries its plan, without what `options.strip` drops."""
    is_exact = library_of(options.kernels.target).is_exact
    run(model, Minify(kernels=is_exact))
    if is_exact and options.strip == "unread by TFLM":
        run(model, KeepOneZeroPoint())
    return write_model(model)
