"""The arena of the model in a file: with the plan that it carries, if that is right.

What `tflm-plan arena` does, and all that it imports, so that it answers at once.
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
from tflm_planner.tflm.element_types import cannot_run
from tflm_planner.tflm.target_kernels import TargetKernels, kernels_of
from tflm_planner.tflm.targets import Target
from tflm_planner.transforms.attach_plan import carried_plan, plan_entries

if TYPE_CHECKING:
    from tflm_planner.verification.planned import PlanFault


@dataclass(frozen=True)
class NamedModel:
    """The bytes of a .tflite model, and the name that reports give it: of a model that was read
    elsewhere."""

    name: str
    data: bytes


Source = str | Path | bytes | NamedModel
"""A .tflite model: its path, or its bytes."""
_LONG_NAME = re.compile(r"'([^']{24})[^']{20,}([^']{20})'")


def load(source: Source) -> bytes:
    """The bytes of a model given as path or bytes."""
    if isinstance(source, NamedModel):
        return source.data
    return source if isinstance(source, bytes) else read_file(Path(source))


def name_of(source: Source) -> str:
    """What reports call a model."""
    if isinstance(source, NamedModel):
        return source.name
    return "model" if isinstance(source, bytes) else str(source)


def arena(source: Source, target: Target | None = None) -> Arena:
    """The arena that a model needs on a target (Cortex-M4 with CMSIS-NN if none is given), with
    the plan that the model carries, if it does."""
    return arena_in(load(source), target or kernels_of().target)[1]


def split_arena(source: Source, target: Target | None = None) -> SplitArena | None:
    """The same in two arenas, of which one persists; None where the target's TFLM has no such."""
    return split_in(load(source), target or kernels_of().target)


def common_arena(sources: Sequence[Source], target: Target | None = None) -> CommonArena:
    """One arena for several models that run in turn, in the order in which they are allocated."""
    return common_in([load(source) for source in sources], target or kernels_of().target)


def read_any(data: bytes, *, to_look_at: bool = True) -> tuple[Model, bool]:
    """The model in `data`, to be looked at unless said otherwise, and whether it is in the TFLM
    dialect, in which tensors without a producer are views. These are accepted only if the model
    carries a plan that says where they lie; otherwise ModelError is raised."""
    model = read_model(data, dialect=True, to_look_at=to_look_at)
    dialect = model.has_views
    if dialect and carried_plan(model) is None:
        return read_model(data, to_look_at=to_look_at), False  # which says what is wrong with it
    return model, dialect


def arena_in(data: bytes, target: Target, *, variables_apart: bool = False) -> tuple[Model, Arena]:
    """The model in a file, and the arena that it needs with the plan that it carries, or without it
    if that plan is not valid for the target; the model then cannot run, and the arena says why.
    variables_apart: see `arena_of`."""
    model, _ = read_any(data)
    offsets, faults = usable_plan(model, kernels_of(target))
    arena = arena_of(model, target, offsets, variables_apart=variables_apart)
    return model, with_faults(arena, faults)


def split_in(data: bytes, target: Target) -> SplitArena | None:
    """The two arenas of the model in a file, with the plan that it carries if that is valid; None
    where TFLM on the target makes one only, or its structures are not known."""
    if target.recording or target.version != "current":
        return None
    model, _ = read_any(data)
    return arenas_of(model, target, usable_plan(model, kernels_of(target))[0])


def common_in(files: Sequence[bytes], target: Target) -> CommonArena:
    """One arena for the models in several files. Raises ModelError where one cannot run, or cannot
    share an arena, and says which; UsageError for firmware on which nobody has seen it."""
    if target.recording or target.lean or target.version != "current":
        raise UsageError(
            f"{target.id}: one arena for several models is known for current TFLM, without the "
            "lean library and without recording; name another --target"
        )
    models: list[tuple[Model, dict[Tensor, int] | None]] = []
    for place, data in enumerate(files):
        model, _ = read_any(data)
        offsets, faults = usable_plan(model, kernels_of(target))
        if reasons := (*faults, *cannot_run(model.ops(), target)):
            raise ModelError(f"model {place + 1} cannot run: {reasons[0]}")
        models.append((model, offsets))
    return arena_of_all(models, target)


def usable_plan(
    model: Model, kernels: TargetKernels
) -> tuple[dict[Tensor, int] | None, tuple[str, ...]]:
    """The plan that a model carries, if TFLM can run it, and what is wrong with it."""
    if not plan_entries(model):
        return None, ()

    from tflm_planner.verification.planned import plan_faults  # most models carry no plan

    faults = tuple(_in_words(list(plan_faults(model, kernels)), kernels.target.id))
    return (None if faults else carried_plan(model)), faults


def with_faults(arena: Arena, faults: tuple[str, ...]) -> Arena:
    """The same arena, marked as not runnable: TFLM would follow the wrong plan whatever the arena's
    size."""
    return replace(arena, cannot_run=(*arena.cannot_run, *faults))


def _in_words(faults: list[PlanFault], target_id: str) -> Iterator[str]:
    """A line for each sort of fault in a plan: how many, and the first of them."""
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
