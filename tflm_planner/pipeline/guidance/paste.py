"""Makes the lines to paste into the firmware's source for a planned model: the arena and the
operators, with remarks on the TFLM that they need.

    constexpr int kTensorArenaSize = 57464;
    alignas(16) uint8_t tensor_arena[kTensorArenaSize];
    tflite::MicroMutableOpResolver<5> resolver;
    resolver.AddConv2D(); ...

`tflm-plan export` writes the same lines to files. It must not know how the plan was found.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from tflm_planner.model.ir import Model
from tflm_planner.report.document import Paste
from tflm_planner.report.text.arena import margin_remarks
from tflm_planner.report.text.safe import safe_text
from tflm_planner.tflm.arena.predict import Arena
from tflm_planner.tflm.channel_scales import channel_scales_since
from tflm_planner.tflm.element_types import types_since
from tflm_planner.tflm.kernels.operator_allocations import lacks
from tflm_planner.tflm.narrow_biases import narrow_bias_since
from tflm_planner.tflm.resolver_methods import resolver_method
from tflm_planner.tflm.targets import Target
from tflm_planner.tflm.versions import (
    FIRST_KNOWN,
    day_of_version,
    since,
    since_behaviour,
    with_tflm,
)
from tflm_planner.transforms.attach_plan import carried_plan

_ARDUINO_LIBRARY = "arduino-2023"
"""The name of the TFLM version, and of the target, for the library in Arduino's library manager."""


def paste_of(model: Model, arena: Arena, target: Target, arena_limit: int | None = None) -> Paste:
    """The lines for a model and its arena; empty if TFLM cannot run the model. arena_limit: bytes
    that the array may take; a margin ends there."""
    if arena.cannot_run:
        return Paste()
    size = arena.reserved
    if arena_limit is not None and arena.arena <= arena_limit:
        size = min(size, arena_limit)
    operators, remarks = _operators(model, target)
    lines = (
        f"constexpr int kTensorArenaSize = {size};",
        "alignas(16) uint8_t tensor_arena[kTensorArenaSize];",
        *operators,
    )
    return Paste(lines, (*margin_remarks(arena, size), *remarks, *_versions(model, target)))


def _operators(model: Model, target: Target) -> tuple[list[str], list[str]]:
    """Lines that register the model's operators, and remarks on those that TFLM does not
    provide."""
    used = sorted({(op.kind, op.code.custom is not None) for op in model.ops()})
    methods = {kind: resolver_method(kind, custom=custom) for kind, custom in used}
    resolver = "lean::OpResolver" if target.lean else "tflite::MicroMutableOpResolver"
    lines = [f"{resolver}<{max(len(used), 1)}> resolver;"]
    lines += [f"resolver.{method}();" for method in methods.values() if method]
    if target.lean:
        lines.append("lean::UseModel(model_data, model_size);  // before AllocateTensors()")
    own = [(safe_text(kind), custom) for kind, custom in used if methods[kind] is None]
    remarks = [_own_kernel(kind, custom=custom) for kind, custom in own]
    variables = sum(op.kind == "VAR_HANDLE" for op in model.ops())
    if variables:
        remarks.append(
            f"the interpreter needs tflite::MicroResourceVariables::Create(allocator, {variables})"
        )
    return lines, remarks


def _own_kernel(kind: str, *, custom: bool) -> str:
    """A remark on an operator that TFLM does not provide. AddCustom() finds operators by the name
    that they have in the file, which those of the schema lack; AddBuiltin() is private."""
    if custom:
        return f"and resolver.AddCustom() for your own {kind}"
    return f"TFLM has no {kind}: it takes a kernel, and a method of the resolver, of your own"


def _versions(model: Model, target: Target) -> Iterator[str]:
    """Yield remarks on the oldest TFLM that has all features of the model and, for an Arduino
    board, on whether Arduino's library is new enough."""
    days = {op.kind: since(op.kind) for op in model.ops()} | _days_of_types(model, target)
    if len(model.graphs) > 1 and carried_plan(model):
        days["plans of several sub-graphs"] = since_behaviour("plans_of_subgraphs")
    newest = max(days.values(), default=date.min)
    if newest <= FIRST_KNOWN:
        yield f"runs on TFLM of {FIRST_KNOWN:%B %Y} and later, with OfflineMemoryAllocation"
    else:
        why = ", ".join(sorted(feature for feature, day in days.items() if day == newest))
        yield f"runs on TFLM of {newest} and later ({why})"
    if target.board is not None and target.board.vendor == "Arduino":
        yield _on_arduino(model, target, newest)


def _days_of_types(model: Model, target: Target) -> dict[str, date]:
    """What kernels of the target take of the model's types and scales -> the day from which they
    do."""
    days = dict(types_since(op, target) for op in model.ops())
    for op in model.ops():
        for what, first in (
            ("a scale for each channel", channel_scales_since(op, target)),
            ("a bias of int32", narrow_bias_since(op, target)),
        ):
            if first is None or first > date.min:
                days[f"{op.kind} with {what}"] = first or date.max
    return days


def _on_arduino(model: Model, target: Target, newest: date) -> str:
    """A remark on whether the library in Arduino's library manager runs the model."""
    day = day_of_version(_ARDUINO_LIBRARY)
    old = with_tflm(target, day.isoformat())
    missing = {op.kind for op in model.ops() if lacks(op.kind, old)}
    missing |= {what for what, learnt in _days_of_types(model, old).items() if learnt > day}
    library = f"Arduino_TensorFlowLite of {day:%B %Y}"
    if not missing and newest <= day:
        return (
            f"{library} has all that it needs; its structures are other ones: --target "
            f"{_ARDUINO_LIBRARY} says its arena"
        )
    lacking = ", ".join(sorted(missing)) or "plans of several sub-graphs"
    return f"{library} lacks {lacking}: use a newer TFLM, or --tflm {day:%Y-%m}"
