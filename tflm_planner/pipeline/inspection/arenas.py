"""Computes the arena of a model file, with the plan that it carries if that is valid.

`tflm-plan arena` imports only this module, so that it answers at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tflm_planner.model.ir import Model, Tensor
from tflm_planner.model.serde import read_model
from tflm_planner.support.errors import ModelError, UsageError
from tflm_planner.support.files import read_file
from tflm_planner.tflm.arena.predict import (
    Arena,
    CommonArena,
    SplitArena,
    arena_of,
)
from tflm_planner.tflm.arena.predict import common_arena as arena_of_all
from tflm_planner.tflm.arena.predict import split_arena as arenas_of
from tflm_planner.tflm.refusals import cannot_run
from tflm_planner.tflm.target_kernels import TargetKernels, kernels_of
from tflm_planner.tflm.targets import Target
from tflm_planner.transforms.attach_plan import carried_plan, plan_entries

if TYPE_CHECKING:
    from tflm_planner.verification.planned import PlanFault


@dataclass(frozen=True)
class NamedModel:
    """The bytes of a .tflite model that was read elsewhere, and its name in reports."""

    name: str
    data: bytes


Source = str | Path | bytes | NamedModel
"""A .tflite model: its path, or its bytes."""
_LONG_NAME = re.compile(r"'([^']{24})[^']{20,}([^']{20})'")


def load(source: Source) -> bytes:
    """The bytes of a model."""
    if isinstance(source, NamedModel):
        return source.data
    return source if isinstance(source, bytes) else read_file(Path(source))


def name_of(source: Source) -> str:
    """The name of a model in reports."""
    if isinstance(source, NamedModel):
        return source.name
    return "model" if isinstance(source, bytes) else str(source)


def arena(source: Source, target: Target | None = None) -> Arena:
    """The arena that a model needs on a target (default: Cortex-M4 with CMSIS-NN), with the plan
    that the model carries, if any."""
    return arena_in(load(source), target or kernels_of().target)[1]


def split_arena(source: Source, target: Target | None = None) -> SplitArena | None:
    """The sizes if the model runs in two arenas, one of which is persistent. None if they are not
    known for the target's TFLM."""
    return split_in(load(source), target or kernels_of().target)


def common_arena(sources: Sequence[Source], target: Target | None = None) -> CommonArena:
    """One arena for several models that run one at a time. The models are allocated in this
    order."""
    return common_in([load(source) for source in sources], target or kernels_of().target)


def read_any(data: bytes, *, to_look_at: bool = True) -> tuple[Model, bool]:
    """The model in `data`, and whether it is in the TFLM dialect, in which tensors without a
    producer are views. Raises ModelError if it has such tensors and carries no plan with their
    offsets. to_look_at: the model will not be changed or written, so that it is read without
    numpy."""
    model = read_model(data, dialect=True, to_look_at=to_look_at)
    dialect = model.has_views
    if dialect and carried_plan(model) is None:
        return read_model(data, to_look_at=to_look_at), False  # it says what is wrong with it
    return model, dialect


def arena_in(data: bytes, target: Target, *, variables_apart: bool = False) -> tuple[Model, Arena]:
    """The model in a file, and the arena that it needs with the plan that it carries. If that plan
    is not valid for the target, the arena is that without the plan, and `cannot_run` says why.
    variables_apart: see `arena_of`."""
    model, _ = read_any(data)
    offsets, faults = usable_plan(model, kernels_of(target))
    arena = arena_of(model, target, offsets, variables_apart=variables_apart)
    return model, with_faults(arena, faults)


def split_in(data: bytes, target: Target) -> SplitArena | None:
    """The sizes of the two arenas of the model in a file, with the plan that it carries if that is
    valid. None if the target's TFLM has only one arena, or if its structures are unknown."""
    if target.recording or target.version != "current":
        return None
    model, _ = read_any(data)
    return arenas_of(model, target, usable_plan(model, kernels_of(target))[0])


def common_in(files: Sequence[bytes], target: Target) -> CommonArena:
    """One arena for the models in several files. Raises ModelError, which names the model, if one
    cannot run or cannot share an arena. Raises UsageError for targets on which a common arena was
    never checked."""
    if target.recording or target.lean or target.version != "current":
        raise UsageError(
            f"{target.id}: one arena for several models is known for current TFLM, without the "
            "lean library and without recording; name another --target"
        )
    models: list[tuple[Model, dict[Tensor, int] | None]] = []
    for place, data in enumerate(files):
        model, _ = read_any(data)
        offsets, faults = usable_plan(model, kernels_of(target))
        if reasons := (*faults, *cannot_run(model, target)):
            raise ModelError(f"model {place + 1} cannot run: {reasons[0]}")
        models.append((model, offsets))
    return arena_of_all(models, target)


def usable_plan(
    model: Model, kernels: TargetKernels
) -> tuple[dict[Tensor, int] | None, tuple[str, ...]]:
    """The plan that a model carries, or None if it carries none or a wrong one; and what is wrong
    with it."""
    if not plan_entries(model):
        return None, ()

    from tflm_planner.verification.planned import plan_faults  # few models need it

    faults = tuple(_in_words(list(plan_faults(model, kernels)), kernels.target.id))
    return (None if faults else carried_plan(model)), faults


def with_faults(arena: Arena, faults: tuple[str, ...]) -> Arena:
    """The arena with faults of the plan added to `cannot_run`: TFLM follows a wrong plan in an
    arena of any size."""
    return replace(arena, cannot_run=(*arena.cannot_run, *faults))


def _in_words(faults: list[PlanFault], target_id: str) -> Iterator[str]:
    """Yield a line for each kind of fault in a plan: how many there are, and the first of them."""
    for kind in dict.fromkeys(f.kind for f in faults):
        alike = [f for f in faults if f.kind == kind]
        first = _LONG_NAME.sub(r"'\1...\2'", alike[0].said)
        if kind == "collision":
            complaint = (
                f"shares memory in {len(alike)} places beyond what the kernels of {target_id} "
                f"allow, for example: {first}. With it TFLM computes garbage"
            )
        else:
            complaint = f"is wrong: {first}{f' (and {len(alike) - 1} more)' if alike[1:] else ''}"
        yield (
            f"the plan that the model carries {complaint}; the figures are those without it. "
            "`tflm-plan verify MODEL` says all that is wrong, and `tflm-plan IN OUT` makes another"
        )
