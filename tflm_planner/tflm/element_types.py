"""Which element types the kernels of a target support, so that a refusal is known before anything
runs.

    CONV_2D float32 x int8  ->  "CONV_2D of float32 and int8: TFLM's kernel takes ... only"

For the reference kernels of TFLM, every combination of types of the deciding tensors was tried on
the wheel (data/element_types.toml); what other libraries and older versions of TFLM refuse was read
in their sources (data/element_types_read.toml). Only what is known not to run is refused: an
operator without an entry, a type that was not tried, and a kernel library that nobody has read are
accepted. This module must not know plans.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib import resources
from typing import Any

from tflm_planner.model.ir import Op
from tflm_planner.tflm.kernels import library_of
from tflm_planner.tflm.remedies import FREE_BATCH, counts_a_shape, remedy_of, written_as
from tflm_planner.tflm.targets import Target
from tflm_planner.tflm.versions import day_of, has_operator, since

TypeForm = tuple[str, tuple[str | None, ...], tuple[str, ...]]
"""What determines whether a kernel supports the types: kind, types of operands, types of
results."""
_COUNTS = frozenset(("int32", "int64"))
"""Types of counts and indices: an operator with only these types is none that is quantised."""
_TAKEN_OTHERWISE = ("PACK", "STRIDED_SLICE")
"""For these kinds the tables describe only operators that compute shapes."""
_CONVERTS = ("QUANTIZE", "DEQUANTIZE", "CAST")


def form_of(op: Op) -> TypeForm:
    """The form of an operator; the kind of a custom operator is its name."""
    operands = tuple(None if t is None else t.type_name for t in op.inputs)
    return op.kind, operands, tuple(t.type_name for t in op.outputs)


def refusal(op: Op, target: Target) -> str | None:
    """The reason why the target's TFLM cannot run an operator of these types, and what to do; None
    if it can, as far as is known."""
    form = form_of(op)
    reason = _refusal(form, target)
    return None if reason is None else f"{reason}; {_remedy(op, target)}"


def new_refusal(before: Iterable[Op], after: Iterable[Op], targets: Iterable[Target]) -> str | None:
    """The reason why one of `targets` cannot run an operator of `after`, although it can run the
    model `before` from which that was made. None if all can."""
    return new_refusal_of_forms(forms_of(before), forms_of(after), targets)


def moves(kind: str, types: str, target: Target) -> bool:
    """Whether a kernel that only moves elements (SLICE, GATHER, CONCATENATION, ...) supports
    elements of this type, with int32 positions, as far as is known."""
    places = {"GATHER": 1, "SLICE": 2, "PAD": 1, "STRIDED_SLICE": 3}.get(kind, 0)
    update = (types, "int32") if kind == "DYNAMIC_UPDATE_SLICE" else ("int32",) * places
    return _refusal((kind, (types, *update), (types,)), target) is None


def types_since(op: Op, target: Target) -> tuple[str, date]:
    """The day from which the target's kernel takes an operator's types, and operator and types in
    words; `date.min` if it always did, as far as is known."""
    kernel = _kernels().get(op.kind)
    types = None if kernel is None else kernel.types_of(form_of(op))
    if types is None:
        return op.kind, date.min
    learnt = _day_learnt(f"{op.kind} {' '.join(types)}", target)
    return f"{op.kind} of {_types_in_words(op.kind, types)}", learnt or date.min


def lacks_types(op: Op) -> bool:
    """Whether the reference kernel of today's TFLM is known not to take an operator's types."""
    kernel = _kernels().get(op.kind)
    types = None if kernel is None else kernel.types_of(form_of(op))
    return kernel is not None and types is not None and types not in kernel.runs


def forms_of(ops: Iterable[Op]) -> frozenset[TypeForm]:
    """The forms of a model's operators."""
    return frozenset(map(form_of, ops))


def new_refusal_of_forms(
    known_forms: Iterable[TypeForm], forms: Iterable[TypeForm], targets: Iterable[Target]
) -> str | None:
    """`new_refusal` for forms; if several are refused, the first in alphabetical order is reported.
    `known_forms`: those of the model before. A target that refuses one of these is ignored, because
    it will not run the result either."""
    known_forms = {*known_forms}
    new_forms = sorted({*forms} - known_forms, key=str)
    for target in targets if new_forms else ():
        if any(_refusal(form, target) for form in known_forms):
            continue
        for form in new_forms:
            if (reason := _refusal(form, target)) is not None:
                return reason
    return None


@cache
def _refusal(form: TypeForm, target: Target) -> str | None:
    kind, operands, _ = form
    if not has_operator(kind, target):
        return f"TFLM of {day_of(target)} has no {kind} (since {since(kind)})"
    kernel = _kernels().get(kind)
    types = None if kernel is None else kernel.types_of(form)
    if kernel is None or types is None:
        return None
    if not library_of(target).is_read and kind in _replaced_types() and not _is_hybrid(operands):
        return None
    if types not in kernel.runs or types in _refused_types(target.kernels).get(kind, ()):
        return (
            f"{kind} of {_types_in_words(kind, types)}: {_accepted_in_words(kind, kernel, target)}"
        )
    learnt = _day_learnt(f"{kind} {' '.join(types)}", target)
    if learnt is not None and day_of(target) < learnt:
        type_words = _types_in_words(kind, types)
        return f"{kind} of {type_words}: TFLM of {day_of(target)} cannot run it (since {learnt})"
    return None


@dataclass(frozen=True)
class _Kernel:
    """decided_by: (whether it is a result, index) of the tensors whose types decide. runs: types of
    these tensors with which the kernel runs."""

    decided_by: tuple[tuple[bool, int], ...]
    runs: frozenset[tuple[str, ...]]

    def types_of(self, form: TypeForm) -> tuple[str, ...] | None:
        """The types that decide; None if one is missing or was not tried."""
        _, operands, results = form
        type_names: list[str] = []
        for is_result, place in self.decided_by:
            types = results if is_result else operands
            name = types[place] if place < len(types) else None
            if name is None or name not in _tried_types():
                return None
            type_names.append(name)
        return tuple(type_names)


def _types_in_words(kind: str, types: tuple[str, ...]) -> str:
    return (" to " if kind in _CONVERTS else " and ").join(types)


def _accepted_in_words(kind: str, kernel: _Kernel, target: Target) -> str:
    """The types that a kernel supports, in words."""
    refused = _refused_types(target.kernels).get(kind, frozenset[tuple[str, ...]]())
    accepted = sorted(_types_in_words(kind, types) for types in kernel.runs - refused)
    if not accepted:
        return "TFLM's kernel is not known to take any types"
    return f"TFLM's kernel takes {', '.join(accepted)} only"


def _remedy(op: Op, target: Target) -> str:
    """What to do about an operator that does not run."""
    kind, operands, results = form_of(op)
    types = {t for t in (*operands, *results) if t is not None}
    if not has_operator(kind, target) or types_since(op, target)[1] > day_of(target):
        return "newer TFLM has it: --tflm names the one that the firmware is built with"
    if (written := written_as(op)) is not None:
        return written
    if _is_hybrid(operands):
        return (
            "the model is hybrid, float activations with integer weights: convert it with full "
            "integer quantisation (int8 inputs, a representative dataset), or all in float"
        )
    if "float16" in types:
        return (
            "`tflm-plan IN OUT` writes weights of float16 as float32; full integer quantisation "
            "takes a quarter of that"
        )
    if "uint8" in types:
        return (
            "convert the model with TensorFlow 2 and full integer quantisation: int8 inside, and "
            "best inference_input_type=int8"
        )
    if types <= _COUNTS and counts_a_shape(op):
        return FREE_BATCH
    if types <= _COUNTS:
        return (
            "build the model so that the operator gets types that its kernel takes, or leave it to "
            "the application"
        )
    remedy = None if kind in _TAKEN_OTHERWISE else remedy_of(op)
    return (
        remedy
        or "convert the model so that the operator gets types that its kernel takes, int8 mostly"
    )


def _is_hybrid(operands: tuple[str | None, ...]) -> bool:
    """Whether activations are float and weights are integers."""
    kinds = {t for t in operands[:3] if t is not None}
    return "float32" in kinds and bool(kinds & {"int8", "int4", "uint8"})


# --- data -----------------------------------------------------------------------------------


@cache
def _document(name: str) -> dict[str, Any]:
    folder = resources.files("tflm_planner.tflm").joinpath("data")
    return tomllib.loads(folder.joinpath(name).read_text("utf-8"))


@cache
def _tried_types() -> frozenset[str]:
    return frozenset(_document("element_types.toml")["tried"])


@cache
def _kernels() -> Mapping[str, _Kernel]:
    tables: dict[str, dict[str, Any]] = {}
    for name in ("element_types.toml", "element_types_read.toml"):
        tables |= _document(name)["operator"]
    return {
        kind: _Kernel(tuple(map(_place, entry["decided_by"])), _pairs(entry["runs"]))
        for kind, entry in tables.items()
    }


def _place(text: str) -> tuple[bool, int]:
    where, number = text.split()
    return where == "result", int(number)


def _pairs(joined_names: Iterable[str]) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(types.split()) for types in joined_names)


@cache
def _refused_types(kernels: str) -> Mapping[str, frozenset[tuple[str, ...]]]:
    table = _document("element_types_read.toml")["refuses"].get(kernels, {})
    return {kind: _pairs(names) for kind, names in table.items()}


@cache
def _replaced_types() -> frozenset[str]:
    return frozenset(_document("element_types_read.toml")["replaced"]["operators"])


def _day_learnt(key: str, target: Target) -> date | None:
    """The day from which the target's kernel supports these types; None if it always did."""
    entry, name = _document("element_types_read.toml")["since"].get(key), library_of(target).name
    if entry is None or entry.get("kernels", name) != name:
        return None
    return entry["since"]
